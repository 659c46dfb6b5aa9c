package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/shown"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A body that could be read as more than its client meant, such as a match whose text got lost on
// the way, changes nothing.
func TestBodiesThatMayMeanAnotherThingAreRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom", "a", "b")
	for _, body := range []string{
		`null`, `{"match":null}`, `{"match":{"error":null}}`, `{"match":{"prefix":null}}`, `{"match":{"error":""}}`,
		`{"match":{"prefix":""}}`,
		`{"match":{"group":""}}`, `{"match":{},"match":{"error":"x"}}`, `{"match":{"error":"x","error":"boom"}}`,
		`{"match":{"error":"x"},"Match":{}}`,
		`{"match":{},"dry_run":true,"dry_run":false}`, `{"match":{},"dry_run":null}`, `{"MATCH":{}}`,
		`{"match":{"ERROR":"boom"}}`, `{"match":{"prefıx":"a"}}`,
		`{"match":{},"continue":null}`, `{"match":{},"before":null}`, `{"match":{},"before":"0001-01-01T00:00:00Z"}`,
		`{"ids":["a"],"ids":["b"]}`,
		`{"ids":[null]}`, `{"ids":["a",null]}`, `{"payloads":[{"id":"a","id":"b","payloads":[{"data":"p"}]}]}`,
		`{"payloads":[{"id":"a","payloads":[{"data":"p"},{"data":"q","data":"p"}]}]}`,
		`{"payloads":[{"id":"a","payloads":null}]}`,
	} {
		refused(t, body,
			answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge", body)), 400, "bad-request")
	}
	p := refused(t, "an empty text",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match":{"error":""}}`)),
		400, "bad-request")
	if want := "the body can't be read: an empty text in match; omit the field, " +
		"and send {} to match everything"; p.Detail != want {
		t.Errorf("an empty text is refused by %q, want %q", p.Detail, want)
	}
	p = refused(t, "a field of another type",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match":{"prefix":5}}`)),
		400, "bad-request")
	if want := "the body can't be read: the field match.prefix is a number; give a text"; p.Detail != want {
		t.Errorf("a field of another type is refused by %q, want %q", p.Detail, want)
	}
	for _, route := range table() {
		if route.action() {
			target, _ := route.target(t)
			refused(t, target, answerOf(h.api, request(route.method, target, "null")), 400, "bad-request")
		}
	}
	if h.letters() != 2 {
		t.Error("something was purged")
	}
	// The same names, and empty texts, in other places are no mistake.
	body := `{"payloads":[{"id":"a","payloads":[{"data":""}]},{"id":"b","payloads":[{"data":"x"},{"data":"x"}]}]}`
	if w := answerOf(h.api,
		request(http.MethodPost, base+"/queues/orders/morgue/purge", body)); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The names of all fields are of the letters that requests are held to.
func TestFieldsHaveSimpleNames(t *testing.T) {
	for _, route := range table() {
		if route.body == nil {
			continue
		}
		for _, f := range shown.Fields(route.body) {
			if strings.Trim(f.Name, fieldLetters) != "" {
				t.Errorf("%s: %q", route.path, f.Name)
			}
		}
	}
}

// The document describes which requests are refused: other fields, an empty text in a match, a
// page of none.
func TestTheDocumentIsAsStrict(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema map[string]any
			}
			RequestBody struct {
				Content map[string]struct {
					Schema map[string]string
				}
			}
		}
		Components struct {
			Schemas map[string]struct {
				AdditionalProperties *bool
				Properties           map[string]map[string]any
			}
		}
	}
	h := newHouse(t, Options{})
	if err := json.Unmarshal(answerOf(h.api,
		request(http.MethodGet, base+"/openapi.json", "")).Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	for _, route := range table() {
		operation := document.Paths[route.path][strings.ToLower(route.method)]
		for _, p := range operation.Parameters {
			if p.Name == "limit" && p.Schema["minimum"] != 1.0 {
				t.Errorf("%s: limit is %v", route.path, p.Schema)
			}
		}
		if !route.action() {
			continue
		}
		name := strings.TrimPrefix(operation.RequestBody.Content["application/json"].Schema["$ref"],
			"#/components/schemas/")
		if closed := document.Components.Schemas[name].AdditionalProperties; closed == nil || *closed {
			t.Errorf("%s: %s may have other fields", route.path, name)
		}
	}
	for _, name := range []string{"Match", "LetterPayloads", "Octets", "Replacement"} {
		if closed := document.Components.Schemas[name].AdditionalProperties; closed == nil || *closed {
			t.Errorf("%s may have other fields", name)
		}
	}
	if least := document.Components.Schemas["Match"].Properties["error"]["minLength"]; least != 1.0 {
		t.Errorf("an empty text in a match: %v", least)
	}
}

// The name of a group is made of an error's text, so that it is in no checkpoint where errors are
// redacted, ids or not.
func TestNoCheckpointHasTheNameOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{RedactError: func(string, string, string) string { return "an error" }})
		h.dead("dsn-secret", numbered("a", 1500)...)
		groups := get[groupsReply](h, "/queues/orders/groups")
		body := service.BulkBody{Match: &service.Match{Group: service.Given(groups.Items[0].Group)}}
		w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/revive", string(marshalled(t, body))))
		holdsNoSecret(t, "revive", w.Body.String(), "dsn-secret")
		body.Continue = read[service.BulkReply](t, w).Continue
		if reply := post[service.BulkReply](h, "/queues/orders/morgue/revive", body); reply.Handled != 1500 ||
			body.Continue == "" {
			t.Errorf("%+v", reply)
		}
	})
}

func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// An id is found in the queues that answer, and those are named that do not.
func TestFindInAllSaysWhichQueuesDoNotAnswer(t *testing.T) {
	h := newHouse(t, Options{})
	if _, err := h.store.Declare(t.Context(), declarePlain); err != nil {
		t.Fatal(err)
	}
	h.push("a", 0, "p")
	var lost []string
	finds := 0
	h.api = h.over(storekit.Intercept(h.store, func(
		ctx context.Context, call storekit.Call, next func(context.Context) error,
	) error {
		if call.Method == "Find" && finds < len(lost) {
			finds++
			return errors.New("connection refused")
		}
		return next(ctx)
	}), Options{})
	for _, tt := range []struct{ lost, want []string }{
		{nil, nil},
		{[]string{"orders"}, []string{core.Shard{Queue: "orders", Index: core.ShardOf("a", houseShards)}.String()}},
	} {
		finds, lost = 0, tt.lost
		page := get[list[foundRow]](h, "/find?id=a")
		if diff := cmp.Diff(tt.want, page.Unreached); diff != "" {
			t.Errorf("unreached (-want +got):\n%s", diff)
		}
		if len(page.Items) != 1-len(tt.want) {
			t.Errorf("%+v", page)
		}
	}
	finds, lost = 0, []string{"orders", "plain"}
	refused(t, "none answers", answerOf(h.api, request(http.MethodGet, base+"/find?id=a", "")), 503, "store")
	finds, lost = 0, []string{"orders"}
	refused(t, "the one that is asked for",
		answerOf(h.api, request(http.MethodGet, base+"/find?id=a&queue=orders", "")), 503, "store")
	refused(t, "an id that none can have",
		answerOf(h.over(h.store, Options{}), request(http.MethodGet, base+"/find?id=", "")), 400, "invalid-id")
}

// Only a store that does not answer makes a search partial. Any other error is the answer.
func TestASearchReturnsAnErrorThatIsNoSilence(t *testing.T) {
	h := newHouse(t, Options{})
	if _, err := h.store.Declare(t.Context(), declarePlain); err != nil {
		t.Fatal(err)
	}
	h.push("a", 0, "p")
	h.api = h.over(storekit.Intercept(h.store, func(
		ctx context.Context, call storekit.Call, next func(context.Context) error,
	) error {
		if r, ok := call.Request.(*ports.FindRequest); ok && r.Queue == "plain" {
			return ports.ErrUnusable
		}
		return next(ctx)
	}), Options{})
	refused(t, "/find", answerOf(h.api, request(http.MethodGet, base+"/find?id=a", "")), 503, "store-unusable")
}

// Once the queues so far have 8 MiB together, the others come without payloads. Their counts
// remain.
func TestASearchInAllQueuesIsBoundedInBytes(t *testing.T) {
	h := newHouse(t, Options{})
	large := make([]string, 20)
	for i := range large {
		large[i] = fmt.Sprintf("%02d", i) + strings.Repeat("x", 1<<20)
	}
	var entries []core.Entry
	for n, p := range large {
		entries = append(entries, core.Entry{ID: "a", Payload: core.Payload{Data: []byte(p), Score: float64(n)}})
	}
	for _, queue := range []string{"one", "two", "three"} {
		if _, err := h.store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.store.Push(t.Context(),
			ports.PushRequest{Queue: queue, Shards: 1, Generation: 1, Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
	shown, counted := 0, 0
	for _, row := range get[list[foundRow]](h, "/find?id=a&payloads=1000").Items {
		shown, counted = shown+len(row.Queued.Payloads), counted+row.Queued.PayloadCount
	}
	if shown != 14 || counted != 60 {
		t.Errorf("%d payloads of %d are shown; want those of the two queues that have 8 MiB together, 14 of 60",
			shown, counted)
	}
}

// A search whose time is over has not asked all queues: it is not a partial answer.
func TestASearchThatIsCutOffIsNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		if _, err := h.store.Declare(t.Context(), declarePlain); err != nil {
			t.Fatal(err)
		}
		h.push("a", 0, "p")
		h.api = h.over(storekit.Intercept(h.store, func(
			ctx context.Context, call storekit.Call, next func(context.Context) error,
		) error {
			if r, ok := call.Request.(*ports.FindRequest); ok && r.Queue == "plain" {
				<-ctx.Done()
				return ctx.Err()
			}
			return next(ctx)
		}), Options{})
		refused(t, "a queue that hangs",
			answerOf(h.api, request(http.MethodGet, base+"/find?id=a", "")), 503, "timeout")
	})
}

func TestARefusedMethodNamesThoseThatAreServed(t *testing.T) {
	h := newHouse(t, Options{})
	for target, want := range map[string]string{"/stats": "GET, HEAD", "/queues/orders/pause": "POST"} {
		for _, method := range []string{http.MethodDelete, http.MethodOptions, http.MethodPut, "PROPFIND"} {
			w := answerOf(h.api, request(method, base+target, ""))
			refused(t, method+" "+target, w, 405, "method-not-allowed")
			if got := w.Header().Get("Allow"); got != want {
				t.Errorf("%s %s: Allow %q, want %q", method, target, got, want)
			}
		}
	}
	// A header does not make another method of one.
	r := request(http.MethodPost, base+"/stats", "{}")
	r.Header.Set("X-Http-Method-Override", http.MethodGet)
	refused(t, "override", answerOf(h.api, r), 405, "method-not-allowed")
}

// Where there is a proxy everybody would be this machine.
func TestEachHeaderOfAProxyClosesTheAPI(t *testing.T) {
	h := newHouse(t, Options{})
	for _, name := range []string{
		"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
		"X-Forwarded-Server", "X-Real-IP", "X-Client-IP",
		"True-Client-IP", "CF-Connecting-IP",
	} {
		for _, value := range []string{"127.0.0.1", ""} {
			r := request(http.MethodGet, base+"/stats", "")
			r.Header.Set(name, value)
			refused(t, name, answerOf(h.api, r), 403, "closed")
		}
	}
}

package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Whichever call of the store fails, no route answers as if nothing had been found or as if all
// were done.
func TestNoErrorOfTheStoreIsSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// silent are calls that a route can answer without. Its answer then names what it lacks. A stop
		// of a rate reads Nodes only to refuse a stop without effect.
		silent := map[string][]string{
			"/why": {"Nodes", "Permit"}, "/errors": {"Nodes"}, "/queues/{queue}/rate/stop": {"Nodes"},
		}
		const audits = "Audit" // prevents no action: the log has what the audit lacks
		for _, route := range table() {
			for method := range calledBy(t, &route, "") {
				if method == audits || slices.Contains(silent[route.path], method) {
					continue
				}
				status, text := 0, ""
				calledBy(t, &route, method, func(code int, body string) { status, text = code, body })
				if status == http.StatusOK {
					t.Errorf("%s %s, of which %s fails: %s", route.method, route.path, method, text)
				}
			}
		}
	})
}

// calledBy returns the methods of the store that a route calls; one of them may fail.
func calledBy(t *testing.T, route *route, failing string, answered ...func(int, string)) map[string]bool {
	t.Helper()
	h := newHouse(t, Options{})
	h.dead("boom", "a")
	h.failed("boom", "b")
	h.push("a", 0, "p")
	h.schedule("a", "nightly")
	node := ports.AnnounceRequest{Node: ports.Node{Owner: "o", Name: "blue"}, TTL: 1e9}
	if _, err := h.store.Announce(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	h.api = h.over(storekit.Intercept(h.store, func(
		ctx context.Context, call storekit.Call, next func(context.Context) error,
	) error {
		called[call.Method] = true
		if call.Method == failing {
			return errors.New("refused")
		}
		return next(ctx)
	}), Options{})
	target, body := route.target(t)
	w := answerOf(h.api, request(route.method, target, body))
	for _, f := range answered {
		f(w.Code, w.Body.String())
	}
	return called
}

// An action on a part of the entries must not become one on all of them, nor a new payload an
// empty one.
func TestAnActionThatIsNotUnderstoodDoesNothing(t *testing.T) {
	redacted := Options{
		RedactID:    func(string, string) string { return "someone" },
		RedactError: func(string, string, string) string { return "an error" },
	}
	for _, tt := range []struct {
		path, body, want string
		o                Options
	}{
		{"jobs/delete", `{"ids":["f"],"match":{}}`, "bad-request", Options{}},
		{"jobs/bury", `{"match":{},"continue":"x"}`, "invalid-checkpoint", Options{}},
		{"jobs/bury", `{"match":{},"continue":"x"}`, "invalid-checkpoint", redacted},
		{"morgue/purge", `{"match":{},"continue":"x"}`, "invalid-checkpoint", redacted},
		{"morgue/revive", `{"match":{"group":"boom"}}`, "invalid-options", redacted},
		{"morgue/revive", `{"match":{"group":"boom"},"continue":"x"}`, "invalid-options", redacted},
		{"morgue/edit", `{"id":"a","edits":[{"old":{"data":"p"},"new":{}}]}`, "bad-request", Options{}},
		{"morgue/edit", `{"id":"a","edits":[{"old":{"data":"p"},"new":{"data_base64":"!"}}]}`, "bad-request",
			Options{}},
		{"morgue/edit", `{"id":"a","edits":[{"old":{},"new":{"data":"q"}}]}`, "bad-request", Options{}},
		{"morgue/edit", `{"id":"a","edits":[` +
			strings.Repeat(`{"old":{"data":"p"},"new":{"data":"q"}},`, service.MaxNamed) +
			`{"old":{"data":"p"},"new":{"data":"q"}}]}`, "bad-request", Options{}},
		{"quarantine/discard", `{"shard":0,"keys":["x"]}`, "invalid-request", redacted},
		{"quarantine/discard", `{"shard":99,"keys":["x"]}`, "invalid-request", Options{}},
	} {
		h := newHouse(t, tt.o)
		h.failed("boom", "f", "g")
		h.dead("boom", "a", "b")
		refused(t, tt.path+" "+tt.body,
			answerOf(h.api, request(http.MethodPost, base+"/queues/orders/"+tt.path, tt.body)), 400, tt.want)
		h.api = h.over(h.store, Options{})
		letters := get[list[deadRow]](h, "/queues/orders/morgue?payloads=9").Items
		if jobs := get[list[jobRow]](h, "/queues/orders/jobs").Items; len(jobs) != 2 ||
			len(letters) != 2 || !slices.Equal(texts(t, letters[0].Payloads), []string{"p"}) {
			t.Errorf("%s %s left %+v and %+v", tt.path, tt.body, jobs, letters)
		}
	}
}

// A match by error chooses jobs by it, and as many as may be named are.
func TestAMatchChoosesJobsByTheirError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.failed("boom 1", "a", "b")
		h.failed("other", "c")
		if reply := post[service.BulkReply](h, "/queues/orders/jobs/delete",
			service.BulkBody{Match: &service.Match{Error: "boom"}}); reply.Handled != 2 || reply.Continue != "" {
			t.Errorf("%+v", reply)
		}
		if jobs := get[list[jobRow]](h, "/queues/orders/jobs").Items; len(jobs) != 1 ||
			jobs[0].ID != "c" {
			t.Errorf("%+v are left", jobs)
		}
		h.dead("boom", numbered("d", service.MaxNamed)...)
		if reply := post[service.BulkReply](h, "/queues/orders/morgue/purge",
			service.BulkBody{IDs: numbered("d", service.MaxNamed)}); reply.Handled != service.MaxNamed {
			t.Errorf("%+v", reply)
		}
	})
}

// A body that breaks off is not acted on, even if the received part is JSON.
func TestABodyThatBreaksOffIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom", "a")
	r := request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match":{}}`)
	r.ContentLength = -1
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"match":{}}`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	refused(t, "a body that breaks off", answerOf(h.api, r), 400, "bad-request")
	if h.letters() != 1 {
		t.Error("it was acted on")
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r := request(method, base+"/stats", "{}")
		if w := answerOf(h.api, r); w.Code != http.StatusBadRequest {
			t.Errorf("a %s with a body: %d", method, w.Code)
		}
	}
	r = request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match":{}}`)
	r.Header.Set("Content-Type", "application/json; charset")
	refused(t, "a content type that can't be read", answerOf(h.api, r), 415, "unsupported-media-type")
}

// A half of a surrogate pair is found behind any other escape, and a text that only looks like one
// stays a text.
func TestHalvesOfSurrogatePairsAreFound(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}}
	for text, want := range map[string]string{
		`\ud800`:             "",
		`\n\ud800`:           "",
		`\\\ud800`:           "",
		`\u0041\ud800`:       "",
		`\ud83d\ude00\ud800`: "",
		`\ud83dxude00`:       "",
		`\ud83d`:             "",
		`\udE00\ud83d`:       "",
		`\ud83d\n\ude00`:     "",
		`\\ud800`:            `\ud800`,
		`\\\\ud800`:          `\\ud800`,
		`\ud83d\ude00`:       "\U0001F600",
		`\uD83D\uDE00x`:      "\U0001F600x",
		`\"\u00e9`:           `"é`,
	} {
		var body service.BulkBody
		err := decodeBody(header, strings.NewReader(`{"ids":["`+text+`"]}`), &body, nil)
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "surrogate")):
			t.Errorf("%s: %v, %q", text, err, body.IDs)
		case want != "" && (err != nil || !slices.Equal(body.IDs, []string{want})):
			t.Errorf("%s: %v, %q; want %q", text, err, body.IDs, want)
		}
	}
	for _, cut := range []string{`"\ud83d`, `"\ud83d\`, `"\ud83d\u`, `"\u12`} { // ends within an escape
		if err := decodeBody(header, strings.NewReader(cut), new(service.BulkBody), nil); err == nil {
			t.Errorf("%s is a body", cut)
		}
	}
}

// Two sealed texts never share a nonce, which would reveal what their ciphertexts have in common.
// A text that marks an action as done is not sealed.
func TestSealedTextsHaveNoncesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{
			RedactID:  func(string, string) string { return "someone" },
			CursorKey: []byte(strings.Repeat("k", 32)),
		})
		h.dead("boom", numbered("a", 40)...)
		nonces := map[string]int{}
		after, target := "", base+"/queues/orders/morgue?limit=1&after="
		for page := 0; page == 0 || after != ""; page++ {
			after = read[list[deadRow]](t,
				answerOf(h.api, request(http.MethodGet, target+after, ""))).Next
			if after == "" {
				break
			}
			data, err := base64.RawURLEncoding.DecodeString(after)
			if err != nil || len(data) < 12 {
				t.Fatalf("%q, %v", after, err)
			}
			if was, known := nonces[string(data[:12])]; known {
				t.Fatalf("pages %d and %d share a nonce", was, page)
			}
			nonces[string(data[:12])] = page
		}
		if len(nonces) != 39 && len(nonces) != 40 {
			t.Errorf("%d pages", len(nonces))
		}
		// A key that is drawn is drawn anew.
		drawn := Options{RedactID: func(string, string) string { return "someone" }}
		next := read[list[deadRow]](t,
			answerOf(h.over(h.store, drawn), request(http.MethodGet, target, ""))).Next
		refused(t, "a cursor of another API",
			answerOf(h.over(h.store, drawn), request(http.MethodGet, target+next, "")), 400, "invalid-cursor")
		if reply := post[service.BulkReply](h, "/queues/orders/morgue/purge",
			service.BulkBody{Match: &service.Match{}}); reply.Handled != 40 || reply.Continue != "" {
			t.Errorf("what is done goes on: %+v", reply)
		}
	})
}

// A job that has not failed has no error, also where errors are redacted.
func TestNoErrorIsShownWhereThereIsNone(t *testing.T) {
	h := newHouse(t, Options{RedactError: func(string, string, string) string { return "an error" }})
	h.push("a", 0, "p")
	if jobs := get[list[jobRow]](h, "/queues/orders/jobs").Items; len(jobs) != 1 ||
		jobs[0].LastError != "" {
		t.Errorf("%+v", jobs)
	}
}

// A claim alone is found without its queue's name, and so are damaged records.
func TestFindLooksForClaimsAndDamageToo(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("a", 0, "p")
	h.turn(core.ShardOf("a", houseShards), 1)
	found := get[list[foundRow]](h, "/find?id=a").Items
	if len(found) != 1 || found[0].Claimed == nil || found[0].Claimed.ID != "a" || found[0].Queued != nil {
		t.Errorf("%+v", found)
	}
	if found := get[list[foundRow]](h, "/find?id=b").Items; len(found) != 0 {
		t.Errorf("an id that is nowhere: %+v", found)
	}
	h.api = h.over(storekit.Intercept(h.store, func(
		ctx context.Context, call storekit.Call, next func(context.Context) error,
	) error {
		err := next(ctx)
		if reply, ok := call.Reply.(*ports.Found); ok {
			reply.Damaged = []ports.Place{ports.PlaceDead}
		}
		return err
	}), Options{})
	if found := get[list[foundRow]](h, "/find?id=b").Items; len(found) != 1 ||
		!slices.Equal(found[0].Damaged, []string{"dead"}) {
		t.Errorf("what is damaged: %+v", found)
	}
	refused(t, "why without a queue",
		answerOf(h.api, request(http.MethodGet, base+"/why?id=a", "")), 400, "bad-request")
}

// Totals are of all queues: the longest lag, and the job that has been due for longest.
func TestTotalsAreOfAllQueues(t *testing.T) {
	h := newHouse(t, Options{})
	if _, err := h.store.Declare(t.Context(), declarePlain); err != nil {
		t.Fatal(err)
	}
	h.push("a", 0, "p")
	h.advance(60e9)
	entries := []core.Entry{{ID: "b", Payload: core.Payload{Data: []byte("p")}, When: core.In(0)}}
	if _, err := h.store.Push(t.Context(),
		ports.PushRequest{Queue: "plain", Shards: 1, Generation: 1, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	h.advance(30e9)
	for range 2 { // in either order
		all := get[service.StatsReply](h, "/stats").Total
		if all.Lag != 90 || !all.Oldest.Equal(epoch) || all.Length != 2 || all.Waiting != 2 {
			t.Errorf("%+v", all)
		}
	}
	var sum, back service.Counts
	for _, of := range []string{"orders", "plain"} {
		sum.Add(get[service.StatsReply](h, "/stats").ByWorker[of].Counts)
	}
	for _, of := range []string{"plain", "orders"} {
		back.Add(get[service.StatsReply](h, "/stats").ByWorker[of].Counts)
	}
	if !reflect.DeepEqual(sum, back) {
		t.Errorf("%+v in one order, %+v in the other", sum, back)
	}
}

// Empty values are an empty list or cell. A payload is a text where it can be, with its push's
// Meta beside it.
func TestWhatIsEmptyIsNotNull(t *testing.T) {
	h := newHouse(t, Options{})
	for _, target := range []string{
		"/queues/orders/morgue", "/queues/orders/jobs", "/queues/orders/groups", "/nodes", "/find?id=a",
	} {
		if w := answerOf(h.api,
			request(http.MethodGet, base+target, "")); !strings.Contains(w.Body.String(), `"items":[]`) {
			t.Errorf("%s: %s", target, w.Body)
		}
	}
	if w := answerOf(h.api, request(http.MethodGet, base+"/why?queue=orders&id=a", "")); !strings.Contains(
		w.Body.String(), `"servers":[]`) {
		t.Errorf("%s", w.Body)
	}
	entries := []core.Entry{{
		ID:      "a",
		Payload: core.Payload{Data: []byte("text"), Meta: []byte("trace")},
		When:    core.In(0),
	}}
	if _, err := h.store.Push(t.Context(),
		ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	w := answerOf(h.api, request(http.MethodGet, base+"/queues/orders/jobs?payloads=1", ""))
	if !strings.Contains(w.Body.String(), `"data":"text"`) || !strings.Contains(w.Body.String(), `"meta":"trace"`) {
		t.Errorf("%s", w.Body)
	}
	r := request(http.MethodGet, base+"/queues/orders/claimed", "")
	h.turn(core.ShardOf("a", houseShards), 1)
	r.Header.Set("Accept", "text/csv")
	w = answerOf(h.api, r)
	if text := w.Body.String(); strings.Contains(text, "null") || strings.Contains(text, "0001-01-01") ||
		w.Header().Get("Content-Type") != "text/csv; charset=utf-8; header=present" {
		t.Errorf("%v %s", w.Header(), text)
	}
}

// RedactPayload hides the Meta of payloads too: it is not asked about it.
func TestRedactedPayloadsHaveNoMeta(t *testing.T) {
	h := newHouse(t, Options{RedactPayload: func(string, string, []byte) []byte { return []byte("hidden") }})
	entries := []core.Entry{{
		ID:      "a",
		Payload: core.Payload{Data: []byte("text"), Meta: []byte("secret trace")},
		When:    core.In(0),
	}}
	if _, err := h.store.Push(t.Context(),
		ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{
		"/queues/orders/jobs?payloads=1", "/find?id=a&payloads=1", "/queues/orders/payloads?id=a&place=queued",
	} {
		text := answerOf(h.api, request(http.MethodGet, base+target, "")).Body.String()
		if !strings.Contains(text, "hidden") || strings.Contains(text, "meta") || strings.Contains(text, "secret") {
			t.Errorf("%s: %s", target, text)
		}
	}
}

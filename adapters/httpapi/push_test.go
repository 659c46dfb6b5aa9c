package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const pushTarget = base + "/queues/orders/jobs"

// pushing sends a body to the queue "orders".
func (h *house) pushing(body string) *httptest.ResponseRecorder {
	h.t.Helper()
	return answerOf(h.api, request(http.MethodPost, pushTarget, body))
}

// queued returns the queued job of an id.
func (h *house) queued(id string) *inspect.QueuedJob {
	h.t.Helper()
	found, err := inspect.New(h.store, inspect.Options{}).Find(h.t.Context(), "orders", id)
	if err != nil {
		h.t.Fatal(err)
	}
	return found.Queued
}

func (h *house) stored() (ids []string) {
	h.t.Helper()
	for job, err := range inspect.New(h.store, inspect.Options{}).Jobs(h.t.Context(), "orders", inspect.ListOptions{}) {
		if err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, job.ID)
	}
	slices.Sort(ids)
	return ids
}

// met reads the counts of a push.
func met(t *testing.T, w *httptest.ResponseRecorder) service.PushReply {
	t.Helper()
	reply := read[service.PushReply](t, w)
	reply.Now = time.Time{}
	return reply
}

func TestPushCountsWhatItMeets(t *testing.T) {
	h := newHouse(t, Options{})
	body := `{"entries":[{"id":"a","payload":1,"score":1},{"id":"a","payload":2,"score":2},{"id":"b","payload":1,"score":1}]}`
	if got, want := met(t, h.pushing(body)), (service.PushReply{New: 2, Merged: 1}); got != want {
		t.Errorf("first: %+v, want %+v", got, want)
	}
	if got, want := met(t, h.pushing(body)), (service.PushReply{Duplicate: 3}); got != want {
		t.Errorf("repeated: %+v, want %+v", got, want)
	}
}

// By every too, whose payloads have a stamp in the store.
func TestPushOnceIn(t *testing.T) {
	for _, merge := range []core.MergeRule{{}, {Same: core.SamePush}} {
		h := newHouse(t, Options{})
		if err := h.store.Forget(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		declared := ports.DeclareRequest{Queue: "orders", Shards: 1, Merge: merge}
		if _, err := h.store.Declare(t.Context(), declared); err != nil {
			t.Fatal(err)
		}
		const entry = `{"id":"a","payload":1,"score":%d,"once_in_seconds":60}`
		body := fmt.Sprintf(`{"entries":[`+entry+`,`+entry+`]}`, 1, 2)
		if got, want := met(t, h.pushing(body)), (service.PushReply{New: 1, Repeated: 1}); got != want {
			t.Errorf("first: %+v, want %+v", got, want)
		}
		if got, want := met(t, h.pushing(body)), (service.PushReply{Repeated: 2}); got != want {
			t.Errorf("repeated: %+v, want %+v", got, want)
		}
	}
}

// Each field of an entry reaches the job.
func TestPushStoresEachField(t *testing.T) {
	h := newHouse(t, Options{})
	in := func(d time.Duration) time.Time { return epoch.Add(d) }
	for id, tt := range map[string]struct {
		entry string
		data  string
		meta  string
		at    time.Time
		tags  []string
		score float64
	}{
		"json": {`"payload":{"b":1.0,"a":"\u003c\u00e9"},"score":7`, `{"a":"<é","b":1}`, "", in(0), nil, 7},
		"null": {`"payload":null,"score":0`, `null`, "", in(0), nil, 0},
		"list": {`"payload":[{"x y":null,"Ä":[1]}],"score":-0.5`, `[{"x y":null,"Ä":[1]}]`, "", in(0), nil, -0.5},
		"text": {`"data":" {\"b\":1.0} ","score":1`, ` {"b":1.0} `, "", in(0), nil, 1},
		"none": {`"data":"","score":1`, ``, "", in(0), nil, 1},
		"byte": {`"data_base64":"/wA=","score":1`, "\xff\x00", "", in(0), nil, 1},
		"at":   {`"data":"p","score":1,"at":"2030-01-02T04:04:00.5+00:00"`, "p", "", in(time.Hour + time.Second/2), nil, 1},
		"in":   {`"data":"p","score":1,"in_seconds":1.5`, "p", "", in(1500 * time.Millisecond), nil, 1},
		"soon": {`"data":"p","score":1,"urgent_seconds":60`, "p", "", in(-time.Minute), nil, 1},
		"tags": {`"data":"p","score":1,"tags":["vip","a"],"meta":"m"`, "p", "m", in(0), []string{"a", "vip"}, 1},
		"meta": {`"data":"p","score":1,"meta_base64":"/w=="`, "p", "\xff", in(0), nil, 1},
	} {
		if got := met(t, h.pushing(`{"entries":[{"id":"`+id+`",`+tt.entry+`}]}`)); got.New != 1 {
			t.Errorf("%s: %+v", id, got)
			continue
		}
		job := h.queued(id)
		p := job.Payloads[0]
		if string(p.Data) != tt.data || string(p.Meta) != tt.meta || p.Score != tt.score {
			t.Errorf("%s: payload %q, meta %q, score %v", id, p.Data, p.Meta, p.Score)
		}
		if !job.PerformAt.Equal(tt.at) || !slices.Equal(job.Tags, tt.tags) {
			t.Errorf("%s: at %v, tags %q; want %v, %q", id, job.PerformAt, job.Tags, tt.at, tt.tags)
		}
	}
}

// Equal JSON merges, however each language writes it.
func TestPushesOfEqualJSONMerge(t *testing.T) {
	h := newHouse(t, Options{})
	for _, payload := range []string{
		`{"name":"<é>","n":1}`, `{"n":1.0,"name":"\u003c\u00e9\u003e"}`, ` { "n" : 1e0 , "name" : "<\u00E9>" } `,
	} {
		h.pushing(`{"entries":[{"id":"a","payload":` + payload + `}]}`)
	}
	if job := h.queued("a"); len(job.Payloads) != 1 {
		t.Errorf("%d payloads", len(job.Payloads))
	}
}

// Default scores rise in the order of the entries and of the requests.
func TestPushHasDefaultScores(t *testing.T) {
	h := newHouse(t, Options{})
	var want []string
	for n := range 3 {
		h.pushing(fmt.Sprintf(`{"entries":[{"id":"a","data":"%d"},{"id":"a","data":"%d"}]}`, 9-2*n, 8-2*n))
		want = append(want, fmt.Sprint(9-2*n), fmt.Sprint(8-2*n))
	}
	var got []string
	for _, p := range h.queued("a").Payloads {
		got = append(got, string(p.Data))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// The push rule is the request's.
func TestPushRulesAreParameters(t *testing.T) {
	for rule, want := range map[string]time.Duration{
		``:                   time.Hour,
		`"rule":"keep",`:     time.Hour,
		`"rule":"earliest",`: time.Minute,
		`"rule":"debounce","limit_seconds":7200,`: time.Hour,
	} {
		h := newHouse(t, Options{})
		h.push("a", time.Hour, "p")
		h.pushing(`{` + rule + `"entries":[{"id":"a","data":"q","in_seconds":60}]}`)
		if at := h.queued("a").PerformAt; !at.Equal(epoch.Add(want)) {
			t.Errorf("%s: %v, want %v", rule, at.Sub(epoch), want)
		}
		h.pushing(`{` + rule + `"entries":[{"id":"a","data":"r","in_seconds":10800}]}`)
		if strings.Contains(rule, "debounce") {
			want = 2 * time.Hour // the limit
		}
		if at := h.queued("a").PerformAt; !at.Equal(epoch.Add(want)) {
			t.Errorf("%s, later: %v, want %v", rule, at.Sub(epoch), want)
		}
	}
}

// The queue's merge rule is the store's, and the stamp of every is put on.
func TestPushMergesAsTheQueueDoes(t *testing.T) {
	h := newHouse(t, Options{})
	every := ports.DeclareRequest{Queue: "every", Shards: 1, Merge: core.MergeRule{Same: core.SamePush}}
	if _, err := h.store.Declare(t.Context(), every); err != nil {
		t.Fatal(err)
	}
	push := func(body string) service.PushReply {
		return met(t, answerOf(h.api, request(http.MethodPost, base+"/queues/every/jobs", body)))
	}

	scored := `{"entries":[{"id":"a","payload":5,"score":1},{"id":"a","payload":5,"score":2}]}`
	if got, want := push(scored), (service.PushReply{New: 1, Merged: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := push(scored), (service.PushReply{Duplicate: 2}); got != want {
		t.Errorf("repeated with its scores: %+v, want %+v", got, want)
	}
	unscored := `{"entries":[{"id":"a","payload":5}]}`
	for range 2 { // each counts
		if got, want := push(unscored), (service.PushReply{Merged: 1}); got != want {
			t.Errorf("without a score: %+v, want %+v", got, want)
		}
	}

	found := get[struct{ Items []service.Octets }](h, "/queues/every/payloads?id=a")
	for _, p := range found.Items {
		if p.Data == nil || *p.Data != "5" {
			t.Errorf("payload %v", p)
		}
	}
}

// Refused entries are named by their index, and nothing of the push is stored.
func TestPushRefusesWholePushesByTheirEntries(t *testing.T) {
	long := strings.Repeat("x", core.DefaultMaxPayloadBytes)
	for entry, says := range map[string]string{
		`"id":"","data":"p"`: "invalid id",
		`"id":"` + strings.Repeat("x", 513) + `","data":"p"`:               "invalid id",
		`"id":"a\u0000b","data":"p"`:                                       "invalid id",
		`"id":"a\nb","data":"p"`:                                           "invalid id",
		`"id":"a"`:                                                         "one of payload, data and data_base64",
		`"id":"a","data":"p","payload":1`:                                  "one of payload, data and data_base64",
		`"id":"a","data":"p","data_base64":""`:                             "one of payload, data and data_base64",
		`"id":"a","data_base64":"!"`:                                       "base64",
		`"id":"a","payload":9007199254740993`:                              "write it as a string",
		`"id":"a","payload":{"id":12345678901234567890}`:                   "write it as a string",
		`"id":"a","payload":{"x":1,"x":2}`:                                 "send each member once",
		`"id":"a","payload":[{"x":1,"\u0078":2}]`:                          "send each member once",
		`"id":"a","data":"` + long + `x"`:                                  "push a reference",
		`"id":"a","payload":"` + long + `"`:                                "push a reference",
		`"id":"a","data":"p","at":"2300-01-01T00:00:00Z"`:                  "give a time from 1970",
		`"id":"a","data":"p","at":"1969-01-01T00:00:00Z"`:                  "give a time from 1970",
		`"id":"a","data":"p","in_seconds":-1`:                              "in_seconds",
		`"id":"a","data":"p","in_seconds":9e9`:                             "give a time from 1970",
		`"id":"a","data":"p","in_seconds":1e300`:                           "in_seconds",
		`"id":"a","data":"p","urgent_seconds":86401`:                       "urgency",
		`"id":"a","data":"p","once_in_seconds":0`:                          "once_in_seconds is 0",
		`"id":"a","data":"p","once_in_seconds":0.5`:                        "OnceIn of 500ms",
		`"id":"a","data":"p","once_in_seconds":315360001`:                  "OnceIn of",
		`"id":"a","data":"p","urgent_seconds":0`:                           "urgency",
		`"id":"a","data":"p","urgent_seconds":1,"in_seconds":1`:            "one of at, in_seconds and urgent_seconds",
		`"id":"a","data":"p","in_seconds":1,"at":"2030-01-02T00:00:00Z"`:   "one of at, in_seconds and urgent_seconds",
		`"id":"a","data":"p","tags":[""]`:                                  "invalid tag",
		`"id":"a","data":"p","tags":["1","2","3","4","5","6","7","8","9"]`: "invalid tag",
		`"id":"a","data":"p","meta":"` + strings.Repeat("m", 257) + `"`:    "Meta has 257 bytes",
		`"id":"a","data":"p","meta":"m","meta_base64":"bQ=="`:              "one of meta and meta_base64",
		`"id":"a","data":"p","meta_base64":"!"`:                            "one of meta and meta_base64",
	} {
		h := newHouse(t, Options{})
		w := h.pushing(`{"entries":[{"id":"first","data":"p"},{` + entry + `},{"id":"","data":"p"}]}`)
		p := refused(t, entry[:min(60, len(entry))], w, 400, "invalid-entry")
		if !strings.HasPrefix(p.Detail, "entry 1: ") || !strings.Contains(p.Detail, says) ||
			!strings.HasSuffix(p.Detail, "nothing was stored") || !slices.Equal(p.Entries, []int{1}) {
			t.Errorf("%.60s: %+v, want %q", entry, p, says)
		}
		if ids := h.stored(); ids != nil {
			t.Errorf("%.60s: stored %q", entry, ids)
		}
	}
}

// Bodies that can't be read are refused as those of all routes.
func TestPushRefusesBodies(t *testing.T) {
	h := newHouse(t, Options{})
	for body, name := range map[string]string{
		`{}`:                                   "bad-request",
		`{"entries":[]}`:                       "bad-request",
		`{"entries":null}`:                     "bad-request",
		`{"entries":{"id":"a"}}`:               "bad-request",
		`[{"id":"a","data":"p"}]`:              "bad-request",
		`{"entries":[{"id":"a","data":"p"}]`:   "bad-request",
		`{"entries":[{"id":"a","data":"p"}]}}`: "bad-request",
		`{"entries":[{"id":"a","data":"p","data":"q"}]}`:                                                       "bad-request",
		`{"entries":[{"id":"a","payload":1,"payload":2}]}`:                                                     "bad-request",
		`{"entries":[{"id":"a","payload":1}],"entries":[]}`:                                                    "bad-request",
		`{"entries":[{"ID":"a","payload":1}]}`:                                                                 "bad-request",
		`{"entries":[{"id":"a","Payload":1}]}`:                                                                 "bad-request",
		`{"entries":[{"id":"a","payload":1,"scores":1}]}`:                                                      "bad-request",
		`{"entries":[{"id":"a","payload":1,"score":null}]}`:                                                    "bad-request",
		`{"entries":[{"id":"a","payload":1,"score":"1"}]}`:                                                     "bad-request",
		`{"entries":[{"id":"a","payload":1,"score":1e999}]}`:                                                   "bad-request",
		`{"entries":[{"id":"a","payload":01}]}`:                                                                "bad-request",
		`{"entries":[{"id":"a","payload":"\ud800"}]}`:                                                          "bad-request",
		"{\"entries\":[{\"id\":\"a\",\"payload\":\"\xff\"}]}":                                                  "bad-request",
		"{\"entries\":[{\"id\":\"\xff\",\"payload\":1}]}":                                                      "bad-request",
		`{"entries":[{"id":"a","payload":1}],"rule":"latest"}`:                                                 "bad-request",
		`{"entries":[{"id":"a","payload":1}],"limit_seconds":1}`:                                               "bad-request",
		`{"entries":[{"id":"a","payload":1}],"rule":"debounce","limit_seconds":-1}`:                            "bad-request",
		`{"entries":[` + strings.Repeat(`{"id":"a","payload":1},`, 500) + `{"id":"a","payload":1}]}`:           "bad-request",
		`{"entries":[{"id":"a","payload":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}]}`: "bad-request",
	} {
		if p := refused(t, body[:min(70, len(body))], h.pushing(body), 400, name); p.Detail == "" {
			t.Errorf("%.70s: no detail", body)
		}
	}

	large := `{"entries":[{"id":"a","data":"` + strings.Repeat("x", 10<<20) + `"}]}`
	refused(t, "10 MiB", h.pushing(large), 413, "body-too-large")
	if ids := h.stored(); ids != nil {
		t.Errorf("stored %q", ids)
	}

	most := `{"entries":[{"id":"a","payload":1}` + strings.Repeat(`,{"id":"a","payload":1}`, 499) + `]}`
	if got, want := met(t, h.pushing(most)), (service.PushReply{New: 1, Duplicate: 499}); got != want {
		t.Errorf("500 entries: %+v, want %+v", got, want)
	}
}

func TestPushToAnUnknownQueue(t *testing.T) {
	h := newHouse(t, Options{})
	body := `{"entries":[{"id":"a","payload":1}]}`
	for _, queue := range []string{"nowhere", "a%2Fb", "%00", "orders%20"} {
		refused(t, queue, answerOf(h.api, request(http.MethodPost, base+"/queues/"+queue+"/jobs", body)), 404, "unknown-queue")
	}
}

// Ids have every character that an id may have.
func TestPushTakesEveryID(t *testing.T) {
	h := newHouse(t, Options{})
	var ids []string
	for _, id := range []string{
		".", "..", "/", "a/b", "%2F", "?", "#", "&a=b", "a b", " ", `"`, `\`, "'", "{}", "日本", "😀", "e\u0301", "\u202e",
		"\u2028", "null", "-1", strings.Repeat("é", 256),
	} {
		entry, err := json.Marshal(map[string]any{"id": id, "payload": id})
		if err != nil {
			t.Fatal(err)
		}
		if got := met(t, h.pushing(`{"entries":[`+string(entry)+`]}`)); got.New != 1 {
			t.Errorf("%q: %+v", id, got)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if diff := cmp.Diff(ids, h.stored()); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// The right to push is none to look or to act, and neither of these is one to push.
func TestPushIsARightOfItsOwn(t *testing.T) {
	body := `{"entries":[{"id":"a","payload":1}]}`
	for _, may := range []Verb{VerbPush, VerbView, VerbDelete} {
		h := newHouse(t, Options{Authorize: func(_ *http.Request, a Action) error {
			if a.Verb != may || a.Queue != "orders" {
				return errors.New("no")
			}
			return nil
		}})
		if w := h.pushing(body); (w.Code == http.StatusOK) != (may == VerbPush) {
			t.Errorf("with the right to %s: %d %s", may, w.Code, w.Body)
		}
		if may != VerbPush {
			refused(t, string(may), h.pushing(body), 403, "forbidden")
			continue
		}
		// An unknown queue without a right looks like a known one.
		for _, queue := range []string{"other", "nowhere"} {
			refused(t, queue, answerOf(h.api, request(http.MethodPost, base+"/queues/"+queue+"/jobs", body)), 403, "forbidden")
		}
		refused(t, "a look", answerOf(h.api, request(http.MethodGet, base+"/queues/orders/jobs", "")), 403, "forbidden")
	}

	h := newHouse(t, Options{ReadOnly: true})
	if w := h.pushing(body); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("read-only: %d %s", w.Code, w.Body)
	}
}

// The path of pushes is also that of the list of jobs.
func TestThePathOfPushesHasTwoMethods(t *testing.T) {
	for readOnly, want := range map[bool]string{false: "GET, HEAD, POST", true: "GET, HEAD"} {
		h := newHouse(t, Options{ReadOnly: readOnly})
		w := answerOf(h.api, request(http.MethodDelete, pushTarget, ""))
		refused(t, "DELETE", w, 405, "method-not-allowed")
		if got := w.Header().Get("Allow"); got != want {
			t.Errorf("read-only %v: Allow %q, want %q", readOnly, got, want)
		}
	}
}

// Entries that are not known to be stored are named, and the push may be repeated.
func TestPushNamesWhatIsNotStored(t *testing.T) {
	h := newHouse(t, Options{})
	for name, tt := range map[string]struct {
		err    error
		status int
	}{
		"store":      {errors.New("the network is gone"), 503},
		"store-full": {ports.ErrFull, 507},
	} {
		store := storekit.Intercept(h.store, func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if err := next(ctx); err != nil || call.Method != "Push" {
				return err
			}
			return &ports.PushError{Entries: []int{1, 2}, Err: tt.err}
		})
		api := h.over(store, Options{})
		w := answerOf(api, request(http.MethodPost, pushTarget,
			`{"entries":[{"id":"a","payload":1},{"id":"b","payload":1},{"id":"c","payload":1}]}`))
		if p := refused(t, name, w, tt.status, name); !slices.Equal(p.Entries, []int{1, 2}) {
			t.Errorf("%s: entries %v", name, p.Entries)
		}
	}
}

// A push reads no statistics, makes none outdated, and is not in the audit.
func TestPushIsNoActionOfAnOperator(t *testing.T) {
	h := newHouse(t, Options{Actor: func(*http.Request) string { t.Error("the actor was asked for"); return "" }})
	h.pushing(`{"entries":[{"id":"a","payload":1}]}`)
	if audit := get[struct{ Items []any }](h, "/audit"); len(audit.Items) > 0 {
		t.Errorf("audit: %v", audit.Items)
	}
}

// Whatever a body has, a push stores all of it or nothing, and counts each entry once.
func FuzzPush(f *testing.F) {
	for _, entry := range []string{
		`"id":"a","payload":{"b":[1.50,null],"a":"\u00e9"},"score":7,"tags":["vip"],"meta":"m"`,
		`"id":"a","data":"p","at":"2030-01-02T04:04:00Z"`,
		`"id":"é","data_base64":"/wA=","in_seconds":0.5,"meta_base64":"/w=="`,
		`"id":"a","payload":"p","urgent_seconds":60`,
		`"id":"a","payload":"p","once_in_seconds":60`,
		`"id":"","payload":9007199254740993`,
	} {
		f.Add(`{"entries":[{"id":"first","payload":1},{` + entry + `}],"rule":"debounce","limit_seconds":60}`)
	}

	f.Fuzz(func(t *testing.T, body string) {
		h := newHouse(t, Options{})
		w := h.pushing(body)
		stored := len(h.stored()) > 0
		if w.Code != http.StatusOK {
			if w.Code < 400 || w.Code >= 500 || stored {
				t.Fatalf("%q: %d %s, stored: %v", body, w.Code, w.Body, stored)
			}
			return
		}

		var sent service.PushBody
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		got := read[service.PushReply](t, w)
		if n := got.New + got.Merged + got.Duplicate + got.Superseded + got.Repeated; n != len(sent.Entries) || !stored {
			t.Fatalf("%q: %+v of %d entries, stored: %v", body, got, len(sent.Entries), stored)
		}
	})
}

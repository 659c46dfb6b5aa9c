package httpapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func TestActionsOnNamedEntriesDoWhatTheySay(t *testing.T) {
	h := newHouse(t, Options{})
	h.failed("boom", "a", "b", "c")
	h.dead("gone", "d", "e")
	ids := func(list ...string) service.BulkBody { return service.BulkBody{IDs: list} }
	for _, step := range []struct {
		path    string
		body    service.BulkBody
		handled int
	}{
		{"/jobs/run-now", ids("a", "nowhere"), 1},
		{"/jobs/bury", ids("a", "b"), 2},
		{"/jobs/delete", ids("c", "d"), 1},
		{"/morgue/revive", ids("d", "b", "c"), 2},
		{"/morgue/purge", ids("e"), 1},
	} {
		reply := post[bulkReply](h, "/queues/orders"+step.path, step.body)
		if reply.Handled != step.handled || reply.LookedAt != len(step.body.IDs) || reply.Total != len(step.body.IDs) ||
			reply.Continue != "" {
			t.Errorf("%s: %+v", step.path, reply)
		}
	}
	if all := get[service.StatsReply](h, "/stats").Total; all.Length != 2 || all.MorgueLength != 1 {
		t.Errorf("%+v", all)
	}
	for range 2 {
		h.turn(core.ShardOf("d", houseShards), 10)
	}
	if reply := post[bulkReply](h, "/queues/orders/claimed/cancel",
		service.CancelBody{IDs: []string{"d"}, Drop: true}); reply.Handled != 1 {
		t.Errorf("cancel: %+v", reply)
	}
	if page := get[list[claimedRow]](h, "/queues/orders/claimed"); len(page.Items) == 0 ||
		!cancelled(page.Items, "d") {
		t.Errorf("claimed: %+v", page)
	}
}

func cancelled(rows []claimedRow, id string) bool {
	for _, row := range rows {
		if row.ID == id {
			return row.Cancelled && row.Drop && row.Node == "blue" && row.Token > 0
		}
	}
	return false
}

// settingsReply is what a client reads of the settings of a queue.
type settingsReply struct{ Settings inspect.QueueSettings }

func TestActionsOnQueuesDoWhatTheySay(t *testing.T) {
	h := newHouse(t, Options{})
	if reply := post[service.Done](h, "/queues/orders/pause", service.NoBody{}); !reply.Done ||
		!get[service.QueueReply](h, "/queues/orders").Paused {
		t.Error("not paused")
	}
	if reply := post[service.Done](h, "/queues/orders/resume", service.NoBody{}); !reply.Done ||
		get[service.QueueReply](h, "/queues/orders").Paused {
		t.Error("not resumed")
	}
	post[service.Done](h, "/queues/orders/merge", service.MergeBody{Merge: "latest(2)"})
	if got := get[list[queueRow]](h, "/queues").Items[0].Merge; got != "latest(2)" {
		t.Errorf("the merge rule is %s", got)
	}
	refused(t, "an unknown rule",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/merge", `{"merge":"last"}`)), 400, "bad-request")
	refused(t, "a rule that counts each push",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/merge", `{"merge":"every"}`)),
		409, "queue-mismatch")
	seen := int64(0)
	set := map[string]string{"max-running": "20"}
	change := service.SettingsBody{Set: set, Unset: []string{"max-lanes"}, Version: &seen, DryRun: true}
	if r := post[service.SettingsReply](h, "/queues/orders/settings", change); r.After.Version != 1 ||
		get[settingsReply](h, "/queues/orders").Settings.Version != 0 {
		t.Errorf("a dry run: %+v", r)
	}
	change.DryRun = false
	if r := post[service.SettingsReply](h, "/queues/orders/settings", change); len(r.Changed) != 1 ||
		r.Changed[0] != "max-running" || r.Before.Version != 0 || r.After.Set[0].Value != "20" {
		t.Errorf("%+v", r)
	}
	if got := get[settingsReply](h, "/queues/orders").Settings; got.Version != 1 ||
		got.Settings[1].Name != "max-running" || got.Settings[1].InForce != "20" || !got.Settings[1].At.Equal(epoch) {
		t.Errorf("the settings are %+v", got)
	}
	p := refused(t, "settings that were changed", answerOf(h.api, request(http.MethodPost,
		base+"/queues/orders/settings", `{"set":{"max-running":"30"},"version":0}`)), 409, "settings-changed")
	if p.Settings == nil || p.Settings.Version != 1 || p.Settings.Set[0].Value != "20" ||
		!strings.Contains(p.Detail, `max-running to "20"`) {
		t.Errorf("the conflict is %+v with %+v", p, p.Settings)
	}
	for body, problem := range map[string]string{
		`{"set":{"max-runing":"30"}}`: "invalid-setting", `{"set":{"max-running":"x"}}`: "invalid-setting",
		`{}`: "invalid-options", `{"set":{"max-running":30}}`: "bad-request",
		`{"set":{"max-running":"1","max-running":"2"}}`:       "bad-request",
		`{"set":{"max-running":"1"},"unset":["max-running"]}`: "invalid-setting",
	} {
		refused(t, body, answerOf(h.api, request(http.MethodPost, base+"/queues/orders/settings", body)), 400, problem)
	}
	for seconds, problem := range map[string]string{"-1": "bad-request", "0": "invalid-options", "86401": "invalid-options"} {
		refused(t, "a stop of "+seconds+" s", answerOf(h.api, request(http.MethodPost, base+"/queues/orders/rate/stop",
			`{"seconds":`+seconds+`}`)), 400, problem)
	}
	post[service.Done](h, "/queues/orders/rate/stop", service.StopRateBody{Seconds: 60})
	if r := get[inspect.QueueRate](h, "/queues/orders/rate"); r.Queue != "orders" || len(r.Limiters) != 1 ||
		!r.Limiters[0].Stopped.Equal(epoch.Add(time.Minute)) || r.Limiters[0].Key != "" || !r.Now.Equal(epoch) {
		t.Errorf("a stopped rate is %+v", r)
	}
	post[service.Done](h, "/queues/orders/rate/stop",
		service.StopRateBody{LimiterKey: service.LimiterKey{Key: "acme"}, Seconds: 3600})
	if r := get[inspect.QueueRate](h, "/queues/orders/rate"); len(r.Limiters) != 2 || r.Limiters[0].Key != "acme" ||
		!r.Limiters[0].Stopped.Equal(epoch.Add(time.Hour)) {
		t.Errorf("with a stopped key the rate is %+v", r)
	}
	post[service.Done](h, "/queues/orders/rate/resume", service.LimiterKey{Key: "acme"})
	post[service.Done](h, "/queues/orders/rate/resume", service.NoBody{})
	if r := get[inspect.QueueRate](h, "/queues/orders/rate"); !r.Limiters[0].Stopped.IsZero() {
		t.Errorf("a resumed rate is %+v", r)
	}
	if reply := post[service.RecountReply](h, "/queues/orders/recount", service.NoBody{}); len(reply.Corrected) != 0 {
		t.Errorf("%+v", reply)
	}
	h.push("a", time.Hour, "p")
	refused(t, "forget",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/forget", "{}")), 409, "not-empty")
	post[bulkReply](h, "/queues/orders/jobs/delete", service.BulkBody{IDs: []string{"a"}})
	post[service.Done](h, "/queues/orders/forget", service.NoBody{})
	if queues := get[list[queueRow]](h, "/queues"); len(queues.Items) != 0 {
		t.Errorf("%+v", queues)
	}
	refused(t, "drain",
		answerOf(h.api, request(http.MethodPost, base+"/nodes/drain", `{"node":"blue"}`)), 404, "unknown-node")
	node := ports.AnnounceRequest{Node: ports.Node{Owner: "o", Name: "blue"}, TTL: time.Minute}
	if _, err := h.store.Announce(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	post[service.Done](h, "/nodes/drain", service.NodeBody{Node: "blue"})
	if nodes := get[list[nodeRow]](h, "/nodes"); len(nodes.Items) != 1 ||
		nodes.Items[0].State != "draining" {
		t.Errorf("%+v", nodes)
	}
	post[service.Done](h, "/nodes/resume", service.NodeBody{Node: "o"})
	if nodes := get[list[nodeRow]](h, "/nodes"); nodes.Items[0].State != "alive" {
		t.Errorf("%+v", nodes)
	}
}

// A client that repeats a bulk action from continue, in any process, has done it all once and
// counted it exactly.
func TestABulkActionGoesOnUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.dead("boom 1", numbered("a", 1700)...)
		h.dead("other", numbered("b", 1300)...)
		h.advance(time.Second)
		before := h.now
		h.advance(time.Second)
		h.dead("boom late", "late")
		body := service.BulkBody{Match: &service.Match{Error: "boom"}, Before: &before}
		calls := 0
		var reply bulkReply
		for more := true; more; calls++ {
			h.api = h.over(h.store, Options{}) // another process
			was := reply.LookedAt
			reply = post[bulkReply](h, "/queues/orders/morgue/revive", body)
			if looked := reply.LookedAt - was; looked > service.BulkSteps+ports.DefaultPage || reply.Total != 3001 {
				t.Errorf("call %d looked at %d: %+v", calls, looked, reply)
			}
			body.Continue = reply.Continue
			body.Before = &epoch // the time of the first call holds
			more = body.Continue != ""
		}
		if reply.Handled != 1700 || reply.LookedAt != reply.Total || calls < 3 {
			t.Errorf("%d calls: %+v", calls, reply)
		}
		if all := get[service.StatsReply](h, "/stats").Total; all.Length != 1700 || all.MorgueLength != 1301 {
			t.Errorf("%+v", all)
		}
		refused(t, "another match",
			answerOf(h.api,
				request(http.MethodPost, base+"/queues/orders/morgue/revive", `{"match":{},"continue":"x"}`)),
			400, "invalid-checkpoint")
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.failed("boom", numbered("f", 1500)...)
		h.dead("boom", numbered("d", 30)...)
		h.advance(time.Second)
		reply := post[bulkReply](h, "/queues/orders/morgue/purge", service.BulkBody{
			Match:  &service.Match{Prefix: "d0000"},
			DryRun: true,
		})
		if reply.Handled != 10 || len(reply.Dead) != 10 || !strings.HasPrefix(reply.Dead[0].ID, "d0000") ||
			reply.Dead[0].Payloads != nil || reply.Continue != "" {
			t.Errorf("%+v", reply)
		}
		reply = post[bulkReply](h, "/queues/orders/jobs/bury", service.BulkBody{
			Match:  &service.Match{Error: "boom"},
			DryRun: true,
		})
		if reply.Handled < 1000 || reply.LookedAt >= reply.Total || reply.Total != 1500 || len(reply.Jobs) == 0 {
			t.Errorf("%+v", reply)
		}
		if all := get[service.StatsReply](h, "/stats").Total; all.Retrying != 1500 || all.MorgueLength != 30 {
			t.Errorf("%+v", all)
		}
	})
}

func TestBodiesThatSayNothingOrTooMuchAreRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom", "a")
	for body, want := range map[string]string{
		`{}`:                           "bad-request",
		`{"ids":["a"],"match":{}}`:     "bad-request",
		`{"ids":[]}`:                   "bad-request",
		`{"ids":["a"],"dry_run":true}`: "bad-request",
		`{"ids":["a"],"continue":"x"}`: "bad-request",
		`{"ids":["a"],"before":"2026-01-02T15:04:05Z"}`: "bad-request",
		`{"match":{"eror":"x"}}`:                        "bad-request",
		`{"match":{}}x`:                                 "bad-request",
		`{"match":{}} {}`:                               "bad-request",
		`[]`:                                            "bad-request",
		`x`:                                             "bad-request",
		`{"ids":["\ud800"]}`:                            "bad-request",
		"{\"ids\":[\"\xff\"]}":                          "bad-request",
		`{"ids":[""]}`:                                  "invalid-id",
		`{"payloads":[{"id":"a","payloads":[{}]}]}`:                                "bad-request",
		`{"payloads":[{"id":"a","payloads":[{"data":"p","data_base64":"cA=="}]}]}`: "bad-request",
		`{"payloads":[{"id":"a","payloads":[{"data_base64":"!"}]}]}`:               "bad-request",
		`{"payloads":[],"ids":["a"]}`:                                              "bad-request",
		`{"payloads":[]}`:                                                          "bad-request",
		`{"ids":["` + strings.Repeat(`a","`, service.MaxNamed) + `a"]}`:            "bad-request",
	} {
		refused(t, body, answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge", body)), 400, want)
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		r := request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match":{}}`)
		r.Header.Set("Content-Type", kind)
		refused(t, kind, answerOf(h.api, r), 415, "unsupported-media-type")
	}
	refused(t, "query",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge?dry_run=true", `{"match":{}}`)),
		400, "bad-request")
	for body, want := range map[string]int{
		`{"id":"a","edits":[]}`: 400,
		`{"id":"","edits":[{"old":{"data":"a"},"new":{"data":"b"}}]}`: 400,
	} {
		if w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/edit", body)); w.Code != want {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
	many := strings.Repeat(`{"id":"a","payloads":[{"data":"q"}]},`, service.MaxNamed) +
		`{"id":"a","payloads":[{"data":"q"}]}`
	refused(t, "too many payloads",
		answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"payloads":[`+many+`]}`)),
		400, "bad-request")
	if h.letters() != 1 {
		t.Error("something was purged")
	}
}

// An action on first payloads names 1 to 1,000 ids.
func TestFirstPayloadsOfNoIDOrTooManyAreRefused(t *testing.T) {
	h := newHouse(t, Options{})
	first := `{"id":"a","payload":{"data":"p"}}`
	for _, path := range []string{"bury-first", "delete-first"} {
		for _, body := range []string{
			`{}`, `{"first":[]}`, `{"first":[` + strings.Repeat(first+",", service.MaxNamed) + first + `]}`,
		} {
			p := refused(t, path+" "+body[:min(len(body), 20)],
				answerOf(h.api, request(http.MethodPost, base+"/queues/orders/jobs/"+path, body)), 400, "bad-request")
			if !strings.Contains(p.Detail, "name 1 to 1000") {
				t.Errorf("%s: %s", path, p.Detail)
			}
		}
	}
}

// An action leaves one line in the log, with its actor.
func TestAnActionIsLoggedWithItsActor(t *testing.T) {
	h := newHouse(t, Options{})
	var log bytes.Buffer
	inspector := inspect.New(h.store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var err error
	if h.api, err = New(inspector, Options{
		Actor: func(r *http.Request) string { return r.Header.Get("X-User") },
	}); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/jobs/delete":   `{"ids":["a","b"]}`,
		"/pause":         `{}`,
		"/morgue/revive": `{"match":{"error":"boom"}}`,
	} {
		log.Reset()
		r := request(http.MethodPost, base+"/queues/orders"+path, body)
		r.Header.Set("X-User", "ada")
		answerOf(h.api, r)
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "actor=ada from=127.0.0.1") {
			t.Errorf("%s logged %q", path, text)
		}
	}
	log.Reset()
	get[service.StatsReply](h, "/stats")
	if log.Len() > 0 {
		t.Errorf("a look logged %s", &log)
	}
}

// Two actions on all of a kind run at once; a third is refused until one of them has ended.
func TestBulkActionsAreBounded(t *testing.T) {
	h := newHouse(t, Options{})
	entered, leave := make(chan struct{}), make(chan struct{})
	h.api = h.over(storekit.Intercept(h.store, func(
		ctx context.Context, call storekit.Call, next func(context.Context) error,
	) error {
		if call.Method == "Stats" {
			entered <- struct{}{}
			<-leave
		}
		return next(ctx)
	}), Options{})
	answers := make(chan int, service.MaxBulk)
	for range service.MaxBulk {
		go func() {
			w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/revive", `{"match":{}}`))
			answers <- w.Code
		}()
		<-entered
	}
	w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/jobs/bury", `{"match":{}}`))
	refused(t, "a third", w, 429, "busy")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("headers %v", w.Header())
	}
	if w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/jobs/bury", `{"ids":["a"]}`)); w.Code != 200 {
		t.Errorf("named entries meanwhile: %d", w.Code)
	}
	close(leave)
	for range service.MaxBulk {
		if code := <-answers; code != 200 {
			t.Errorf("status %d", code)
		}
	}
}

// An error is reported with what was done before it.
func TestAFailedBulkActionSaysHowFarItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.dead("boom", numbered("a", 700)...)
		h.advance(time.Second)
		steps := 0
		o := Options{
			RedactError: func(_, _, text string) string { return strings.ReplaceAll(text, "store", "***") },
			CursorKey:   []byte(strings.Repeat("k", 32)),
		}
		h.api = h.over(storekit.Intercept(h.store, func(
			ctx context.Context, call storekit.Call, next func(context.Context) error,
		) error {
			if call.Method == "Revive" {
				if steps++; steps > 2 {
					return ports.ErrFull
				}
			}
			return next(ctx)
		}), o)
		w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/revive", `{"match":{}}`))
		p := refused(t, "revive", w, 507, "store-full")
		if p.Result == nil || p.Result.Handled == 0 || p.Result.Continue == "" || strings.Contains(p.Detail, "store") {
			t.Fatalf("%s", w.Body)
		}
		steps = 3 // and now the first one fails
		again := `{"ids":["a00699"]}`
		if p := refused(t, again,
			answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/revive", again)),
			507, "store-full"); p.Result != nil {
			t.Errorf("an action that did nothing has the result %+v", p.Result)
		}
		h.api = h.over(h.store, o)
		reply := post[bulkReply](h, "/queues/orders/morgue/revive", service.BulkBody{
			Match:    &service.Match{},
			Continue: p.Result.Continue,
		})
		if reply.Handled != 700 || reply.Continue != "" {
			t.Errorf("%+v", reply)
		}
	})
}

// An error of each sentinel has its own type.
func TestEachErrorHasItsProblem(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range service.Problems {
		if seen[p.Name] || p.Title == "" || http.StatusText(p.Status) == "" {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
		if p.Is == nil {
			continue
		}
		h := newHouse(t, Options{})
		h.api = h.over(storekit.Intercept(h.store, func(
			context.Context, storekit.Call, func(context.Context) error,
		) error {
			return errors.Join(p.Is)
		}), Options{})
		w := answerOf(h.api, request(http.MethodGet, base+"/queues", ""))
		refused(t, p.Name, w, p.Status, p.Name)
	}
	for _, err := range []error{
		inspect.ErrUnknownQueue, inspect.ErrUnknownNode, inspect.ErrInvalidID, inspect.ErrInvalidOptions,
		inspect.ErrInvalidRequest, inspect.ErrUnusable, inspect.ErrFull,
		inspect.ErrQueueMismatch, inspect.ErrTooManyTracked, inspect.ErrNotEmpty, inspect.ErrLeaseHeld,
		inspect.ErrInvalidCheckpoint, inspect.ErrInvalidCursor,
	} {
		if p := new(service.Service).ProblemOf("", err); p.Name == "store" {
			t.Errorf("%v has no problem of its own", err)
		}
	}
}

// A call on a slow store ends after two seconds, between two steps, and the next call continues
// from there.
func TestABulkCallEndsAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		const step = 300 * time.Millisecond
		h.dead("boom", numbered("a", 2000)...)
		h.advance(time.Second)
		h.api = h.over(storekit.Intercept(h.store, func(
			ctx context.Context, call storekit.Call, next func(context.Context) error,
		) error {
			if call.Method == "Revive" {
				time.Sleep(step)
			}
			return next(ctx)
		}), Options{})
		body := service.BulkBody{Match: &service.Match{Error: "boom"}}
		var reply bulkReply
		calls := 0
		for more := true; more; calls++ {
			began := time.Now()
			reply = post[bulkReply](h, "/queues/orders/morgue/revive", body)
			body.Continue = reply.Continue
			body.Before = &epoch // the time of the first call holds
			more = body.Continue != ""
			if took := time.Since(began); took >= service.BulkTime+step || more && took < service.BulkTime {
				t.Errorf("call %d took %v", calls, took)
			}
		}
		if reply.Handled != 2000 || calls < 3 {
			t.Errorf("%d calls: %+v", calls, reply)
		}
	})
}

func TestHeldJobsAreListedReleasedAndContinued(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range []string{"a", "b", "c"} {
		h.push(id, 0, "p", "q")
	}
	policy := core.RetryPolicy{Exhausted: core.Hold}
	for index := range houseShards {
		for _, c := range h.turn(index, 10) {
			h.turn(index, 0, policy.Settlement(&c, &core.Outcome{Kind: core.Failed, Error: "boom"}, 0))
		}
	}
	page := get[list[jobRow]](h, "/queues/orders/jobs?held=true")
	if len(page.Items) != 3 || !page.Items[0].Held || page.Items[0].LastError != "boom" {
		t.Errorf("held jobs: %+v", page.Items)
	}
	if all := get[service.StatsReply](h, "/stats").Total; all.Held != 3 || all.Retrying != 3 {
		t.Errorf("%+v; want 3 held", all)
	}
	first := func(id, data string) service.FirstBody {
		return service.FirstBody{First: []service.FirstPayload{{ID: id, Payload: service.OctetsOf([]byte(data))}}}
	}
	for _, step := range []struct {
		path    string
		body    any
		handled int
	}{
		{"/jobs/bury-first", first("a", "q"), 0},
		{"/jobs/bury-first", first("a", "p"), 1},
		{"/jobs/delete-first", first("b", "p"), 1},
		{"/jobs/release", service.BulkBody{Match: &service.Match{}, DryRun: true}, 1},
		{"/jobs/release", service.BulkBody{IDs: []string{"c"}}, 1},
	} {
		if reply := post[bulkReply](h, "/queues/orders"+step.path, step.body); reply.Handled != step.handled {
			t.Errorf("%s %+v: %+v; want %d handled", step.path, step.body, reply, step.handled)
		}
	}
	if all := get[service.StatsReply](h, "/stats").Total; all.Held != 0 || all.Fresh != 3 || all.MorgueLength != 1 {
		t.Errorf("%+v; want no job held, and one dead letter", all)
	}
}

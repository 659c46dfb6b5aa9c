package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// epoch is where the clock of a house begins.
var epoch = time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)

// house is a store with the queue "orders", of 3 shards, and an API of it. Its methods stand in
// for clients and servers.
type house struct {
	t     testing.TB
	store *memory.Store
	api   *API
	mu    sync.Mutex
	now   time.Time
	turns map[int]*ports.TurnRequest
}

const houseShards = 3

func newHouse(t testing.TB, o Options) *house {
	t.Helper()
	h := &house{t: t, now: epoch, turns: map[int]*ports.TurnRequest{}}
	h.store = memory.New(memory.Options{Clock: func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.now
	}})
	h.api = h.over(h.store, o)
	if _, err := h.store.Declare(t.Context(),
		ports.DeclareRequest{Queue: "orders", Shards: houseShards, IndexIDs: true}); err != nil {
		t.Fatal(err)
	}
	return h
}

// over returns an API of a store that writes no log.
func (h *house) over(store inspect.Store, o Options) *API {
	h.t.Helper()
	api, err := New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return api
}

func (h *house) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// push pushes payloads for an id, due after a while.
func (h *house) push(id string, in time.Duration, payloads ...string) {
	h.t.Helper()
	entries := make([]core.Entry, len(payloads))
	for n, p := range payloads {
		entries[n] = core.Entry{ID: id, Payload: core.Payload{Data: []byte(p), Score: float64(n)}, When: core.In(in)}
	}
	r := ports.PushRequest{Queue: "orders", Shards: houseShards, Generation: 1, Entries: entries}
	if _, err := h.store.Push(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
}

// schedule declares a schedule at minute 30 of each hour.
func (h *house) schedule(id, name string, alter ...func(*core.Declaration)) {
	h.t.Helper()
	d := core.Declaration{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: "cron 30 * * * * UTC", Data: []byte("p")},
	}
	for _, f := range alter {
		f(&d)
	}
	spec, err := core.ParseSpec(d.Spec, time.UTC)
	if err != nil {
		h.t.Fatal(err)
	}
	next, _ := d.Apply(core.Schedule{}, spec, "code", core.InstantOf(epoch))
	_, err = h.store.ChangeSchedules(h.t.Context(), ports.ChangeSchedulesRequest{
		Shard:      core.Shard{Queue: "orders", Index: core.ShardOf(id, houseShards)},
		Shards:     houseShards,
		Generation: 1,
		Changes: []ports.ScheduleChange{{
			ScheduleKey: d.ScheduleKey,
			Schedule:    &next,
		}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// turn makes the next turn of a shard under a lease of an hour.
func (h *house) turn(index, want int, settle ...core.Settlement) []core.Claim {
	h.t.Helper()
	r := h.turns[index]
	if r == nil {
		shard := core.Shard{Queue: "orders", Index: index}
		lease, err := h.store.Acquire(h.t.Context(), ports.AcquireRequest{
			Shard: shard, Shards: houseShards, Generation: 1, Owner: "owner", Attempt: 1, TTL: time.Hour,
		})
		if err != nil {
			h.t.Fatal(err)
		}
		r = &ports.TurnRequest{
			Lease: ports.Lease{Shard: shard, Owner: "owner", Token: lease.Token},
			TTL:   time.Hour,
			Node:  "blue",
		}
		h.turns[index] = r
	}
	request := *r
	request.Number, request.Want, request.Settlements = r.Number+1, want, settle
	reply, err := h.store.Turn(h.t.Context(), request)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Number = reply.Last
	return reply.Claims
}

// end claims due jobs and ends them.
func (h *house) end(kind core.OutcomeKind, text string) {
	h.t.Helper()
	policy := core.RetryPolicy{MaxRetries: 25, Backoff: func(int, int) time.Duration { return time.Hour }}
	for index := range houseShards {
		for claims := h.turn(index, core.MaxTurnJobs); len(claims) > 0; claims = h.turn(index, core.MaxTurnJobs) {
			var settle []core.Settlement
			for at := range claims {
				settle = append(settle, policy.Settlement(&claims[at], &core.Outcome{Kind: kind, Error: text}, 0))
			}
			h.turn(index, 0, settle...)
		}
	}
}

// dead pushes jobs that go to the morgue with an error.
func (h *house) dead(text string, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.push(id, 0, "p")
	}
	h.end(core.Buried, text)
}

// failed pushes jobs that fail once.
func (h *house) failed(text string, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.push(id, 0, "p")
	}
	h.end(core.Failed, text)
}

func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return ids
}

// request is one of a client on the same machine.
func request(method, target string, body string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	q := httptest.NewRequest(method, target, r)
	q.Host, q.RemoteAddr = "localhost:8080", "127.0.0.1:4321"
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	return q
}

func answerOf(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// get reads an answer.
func get[R any](h *house, target string) (reply R) {
	h.t.Helper()
	return read[R](h.t, answerOf(h.api, request(http.MethodGet, base+target, "")))
}

// post reads the answer of an action.
func post[R any](h *house, target string, body any) (reply R) {
	h.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	return read[R](h.t, answerOf(h.api, request(http.MethodPost, base+target, string(text))))
}

func read[R any](t testing.TB, w *httptest.ResponseRecorder) (reply R) {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return reply
}

// refused checks that an answer is a problem of a type.
func refused(t testing.TB, what string, w *httptest.ResponseRecorder, status int, name string) service.Problem {
	t.Helper()
	var p service.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil && w.Body.Len() > 0 {
		t.Errorf("%s: %v: %s", what, err, w.Body)
	}
	if w.Code != status || p.Type != "urn:skein:problem:"+name || p.Status != status ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: status %d: %s; want %d %s", what, w.Code, w.Body, status, name)
	}
	return p
}

// sample is a request of each route that would be done.
type sample struct{ query, body string }

var samples = map[string]sample{
	"GET /stats":                            {},
	"GET /queues":                           {},
	"GET /queues/{queue}":                   {},
	"GET /queues/{queue}/history":           {},
	"GET /queues/{queue}/jobs":              {query: "sort=id&limit=5"},
	"GET /queues/{queue}/claimed":           {},
	"GET /queues/{queue}/morgue":            {query: "payloads=1"},
	"GET /queues/{queue}/groups":            {},
	"GET /queues/{queue}/past":              {},
	"GET /queues/{queue}/quarantine":        {},
	"GET /queues/{queue}/tracked":           {},
	"POST /queues/{queue}/jobs":             {body: `{"entries":[{"id":"a","payload":{"N":null,"n":1}},{"id":"b","data":"p"}]}`},
	"POST /queues/{queue}/tracked/add":      {body: `{"id":"a"}`},
	"POST /queues/{queue}/tracked/remove":   {body: `{"id":"a"}`},
	"GET /queues/{queue}/rate":              {query: "limit=5"},
	"GET /queues/{queue}/payloads":          {query: "id=a&place=dead"},
	"GET /queues/{queue}/schedules":         {query: "name=nightly&payloads=1"},
	"GET /queues/{queue}/schedules/names":   {},
	"GET /queues/{queue}/schedule":          {query: "name=nightly&id=a"},
	"POST /queues/{queue}/schedules/pause":  {body: `{"name":"nightly","note":"audit"}`},
	"POST /queues/{queue}/schedules/resume": {body: `{"id":"a"}`},
	"POST /queues/{queue}/schedules/run":    {body: `{"id":"a","name":"nightly"}`},
	"POST /queues/{queue}/schedules/edit":   {body: `{"id":"a","jitter_seconds":60}`},
	"POST /queues/{queue}/schedules/backfill": {
		body: `{"id":"a","name":"nightly","from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`,
	},
	"POST /queues/{queue}/schedules/remove":   {body: `{"id":"a"}`},
	"GET /errors":                             {query: "state=dead&entries=1&since=2020-01-01T00:00:00Z"},
	"GET /find":                               {query: "id=a"},
	"GET /why":                                {query: "queue=orders&id=a"},
	"GET /nodes":                              {},
	"GET /audit":                              {query: "limit=10"},
	"GET /checks":                             {},
	"GET /openapi.json":                       {},
	"POST /queues/{queue}/pause":              {body: `{}`},
	"POST /queues/{queue}/resume":             {body: `{}`},
	"POST /queues/{queue}/merge":              {body: `{"merge":"newest"}`},
	"POST /queues/{queue}/settings":           {body: `{"set":{"max-running":"20"},"unset":["max-lanes"]}`},
	"POST /queues/{queue}/rate/stop":          {body: `{"seconds":60}`},
	"POST /queues/{queue}/rate/resume":        {body: `{}`},
	"POST /queues/{queue}/forget":             {body: `{}`},
	"POST /queues/{queue}/recount":            {body: `{}`},
	"POST /queues/{queue}/jobs/run-now":       {body: `{"ids":["a"]}`},
	"POST /queues/{queue}/jobs/release":       {body: `{"ids":["a"]}`},
	"POST /queues/{queue}/jobs/bury-first":    {body: `{"first":[{"id":"a","payload":{"data":"p"}}]}`},
	"POST /queues/{queue}/jobs/delete-first":  {body: `{"first":[{"id":"a","payload":{"data":"p"}}]}`},
	"POST /queues/{queue}/jobs/bury":          {body: `{"match":{}}`},
	"POST /queues/{queue}/jobs/delete":        {body: `{"ids":["a"]}`},
	"POST /queues/{queue}/jobs/move":          {body: `{"ids":["a"],"to":"moved"}`},
	"POST /queues/{queue}/jobs/edit":          {body: `{"id":"a","edits":[{"old":{"data":"p"},"new":{"data":"q"}}]}`},
	"POST /queues/{queue}/morgue/move":        {body: `{"match":{},"to":"moved"}`},
	"POST /queues/{queue}/claimed/cancel":     {body: `{"ids":["a"],"drop":true}`},
	"POST /queues/{queue}/morgue/revive":      {body: `{"match":{"error":"boom"}}`},
	"POST /queues/{queue}/morgue/purge":       {body: `{"ids":["a"]}`},
	"POST /queues/{queue}/morgue/edit":        {body: `{"id":"a","edits":[{"old":{"data":"p"},"new":{"data":"q"}}]}`},
	"POST /queues/{queue}/quarantine/discard": {body: `{"shard":0,"keys":["k"]}`},
	"POST /nodes/drain":                       {body: `{"node":"blue"}`},
	"POST /nodes/resume":                      {body: `{"node":"blue"}`},
}

// target returns the path and query of a route's sample.
func (r *route) target(t testing.TB) (target, body string) {
	t.Helper()
	s, there := samples[r.method+" "+r.path]
	if !there {
		t.Fatalf("no sample of %s %s", r.method, r.path)
	}
	target = base + strings.ReplaceAll(r.path, "{queue}", "orders")
	if s.query != "" {
		target += "?" + s.query
	}
	return target, s.body
}

// declarePlain is a queue without an index of ids.
var declarePlain = ports.DeclareRequest{Queue: "plain", Shards: 1}

package dashboard

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// epoch is where the clock of a house begins.
var epoch = time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)

// stands is the clock of the lookers in most tests. A look takes no time by it, so no rest is
// longer and no detail is left out where the machine is slow.
func stands() time.Time { return epoch }

const houseShards = 3

// house is a store with the queue "orders", of 3 shards, and a dashboard of it. Its methods stand
// in for clients, servers and browsers.
type house struct {
	t     testing.TB
	store *faulty
	board *Dashboard
	mu    sync.Mutex
	now   time.Time
	turns map[core.Shard]*ports.TurnRequest
}

func newHouse(t testing.TB, o Options) *house {
	t.Helper()
	h := &house{t: t, now: epoch, turns: map[core.Shard]*ports.TurnRequest{}}
	h.store = &faulty{Store: memory.New(memory.Options{Clock: h.clock})}
	board, err := New(inspect.New(h.store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), o)
	if err != nil {
		t.Fatal(err)
	}
	h.board = board
	board.looker.clock = stands
	h.declare("orders", houseShards)
	return h
}

func (h *house) declare(queue string, shards int) {
	h.t.Helper()
	if _, err := h.store.Declare(h.t.Context(), ports.DeclareRequest{
		Queue: queue, Shards: shards, IndexIDs: true,
	}); err != nil {
		h.t.Fatal(err)
	}
}

// schedule stores a schedule of an id in orders: each day at 23:00 in Madrid, or as changed.
func (h *house) schedule(queue, id, name string, change func(*core.Schedule)) {
	h.t.Helper()
	spec, err := core.CronSpec("0 23 * * *", "Europe/Madrid")
	if err != nil {
		h.t.Fatal(err)
	}
	s := core.Schedule{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: spec, Data: []byte("p")},
		Next:        core.InstantOf(time.Date(2030, 1, 2, 22, 0, 0, 0, time.UTC)),
		By:          "code",
		ChangedAt:   core.InstantOf(epoch),
		SpecSince:   core.InstantOf(epoch),
		Revision:    1,
	}
	if change != nil {
		change(&s)
	}
	n := h.shards(queue)
	reply, err := h.store.ChangeSchedules(h.t.Context(), ports.ChangeSchedulesRequest{
		Shard:      core.Shard{Queue: queue, Index: core.ShardOf(id, n)},
		Shards:     n,
		Generation: 1,
		Changes:    []ports.ScheduleChange{{ScheduleKey: s.ScheduleKey, Schedule: &s}},
	})
	if err != nil || reply.Results[0] != ports.ScheduleChanged {
		h.t.Fatalf("schedule %s of %s: %v, %v", name, id, reply.Results, err)
	}
}

// clock is the store's. The dashboard's stands, unless a test gives it this one.
func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *house) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// push pushes payloads for an id of a queue, due after a while.
func (h *house) push(queue, id string, in time.Duration, payloads ...string) {
	h.t.Helper()
	entries := make([]core.Entry, len(payloads))
	for n, p := range payloads {
		entries[n] = core.Entry{ID: id, Payload: core.Payload{Data: []byte(p), Score: float64(n)}, When: core.In(in)}
	}
	r := ports.PushRequest{Queue: queue, Shards: h.shards(queue), Generation: 1, Entries: entries}
	if _, err := h.store.Push(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) shards(queue string) int {
	h.t.Helper()
	queues, err := h.store.Queues(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, q := range queues {
		if q.Name == queue {
			return q.Shards
		}
	}
	h.t.Fatalf("no queue %s", queue)
	return 0
}

// turn makes the next turn of a shard under a lease of an hour.
func (h *house) turn(queue string, index, want int, settle ...core.Settlement) []core.Claim {
	h.t.Helper()
	shard := core.Shard{Queue: queue, Index: index}
	r := h.turns[shard]
	if r == nil {
		lease, err := h.store.Acquire(h.t.Context(), ports.AcquireRequest{
			Shard: shard, Shards: h.shards(queue), Generation: 1, Owner: "owner", Attempt: 1, TTL: time.Hour,
		})
		if err != nil {
			h.t.Fatal(err)
		}
		r = &ports.TurnRequest{
			Lease: ports.Lease{Shard: shard, Owner: "owner", Token: lease.Token}, TTL: time.Hour, Node: "blue",
		}
		h.turns[shard] = r
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

// end claims the due jobs of a queue and ends them.
func (h *house) end(queue string, kind core.OutcomeKind, text string) {
	h.t.Helper()
	policy := core.RetryPolicy{MaxRetries: 25, Backoff: func(int, int) time.Duration { return time.Hour }}
	for index := range h.shards(queue) {
		for claims := h.turn(queue, index, core.MaxTurnJobs); len(claims) > 0; claims = h.turn(
			queue, index, core.MaxTurnJobs,
		) {
			var settle []core.Settlement
			for at := range claims {
				o := core.Outcome{Kind: kind, Error: text, At: core.InstantOf(h.now), Node: "worker-c"}
				settle = append(settle, policy.Settlement(&claims[at], &o, 0))
			}
			h.turn(queue, index, 0, settle...)
		}
	}
}

// ended pushes jobs to orders that end in a way.
func (h *house) ended(kind core.OutcomeKind, text string, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.push("orders", id, 0, "p")
	}
	h.end("orders", kind, text)
}

// announce lets a server be known for a minute.
func (h *house) announce(n ports.Node) {
	h.t.Helper()
	if n.Owner == "" {
		n.Owner = "owner"
	}
	if _, err := h.store.Announce(h.t.Context(), ports.AnnounceRequest{Node: n, TTL: time.Minute}); err != nil {
		h.t.Fatal(err)
	}
}

// request is one of a browser on the same machine.
func request(method, target string, form url.Values) *http.Request {
	q := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if form == nil {
		q = httptest.NewRequest(method, target, nil)
	} else {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	q.Host, q.RemoteAddr = "localhost:8080", "127.0.0.1:4321"
	return q
}

func answerOf(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// answers checks the status of the answer to a request for each address.
func (h *house) answers(statuses map[string]int) {
	h.t.Helper()
	for target, status := range statuses {
		if w := answerOf(h.board, request(http.MethodGet, target, nil)); w.Code != status {
			h.t.Errorf("%s: status %d, want %d", target, w.Code, status)
		}
	}
}

// get returns a page that must be there, of a new look at the store.
func (h *house) get(target string) string {
	h.t.Helper()
	h.board.looker.acted()
	w := answerOf(h.board, request(http.MethodGet, target, nil))
	if w.Code != http.StatusOK {
		h.t.Fatalf("GET %s: status %d: %s", target, w.Code, words(w.Body.String()))
	}
	return w.Body.String()
}

// do sends a form, which must be answered with another page, and returns that.
func (h *house) do(form ...string) string {
	h.t.Helper()
	w := h.form(form...)
	if w.Code != http.StatusSeeOther {
		h.t.Fatalf("%q: status %d: %s", form, w.Code, words(w.Body.String()))
	}
	return h.get("/" + strings.TrimPrefix(w.Header().Get("Location"), "./"))
}

func (h *house) form(form ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	values := url.Values{}
	for at := 0; at+1 < len(form); at += 2 {
		values.Add(form[at], form[at+1])
	}
	return answerOf(h.board, request(http.MethodPost, "/act", values))
}

var (
	markup = regexp.MustCompile(`(?s)<(head|style|script)[ >].*?</(head|style|script)>|<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// words are the texts of a page, in one line.
func words(page string) string {
	text := spaces.ReplaceAllString(markup.ReplaceAllString(page, " "), " ")
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&",
		"&#43;", "+").Replace(text)
}

// says checks that the texts of a page contain others.
func says(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(words(page), text) {
			t.Errorf("no %q in: %s", text, words(page))
		}
	}
}

// saysNot checks that a page contains none of the texts.
func saysNot(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("%q is in: %s", text, words(page))
		}
	}
}

func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return ids
}

var readOnly = Options{API: httpapi.Options{ReadOnly: true}}

package inspect_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// epoch is where the clock of a fixture begins.
var epoch = time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)

// fixtureShards is the shard count of its queue.
const fixtureShards = 3

// fixture is a store whose clock stands still, with a queue "orders" and an
// inspector. Its methods stand in for clients and servers that know the queue.
type fixture struct {
	*inspect.Inspector
	t     testing.TB
	store *memory.Store

	clock   *virtual.Clock
	attempt int64
	leases  map[int]*ports.TurnRequest
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{t: t, clock: virtual.NewClock(epoch), leases: map[int]*ports.TurnRequest{}}
	s.store = memory.New(memory.Options{Clock: s.clock.Now})
	s.Inspector = inspect.New(s.store, inspect.Options{})
	s.declare("orders", fixtureShards)
	return s
}

// hooks are called with the name of each call of the store, before the call and after it has taken
// effect. If a hook returns an error, it is that of the call.
type hooks struct{ before, after func(method string) error }

// intercept calls hooks around each call of the inspector's store.
func (s *fixture) intercept() *hooks {
	h := &hooks{}

	pass := func(hook func(string) error, method string) error {
		if hook == nil {
			return nil
		}
		return hook(method)
	}

	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if call.Method == "Audit" { // it is not an effect of an action
			return next(ctx)
		}
		if err := pass(h.before, call.Method); err != nil {
			return err
		}
		if err := next(ctx); err != nil {
			return err
		}
		return pass(h.after, call.Method)
	})

	s.Inspector = inspect.New(store, inspect.Options{})
	return h
}

func (s *fixture) declare(queue string, shards int) {
	s.t.Helper()
	r := ports.DeclareRequest{Queue: queue, Shards: shards, IndexIDs: true}
	if _, err := s.store.Declare(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

// advance moves the store's clock.
func (s *fixture) advance(d time.Duration) { s.clock.Advance(d) }

// push pushes payloads for an id, scored in order, to run a while from now.
func (s *fixture) push(id string, in time.Duration, payloads ...string) {
	s.t.Helper()
	entries := make([]core.Entry, len(payloads))
	for n, p := range payloads {
		entries[n] = core.Entry{ID: id, Payload: core.Payload{Data: []byte(p), Score: float64(n)}, When: core.In(in)}
	}
	s.pushEntries(entries)
}

// pushAll pushes a payload "p" for each id, due now.
func (s *fixture) pushAll(ids ...string) {
	s.t.Helper()
	entries := make([]core.Entry, len(ids))
	for n, id := range ids {
		entries[n] = core.Entry{ID: id, Payload: core.Payload{Data: []byte("p")}}
	}
	s.pushEntries(entries)
}

func (s *fixture) pushEntries(entries []core.Entry) {
	s.t.Helper()
	r := ports.PushRequest{Queue: "orders", Shards: fixtureShards, Generation: 1, Entries: entries}
	if _, err := s.store.Push(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

// turn makes the next turn of a shard, whose lease it takes first.
func (s *fixture) turn(shard core.Shard, want int, settle ...core.Settlement) ports.TurnReply {
	s.t.Helper()
	r := s.leases[shard.Index]
	if r == nil {
		s.attempt++
		lease := ports.Lease{Shard: shard, Owner: "owner"}
		reply, err := s.store.Acquire(s.t.Context(), ports.AcquireRequest{
			Shard: shard, Shards: fixtureShards, Generation: 1, Owner: "owner", Attempt: s.attempt, TTL: time.Hour,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		lease.Token = reply.Token
		r = &ports.TurnRequest{Lease: lease, TTL: time.Hour, Node: "blue"}
		s.leases[shard.Index] = r
	}

	request := *r
	request.Number, request.Want, request.Settlements = r.Number+1, want, settle
	reply, err := s.store.Turn(s.t.Context(), request)
	if err != nil {
		s.t.Fatal(err)
	}

	r.Number = reply.Last
	return reply
}

// claim claims all due jobs.
func (s *fixture) claim() []core.Claim {
	s.t.Helper()
	var claims []core.Claim
	for _, shard := range core.Shards("orders", fixtureShards) {
		for {
			reply := s.turn(shard, core.MaxTurnJobs)
			if len(reply.Claims) == 0 {
				break
			}
			claims = append(claims, reply.Claims...)
		}
	}
	return claims
}

// settle ends claimed jobs.
func (s *fixture) settle(claims []core.Claim, outcome core.Outcome) {
	s.t.Helper()
	policy := core.RetryPolicy{MaxRetries: 25, Backoff: func(retry, _ int) time.Duration {
		return time.Duration(retry+1) * time.Hour
	}}

	settlements := make([][]core.Settlement, fixtureShards)
	for at := range claims {
		shard := core.ShardOf(claims[at].ID, fixtureShards)
		settlements[shard] = append(settlements[shard], policy.Settlement(&claims[at], &outcome, 0))
	}

	for index, settlements := range settlements {
		for some := range slices.Chunk(settlements, core.MaxTurnJobs) {
			s.turn(core.Shard{Queue: "orders", Index: index}, 0, some...)
		}
	}
}

// fail lets the due jobs fail: they are due again after an hour for each failure.
func (s *fixture) fail(text string) {
	s.t.Helper()
	s.settle(s.claim(), core.Outcome{Kind: core.Failed, Error: text})
}

// failed pushes jobs that then fail, all at once.
func (s *fixture) failed(ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	s.fail("boom")
}

// dead pushes jobs that go to the morgue, in order.
func (s *fixture) dead(ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	s.bury()
}

// bury lets the due jobs go to the morgue.
func (s *fixture) bury() {
	s.t.Helper()
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "hopeless"})
}

// state returns where everything of the queue is, as a line for each job and dead letter.
func (s *fixture) state() []string {
	s.t.Helper()
	var lines []string

	show := func(p []core.Payload) string {
		var text []string
		for _, p := range p {
			text = append(text, string(p.Data))
		}
		return fmt.Sprint(text)
	}
	after := func(t time.Time) string { return t.Sub(epoch).String() }

	all := inspect.ListOptions{Payloads: 10}
	for job := range must(s.t, s.Jobs(s.t.Context(), "orders", all)) {
		lines = append(lines, fmt.Sprintf("queued %s at %s retries %d %s%s",
			job.ID, after(job.PerformAt), job.Retries, show(job.Payloads), prefixed(" ", job.LastError)))
	}

	for job := range must(s.t, s.Claimed(s.t.Context(), "orders", all)) {
		lines = append(lines, fmt.Sprintf("claimed %s %s", job.ID, show(job.Payloads)))
	}

	for dead := range must(s.t, s.Morgue(s.t.Context(), "orders", all)) {
		lines = append(lines, fmt.Sprintf("dead %s at %s %s %s",
			dead.ID, after(dead.ChangedAt), show(dead.Payloads), dead.LastError))
	}
	return lines
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// holds compares the state of the queue.
func (s *fixture) holds(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.state()); diff != "" {
		s.t.Errorf("the queue holds (-want +got):\n%s", diff)
	}
}

// counts returns Stats of the queue.
func (s *fixture) counts() inspect.Counts {
	s.t.Helper()
	stats, err := s.Stats(s.t.Context(), "orders")
	if err != nil {
		s.t.Fatal(err)
	}
	return stats[0].Counts
}

// must ranges over a list and fails the test if the list has an error.
func must[V any](t testing.TB, list iter.Seq2[V, error]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(v) {
				return
			}
		}
	}
}

// nth returns the id with a number.
func nth(prefix string, n int) string { return fmt.Sprintf("%s-%05d", prefix, n) }

// numbered returns the first n ids.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = nth(prefix, i)
	}
	return ids
}

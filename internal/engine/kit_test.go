package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/internal/errorgroup"
	"github.com/skeinq/skein/ports"
)

func texts(payloads []core.Payload) []string {
	var all []string
	for _, p := range payloads {
		all = append(all, string(p.Data))
	}
	return all
}

// idsIn lists n ids of a shard.
func idsIn(shard, shards, n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprintf("id-%d", i); core.ShardOf(id, shards) == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

const queueName = "orders"

// Times of a test's nodes, unless it sets others.
const (
	poll = time.Second
	ttl  = 30 * time.Second
)

// world is one store in memory, the nodes that work on it, and virtual time.
type world struct {
	*testing.T
	store *memory.Store
	began time.Time
	nodes int
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	inWorldFor(t, realTimeout, test)
}

// inWorldFor runs a test in virtual time, which may take the given real time.
func inWorldFor(t *testing.T, limit time.Duration, test func(w *world)) {
	t.Helper()
	defer limitRealTime(t, limit)()
	synctest.Test(t, func(t *testing.T) {
		test(&world{T: t, store: memory.New(memory.Options{}), began: time.Now()})
	})
}

// elapsed is the virtual time since the test began.
func (w *world) elapsed() time.Duration { return time.Since(w.began) }

// sleep lets virtual time pass, and the nodes work until then.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// sleepInHandler sleeps, in a handler, until a time since the test began.
func (w *world) sleepInHandler(until time.Duration) { time.Sleep(until - w.elapsed()) }

// sleepUntil sleeps to a time since the test began.
func (w *world) sleepUntil(d time.Duration) { w.sleep(d - w.elapsed()) }

// handler is a queue's Run.
type handler func(ctx context.Context, b *execution.Batch) error

// each is a handler that calls f for one job after another, as the root package
// does.
func each(f func(ctx context.Context, c *core.Claim) error) handler {
	return func(ctx context.Context, b *execution.Batch) error {
		for i := range b.Claims {
			if job, ok := b.Begin(ctx, i); ok {
				b.Return(i, guard.Call(func() error { return f(job, &b.Claims[i]) }))
			}
		}
		return nil
	}
}

// setup is the part of a node that a test may change before it starts.
type setup struct {
	engine.Config
	// queue is the only one unless Queues is set. It has one shard.
	queue *engine.Queue
	link  *link
	// noWakeups hides the store's ports.Notifier. maxTurns is how many turns the store wants in
	// flight at once, or 0.
	noWakeups bool
	maxTurns  int
	// wrap, if set, makes the node's store.
	wrap func(notifyingLink) engine.Store
}

func newQueue(name string, run handler) *engine.Queue {
	return &engine.Queue{
		Name: name, Shards: 1, BatchSize: 1, PerJob: core.MaxTurnPayloads, Bytes: core.DefaultTurnBytes,
		Queue: execution.Queue{
			Policy: core.RetryPolicy{MaxRetries: 25, MaxRecoveries: 3},
			Run:    run,
			Outcome: func(err error) core.Outcome {
				return core.Outcome{Kind: core.Failed, Error: core.ErrorText(err.Error())}
			},
			Text: func(err error) (string, string) {
				return core.ErrorText(err.Error()), errorgroup.Of("", err.Error())
			},
			Stored: func(text string) string { return text },
		},
	}
}

// node is an engine that runs.
type node struct {
	*world
	engine *engine.Engine
	owner  string
	link   *link
	log    *logBuffer
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// start runs an engine until the test ends or stops it.
func (w *world) start(run handler, options ...func(*setup)) *node {
	w.Helper()
	w.nodes++
	name := fmt.Sprintf("node-%d", w.nodes)
	n := &node{world: w, owner: "owner-of-" + name, log: &logBuffer{}, ended: make(chan struct{})}
	s := &setup{queue: newQueue(queueName, run), link: newLink(w.store.Open())}
	s.link.spin.t = w.T

	s.Config = engine.Config{
		Owner: n.owner, Node: name, Host: "host", PID: 1, Lanes: 5,
		PollInterval: poll, LeaseTTL: ttl, ShutdownTimeout: ttl, Prefetch: core.MaxTurnJobs,
		Splitter: core.LaneSplitter{}, Scheduler: core.Lag,
		Logger: slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Jitter: func() int { return 0 },
	}

	for _, option := range options {
		option(s)
	}
	s.Scheduler = guardScheduler(w.T, s.Scheduler, s.Lanes)
	if s.Queues == nil {
		s.Queues = []*engine.Queue{s.queue}
	}

	n.link = s.link
	var store engine.Store = notifyingLink{n.link}
	switch {
	case s.noWakeups:
		store = n.link
	case s.maxTurns > 0:
		store = limitedLink{notifyingLink{n.link}, s.maxTurns}
	case s.wrap != nil:
		store = s.wrap(notifyingLink{n.link})
	}

	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.engine = engine.New(store, s.Config)
	go func() {
		defer close(n.ended)
		n.err = n.engine.Run(ctx)
	}()

	w.Cleanup(func() { n.stop() })
	return n
}

// stop drains the node and returns once Run has; it fails the test if Run fails
// or does not return.
func (n *node) stop() {
	n.Helper()
	n.cancel()
	n.awaitEnd()
}

// cutOff cuts the node off for good, as if its process were killed: its later calls reach nobody.
func (n *node) cutOff() { n.link.set(hanging) }

// noWakeups is an option: the node gets no wake-ups.
func noWakeups(s *setup) { s.noWakeups = true }

func shards(n int) func(*setup) { return func(s *setup) { s.queue.Shards = n } }

func lanes(n int) func(*setup) { return func(s *setup) { s.Lanes = n } }

func batches(n int) func(*setup) { return func(s *setup) { s.queue.BatchSize = n } }

func polling(every time.Duration) func(*setup) {
	return func(s *setup) { s.PollInterval = every }
}

// roundTrip is an option: each call to the store takes so long.
func roundTrip(d time.Duration) func(*setup) {
	return func(s *setup) { s.link.delay = d / 2 }
}

// declare makes the test's queue before any node does.
func (w *world) declare(shards int) {
	w.Helper()
	if _, err := w.store.Declare(w.Context(), ports.DeclareRequest{Queue: queueName, Shards: shards}); err != nil {
		w.Fatal(err)
	}
}

// push pushes payloads for an id, with ascending scores from 1, and lets the
// nodes start on them.
func (w *world) push(id string, payloads ...string) {
	w.Helper()
	var entries []core.Entry
	for i, p := range payloads {
		entries = append(entries, core.Entry{ID: id, Payload: core.Payload{Data: []byte(p), Score: float64(i + 1)}})
	}
	w.pushEntries(entries...)
	synctest.Wait()
}

// pushEach pushes one payload for each of n ids, job-0 and on.
func (w *world) pushEach(n int) {
	w.Helper()
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = core.Entry{ID: fmt.Sprintf("job-%d", i), Payload: core.Payload{Data: []byte("x")}}
	}
	w.pushEntries(entries...)
}

func (w *world) pushEntries(entries ...core.Entry) {
	w.Helper()
	r := ports.PushRequest{Queue: queueName, Shards: w.queueRecord().Shards, Generation: 1, Entries: entries}
	if _, err := w.store.Push(context.Background(), r); err != nil {
		w.Fatal(err)
	}
}

func (w *world) queueRecord() ports.Queue { return w.stats().Queue }

// stats looks at the queue.
func (w *world) stats() ports.QueueStats { return w.statsOf(queueName) }

func (w *world) statsOf(queue string) ports.QueueStats {
	w.Helper()
	stats, err := w.store.Stats(context.Background(), ports.StatsRequest{Queues: []string{queue}})
	if err != nil {
		w.Fatal(err)
	}
	return stats[0]
}

// find looks an id up.
func (w *world) find(id string) ports.Found {
	w.Helper()
	found, err := w.store.Find(context.Background(), ports.FindRequest{Queue: queueName, ID: id, Payloads: 1000})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// wantCounts checks how many jobs are where.
func (w *world) wantCounts(queued, claimed, processed, failed int64) {
	w.Helper()
	s := w.stats()
	if s.Fresh+s.Retrying != queued || s.Claimed != claimed || s.Processed != processed || s.Failed != failed {
		w.Errorf("at %v: queued %d, claimed %d, processed %d, failed %d; want %d, %d, %d, %d", w.elapsed(),
			s.Fresh+s.Retrying, s.Claimed, s.Processed, s.Failed, queued, claimed, processed, failed)
	}
}

// within checks a time since the test began.
func (w *world) within(what string, got, from, to time.Duration) {
	w.Helper()
	if got < from || got > to {
		w.Errorf("%s at %v; want it within %v … %v", what, got, from, to)
	}
}

// shardOfQueue is the only shard of most tests.
func shardOfQueue(index int) core.Shard { return core.Shard{Queue: queueName, Index: index} }

func entry(id string) core.Entry { return core.Entry{ID: id, Payload: core.Payload{Data: []byte("x")}} }

func fails(context.Context, *core.Claim) error { return errors.New("boom") }

// idIn is an id of a shard.
func idIn(shard, shards int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("id-%d", i); core.ShardOf(id, shards) == shard {
			return id
		}
	}
}

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// pooled is an option: n lanes share all shards.
func pooled(n int) func(*setup) {
	return func(s *setup) { s.Lanes, s.Splitter = n, core.SpreadSplitter{} }
}

// maxTurns is an option: the store wants at most n turns in flight.
func maxTurns(n int) func(*setup) { return func(s *setup) { s.maxTurns = n } }

// scheduled is an option.
func scheduled(build core.SchedulerFunc) func(*setup) { return func(s *setup) { s.Scheduler = build } }

// serving is an option: the node serves these queues.
func serving(queues ...*engine.Queue) func(*setup) {
	return func(s *setup) { s.Queues = queues }
}

// limitedLink is a link to a store that wants few turns in flight.
type limitedLink struct {
	notifyingLink
	most int
}

func (l limitedLink) MaxTurns() int { return l.most }

// fill declares a queue of a number of shards and pushes n jobs, in one order for all shards:
// their ids are returned.
func (w *world) fill(queue string, shards, n int) []string {
	w.Helper()
	if _, err := w.store.Declare(w.Context(), ports.DeclareRequest{Queue: queue, Shards: shards}); err != nil {
		w.Fatal(err)
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", queue, i)
	}
	w.pushTo(queue, shards, ids...)
	return ids
}

// pushTo pushes one payload for each id.
func (w *world) pushTo(queue string, shards int, ids ...string) {
	w.Helper()
	entries := make([]core.Entry, len(ids))
	for i, id := range ids {
		entries[i] = entry(id)
	}
	r := ports.PushRequest{Queue: queue, Shards: shards, Generation: 1, Entries: entries}
	if _, err := w.store.Push(w.Context(), r); err != nil {
		w.Fatal(err)
	}
}

// record lists the starts and ends of handlers, of any queues.
type record struct {
	*world
	mu      sync.Mutex
	starts  []started
	running map[core.Shard]int
	// most is how many batches of a shard ran at once at most.
	most map[core.Shard]int
	ends int
}

// started is the start of a batch, by its first job.
type started struct {
	at    time.Duration
	shard core.Shard
	id    string
}

func (w *world) record() *record {
	return &record{world: w, running: make(map[core.Shard]int), most: make(map[core.Shard]int)}
}

// watch is a handler of batches that calls f with the first job of each.
func (r *record) watch(f func(ctx context.Context, c *core.Claim) error) handler {
	return func(ctx context.Context, b *execution.Batch) error {
		shard := b.Shard()
		r.mu.Lock()
		r.starts = append(r.starts, started{r.elapsed(), shard, b.Claims[0].ID})
		r.running[shard]++
		r.most[shard] = max(r.most[shard], r.running[shard])
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.running[shard]--
			r.ends++
		}()
		return f(ctx, &b.Claims[0])
	}
}

// queue is a queue whose batches are recorded.
func (r *record) queue(name string, shards int, f func(ctx context.Context, c *core.Claim) error) *engine.Queue {
	q := newQueue(name, r.watch(f))
	q.Shards = shards
	return q
}

// all lists the starts so far.
func (r *record) all() []started {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.starts)
}

// of lists the starts of a queue.
func (r *record) of(queue string) (of []started) {
	for _, s := range r.all() {
		if s.shard.Queue == queue {
			of = append(of, s)
		}
	}
	return of
}

// runningNow is how many batches of a queue run.
func (r *record) runningNow(queue string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for shard, running := range r.running {
		if shard.Queue == queue {
			n += running
		}
	}
	return n
}

// between counts the starts from a time on until another one.
func between(starts []started, from, to time.Duration) (n int) {
	for _, s := range starts {
		if s.at >= from && s.at < to {
			n++
		}
	}
	return n
}

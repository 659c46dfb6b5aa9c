package engine_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// permitLedger counts the batches of one queue that run, of all nodes, and fails the test where
// more run at once than may.
type permitLedger struct {
	*world
	limit int

	mu      sync.Mutex
	running map[int]int // by number of node
	most    int
	ended   map[int]int
	lost    int
	// busy is how long each number of batches ran at once, until since.
	busy  map[int]time.Duration
	since time.Time
}

func (w *world) permitLedger(limit int) *permitLedger {
	return &permitLedger{
		world:   w,
		limit:   limit,
		running: make(map[int]int),
		ended:   make(map[int]int),
		busy:    make(map[int]time.Duration),
		since:   time.Now(),
	}
}

// change adds to the batches of a node that run.
func (l *permitLedger) change(node, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[l.sum()] += time.Since(l.since)
	l.since = time.Now()
	l.running[node] += by
	l.most = max(l.most, l.sum())
	if l.sum() > l.limit {
		l.Errorf("at %v %d batches run at once: %v", l.elapsed(), l.sum(), l.running)
	}
}

func (l *permitLedger) sum() (n int) {
	for _, running := range l.running {
		n += running
	}
	return n
}

// of returns how many batches of a node run, and how many have ended.
func (l *permitLedger) of(node int) (running, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[node], l.ended[node]
}

// peak returns the most batches of a node that run at once in the next 10 ms. A look at one instant
// can find fewer than the node has permits for, since a lane waits for the store between two
// batches.
func (l *permitLedger) peak(node int) (most int) {
	for range 20 {
		running, _ := l.of(node)
		most = max(most, running)
		l.sleep(time.Millisecond / 2)
	}
	return most
}

// queue is the test's queue on a node, whose jobs take so long.
func (l *permitLedger) queue(node, shards int, took time.Duration) *engine.Queue {
	q := newQueue(queueName, func(ctx context.Context, _ *execution.Batch) error {
		l.change(node, 1)
		defer l.change(node, -1)
		select {
		case <-time.After(took):
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ended[node]++
			return nil
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			if errors.Is(context.Cause(ctx), ports.ErrLeaseLost) {
				l.lost++
			}
			return context.Cause(ctx)
		}
	})
	q.Shards, q.MaxRunning = shards, l.limit
	return q
}

// startNodes starts nodes that divide the shards of the queue by numbers, each of 10 lanes.
func (l *permitLedger) startNodes(nodes, shards int, took time.Duration, options ...func(*setup)) (all []*node) {
	l.Helper()
	for i := range nodes {
		all = append(all, l.start(nil, append([]func(*setup){
			serving(l.queue(i, shards, took)), roundTrip(time.Millisecond), func(s *setup) {
				s.Lanes, s.Splitter = 10, core.NodeSplitter{Nodes: nodes, Node: i, Share: true}
			}}, options...)...))
	}
	l.sleep(2 * poll)
	return all
}

// held returns the store's permits.
func (w *world) held() (total int, holders []core.PermitHolder) {
	w.Helper()
	reply, err := w.store.Permit(context.Background(), ports.PermitRequest{
		Queue:   queueName,
		Owner:   "test",
		Attempt: 1,
		Limit:   1,
		TTL:     time.Second,
	})
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range reply.Holders {
		total += h.Held
	}
	return total, reply.Holders
}

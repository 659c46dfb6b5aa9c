package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
)

func TestNodesWithNumbersShareTheShards(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs = 200
		a := w.audit()
		run := a.watch(lasting(time.Millisecond))
		var nodes []*node
		for number := range 2 {
			nodes = append(nodes, w.start(run, shards(5), func(s *setup) {
				s.Splitter = core.NodeSplitter{Nodes: 2, Node: number}
			}))
		}
		w.sleep(poll)
		w.pushEach(jobs)
		w.sleep(poll)
		w.wantCounts(0, 0, jobs, 0)
		a.wantHandledOnce(jobs, "x")
		for _, s := range w.stats().Shards {
			if want := nodes[s.Shard.Index%2].owner; s.Owner != want {
				w.Errorf("%v belongs to %q, want %q", s.Shard, s.Owner, want)
			}
		}
	})
}

func TestANodeWithoutShardsRunsAndStops(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) { s.Splitter = core.NodeSplitter{Nodes: 2, Node: 1} })
		w.sleep(time.Minute)
		n.stop()
		w.within("Run returned", w.elapsed(), time.Minute, time.Minute)
		if told := n.log.count("assigns no shard to this server"); told != 1 {
			w.Errorf("the log says %d times that it has no shard, want once", told)
		}
		n.wantLines(0, "it is a standby")
	})
}

// history is the adversary's pushes, for the check at the end.
type history struct {
	mu     sync.Mutex
	pushed map[string][]string
}

// push pushes the next payload for an id, in ascending order of score.
func (h *history) push(w *world, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.pushed[id])
	payload := fmt.Sprintf("%04d", n)
	h.pushed[id] = append(h.pushed[id], payload)
	w.pushEntries(core.Entry{ID: id, Payload: core.Payload{Data: []byte(payload), Score: float64(n)}})
}

// TestInRandomHistoriesNoIDOverlapsAndOrderHolds lets three nodes contend for all
// shards while handlers fail, panic and dawdle, links fail, hang, lose replies
// and recover, and nodes leave and come back.
func TestInRandomHistoriesNoIDOverlapsAndOrderHolds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(tier.Count(3, 10)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inWorld(t, func(w *world) { randomHistory(w, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func randomHistory(w *world, random *rand.Rand) {
	const ids, queueShards = 40, 7
	var mu sync.Mutex
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}

	a := w.audit()
	run := a.watch(func(ctx context.Context, c *core.Claim) error {
		select {
		// Never 0: in a bubble, with -race, channels of timers that are due at once and read by several
		// goroutines crash Go 1.26.
		case <-time.After(time.Duration(1+draw(30)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch draw(20) {
		case 0:
			return errors.New("no luck")
		case 1:
			panic("no luck either")
		}
		return nil
	})

	start := func() *node {
		size := 1 + draw(4)
		return w.start(run, shards(queueShards), batches(size), lanes(1+draw(4)),
			roundTrip(time.Duration(draw(20))*time.Millisecond), func(s *setup) {
				s.LeaseTTL = 3 * time.Second
				s.queue.Policy.MaxRetries, s.queue.Policy.MaxRecoveries = 1000, 1000
				s.queue.Policy.Backoff = func(int, int) time.Duration {
					return time.Duration(draw(2000)) * time.Millisecond
				}
				s.noWakeups = draw(2) == 0
				s.link.lose = func(string) bool { return draw(20) == 0 }
			})
	}

	w.declare(queueShards)
	h := history{pushed: make(map[string][]string)}
	nodes := []*node{start(), start(), start()}

	for range 600 {
		for range draw(8) {
			h.push(w, fmt.Sprintf("id-%d", draw(ids)))
		}
		w.sleep(time.Duration(draw(200)) * time.Millisecond)

		i := draw(len(nodes))
		switch draw(40) {
		case 0:
			nodes[i].link.set(down)
		case 1:
			nodes[i].link.set(hanging)
		case 2:
			nodes[i].cancel()
			nodes[i].link.set(up)
			nodes[i].awaitEnd()
			nodes[i] = start()
		case 3, 4, 5, 6:
			nodes[i].link.set(up)
		}
	}

	for _, n := range nodes {
		n.link.set(up)
	}
	w.sleep(time.Minute)
	checkHistory(a, &h)
}

// checkHistory checks that nothing is left and that each payload was handled, some
// more than once where a lease ended before the result was settled.
func checkHistory(a *audit, h *history) {
	a.Helper()
	s := a.stats()
	if s.Fresh+s.Retrying+s.Claimed+s.Dead != 0 {
		a.Errorf("left over: %+v", s.Counts)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, pushed := range h.pushed {
		handled := slices.Clone(a.handled[id])
		slices.Sort(handled)
		if got := slices.Compact(handled); !slices.Equal(got, pushed) {
			a.Errorf("%q: %d payloads were handled, want %d", id, len(got), len(pushed))
		}
	}
}

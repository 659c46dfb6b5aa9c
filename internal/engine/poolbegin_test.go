package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// begins lists what turns have begun and what has run.
type begins struct {
	*world
	mu    sync.Mutex
	turns int
	begun map[core.ClaimRef]bool
	ran   map[core.ClaimRef]bool
	most  int // begun and not started at once
	loses bool
}

// lose is a link's: it loses the answers of the first turns that begin jobs.
func (b *begins) lose(method string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loses && method == "Turn" && b.turns > 0 && b.turns < 3
}

func (b *begins) watch(f func(context.Context, *core.Claim) error) handler {
	return each(func(ctx context.Context, c *core.Claim) error {
		b.mu.Lock()
		if !b.begun[c.Ref()] {
			b.Errorf("at %v: %v starts, which has not begun", b.elapsed(), c.Ref())
		}
		b.ran[c.Ref()] = true
		b.mu.Unlock()
		return f(ctx, c)
	})
}

// note is a link's beforeTurn.
func (b *begins) note(r ports.TurnRequest) {
	if len(r.Begin) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns++
	for _, ref := range r.Begin {
		b.begun[ref] = true
	}
	b.most = max(b.most, len(b.begun)-len(b.ran))
}

// One turn begins all recovered jobs that lanes are about to run, and none that no lane runs.
func TestFewTurnsBeginManyRecoveredJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lanes, shards int
		length        time.Duration
		// turns is how many turns may begin jobs.
		turns      int
		stop, lose bool
	}{
		"a lane for each":              {lanes: 1000, shards: 5, length: time.Second, turns: 30},
		"a lane for each, one shard":   {lanes: 1000, shards: 1, length: time.Second, turns: 10},
		"answers are lost":             {lanes: 1000, shards: 1, length: time.Second, turns: 20, lose: true},
		"few lanes":                    {lanes: 10, shards: 5, length: time.Second, turns: 1000},
		"few lanes, and the node ends": {lanes: 10, shards: 5, length: time.Second, turns: 1000, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const jobs = 1000
				b := &begins{world: w, begun: make(map[core.ClaimRef]bool), ran: make(map[core.ClaimRef]bool)}
				b.loses = c.lose
				w.declare(c.shards)

				w.placeEachRecovered(1, jobs)
				n := w.start(b.watch(lasting(c.length)), shards(c.shards), pooled(c.lanes), roundTrip(time.Millisecond),
					func(s *setup) { s.link.beforeTurn, s.link.lose = b.note, b.lose })

				w.sleep(10*time.Second + c.length/2)
				if !c.stop {
					w.sleep(2 * jobs / time.Duration(c.lanes) * c.length)
				}
				n.stop()

				if got := n.link.count("Acquire"); got != c.shards {
					w.Errorf("%d shards were acquired %d times", c.shards, got)
				}
				stats := w.stats()
				if stats.Claimed != 0 || !c.stop && stats.Processed != jobs {
					w.Errorf("in the end %+v", stats.Counts)
				}

				for ref := range b.begun {
					if !b.ran[ref] {
						w.Errorf("%v has begun and did not run", ref)
					}
				}

				if b.turns > c.turns || b.most > c.lanes {
					w.Errorf("%d turns began jobs, want at most %d; %d jobs at once had begun and not started, "+
						"want at most %d",
						b.turns, c.turns, b.most, c.lanes)
				}
			})
		})
	}
}

// placeEachRecovered queues job-0 and on as recovered so often.
func (w *world) placeEachRecovered(recoveries, n int) {
	w.Helper()
	w.pushEach(n)
	for index := range w.queueRecord().Shards {
		lease := w.holdLease(shardOfQueue(index))
		for number := int64(1); ; number += 2 {
			reply := w.turn(ports.TurnRequest{Lease: lease, Number: number, TTL: ttl, Want: core.MaxTurnJobs})
			if len(reply.Claims) == 0 {
				break
			}
			back := ports.TurnRequest{Lease: lease, Number: number + 1, TTL: ttl}
			for _, c := range reply.Claims {
				back.Settlements = append(back.Settlements, core.Settlement{
					ID:      c.ID,
					Receipt: c.Receipt,
					Rest:    core.Requeue,
					PutBack: core.PutBack{Delay: time.Second, RetryCount: c.RetryCount, Recoveries: recoveries},
				})
			}
			w.turn(back)
		}
		if err := w.store.Release(context.Background(), lease); err != nil {
			w.Fatal(err)
		}
	}
}

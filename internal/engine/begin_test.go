package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// placeRecovered queues jobs that were recovered so often.
func (w *world) placeRecovered(recoveries int, ids ...string) {
	w.Helper()
	w.placeRecoveredIn(0, recoveries, ids...)
}

// placeRecoveredIn queues them for later.
func (w *world) placeRecoveredIn(delay time.Duration, recoveries int, ids ...string) {
	w.Helper()
	for _, id := range ids {
		w.push(id, "x")
	}
	w.makeRecovered(delay, recoveries, ids...)
}

// makeRecovered makes queued jobs such that were recovered so often, and queues them for later.
func (w *world) makeRecovered(delay time.Duration, recoveries int, ids ...string) {
	w.Helper()
	for index := range w.queueRecord().Shards {
		lease := w.holdLease(shardOfQueue(index))
		reply := w.turn(ports.TurnRequest{Lease: lease, Number: 1, TTL: ttl, Want: core.MaxTurnJobs})
		back := ports.TurnRequest{Lease: lease, Number: reply.Last + 1, TTL: ttl}
		for _, c := range reply.Claims {
			s := core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue, PutBack: core.PutBack{
				SameTime: true, RetryCount: c.RetryCount, Recoveries: c.Recoveries,
			}}
			if slices.Contains(ids, c.ID) {
				s.PutBack.Recoveries, s.PutBack.SameTime, s.PutBack.Delay = recoveries, delay == 0, delay
			}
			back.Settlements = append(back.Settlements, s)
		}
		w.turn(back)
		if err := w.store.Release(context.Background(), lease); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) holdLease(shard core.Shard) ports.Lease {
	w.Helper()
	w.nodes++
	owner := fmt.Sprintf("placer-%d", w.nodes)
	reply, err := w.store.Acquire(context.Background(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     w.queueRecord().Shards,
		Generation: 1,
		Owner:      owner,
		Attempt:    1,
		TTL:        ttl,
	})
	if err != nil {
		w.Fatal(err)
	}
	return ports.Lease{Shard: shard, Owner: owner, Token: reply.Token}
}

func (w *world) turn(r ports.TurnRequest) ports.TurnReply {
	w.Helper()
	reply, err := w.store.Turn(context.Background(), r)
	if err != nil {
		w.Fatal(err)
	}
	return reply
}

func TestARecoveredJobHasBegunBeforeItsHandlerRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "recovered")
		w.push("fresh", "x")
		begun := map[string]bool{}
		w.start(each(func(_ context.Context, c *core.Claim) error {
			begun[c.ID] = w.find(c.ID).Claim.Begun
			return nil
		}))
		w.sleep(poll)
		if diff := cmp.Diff(map[string]bool{"recovered": true, "fresh": false}, begun); diff != "" {
			w.Errorf("what had begun in the store (-want +got):\n%s", diff)
		}
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestOnlyRunningJobsAreCountedAgainAfterTheFirstCrash(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		ids := []string{"a", "b", "c"}
		w.placeRecovered(1, ids...)
		n := w.start(each(untilCancelled))
		w.sleep(poll / 2)

		running := ""
		for _, id := range ids {
			if c := w.find(id).Claim; c != nil && c.Begun {
				running += id
			}
		}
		if running != "a" {
			w.Fatalf("%q has begun while one lane runs a", running)
		}

		n.cutOff()
		w.start(each(untilCancelled))
		w.sleep(2 * ttl)

		recoveries := map[string]int{}
		for _, id := range ids {
			found := w.find(id)
			switch {
			case found.Claim != nil:
				recoveries[id] = found.Claim.Recoveries
			case found.Queued != nil:
				recoveries[id] = found.Queued.Recoveries
			}
		}

		if diff := cmp.Diff(map[string]int{"a": 2, "b": 1, "c": 1}, recoveries); diff != "" {
			w.Errorf("Recoveries (-want +got):\n%s", diff)
		}
	})
}

func TestANodeKilledWithClaimedJobsDelaysNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		const waiting = 100
		w.declare(1)
		var done sync.Map

		block := func(ctx context.Context, c *core.Claim) error {
			<-ctx.Done()
			return ctx.Err()
		}

		quick := func(_ context.Context, c *core.Claim) error {
			done.Store(c.ID, w.elapsed())
			return nil
		}

		// Short jobs make the node claim ahead; then one hangs.
		var hang atomic.Bool
		n := w.start(each(func(ctx context.Context, c *core.Claim) error {
			if hang.Load() {
				return block(ctx, c)
			}
			time.Sleep(100 * time.Microsecond)
			return nil
		}))

		w.sleep(poll)
		w.pushEach(1000)
		time.Sleep(20 * time.Millisecond)
		hang.Store(true)
		w.sleep(poll / 10)
		if s := w.stats(); s.Claimed < waiting {
			w.Fatalf("only %d jobs are claimed; the test needs %d", s.Claimed, waiting)
		}

		n.cutOff()
		w.start(each(quick), roundTrip(time.Millisecond))
		w.sleepUntil(ttl + poll)
		for i := 0; w.stats().Shards[0].Owner != "owner-of-node-2" && i < 100; i++ {
			w.sleep(poll)
		}
		taken := w.elapsed()

		w.push("new", "x")
		w.sleep(poll)
		at, ok := done.Load("new")
		if !ok {
			w.Fatalf("the new job has not run %v after the take-over", w.elapsed()-taken)
		}
		w.within("the new job", at.(time.Duration)-taken, 0, poll)
	})
}

func TestALostAnswerBeginsTheJobAgain(t *testing.T) {
	for name, lose := range map[string]func(*link, func(string) bool){
		"reply":   func(l *link, f func(string) bool) { l.lose = f },
		"request": func(l *link, f func(string) bool) { l.refuse = f },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.placeRecovered(1, "recovered")
				runs := 0

				n := w.start(each(func(_ context.Context, c *core.Claim) error {
					runs++
					if !w.find(c.ID).Claim.Begun {
						w.Error("the handler runs, and its job has not begun")
					}
					return nil
				}), func(s *setup) {
					turns := 0
					lose(s.link, func(method string) bool {
						if method == "Turn" {
							turns++
						}
						return method == "Turn" && (turns == 2 || turns == 3)
					})
				})

				w.sleep(2 * poll)
				if runs != 1 {
					w.Errorf("the handler ran %d times", runs)
				}
				n.stop()
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

func TestWhatHasNotBegunDoesNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "recovered")
		w.start(each(func(context.Context, *core.Claim) error {
			w.Error("the handler runs although its job was settled by somebody else")
			return nil
		}), func(s *setup) {
			s.link.lose = func(method string) bool { // settles the job when the node knows of it
				c := w.find("recovered").Claim
				if method != "Turn" || c == nil {
					return false
				}
				done := []core.Settlement{{ID: c.ID, Receipt: c.Receipt, Processed: true}}
				if err := w.store.Settle(context.Background(), c.Shard, done); err != nil {
					w.Error(err)
				}
				return false
			}
		})
		w.sleep(2 * poll)
		w.wantCounts(0, 0, 1, 0)
	})
}

// A job that this process never gave to a handler is not buried by recovery, however often the
// answer to the turn that begins it is lost together with the lease; nor if the next lease is lost
// before it has settled the job.
func TestAJobThatWasNeverHandledIsNotBuriedByLostAnswers(t *testing.T) {
	t.Run("each lease", func(t *testing.T) { neverHandled(t, 1) })
	t.Run("and the next lease settles nothing", func(t *testing.T) { neverHandled(t, 2) })
}

// neverHandled loses the answers of turns in each lease, or in every second one, and refuses the
// turns of the others.
func neverHandled(t *testing.T, leases int) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "recovered")
		w.start(each(succeed), func(s *setup) {
			acquires := 0
			turn := func(method string) bool { return method == "Turn" && w.find("recovered").Claim != nil }
			s.link.lose = func(method string) bool {
				if method == "Acquire" {
					acquires++
				}
				return turn(method) && acquires%leases == 1%leases
			}
			s.link.refuse = func(method string) bool { return turn(method) && acquires%leases != 1%leases }
		})
		for range 60 {
			w.sleep(ttl)
			if f := w.find("recovered"); f.DeadLetter != nil {
				w.Fatalf("the job is in the morgue although no handler was called: %+v", f.DeadLetter)
			}
		}
	})
}

package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// cancel cancels claimed jobs of the only shard as an operator does.
func (w *world) cancel(drop bool, ids ...string) {
	w.Helper()
	reply, err := w.store.Cancel(context.Background(), ports.CancelRequest{
		Shard: shardOfQueue(0),
		IDs:   ids,
		Drop:  drop,
	})
	if err != nil || reply.Handled != len(ids) {
		w.Fatalf("Cancel(%q) = %+v, %v; want all handled", ids, reply, err)
	}
}

func TestCancellingAJobThatHasNotStartedLeavesTheOneThatRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(3)
		a := w.audit()
		w.start(a.watch(lasting(5*poll)), batches(3))
		w.sleep(poll)
		w.cancel(true, "job-1")
		w.sleep(20 * poll)
		for _, id := range []string{"job-0", "job-2"} {
			if run := a.wantRuns(id, 1)[0]; run.cause != nil {
				w.Errorf("the context of %q ended with %v", id, run.cause)
			}
		}
		a.wantRuns("job-1", 0)
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestARunningJobThatIsCancelledEndsAsTheCancellerChose(t *testing.T) {
	for name, drop := range map[string]bool{"dropped": true, "put back": false} {
		for how, option := range map[string]func(*setup){"with wake-ups": func(*setup) {}, "by polling": noWakeups} {
			t.Run(name+" "+how, func(t *testing.T) {
				inWorld(t, func(w *world) {
					a := w.audit()
					w.start(a.watch(func(ctx context.Context, c *core.Claim) error {
						if w.elapsed() >= 10*poll {
							return nil
						}
						return untilCancelled(ctx, c)
					}), option)

					w.sleep(poll)
					w.push("job", "x")
					w.sleepUntil(10 * poll)
					w.cancel(drop, "job")
					w.sleep(2 * poll)

					first := a.of("job")[0]
					if !errors.Is(first.cause, execution.ErrCancelled) {
						w.Errorf("the context ended with cause %v, want ErrCancelled", first.cause)
					}
					w.within("the job ended", first.ended, 10*poll, 12*poll)

					w.sleep(2 * poll)
					if drop {
						a.wantRuns("job", 1)
						w.wantCounts(0, 0, 0, 0)
						return
					}
					if again := a.wantRuns("job", 2)[1]; again.retry != core.FreshRetryCount || again.recoveries != 0 {
						w.Errorf("it ran again as %+v, want it untouched", again)
					}
					w.wantCounts(0, 0, 1, 0)
				})
			})
		}
	}
}

func TestAJobThatWaitsInTheBufferIsCancelledAtOnce(t *testing.T) {
	for name, drop := range map[string]bool{"dropped": true, "put back": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				a := w.audit()

				w.start(a.watch(func(_ context.Context, c *core.Claim) error {
					if c.ID == "slow" {
						time.Sleep(poll)
					}
					return nil
				}))

				w.sleep(poll)
				w.pushEach(100) // teaches the shard to claim ahead
				w.sleep(poll)

				w.pushEntries(entry("slow"), entry("waits-1"), entry("waits-2"))
				synctest.Wait()
				w.cancel(drop, "waits-1")
				synctest.Wait()

				if found := w.find("waits-1"); drop && found.Claim != nil {
					w.Errorf("the cancelled job is still claimed: %+v", found)
				}

				w.sleep(3 * poll)
				a.wantRuns("waits-2", 1)
				if drop {
					a.wantRuns("waits-1", 0)
				} else {
					a.wantRuns("waits-1", 1)
				}
			})
		})
	}
}

func TestABufferedJobThatIsCancelledWhileItsLaneIsElsewhereDoesNotRun(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		other := newQueue("other", each(lasting(time.Minute)))
		w.start(a.watch(lasting(10*time.Millisecond)), lanes(1), func(s *setup) {
			s.Queues = []*engine.Queue{s.queue, other}
			s.Scheduler = core.StrictBy("other")
		})
		w.sleep(poll)
		w.pushEach(10) // teaches the shard to claim ahead
		w.sleep(poll)
		w.pushEach(5)
		w.sleep(5 * time.Millisecond)
		r := ports.PushRequest{Queue: "other", Shards: 1, Generation: 1, Entries: []core.Entry{entry("long")}}
		if _, err := w.store.Push(w.Context(), r); err != nil {
			w.Fatal(err)
		}
		w.sleep(100 * time.Millisecond)
		w.wantCounts(0, 3, 12, 0) // the lane is at the other queue, and jobs wait in the buffer
		w.cancel(true, "job-4")
		w.sleep(2 * time.Minute)
		w.wantCounts(0, 0, 14, 0)
		a.wantRuns("job-4", 1)
	})
}

func TestCancellingOneJobOfABatchLeavesTheOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(4)
		a := w.audit()
		w.start(a.watch(func(ctx context.Context, c *core.Claim) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * poll):
				return nil
			}
		}), batches(4))
		w.sleep(15 * poll) // job-0 is done, and not settled; job-1 runs
		w.cancel(true, "job-1", "job-3")
		w.cancel(false, "job-0") // it has finished before, so this comes too late
		w.sleep(time.Minute)
		a.wantRuns("job-0", 1)
		a.wantRuns("job-2", 1)
		a.wantRuns("job-3", 0)
		if e := a.wantRuns("job-1", 1)[0]; !errors.Is(e.cause, execution.ErrCancelled) {
			w.Errorf("the context of job-1 ended with cause %v, want ErrCancelled", e.cause)
		}
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestACancelThatItsOwnerNeverSawHoldsForTheNextOwner(t *testing.T) {
	for name, drop := range map[string]bool{"dropped": true, "put back": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(untilCancelled))
				w.sleep(poll)
				w.push("job", "x")
				n.cutOff()
				w.cancel(drop, "job")
				w.start(a.watch(succeed))
				w.sleep(2 * ttl)
				if drop {
					a.wantRuns("job", 1)
					w.wantCounts(0, 0, 0, 0)
					return
				}
				if again := a.wantRuns("job", 2)[1]; again.recoveries != 0 {
					w.Errorf("Recoveries %d, want 0: it was cancelled, not lost", again.recoveries)
				}
			})
		})
	}
}

// A cancel's wake-up causes the turn that reports it; the ticks are for wake-ups that are lost.
func TestACancelTakesEffectAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		w.sleepUntil(10*poll + poll/4)
		w.cancel(true, "job")
		w.sleep(poll / 10)
		w.within("the job ended", a.wantRuns("job", 1)[0].ended, 10*poll+poll/4, 10*poll+poll/4+10*time.Millisecond)
	})
}

// The reply to a turn that was sent again has its claims, and those that were cancelled between.
func TestAJobThatIsCancelledBeforeItsClaimIsKnownDoesNotRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "x")
		a := w.audit()
		lost := false
		w.start(a.watch(lasting(poll)), func(s *setup) {
			s.link.loseTurn = func(ports.TurnRequest) bool {
				loses := !lost && w.find("job").Claim != nil
				if loses {
					lost = true
					w.cancel(true, "job")
				}
				return loses
			}
		})
		w.sleep(20 * poll)
		if a.wantRuns("job", 0); !lost {
			w.Error("no reply was lost")
		}
		w.wantCounts(0, 0, 0, 0)
	})
}

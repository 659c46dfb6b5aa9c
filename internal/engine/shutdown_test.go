package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

func TestShutdownLetsHandlersFinishAndReturnsWhatNeverStarted(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		var takes atomic.Int64
		takes.Store(int64(time.Millisecond))
		n := w.start(a.watch(func(context.Context, *core.Claim) error {
			time.Sleep(time.Duration(takes.Load()))
			return nil
		}))

		w.sleep(poll)
		w.pushEach(100) // teaches the node that jobs are short, so that it claims ahead
		w.sleep(101 * time.Millisecond)

		takes.Store(int64(100 * time.Millisecond))
		w.pushEach(50)
		w.sleep(50 * time.Millisecond)
		if claimed := w.stats().Claimed; claimed < 10 {
			w.Fatalf("%d jobs are claimed; the test needs some that did not start", claimed)
		}

		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked+100*time.Millisecond)
		w.wantCounts(49, 0, 101, 0)

		for _, view := range w.jobs() {
			if !view.Fresh() || view.Recoveries != 0 || view.Failures.Newest().Text != "" {
				w.Errorf("%q came back as %+v, want it untouched", view.ID, view.State)
			}
		}
	})
}

func TestAfterShutdownOthersGetTheShardsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), shards(5))
		w.sleep(poll)
		n.stop()
		for _, s := range w.stats().Shards {
			if s.Owner != "" {
				w.Errorf("%v still belongs to %q", s.Shard, s.Owner)
			}
		}
		a := w.audit()
		w.start(a.watch(succeed), shards(5))
		w.push("job", "x")
		a.wantRuns("job", 1)
	})
}

func TestAShardIsReleasedAlthoughTheFirstCallsFail(t *testing.T) {
	inWorld(t, func(w *world) {
		calls := 0
		n := w.start(each(succeed), func(s *setup) {
			s.link.refuse = func(method string) bool {
				if method == "Release" {
					calls++
				}
				return method == "Release" && calls <= 3
			}
		})
		w.sleep(poll)
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked+time.Second)
		if owner := w.stats().Shards[0].Owner; owner != "" {
			w.Errorf("the shard still belongs to %q", owner)
		}
		if n.log.count("lease lost") != 0 {
			w.Errorf("the log speaks of a lost lease:\n%v", n.log)
		}
	})
}

func TestAReleaseThatNeverWorksEndsWithTheNode(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Release" }
		})
		w.sleep(poll)
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked+ttl/3+time.Second)
	})
}

func TestAfterTheShutdownTimeoutHandlersAreInterrupted(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(untilCancelled), func(s *setup) { s.ShutdownTimeout = 7 * time.Second })
		w.sleep(poll)
		w.push("job", "x")
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked+7*time.Second, asked+7*time.Second)
		if cause := a.wantRuns("job", 1)[0].cause; !errors.Is(cause, execution.ErrShutdown) {
			w.Errorf("the context ended with cause %v, want ErrShutdown", cause)
		}
		job := w.find("job").Queued
		if job == nil || !job.Fresh() || job.Recoveries != 0 {
			w.Errorf("the job is %+v, want it queued and untouched", job)
		}
		w.wantCounts(1, 0, 0, 0)
	})
}

func TestAHandlersOwnErrorCountsAlsoAfterTheShutdownTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(func(ctx context.Context, _ *core.Claim) error {
			<-ctx.Done()
			return errors.New("half done")
		}), func(s *setup) { s.ShutdownTimeout = time.Second })
		w.sleep(poll)
		w.push("job", "x")
		n.stop()
		w.wantCounts(1, 0, 0, 1)
	})
}

// pausingScheduler calls a hook before each choice.
type pausingScheduler struct {
	core.Scheduler
	hook func()
}

func (s pausingScheduler) Next(now core.Instant, heads []core.Head) core.Choice {
	s.hook()
	return s.Scheduler.Next(now, heads)
}

func TestNothingStartsOnceTheNodeIsToStop(t *testing.T) {
	inWorld(t, func(w *world) {
		var stop atomic.Pointer[context.CancelFunc]

		a := w.audit()
		n := w.start(a.watch(func(ctx context.Context, c *core.Claim) error {
			if w.elapsed() < 2*poll {
				return nil
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		}), func(s *setup) {
			s.Scheduler = func(c core.SchedulerConfig) core.Scheduler {
				return pausingScheduler{core.Lag(c), func() {
					if cancel := stop.Load(); cancel != nil {
						(*cancel)()
						time.Sleep(time.Millisecond)
					}
				}}
			}
		})

		w.sleepUntil(2*poll - 10*time.Millisecond)
		w.pushEach(100) // teaches the node to claim ahead
		w.sleepUntil(2 * poll)
		w.pushEach(20)
		w.sleep(50 * time.Millisecond)

		n.link.set(down) // so that nothing can go back for now
		w.sleep(100 * time.Millisecond)
		stop.Store(&n.cancel)
		w.sleep(time.Second)

		n.link.set(up)
		n.awaitEnd()
		w.wantCounts(18, 0, 102, 0)
	})
}

func TestAnIdleNodeStopsAtOnceAndIsRetired(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), shards(3))
		w.sleep(ttl)
		nodes := w.nodesListed()
		if len(nodes) != 1 || nodes[0].Owner != n.owner || nodes[0].Lanes != 5 {
			w.Errorf("Nodes = %+v; want the node", nodes)
		}
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked)
		if reply, err := w.store.Nodes(w.Context()); err != nil || len(reply.Nodes) != 0 {
			w.Errorf("Nodes = %+v, %v; want none", reply, err)
		}
		if n.log.count("level=WARN") != 0 {
			w.Errorf("the log has warnings:\n%v", n.log)
		}
	})
}

// jobs lists the queued jobs.
func (w *world) jobs() []ports.JobView {
	w.Helper()
	page, err := w.store.Jobs(context.Background(), ports.JobsRequest{
		PageRequest: ports.PageRequest{Queue: queueName, Limit: ports.MaxPage},
	})
	if err != nil {
		w.Fatal(err)
	}
	return page.Jobs
}

func TestRunEndsAlthoughTheTurnsOfAShardAreNeverAnswered(t *testing.T) {
	for name, breaks := range stuckTurns {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(lasting(time.Second)), shards(2))
				w.sleep(poll)
				w.push(idIn(0, 2), "x")
				n.link.change(func() { breaks(n.link) })
				w.sleep(2 * time.Second) // the settlement is under way
				asked := w.elapsed()
				n.stop()
				w.within("Run returned", w.elapsed(), asked, asked+ttl)
				n.link.heal()
				w.start(each(succeed), shards(2))
				w.sleep(2 * ttl)
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

func TestAReleaseWhoseReplyIsLostIsNoLostLease(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		lost := 0
		n.link.change(func() {
			n.link.lose = func(method string) bool {
				if method == "Release" {
					lost++
				}
				return method == "Release" && lost == 1
			}
		})
		n.stop()
		if lost != 2 {
			w.Errorf("%d calls of Release, want one and its repeat", lost)
		}
		if n.log.count("lease lost") != 0 {
			w.Errorf("the log speaks of a lost lease:\n%s", n.log.tail(5))
		}
	})
}

// A handler of whole batches checks nothing before it starts.
func TestABatchThatIsClaimedWhileTheNodeStopsDoesNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var n *node
		n = w.start(func(context.Context, *execution.Batch) error {
			w.Error("the handler runs after the stop")
			return nil
		}, func(s *setup) {
			s.link.loseTurn = func(ports.TurnRequest) bool { // none is; the node stops when a reply is on its way
				if w.stats().Claimed > 0 {
					n.cancel()
					time.Sleep(time.Millisecond)
				}
				return false
			}
		})
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(poll)
		n.stop()
		w.wantCounts(1, 0, 0, 0)
	})
}

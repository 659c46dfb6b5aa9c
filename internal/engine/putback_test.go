package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestPauseReturnsWhatHasNotStartedAndLetsTheRunningJobSettle(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if w.elapsed() >= 2*poll {
				time.Sleep(3 * poll)
			}
			return nil
		}))
		w.sleep(poll)
		w.pushEach(100) // teaches the shard to claim ahead
		w.sleepUntil(2 * poll)
		w.pushEach(20)
		synctest.Wait()
		if err := w.store.Pause(w.Context(), queueName); err != nil {
			w.Fatal(err)
		}
		w.sleep(2 * poll)
		w.wantCounts(19, 1, 100, 0)
		w.sleep(time.Minute)
		w.wantCounts(19, 0, 101, 0)
	})
}

func TestPauseReturnsTheBufferWithTheTurnThatReportsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(each(func(context.Context, *core.Claim) error {
			if w.elapsed() >= 2*poll {
				time.Sleep(poll / 10)
			}
			return nil
		}))
		w.sleepUntil(2*poll - 10*time.Millisecond)
		w.pushEach(100) // teaches the node to claim ahead
		w.sleepUntil(2 * poll)
		w.pushEach(20)
		w.sleep(poll / 20)
		if claimed := w.stats().Claimed; claimed < 10 {
			w.Fatalf("%d jobs are claimed; the test needs some that did not start", claimed)
		}
		if err := w.store.Pause(w.Context(), queueName); err != nil {
			w.Fatal(err)
		}
		// The running job's settlement brings the news, when the next may have begun.
		w.sleep(poll / 5)
		if s := w.stats(); s.Claimed != 0 || s.Fresh < 18 {
			w.Errorf("%d claimed and %d queued, want none and 18 or 19", s.Claimed, s.Fresh)
		}
	})
}

func TestResumeGoesOnWithinAPollInterval(t *testing.T) {
	for name, option := range map[string]func(*setup){"with wake-ups": func(*setup) {}, "by polling": noWakeups} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				w.start(a.watch(succeed), option)
				w.sleep(poll / 3)
				if err := w.store.Pause(w.Context(), queueName); err != nil {
					w.Fatal(err)
				}
				w.push("job", "x")
				w.sleep(time.Minute)
				a.wantRuns("job", 0)
				if err := w.store.Resume(w.Context(), queueName); err != nil {
					w.Fatal(err)
				}
				resumed := w.elapsed()
				w.sleep(2 * poll)
				w.within("the job", a.wantRuns("job", 1)[0].at, resumed, resumed+poll)
			})
		})
	}
}

// lateOrphans is a store that can't reach the claims of earlier leases when a shard is acquired,
// and hands them over with the next turn.
type lateOrphans struct {
	*memory.Store
	left *[]core.Claim
}

func (l lateOrphans) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	reply, err := l.Store.Acquire(ctx, r)
	if len(reply.Claims) > 0 {
		reply.Head = core.Head{Due: reply.Now, OK: true}
	}
	*l.left, reply.Claims = reply.Claims, nil
	return reply, err
}

func (l lateOrphans) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	reply, err := l.Store.Turn(ctx, r)
	if err == nil {
		reply.Orphans, *l.left = *l.left, nil
	}
	return reply, err
}

func TestWhatTheStoreHandsOverWithATurnIsRecovered(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		n.cutOff()
		w.start(a.watch(succeed), func(s *setup) {
			s.link.ShardStore = lateOrphans{s.link.ShardStore.(*memory.Store), new([]core.Claim)}
		})
		w.sleep(2 * ttl)
		runs := a.wantRuns("job", 2)
		if runs[1].recoveries != 1 {
			w.Errorf("Recoveries %d, want 1", runs[1].recoveries)
		}
		w.within("the second execution", runs[1].at, ttl, ttl+5*time.Second+poll)
		w.wantCounts(0, 0, 1, 0)
	})
}

// Jobs that are about to start when no job may start any more are put back at once.
func TestWhatIsToStartGoesBackAtOnce(t *testing.T) {
	for name, end := range map[string]func(w *world, n *node){
		"the node stops": func(_ *world, n *node) { n.cancel() },
		"the queue is paused": func(w *world, _ *node) {
			if err := w.store.Pause(context.Background(), queueName); err != nil {
				w.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.placeRecovered(1, "recovered")

				started := make(chan *node, 1)
				n := w.start(each(func(context.Context, *core.Claim) error {
					w.Error("the handler runs")
					return nil
				}), onFirstBegin(func(ports.TurnRequest) {
					end(w, <-started)
					time.Sleep(time.Millisecond) // so that the node knows before the answer comes
				}))

				started <- n
				w.sleep(poll / 4)
				w.wantCounts(1, 0, 0, 0)
				n.stop()

				if got := w.find("recovered").Queued; got == nil || got.Recoveries != 1 {
					w.Errorf("in the queue is %+v, want the job as it was", got)
				}
			})
		})
	}
}

// A batch that waits for a turn to begin it when the pause becomes known goes back without
// beginning. If it began, a crash before it is back would count as another recovery, though it
// never ran.
func TestAPauseReturnsAStartingBatchBeforeItBegins(t *testing.T) {
	inWorld(t, func(w *world) {
		const due, slow = 5 * poll, 20 * time.Millisecond
		w.declare(1)
		w.placeRecoveredIn(due, 1, "recovered")
		w.pushLater("a", due)
		w.pushLater("b", due)

		reports := 0 // the number of the turn that settles a and reports the pause
		n := w.start(each(func(_ context.Context, c *core.Claim) error {
			switch c.ID {
			case "b": // ends during the turn that settles a, so the lane takes the next batch meanwhile
				time.Sleep(slow / 2)
			case "recovered":
				w.Error("the handler of a job of a paused queue runs")
			}
			return nil
		}), lanes(1), func(s *setup) {
			s.link.beforeTurn = func(r ports.TurnRequest) {
				if len(r.Settlements) > 0 && r.Settlements[0].ID == "a" {
					reports = int(r.Number)
					if err := w.store.Pause(context.Background(), queueName); err != nil {
						w.Error(err)
					}
					time.Sleep(slow)
				}
			}
		})

		w.sleepUntil(due - 200*time.Millisecond)
		for range 19 { // so that the node learns to claim ahead
			w.sleep(10 * time.Millisecond)
			w.pushEach(1)
		}
		w.sleepUntil(due + poll/4)

		sent := n.link.turnsSent()
		at := slices.IndexFunc(sent, func(turn turnRecord) bool { return int(turn.request.Number) == reports })
		if at < 1 || !sent[at].reply.Paused || len(sent[at-1].reply.Claims) != 3 {
			w.Fatalf("the turns are %+v; want one that claims all three jobs and one that reports the pause", sent)
		}

		for _, turn := range sent {
			if len(turn.request.Begin) > 0 {
				w.Errorf("turn %d begins %+v of a paused queue", turn.request.Number, turn.request.Begin)
			}
		}
		w.wantCounts(1, 0, 21, 0)
	})
}

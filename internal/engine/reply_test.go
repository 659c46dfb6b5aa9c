package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

func TestAReplyThatComesAfterTheLeaseEndedChangesNothing(t *testing.T) {
	for _, method := range []string{"Turn", "Renew", "Release"} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(lasting(poll)))
				w.sleep(poll)
				n.link.change(func() { n.link.linger[method] = 2 * ttl })
				w.push("job", "x")
				n.cancel()
				w.sleep(4 * ttl)
				n.awaitEnd()
				n.link.change(func() { clear(n.link.linger) })
				w.start(each(succeed))
				w.sleep(ttl)
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

// Claims whose reply comes after the lease ended are the next lease's to put back, which counts
// its turns anew.
func TestClaimsOfALateReplyAreTheNextLeases(t *testing.T) {
	inWorld(t, func(w *world) {
		runs := 0
		w.declare(1)
		n := w.start(each(func(context.Context, *core.Claim) error {
			runs++
			return nil
		}))
		w.sleep(poll)
		n.link.change(func() { n.link.linger["Turn"], n.link.linger["Renew"] = 2*ttl, 2*ttl })
		w.push("job", "x")
		w.sleep(ttl)
		n.link.change(func() { clear(n.link.linger) })
		w.sleep(4 * ttl)
		if w.wantCounts(0, 0, 1, 0); runs != 1 {
			w.Errorf("the job ran %d times, want once", runs)
		}
		if acquired := len(n.link.acquiresSent()); acquired != 2 {
			w.Errorf("%d leases were acquired, want the one that ended and the next", acquired)
		}
		if !slices.ContainsFunc(n.link.turnsSent(), func(r turnRecord) bool {
			return len(r.reply.Claims) > 0 && r.ended.Sub(r.at) >= 2*ttl
		}) {
			w.Error("no reply with claims came late")
		}
	})
}

// deafTurns is a link whose turns succeed however late they are. It counts the calls whose context
// has ended before.
type deafTurns struct {
	notifyingLink
	slow *atomic.Bool
	dead *atomic.Int64
}

func (d deafTurns) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	d.count(ctx)
	if d.slow.Load() {
		time.Sleep(ttl / 2)
	}
	return d.notifyingLink.Turn(context.WithoutCancel(ctx), r)
}

func (d deafTurns) Release(ctx context.Context, l ports.Lease) error {
	d.count(ctx)
	return d.notifyingLink.Release(ctx, l)
}

func (d deafTurns) count(ctx context.Context) {
	if ctx.Err() != nil {
		d.dead.Add(1)
	}
}

// A turn that is called off may succeed all the same. The next calls of its lease have a context
// that lives: else the shard would be lost instead of released.
func TestATurnThatSucceedsAlthoughItIsCalledOffLeavesItsLeaseWhole(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var slow atomic.Bool
		var dead atomic.Int64
		n := w.start(each(succeed), func(s *setup) {
			s.wrap = func(l notifyingLink) engine.Store { return deafTurns{l, &slow, &dead} }
		})
		w.sleep(poll)
		slow.Store(true)
		w.push("job", "x")
		w.sleep(2 * ttl)
		n.stop()
		if w.wantCounts(0, 0, 1, 0); dead.Load() > 0 {
			w.Errorf("%d calls had a context that had ended before, want none", dead.Load())
		}
	})
}

// loseReplies is an option: one in three replies of these methods is lost, or of all methods if
// none is named.
func loseReplies(methods ...string) func(*setup) {
	random := rand.New(rand.NewPCG(1, 2))
	lossy := make(map[string]bool)
	for _, m := range methods {
		lossy[m] = true
	}
	return func(s *setup) {
		s.ShutdownTimeout = time.Hour
		s.link.lose = func(method string) bool {
			return (len(methods) == 0 || lossy[method]) && random.IntN(3) == 0
		}
	}
}

func TestLostRepliesLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	for _, methods := range [][]string{
		{"Turn"}, {"Acquire"}, {"Renew"}, {"Release"}, {"Heads"}, {"Declare"}, {"Announce"}, {"Wakeups"}, {},
	} {
		t.Run(fmt.Sprint(methods), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const jobs = 100
				a := w.audit()

				run := a.watch(func(_ context.Context, c *core.Claim) error {
					if c.ID == "job-7" {
						time.Sleep(2 * ttl) // so that leases are renewed
					}
					time.Sleep(5 * time.Millisecond)
					return nil
				})

				w.declare(3)
				for i := range jobs {
					id := fmt.Sprintf("job-%d", i)
					w.push(id, "a", "b", "c")
				}

				for range 4 { // several lives, so that leases are acquired and released
					n := w.start(run, shards(3), roundTrip(time.Millisecond), loseReplies(methods...))
					w.sleep(100 * time.Millisecond)
					n.stop()
				}

				n := w.start(run, shards(3), roundTrip(time.Millisecond), loseReplies(methods...))
				w.sleep(5 * time.Minute)
				n.stop()

				w.wantCounts(0, 0, jobs, 0)
				a.wantHandledOnce(jobs, "a", "b", "c")
				for i := range jobs {
					a.wantRuns(fmt.Sprintf("job-%d", i), 1)
				}
				for _, s := range w.stats().Shards {
					if s.Owner != "" {
						w.Errorf("%v still belongs to %q", s.Shard, s.Owner)
					}
				}
			})
		})
	}
}

func TestATurnWithoutAnAnswerIsRepeatedAsItWas(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(300)
		n := w.start(each(lasting(time.Millisecond)), roundTrip(3*time.Millisecond), loseReplies("Turn"))
		w.sleep(time.Minute)
		w.wantCounts(0, 0, 300, 0)
		repeats := 0
		turns := n.link.turnsSent()
		for i, turn := range turns {
			if turn.err == nil {
				continue
			}
			repeats++
			again := turn.request
			again.Resent = true
			if diff := cmp.Diff(again, turns[i+1].request, cmpopts.EquateEmpty()); diff != "" {
				w.Errorf("the turn after a lost reply (-lost +next):\n%s", diff)
			}
		}
		if repeats < 10 {
			w.Errorf("only %d turns were repeated; the test needs more", repeats)
		}
	})
}

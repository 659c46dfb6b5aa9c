package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

func TestAnOwnerThatGoesSilentIsReplacedWithinItsTTL(t *testing.T) {
	for name, silent := range map[string]linkState{"its calls fail": down, "its calls hang": hanging} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				late := func(ctx context.Context, c *core.Claim) error {
					if c.Recoveries > 0 {
						return nil
					}
					<-ctx.Done()
					return nil // a result that comes too late
				}
				first := w.start(a.watch(late))
				w.sleep(poll)
				w.start(a.watch(late))
				w.push("job", "x")
				w.sleepUntil(45 * time.Second)
				first.link.set(silent)
				w.sleep(ttl + 2*poll)

				runs := a.wantRuns("job", 2)
				if !errors.Is(runs[0].cause, ports.ErrLeaseLost) {
					w.Errorf("the context ended with cause %v, want ErrLeaseLost", runs[0].cause)
				}
				w.within("the handler was cancelled", runs[0].ended, 45*time.Second, 45*time.Second+ttl*4/5)
				w.within("the successor started", runs[1].at, runs[0].ended+ttl/5, 45*time.Second+ttl+2*time.Millisecond)
				if runs[1].recoveries != 1 || runs[1].retry != core.FreshRetryCount {
					w.Errorf("the job ran again with Recoveries %d and RetryCount %d; want 1 and fresh",
						runs[1].recoveries, runs[1].retry)
				}
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

func TestAnOwnerThatWasCutOffTakesPartAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		first := w.start(a.watch(succeed))
		w.sleep(poll)
		first.link.set(hanging)
		second := w.start(a.watch(succeed))
		w.sleep(2 * ttl)
		if owner := w.stats().Shards[0].Owner; owner != second.owner {
			w.Fatalf("the shard belongs to %q, want %q", owner, second.owner)
		}
		first.link.set(up)
		w.sleep(ttl)
		second.stop()
		w.push("job", "x")
		w.sleep(ttl / 2)
		a.wantRuns("job", 1)
		if owner := w.stats().Shards[0].Owner; owner != first.owner {
			w.Errorf("the shard belongs to %q, want %q", owner, first.owner)
		}
	})
}

func TestAHandlerThatIgnoresItsEndKeepsItsShardDuringShutdown(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(lasting(3*time.Minute)), func(s *setup) { s.ShutdownTimeout = 5 * time.Second })
		w.sleep(poll)
		w.push("job", "x")
		w.start(a.watch(succeed))
		w.sleep(poll)
		n.cancel()
		for range 170 {
			w.sleep(time.Second)
			if owner := w.stats().Shards[0].Owner; owner != n.owner {
				w.Fatalf("at %v the shard belongs to %q", w.elapsed(), owner)
			}
		}
		n.awaitEnd()
		w.within("Run returned", w.elapsed(), poll+3*time.Minute, poll+3*time.Minute)
		if cause := a.wantRuns("job", 1)[0].cause; !errors.Is(cause, engine.ErrShutdown) {
			w.Errorf("the context ended with cause %v, want ErrShutdown", cause)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestAShardIsNotAcquiredAgainWhileAHandlerOfItsLostLeaseRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.Recoveries == 0 {
				time.Sleep(3 * time.Minute)
			}
			return nil
		}))
		w.sleep(poll)
		w.push("job", "x")
		n.link.set(hanging)
		w.sleep(ttl)
		n.link.set(up)
		w.sleepUntil(3 * time.Minute)
		if again := n.link.count("Acquire") - 1; again != 0 {
			w.Errorf("Acquire was called again %d times while the handler ran", again)
		}
		w.sleep(2 * time.Second)
		runs := a.wantRuns("job", 2)
		w.within("the job ran again", runs[1].at, runs[0].ended, runs[0].ended+time.Second)
		if runs[1].recoveries != 1 {
			w.Errorf("Recoveries %d, want 1", runs[1].recoveries)
		}
	})
}

func TestAStaleTurnIsRefusedAndTheShardAcquiredAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		first := w.start(a.watch(lasting(time.Second)))
		w.sleep(poll)
		w.push("job", "x")
		late := first.link.delayNext("Turn") // it would settle the job as done
		w.sleep(time.Second)
		deliver := <-late
		first.link.set(hanging)
		w.start(a.watch(lasting(5 * time.Second)))
		w.sleep(ttl + time.Second)
		w.wantCounts(0, 1, 0, 0) // the second node runs it

		if err := deliver(); !errors.Is(err, ports.ErrLeaseLost) {
			w.Errorf("the late turn: %v, want ErrLeaseLost", err)
		}
		w.wantCounts(0, 1, 0, 0)
		w.sleep(5 * time.Second)
		a.wantRuns("job", 2)
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestALeaseWhoseTurnIsRefusedIsDroppedAndTheShardAcquiredAgain(t *testing.T) {
	for _, refusal := range []error{ports.ErrStaleTurn, ports.ErrLeaseLost, ports.ErrUnknownQueue} {
		t.Run(refusal.Error(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(lasting(time.Second)))
				w.sleep(poll)
				token := w.stats().Shards[0].Token
				w.push("job", "x")
				n.link.change(func() { n.link.broken[shardOfQueue(0)] = fmt.Errorf("turn: %w", refusal) })
				w.sleepUntil(poll + time.Second) // the job is done, and can't be settled
				n.link.change(func() { clear(n.link.broken) })
				w.sleep(ttl / 5)
				if got := w.stats().Shards[0].Token; got <= token {
					w.Errorf("token %d after %d, want a new lease", got, token)
				}
				if again := a.wantRuns("job", 2)[1]; again.recoveries != 1 {
					w.Errorf("the job ran again with Recoveries %d, want 1", again.recoveries)
				}
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

func TestALeaseThatAnotherHasTakenIsDroppedAtTheNextTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed))
		w.sleep(poll)
		// The store forgets the node's lease, as a failover can, and gives the
		// shard to a ghost.
		token := w.stats().Shards[0].Token
		if err := w.store.Release(w.Context(), ports.Lease{Shard: shardOfQueue(0), Owner: n.owner, Token: token}); err != nil {
			w.Fatal(err)
		}
		w.acquire("ghost", 5*time.Second)
		w.push("job", "x")
		if n.log.count(`msg="skein: lease lost"`) != 1 {
			w.Errorf("the node did not notice that its lease is lost; its log:\n%v", n.log)
		}
		w.sleep(5*time.Second + poll)
		a.wantRuns("job", 1)
		if got := w.stats().Shards[0].Token; got <= token {
			w.Errorf("token %d after %d", got, token)
		}
	})
}

func TestAReleasedShardIsTakenWithinAFewPollIntervals(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		first := w.start(a.watch(succeed))
		w.sleep(poll)
		second := w.start(a.watch(succeed))
		w.sleep(10 * time.Minute)
		if n := second.link.count("Acquire"); n > 10*60/2 {
			w.Errorf("Acquire was refused %d times in 10 minutes; want it to back off", n)
		}
		first.stop()
		released := w.elapsed()
		w.push("job", "x")
		w.sleep(time.Minute)
		w.within("the job", a.wantRuns("job", 1)[0].at, released, released+4*poll)
	})
}

func TestADeadOwnersShardIsTakenWhenItsLeaseRunsOut(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.acquire("ghost", ttl)
		a := w.audit()
		w.push("job", "x")
		w.start(a.watch(succeed))
		w.sleep(2 * ttl)
		w.within("the job", a.wantRuns("job", 1)[0].at, ttl, ttl+time.Millisecond)
	})
}

func TestFencingTokensGrowWithEachLease(t *testing.T) {
	inWorld(t, func(w *world) {
		var tokens []int64
		fenced := func(ctx context.Context, b *engine.Batch) error {
			token, ok := engine.Fence(ctx)
			if !ok || token != b.Token() {
				w.Errorf("Fence = %d, %v; want %d", token, ok, b.Token())
			}
			tokens = append(tokens, token)
			return nil
		}
		for range 3 {
			n := w.start(fenced)
			synctest.Wait()
			w.push("job", "x")
			n.stop()
		}
		if len(tokens) != 3 || tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			w.Errorf("tokens %v; want three that grow", tokens)
		}
	})
}

// acquire takes the queue's only shard for an owner that is no engine.
func (w *world) acquire(owner string, ttl time.Duration) ports.AcquireReply {
	w.Helper()
	reply, err := w.store.Acquire(context.Background(), ports.AcquireRequest{
		Shard: shardOfQueue(0), Shards: 1, Generation: 1, Owner: owner, Attempt: 1, TTL: ttl,
	})
	if err != nil {
		w.Fatal(err)
	}
	return reply
}

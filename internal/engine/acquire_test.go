package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

func TestAReleaseLetsAWaitingNodeTakeOverAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		first := w.start(a.watch(succeed), shards(3))
		w.sleep(poll)
		w.start(a.watch(succeed), shards(3))
		w.sleep(10 * poll)
		first.stop()
		stopped := w.elapsed()
		w.pushEach(1)
		w.sleep(100 * time.Millisecond)
		for _, r := range a.of("job-0") {
			w.within("the successor's first job", r.at-stopped, 0, 100*time.Millisecond)
		}
		a.wantRuns("job-0", 1)
	})
}

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
				w.within("the successor started",
					runs[1].at, runs[0].ended+ttl/5, 45*time.Second+ttl+2*time.Millisecond)
				if runs[1].recoveries != 1 || runs[1].retry != core.FreshRetryCount {
					w.Errorf("the job ran again with Recoveries %d and RetryCount %d; want 1 and fresh",
						runs[1].recoveries, runs[1].retry)
				}
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
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
		fenced := func(ctx context.Context, b *execution.Batch) error {
			token, ok := execution.Fence(ctx)
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

func TestAnAcquireWithoutAnAnswerIsRepeatedWithItsAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		lost := 2
		n := w.start(each(succeed), func(s *setup) {
			s.link.lose = func(method string) bool {
				if method != "Acquire" {
					return false
				}
				lost--
				return lost >= 0
			}
		})
		w.sleep(10 * poll)
		var attempts []int64
		for _, r := range n.link.acquiresSent() {
			attempts = append(attempts, r.Attempt)
		}
		if diff := cmp.Diff([]int64{1, 1, 1}, attempts); diff != "" {
			w.Errorf("attempts (-want +got):\n%s", diff)
		}
		token := w.stats().Shards[0].Token
		if token != int64(core.InstantOf(w.began)) {
			w.Errorf("token %d, want that of the first attempt", token)
		}
	})
}

func TestAnAttemptThatTheStoreCallsStaleIsFollowedByALarger(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		// The store has a later attempt of the node's owner, as after a late packet, and its release.
		r := ports.AcquireRequest{
			Shard: shardOfQueue(0), Shards: 1, Generation: 1, Owner: "owner-of-node-1", Attempt: 3, TTL: ttl,
		}
		reply, err := w.store.Acquire(w.Context(), r)
		if err != nil {
			w.Fatal(err)
		}
		lease := ports.Lease{Shard: r.Shard, Owner: r.Owner, Token: reply.Token}
		if err := w.store.Release(w.Context(), lease); err != nil {
			w.Fatal(err)
		}
		a := w.audit()
		w.start(a.watch(succeed))
		w.push("job", "x")
		w.sleep(2 * poll)
		a.wantRuns("job", 1)
	})
}

func TestAShardThatWasReleasedWhileNobodyListenedIsTakenWhenSomebodyDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		const poll = 20 * time.Second
		first := w.start(each(succeed), polling(poll))
		w.sleep(poll)
		second := w.start(each(succeed), polling(poll), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Wakeups" }
		})
		w.sleep(9 * poll) // now it asks for the shard every few poll intervals
		tried := second.link.count("Acquire")
		first.stop()
		w.sleep(time.Second)
		second.link.change(func() { second.link.refuse = func(string) bool { return false } })
		w.sleep(2 * time.Second)
		if second.link.count("Acquire") != tried+1 || w.stats().Shards[0].Owner != second.owner {
			w.Errorf("%d calls of Acquire since the release, and the owner is %q",
				second.link.count("Acquire")-tried, w.stats().Shards[0].Owner)
		}
	})
}

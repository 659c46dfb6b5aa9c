package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

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
		if cause := a.wantRuns("job", 1)[0].cause; !errors.Is(cause, execution.ErrShutdown) {
			w.Errorf("the context ended with cause %v, want ErrShutdown", cause)
		}
		w.wantCounts(0, 0, 1, 0)
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
		if err := w.store.Release(w.Context(),
			ports.Lease{Shard: shardOfQueue(0), Owner: n.owner, Token: token}); err != nil {
			w.Fatal(err)
		}
		w.acquire("ghost", 5*time.Second)
		w.push("job", "x")
		if n.log.count(`msg="lease lost"`) != 1 {
			w.Errorf("the node did not notice that its lease is lost; its log:\n%v", n.log)
		}
		w.sleep(5*time.Second + poll)
		a.wantRuns("job", 1)
		if got := w.stats().Shards[0].Token; got <= token {
			w.Errorf("token %d after %d", got, token)
		}
	})
}

// slowObserver takes its time with the dropped lease of one shard, and so holds up
// the loop that drops leases, as a process does that the machine has paused.
type slowObserver struct {
	ports.NopObserver
	shard core.Shard
	takes time.Duration
}

func (o slowObserver) LeaseChanged(e ports.LeaseEvent) {
	if e.Shard == o.shard && e.Change == ports.LeaseDropped {
		time.Sleep(o.takes)
	}
}

// The lease's own end counts, also if nobody has noticed it yet.
func TestNoBatchStartsAfterTheLocalEndOfItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		// All are of the shard whose lease is looked at last, and slow comes first.
		slow, ids := "slow", idsIn(1, 2, 104)
		for core.ShardOf(slow, 2) != 1 || slow > "id" {
			slow = "a" + slow
		}

		const cut = 2*poll + poll/4 // when the store is last reached
		a := w.audit()
		n := w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.ID == slow && c.Recoveries == 0 {
				w.sleepInHandler(cut + ttl + time.Second)
			}
			return nil
		}), shards(2), lanes(2), roundTrip(2*time.Millisecond), func(s *setup) {
			s.Observer = slowObserver{shard: shardOfQueue(0), takes: ttl}
		})

		w.sleep(poll)
		for _, id := range ids[4:] { // the shard learns that jobs are short, and claims ahead
			w.pushEntries(entry(id))
		}

		w.sleepUntil(2 * poll)
		w.pushEntries(entry(slow), entry(ids[0]), entry(ids[1]), entry(ids[2]))
		w.sleepUntil(cut)
		if claimed := w.stats().Claimed; claimed < 2 {
			w.Fatalf("%d jobs are claimed; the test needs one that waits behind the one that runs", claimed)
		}

		w.push(ids[3], "x") // a turn is under way, so that nothing can go back
		n.link.set(down)
		w.sleepUntil(cut + 3*ttl/2)

		for _, id := range ids[:4] {
			for _, run := range a.of(id) {
				w.within(id+" started", run.at, 0, cut+ttl*4/5)
			}
		}

		n.link.set(up)
		w.sleep(2 * ttl)
		w.wantCounts(0, 0, 105, 0)
	})
}

// A turn that fails is given up after a TTL. One that hangs gets twice the time with each of five
// calls, so it is given up after 31/3 of the TTL.
func TestALeaseWhoseTurnIsNotAnsweredForATTLIsGivenUp(t *testing.T) {
	for name, breaks := range stuckTurns {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				long := func(ctx context.Context, c *core.Claim) error {
					if c.Recoveries == 0 {
						<-ctx.Done()
					}
					return nil
				}
				n := w.start(a.watch(long), shards(2))

				w.sleep(poll)
				w.push(idIn(0, 2), "x") // it runs, and turns look whether it was cancelled
				n.link.change(func() { breaks(n.link) })

				broke, after, late := w.elapsed(), ttl, 2*poll
				if name == "its turns hang" {
					after, late = 31*ttl/3, 5*ttl/6+5*poll
				}

				w.sleep(after + 2*ttl)
				runs := a.wantRuns(idIn(0, 2), 1)
				w.within("the handler was cancelled", runs[0].ended, broke+after, broke+after+late)
				if !errors.Is(runs[0].cause, ports.ErrLeaseLost) {
					w.Errorf("its context ended with cause %v, want ErrLeaseLost", runs[0].cause)
				}
				if acquired := n.link.count("Acquire"); acquired < 3 || acquired > 5 {
					w.Errorf("%d calls of Acquire for 2 shards, one of which was given up twice", acquired)
				}

				n.link.heal()
				w.sleep(2 * poll)
				a.wantRuns(idIn(0, 2), 2)
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

func TestALeaseIsGivenUpATTLAfterItsTurnWasSent(t *testing.T) {
	for _, offset := range []time.Duration{
		0, 1300 * time.Millisecond, 2900 * time.Millisecond, 4700 * time.Millisecond,
	} {
		t.Run(offset.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(untilCancelled))
				w.sleep(poll + offset)
				w.push("job", "x")
				w.sleep(poll / 10)
				n.link.change(func() { n.link.broken[shardOfQueue(0)] = errDown })
				w.sleep(2 * ttl)
				var sent time.Duration
				for _, turn := range n.link.turnsSent() {
					if turn.err != nil {
						sent = turn.at.Sub(w.began)
						break
					}
				}
				n.link.heal()
				first := a.of("job")[0]
				if !errors.Is(first.cause, ports.ErrLeaseLost) {
					w.Errorf("its context ended with %v", first.cause)
				}
				w.within("the handler was cancelled", first.ended, sent+ttl, sent+ttl+10*time.Millisecond)
			})
		})
	}
}

// refusesRenewals is a store that, while it is active, refuses renewals, as after somebody else
// has acquired.
type refusesRenewals struct {
	*memory.Store
	active func() bool
}

func (e refusesRenewals) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	if e.active() {
		return ports.RenewReply{}, ports.ErrLeaseLost
	}
	return e.Store.Renew(ctx, r)
}

func TestALeaseThatCannotBeRenewedAnyMoreIsDroppedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		refuses, refused := false, time.Duration(0)
		n := w.start(a.watch(untilCancelled), func(s *setup) {
			s.link.ShardStore = refusesRenewals{s.link.ShardStore.(*memory.Store), func() bool {
				if refuses && refused == 0 {
					refused = w.elapsed()
				}
				return refuses
			}}
		})
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(poll / 2)
		n.link.change(func() { refuses, n.link.broken[shardOfQueue(0)] = true, errDown })
		w.sleep(ttl)
		n.link.heal()
		n.link.change(func() { refuses = false })
		w.within("the handler was cancelled", a.of("job")[0].ended, refused, refused+time.Millisecond)
		if refused == 0 || refused > ttl/2 {
			w.Errorf("the renewal was refused at %v; the test needs it before the lease's own end", refused)
		}
	})
}

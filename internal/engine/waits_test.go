package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

func TestAShardThatHungDoesNotMakeItsLaneWaitLonger(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), shards(2), lanes(1), roundTrip(time.Millisecond))
		w.sleep(poll)
		hang := func(id string) {
			n.link.change(func() { n.link.stuck[shardOfQueue(0)] = true })
			w.push(id, "x")
		}
		hanging := idsIn(0, 2, 2)
		hang(hanging[0])
		w.sleep(ttl / 4) // it is answered before the turn is called off
		n.link.heal()
		w.sleep(2 * poll)
		a.wantRuns(hanging[0], 1)
		hang(hanging[1])
		pushed := w.elapsed()
		w.push(idIn(1, 2), "x")
		w.sleep(poll)
		w.within("the other shard's job", a.wantRuns(idIn(1, 2), 1)[0].at, pushed, pushed+200*time.Millisecond)
	})
}

func TestALaneWaitsForAHangingShardNoLongerThanAPollInterval(t *testing.T) {
	inWorld(t, func(w *world) {
		const poll = 20 * time.Millisecond
		a := w.audit()
		n := w.start(a.watch(succeed), shards(2), lanes(1), polling(poll))
		w.sleep(time.Second)
		n.link.change(func() { n.link.stuck[shardOfQueue(0)] = true })
		pushed := w.elapsed()
		w.pushEntries(entry(idIn(0, 2)))
		time.Sleep(time.Millisecond)
		w.pushEntries(entry(idIn(1, 2)))
		w.sleep(time.Second)
		w.within("the other shard's job", a.wantRuns(idIn(1, 2), 1)[0].at, pushed, pushed+2*poll)
	})
}

// startLiar starts a node whose store lies while the function says so.
func (w *world) startFalselyDue(a *audit, lies func() bool, options ...func(*setup)) *node {
	return w.start(a.watch(succeed), append(options, func(s *setup) {
		s.link.ShardStore = falselyDue{s.link.ShardStore.(*memory.Store), lies}
	})...)
}

// thoroughLiar also lies about its heads.
type falseHeads struct{ falselyDue }

func (l falseHeads) Heads(_ context.Context, shards []core.Shard) (r ports.HeadsReply, err error) {
	r, err = l.Store.Heads(context.Background(), shards)
	for i := range r.Heads {
		if l.active() {
			r.Heads[i] = core.Head{Due: r.Now, OK: true}
		}
	}
	return r, err
}

func TestAStoreThatIsNotBelievedIsAskedAtOnceWhenSomethingIsNew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		lies := true
		a := w.audit()
		n := w.start(a.watch(succeed), func(s *setup) {
			s.link.ShardStore = falseHeads{falselyDue{s.link.ShardStore.(*memory.Store), func() bool { return lies }}}
		})
		const news = 30*poll + poll/3 // between two polls
		w.sleepUntil(news)
		n.link.change(func() { lies = false })
		w.push("new", "x")
		w.sleep(2 * poll)
		w.within("the new job", a.wantRuns("new", 1)[0].at, news, news+10*time.Millisecond)
	})
}

func TestAFalseHeadHidesAShardForNoLongerThanAPollInterval(t *testing.T) {
	inWorld(t, func(w *world) {
		const poll = 50 * time.Millisecond
		w.declare(1)
		lies := true
		a := w.audit()
		n := w.startFalselyDue(a, func() bool { return lies }, noWakeups, polling(poll))
		w.push("job", "x")
		w.sleepUntil(10 * time.Second)
		n.link.change(func() { lies = false })
		w.sleep(2 * time.Second)
		w.within("the job", a.wantRuns("job", 1)[0].at, 10*time.Second, 10*time.Second+poll)
	})
}

func TestAStoreIsBelievedAgainOnceItReturnsAJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		limit := 30 * poll
		a := w.audit()
		w.startFalselyDue(a, func() bool { return w.elapsed() < limit }, noWakeups)
		w.push("first", "x")
		w.sleepUntil(32 * poll)
		a.wantRuns("first", 1)
		limit = 0
		w.sleepUntil(40 * poll)
		limit = 41*poll + 5*time.Millisecond // it lies once more
		w.pushEntries(core.Entry{ID: "second", Payload: core.Payload{Data: []byte("x")}, When: core.In(poll)})
		w.sleep(4 * poll)
		w.within("the second job", a.wantRuns("second", 1)[0].at, 41*poll, 41*poll+100*time.Millisecond)
	})
}

func TestALeaseIsGivenUpATTLAfterItsTurnWasSent(t *testing.T) {
	for _, offset := range []time.Duration{0, 1300 * time.Millisecond, 2900 * time.Millisecond, 4700 * time.Millisecond} {
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

// evicting is a store that refuses renewals, as after somebody else has acquired.
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

// A handler of whole batches asks nobody before it starts.
func TestABatchThatIsClaimedWhileTheNodeStopsDoesNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var n *node
		n = w.start(func(context.Context, *engine.Batch) error {
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

func TestWhatWasPushedWhileNobodyListenedIsFoundWhenSomebodyDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		const poll = 20 * time.Second
		a := w.audit()
		n := w.start(a.watch(succeed), polling(poll), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Wakeups" }
		})
		w.sleepUntil(poll + time.Second)
		w.push("job", "x")
		w.sleepUntil(poll * 3 / 2)
		a.wantRuns("job", 0)
		n.link.change(func() { n.link.refuse = func(string) bool { return false } })
		w.sleep(2 * time.Second)
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
			w.Errorf("%d calls of Acquire since the release, and the owner is %q", second.link.count("Acquire")-tried, w.stats().Shards[0].Owner)
		}
	})
}

func TestDuringAnOutageNobodySaysThatTheStoreAnswersAgain(t *testing.T) {
	for name, state := range map[string]linkState{"calls fail": down, "calls hang": hanging} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(succeed), shards(3))
				w.sleep(3 * poll)
				n.link.set(state)
				w.sleep(ttl)
				if n.log.count("the store fails") == 0 || n.log.count("answers again") != 0 {
					w.Errorf("the log during the outage:\n%s", n.log.tail(20))
				}
				n.link.set(up)
				w.sleep(ttl)
				if n.log.count("answers again") == 0 {
					w.Errorf("the log after the outage:\n%s", n.log.tail(20))
				}
			})
		})
	}
}

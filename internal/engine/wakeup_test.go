package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestALateLookClaimsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		a := w.audit()
		n := w.start(a.watch(succeed))
		w.sleep(poll)
		packet := n.link.delayNext("Turn")
		w.push("first", "x") // makes the lane look; the look hangs
		deliver := <-packet
		if _, err := w.store.Delete(context.Background(),
			ports.JobStep{Shard: shardOfQueue(0), IDs: []string{"first"}}); err != nil {
			w.Fatal(err)
		}
		w.sleep(ttl / 2) // the look is repeated, and finds nothing
		w.pushLater("second", time.Millisecond)
		w.sleep(2 * time.Millisecond)
		_ = deliver()
		w.sleep(3 * poll)
		w.push("third", "x")
		w.sleep(3 * poll)
		a.wantRuns("second", 1)
		a.wantRuns("third", 1)
		n.stop()
		w.wantCounts(0, 0, 2, 0)
	})
}

func (w *world) pushLater(id string, d time.Duration) {
	w.Helper()
	w.pushEntries(core.Entry{ID: id, Payload: core.Payload{Data: []byte("x"), Score: 1}, When: core.In(d)})
}

func TestWhatWasPushedWhileNobodyListenedIsFoundWhenSomebodyDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		const poll = 20 * time.Second
		a := w.audit()
		n := w.start(a.watch(succeed), polling(poll), func(s *setup) {
			s.LeaseTTL = 10 * poll // no renewal looks meanwhile
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

func TestAnIdleNodeStartsAJobWhenItIsPushed(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), polling(time.Minute))
		w.sleep(time.Second)
		before := n.link.count("Turn")
		w.push("job", "x")
		w.within("the job", a.wantRuns("job", 1)[0].at, time.Second, time.Second)
		if turns := n.link.count("Turn") - before; turns != 2 {
			w.Errorf("%d turns; want one that claims and one that settles", turns)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestAnIdleNodeMakesNoTurns(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), shards(5))
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(time.Minute)
		before := n.link.count("Turn")
		w.sleep(time.Hour)
		if turns := n.link.count("Turn") - before; turns != 0 {
			w.Errorf("%d turns in an idle hour", turns)
		}
		if polls := n.link.count("Heads"); polls > 3700 {
			w.Errorf("%d polls in an hour of poll intervals of %v", polls, poll)
		}
	})
}

func TestIdleShardsMakeNoTurnsAtStart(t *testing.T) {
	t.Parallel()
	const shardCount = 1000
	for name, option := range map[string]func(*setup){"with wake-ups": func(*setup) {}, "polling": noWakeups} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(succeed), shards(shardCount), pooled(10), option)
				w.sleepUntil(10 * poll)
				if acquires, turns := n.link.count("Acquire"), n.link.count("Turn"); acquires != shardCount ||
					turns != 0 {
					w.Errorf("%d acquires and %d turns; want %d and none", acquires, turns, shardCount)
				}
				w.push("job", "x")
				w.sleep(2 * poll)
				a.wantRuns("job", 1)
				if turns := n.link.count("Turn"); turns != 2 {
					w.Errorf("%d turns; want one that claims and one that settles", turns)
				}
			})
		})
	}
}

func TestAShardIsWorkedAtOnceIfItHasAJobWhenItIsAcquired(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("due", "x")
		w.pushLater("later", poll/4)
		a := w.audit()
		n := w.start(a.watch(succeed), polling(time.Minute), noWakeups)
		w.sleep(poll)
		w.within("the due job", a.wantRuns("due", 1)[0].at, 0, 0)
		w.within("the later job", a.wantRuns("later", 1)[0].at, poll/4, poll/4)
		if looks := n.link.count("Heads"); looks != 0 {
			w.Errorf("%d looks", looks)
		}
	})
}

func TestWithoutWakeUpsAPushIsFoundWithinAPollInterval(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(succeed), noWakeups, shards(5))
		for i := range 20 {
			w.sleep(1234 * time.Millisecond)
			id := fmt.Sprintf("job-%d", i)
			w.push(id, "x")
			pushed := w.elapsed()
			w.sleep(poll)
			w.within(id, a.wantRuns(id, 1)[0].at, pushed, pushed+poll)
		}
	})
}

func TestAJobForLaterStartsAtItsTime(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(succeed), polling(time.Minute))
		w.sleep(time.Second)
		later := entry("later")
		later.When = core.In(90 * time.Second)
		w.pushEntries(later)
		sooner := entry("sooner")
		sooner.When = core.In(100 * time.Millisecond)
		w.pushEntries(sooner)
		w.sleep(2 * time.Minute)
		w.within("the sooner", a.wantRuns("sooner", 1)[0].at, 1100*time.Millisecond, 1100*time.Millisecond)
		w.within("the later", a.wantRuns("later", 1)[0].at, 91*time.Second, 91*time.Second)
	})
}

func TestAWakeUpDuringATurnIsNotLost(t *testing.T) {
	const trip = 100 * time.Millisecond
	for name, after := range map[string]time.Duration{
		"before the store sees the turn": trip / 4,
		"while its reply is under way":   trip * 3 / 4,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				w.start(a.watch(succeed), roundTrip(trip), polling(time.Minute))
				w.sleep(time.Second)
				w.push("first", "x")
				w.sleep(trip) // claimed and run; a turn settles it
				w.sleep(after)
				w.push("second", "x")
				pushed := w.elapsed()
				w.sleep(time.Second)
				w.within("the second job", a.wantRuns("second", 1)[0].at, pushed, pushed+2*trip)
			})
		})
	}
}

func TestAWakeUpDuringAnAcquireIsNotLost(t *testing.T) {
	const trip = 100 * time.Millisecond
	for name, after := range map[string]time.Duration{
		"before the store sees the acquire": trip / 4,
		"while its reply is under way":      trip * 3 / 4,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				lease := ports.Lease{Shard: shardOfQueue(0), Owner: "ghost", Token: w.acquire("ghost", time.Hour).Token}

				a := w.audit()
				n := w.start(a.watch(succeed), roundTrip(trip), polling(time.Minute))
				w.sleep(10 * time.Second)
				refused := n.link.count("Acquire")

				if err := w.store.Release(w.Context(), lease); err != nil {
					w.Fatal(err)
				}
				for n.link.count("Acquire") == refused {
					w.sleep(time.Millisecond)
				}

				w.sleep(after)
				w.push("job", "x")
				pushed := w.elapsed()
				w.sleep(time.Second)
				w.within("the job", a.wantRuns("job", 1)[0].at, pushed, pushed+2*trip)
			})
		})
	}
}

func TestWhatWasPushedBeforeANodeListenedIsFoundAlthoughItsAcquireMissedIt(t *testing.T) {
	inWorld(t, func(w *world) {
		const trip, late = 10 * time.Millisecond, 2 * time.Second
		a := w.audit()
		n := w.start(a.watch(succeed), roundTrip(trip), polling(time.Minute), func(s *setup) {
			s.link.linger["Acquire"] = late
			s.link.refuse = func(method string) bool { return method == "Wakeups" }
		})
		w.sleep(10 * trip) // the store has answered, and its reply is under way
		w.push("job", "x")
		n.link.change(func() { n.link.refuse = func(string) bool { return false } })
		w.sleep(2 * late)
		w.within("the job", a.wantRuns("job", 1)[0].at, late, late+10*trip)
	})
}

func TestAWakeUpDuringALookIsNotLost(t *testing.T) {
	inWorld(t, func(w *world) {
		const trip, renewal = 100 * time.Millisecond, ttl / 3
		a := w.audit()
		n := w.start(a.watch(lasting(time.Second)), roundTrip(trip), shards(2), lanes(1))
		w.sleepUntil(renewal - trip)
		w.push(idIn(0, 2), "x")
		for renewals := n.link.count("Renew"); n.link.count("Renew") == renewals; {
			w.sleep(time.Millisecond)
		}
		w.sleep(trip * 3 / 4) // the store has answered, and its reply is under way
		w.push(idIn(1, 2), "x")
		w.sleep(2 * time.Second)
		a.wantRuns(idIn(1, 2), 1)
	})
}

func TestAnAbundantPushDoesNotMultiplyTurns(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(lasting(time.Second)), roundTrip(10*time.Millisecond))
		w.sleep(poll)
		w.push("job", "x")
		before := n.link.count("Turn")
		for i := range 500 {
			w.push("next", fmt.Sprint(i))
			w.sleep(time.Millisecond)
		}
		// With one turn in flight at a time, 500 ms have room for 50.
		if turns := n.link.count("Turn") - before; turns > 50 {
			w.Errorf("%d turns in half a second", turns)
		}
	})
}

package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestAHangingShardDelaysOthersOfItsLaneByLittle(t *testing.T) {
	t.Parallel()
	const most = 200 * time.Millisecond
	for name, options := range map[string][]func(*setup){
		"with wake-ups": nil,
		"polling":       {noWakeups},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(succeed), append(options, shards(6), lanes(1), roundTrip(time.Millisecond))...)

				w.sleep(poll)
				n.link.change(func() {
					for shard := range 5 {
						n.link.stuck[shardOfQueue(shard)] = true
					}
				})
				for shard := range 5 {
					w.push(idIn(shard, 6), "x")
				}

				worst := time.Duration(0)
				healthy, pushed := idsIn(5, 6, 600), map[string]time.Duration{}
				for _, id := range healthy {
					w.push(id, "x")
					pushed[id] = w.elapsed()
					w.sleep(210 * time.Millisecond)
				}

				w.sleep(2 * poll)
				for _, id := range healthy {
					worst = max(worst, a.wantRuns(id, 1)[0].at-pushed[id])
				}

				limit := most
				if options != nil {
					limit += 3 * poll
				}
				if worst > limit {
					w.Errorf("a job of a healthy shard waited %v, want at most %v", worst, limit)
				}

				if turns := n.link.count("Turn"); turns > 2*len(healthy)+5*100 {
					w.Errorf("%d turns in %v", turns, w.elapsed())
				}
			})
		})
	}
}

// A look at the heads of all shards fails or hangs for one of them; the others'
// jobs are found all the same.
func TestAShardThatCannotBePolledHidesNoOther(t *testing.T) {
	for name, breaks := range stuckTurns {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(succeed), noWakeups, shards(2), lanes(1))
				w.sleep(poll)
				n.link.change(func() { breaks(n.link) })
				w.sleep(ttl/3 + 3*poll)
				for _, id := range idsIn(1, 2, 100) {
					w.push(id, "x")
					pushed := w.elapsed()
					w.sleep(1234 * time.Millisecond)
					w.within(id, a.wantRuns(id, 1)[0].at, pushed, pushed+poll+200*time.Millisecond)
				}
			})
		})
	}
}

func TestATurnThatHungIsRepeatedWithBackoff(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		n.link.change(func() { n.link.stuck[shardOfQueue(0)] = true })
		w.push("job", "x")
		w.sleep(ttl - time.Second)
		turns := n.link.turnsSent()
		for i := 1; i < len(turns); i++ {
			if turns[i].err == nil || turns[i-1].err == nil {
				continue
			}
			gap := turns[i].at.Sub(turns[i-1].ended)
			if gap < 5*time.Millisecond {
				w.Errorf("a turn was repeated %v after it was given up", gap)
			}
		}
	})
}

// A store slower than any lane waits for is worked all the same, by every scheduler.
func TestASlowStoreIsWorked(t *testing.T) {
	for name, scheduler := range map[string]core.SchedulerFunc{
		"lag": core.Lag, "seq": core.Seq, "strict": core.StrictBy(queueName), "weighted": core.WeightedBy(nil),
	} {
		for _, trip := range []time.Duration{300 * time.Millisecond, 900 * time.Millisecond, 1500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, %v", name, trip), func(t *testing.T) {
				inWorld(t, func(w *world) {
					a := w.audit()
					w.start(a.watch(succeed), shards(8), lanes(1), roundTrip(trip), func(s *setup) {
						s.Scheduler = scheduler
					})
					w.sleep(10 * poll)
					for shard := range 8 {
						w.push(idIn(shard, 8), "x")
					}
					w.sleep(time.Minute)
					for shard := range 8 {
						a.wantRuns(idIn(shard, 8), 1)
					}
				})
			})
		}
	}
}

func TestATurnThatHangsIsRepeated(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed))
		w.sleep(poll)
		late := n.link.delayNext("Turn")
		w.push("job", "x")
		w.sleep(ttl * 4 / 5)
		a.wantRuns("job", 1)
		if n.link.count("Acquire") != 1 {
			w.Errorf("the lease was lost; the log:\n%v", n.log)
		}
		if err := (<-late)(); !errors.Is(err, ports.ErrStaleTurn) {
			w.Errorf("the turn that came late: %v, want ErrStaleTurn", err)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestALaneGoesOnWithOtherShardsWhileOneFails(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), shards(2), lanes(1))
		w.sleep(poll)
		n.link.change(func() { n.link.broken[shardOfQueue(0)] = errDown })
		w.push(idIn(0, 2), "x")
		w.sleep(poll)
		w.push(idIn(1, 2), "x")
		w.sleep(poll)
		a.wantRuns(idIn(0, 2), 0)
		a.wantRuns(idIn(1, 2), 1)
		n.link.change(func() { clear(n.link.broken) })
		w.sleep(2 * poll)
		a.wantRuns(idIn(0, 2), 1)
	})
}

// A shard whose turns are never answered while its renewals are.
var stuckTurns = map[string]func(l *link){
	"its turns fail": func(l *link) { l.broken[shardOfQueue(0)] = errDown },
	"its turns hang": func(l *link) { l.stuck[shardOfQueue(0)] = true },
}

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

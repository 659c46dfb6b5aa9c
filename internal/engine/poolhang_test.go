package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A shard whose turns get no answer delays no job of another one by more than 200 ms, be it that
// it begins to hang, that its turn is called off and repeated, or that its lease is given up.
func TestShardsThatHangDelayNoOther(t *testing.T) {
	t.Parallel()
	const most = 200 * time.Millisecond
	for _, c := range []struct {
		shards, hang, lanes, maxTurns int
	}{
		{shards: 5, hang: 1, lanes: 4},
		{shards: 6, hang: 5, lanes: 4},
		{shards: 6, hang: 5, lanes: 1},
		{shards: 6, hang: 5, lanes: 4, maxTurns: 2},
		{shards: 400, hang: 200, lanes: 40},
		// A poll that hangs makes all shards turn, and hundreds of them begin to hang at that instant.
		{shards: 400, hang: 200, lanes: 40, maxTurns: 4},
	} {
		t.Run(fmt.Sprintf("%d of %d, %d lanes, %d turns", c.hang, c.shards, c.lanes, c.maxTurns), func(t *testing.T) {
			inWorld(t, func(w *world) {
				between := max(10, time.Duration(c.shards)/40) * time.Millisecond
				a := w.audit()
				n := w.start(a.watch(succeed), shards(c.shards), pooled(c.lanes), maxTurns(c.maxTurns),
					roundTrip(time.Millisecond))
				w.sleep(2 * poll)

				n.link.change(func() {
					for shard := range c.hang {
						n.link.stuck[shardOfQueue(shard)] = true
					}
				})

				pushed := make(map[string]time.Duration)
				for i := range int(ttl * 3 / 2 / between) {
					id := fmt.Sprintf("id-%d", i)
					w.pushTo(queueName, c.shards, id)
					if core.ShardOf(id, c.shards) >= c.hang {
						pushed[id] = w.elapsed()
					}
					w.sleep(between)
				}

				w.sleep(poll)
				a.wantStartedWithin(most, pushed)
			})
		})
	}
}

// wantStartedWithin checks how long each job waited since it was pushed.
func (a *audit) wantStartedWithin(most time.Duration, pushed map[string]time.Duration) {
	a.Helper()
	worst, late := "", 0
	var longest time.Duration
	for id, at := range pushed {
		waited := a.wantRuns(id, 1)[0].at - at
		if waited > most {
			late++
		}
		if waited > longest {
			worst, longest = id, waited
		}
	}
	if late > 0 {
		a.Errorf("%d of %d jobs waited for more than %v; %s, pushed at %v, for %v",
			late, len(pushed), most, worst, pushed[worst], longest)
	}
}

// The lanes that a shard was granted are granted to others if it does not answer for 100 ms; if
// several do not, one after another, the next ones are given half as long.
func TestAGrantWithoutAnAnswerStopsCounting(t *testing.T) {
	for hangs, most := range map[int]time.Duration{1: 110 * time.Millisecond, 4: 200 * time.Millisecond} {
		t.Run(fmt.Sprintf("%d hang", hangs), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lanes, healthy = 4, 4
				a := w.audit()
				n := w.start(a.watch(succeed), shards(healthy+1), pooled(lanes), roundTrip(time.Millisecond))
				w.sleep(2 * poll)

				n.link.change(func() {
					for shard := range hangs {
						n.link.stuck[shardOfQueue(shard)] = true
					}
				})
				for shard := range hangs {
					w.pushTo(queueName, healthy+1, idsIn(shard, healthy+1, 2*lanes)...)
				}

				w.sleep(10 * time.Millisecond)
				at := w.elapsed()
				pushed := make(map[string]time.Duration)
				for _, id := range idsIn(healthy, healthy+1, lanes) {
					pushed[id] = at
				}
				w.pushTo(queueName, healthy+1, idsIn(healthy, healthy+1, lanes)...)

				w.sleep(poll / 2)
				a.wantStartedWithin(most, pushed)
			})
		})
	}
}

package engine_test

import (
	"fmt"
	"testing"
	"time"
)

// Lanes that are pinned to shards take turns at the limit of their queue: of those that it keeps from their work, the one that has
// waited longest goes next.
func TestPinnedLanesTakeTurnsAtTheLimitOfTheirQueue(t *testing.T) {
	for _, c := range []struct{ lanes, most int }{{4, 3}, {30, 3}, {300, 3}, {300, 100}} {
		t.Run(fmt.Sprintf("%d of %d lanes", c.most, c.lanes), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const length, trip, rounds = 10 * time.Millisecond, 2 * time.Millisecond, 6
				r := w.record()
				w.fill(queueName, c.lanes, 0)
				q := r.queue(queueName, c.lanes, lasting(length))
				q.MaxLanes = c.most
				w.start(nil, serving(q), lanes(c.lanes), roundTrip(trip))
				w.sleep(poll)
				for shard := range c.lanes {
					w.pushTo(queueName, c.lanes, idsIn(shard, c.lanes, rounds)...)
				}
				ideal := time.Duration(rounds*c.lanes/c.most) * length
				w.sleep(ideal*3/2 + poll/10)
				w.wantCounts(0, 0, int64(rounds*c.lanes), 0)
			})
		})
	}
}

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A node announces which shards wait for the lane that a splitter has given them, though others of
// its lanes are free. Lanes that share the shards keep none waiting so.
func TestANodeAnnouncesWhichShardsWaitForTheirLane(t *testing.T) {
	for name, c := range map[string]struct {
		how  func(*setup)
		want []int
	}{"pinned": {func(*setup) {}, []int{1, 4}}, "shared": {spread, nil}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(func(context.Context, *core.Claim) error {
					time.Sleep(time.Hour)
					return nil
				}), shards(5), lanes(3), polling(time.Minute), c.how)
				w.sleep(time.Millisecond)
				w.pushTo(queueName, 5, idsIn(1, 5, 1)...)
				w.sleep(2 * announceInterval)
				got, _ := w.announced(n)
				if st := got.Status; st.Busy != 1 || !slices.Equal(st.Queues[0].LaneBusy, c.want) {
					w.Errorf("%d lanes are busy, of shards %v; want 1, of %v", st.Busy, st.Queues[0].LaneBusy, c.want)
				}
			})
		})
	}
}

// Lanes that are pinned to shards take turns at the limit of their queue: of those that it keeps
// from their work, the one that has waited longest goes next.
func TestPinnedLanesTakeTurnsAtTheLimitOfTheirQueue(t *testing.T) {
	t.Parallel()
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

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// A queue of the first rank into which jobs trickle has a claim under way at nearly any time. The
// lanes that it leaves free work the queue behind it.
func TestAQueueThatTricklesLeavesTheOtherLanesToLowerRanks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const lanes, each1, trip, span = 20, 20 * time.Millisecond, 10 * time.Millisecond, 10 * time.Second
		high := newQueue("high", each(lasting(time.Millisecond)))
		high.Shards = 5
		pushTo := func(queue string, shards int, entries ...core.Entry) {
			r := ports.PushRequest{Queue: queue, Shards: shards, Generation: 1, Entries: entries}
			if _, err := w.store.Push(context.Background(), r); err != nil {
				w.Error(err)
			}
		}
		w.declare(1)
		w.pushEach(int(lanes * span / each1))
		w.start(each(lasting(each1)), roundTrip(trip), pooled(lanes), func(s *setup) {
			s.Queues = []*engine.Queue{high, s.queue}
			s.Scheduler = core.StrictBy("high")
		})
		w.sleep(poll)
		for i := 0; w.elapsed() < span; i++ {
			pushTo("high", 5, entry(idsIn(i%5, 5, i/5%100+1)[i/5%100]))
			w.sleep(3 * time.Millisecond)
		}
		if got, want := w.stats().Processed, int64(lanes*span/each1*8/10); got < want {
			w.Errorf("%d jobs of the lower queue are done at %v, want at least %d", got, w.elapsed(), want)
		}
	})
}

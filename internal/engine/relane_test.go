package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

func TestAQueueIsAddedAtOnceWithoutWakeups(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, noWakeups, serving(rec.queue("red", 4, succeed)))
		w.sleep(poll + poll/2)
		w.fill("blue", 2, 50)
		w.must(n.engine.AddQueue(rec.queue("blue", 2, succeed)))
		w.sleep(50 * time.Millisecond)
		w.wantQueue("blue", 0, 0, 50)
	})
}

// A splitter that fails when a removal ends does not keep the queue from being added again.
func TestAQueueIsAddedAgainAlthoughTheSplitterFailedMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		var fails atomic.Bool
		rec := w.record()
		n := w.start(nil, spread,
			serving(rec.queue("red", 4, succeed), rec.queue("blue", 2, lasting(5*time.Second))), func(s *setup) {
				s.Splitter = splitFunc(func(r core.SplitRequest) (core.Split, error) {
					if fails.Load() {
						return core.Split{}, errors.New("no idea")
					}
					return core.SpreadSplitter{}.Split(r)
				})
			})
		w.fill("blue", 2, 1)
		w.sleep(poll)
		ctx, cancel := context.WithTimeout(w.Context(), poll)
		defer cancel()
		if err := n.engine.RemoveQueue(ctx, "blue"); !errors.Is(err, context.DeadlineExceeded) {
			w.Fatalf("a removal whose handlers run on: %v, want %v", err, context.DeadlineExceeded)
		}
		fails.Store(true)
		w.sleep(10 * time.Second)
		fails.Store(false)
		w.fill("blue", 2, 50)
		w.must(n.engine.AddQueue(rec.queue("blue", 2, succeed)))
		w.sleep(poll)
		w.wantQueue("blue", 0, 0, 51)
	})
}

// Lanes that have been taken away while they waited are not claimed for.
func TestNothingIsClaimedForLanesThatAreGone(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(lasting(time.Minute)), spread, shards(4), lanes(50))
		w.sleep(poll)
		w.must(n.engine.SetLanes(1))
		w.sleep(time.Millisecond)
		w.pushEach(200)
		w.sleep(100 * time.Millisecond)
		if claimed := w.stats().Claimed; claimed > 4 {
			w.Errorf("one lane is left, and %d jobs are claimed", claimed)
		}
	})
}

// How much of a queue with MaxLanes is claimed ahead follows the lanes that the node has now.
func TestLanesThatCameLaterCountForWhatIsClaimedAhead(t *testing.T) {
	claimed := func(before int) (most int64) {
		inWorld(t, func(w *world) {
			rec := w.record()
			slow := rec.queue(queueName, 1, lasting(20*time.Millisecond))
			slow.MaxLanes = 4
			n := w.start(nil, spread, serving(slow), lanes(before), roundTrip(20*time.Millisecond))
			w.sleep(poll)
			w.must(n.engine.SetLanes(40))
			w.pushEach(3000)
			w.sleep(time.Second)
			for range 100 {
				w.sleep(7 * time.Millisecond)
				most = max(most, w.stats().Claimed)
			}
		})
		return most
	}
	want := claimed(40)
	if got := claimed(2); got > want+want/4 {
		t.Errorf("%d jobs are claimed by a node that began with 2 lanes, and %d by one that had them all", got, want)
	}
}

package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// longOr is a handler that takes 10 s for one job and 10 ms for others.
func longOr(long string) func(context.Context, *core.Claim) error {
	return func(ctx context.Context, c *core.Claim) error {
		if c.ID == long {
			return lasting(10*time.Second)(ctx, c)
		}
		return lasting(10*time.Millisecond)(ctx, c)
	}
}

// A shard that is given up is worked again at once if it becomes the node's again before its
// handlers have returned.
func TestAShardThatIsKeptAfterAllIsWorkedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(longOr("long")), spread, shards(1))
		w.sleep(poll)
		w.push("long", "x")
		w.drain(n, true)
		w.sleep(100 * time.Millisecond)
		w.pushEach(5)
		w.sleep(2 * poll)
		w.wantCounts(5, 1, 0, 0)
		w.drain(n, false)
		w.sleep(100 * time.Millisecond)
		w.wantCounts(0, 1, 5, 0)
	})
}

// The waiting jobs of a removed queue take nothing from others while a handler of it runs on.
func TestAQueueThatLeavesKeepsNothingFromOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		red, blue := rec.queue("red", 1, lasting(10*time.Millisecond)), rec.queue("blue", 1, longOr("blue-0"))
		n := w.start(nil, spread, lanes(3), serving(red, blue), roundTrip(time.Millisecond))
		w.fill("blue", 1, 5000)
		w.sleep(poll)
		ctx, cancel := context.WithTimeout(w.Context(), 50*time.Millisecond)
		defer cancel()
		if err := n.engine.RemoveQueue(ctx, "blue"); !errors.Is(err, context.DeadlineExceeded) {
			w.Fatalf("a removal whose handlers run on: %v, want %v", err, context.DeadlineExceeded)
		}
		w.fill("red", 1, 100)
		w.sleep(600 * time.Millisecond) // of two lanes
		w.wantQueue("red", 0, 0, 100)
		_, claimed, _ := w.counts("blue")
		if claimed != 1 {
			w.Errorf("%d jobs of the removed queue are claimed, want the one that runs", claimed)
		}
	})
}

// A removal waits for no shard that another owner holds.
func TestARemovalWaitsForNoOtherOwner(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		w.declare(1)
		_, err := w.store.Acquire(w.Context(), ports.AcquireRequest{
			Shard:      shardOfQueue(0),
			Shards:     1,
			Generation: 1,
			Owner:      "other",
			Attempt:    1,
			TTL:        time.Hour,
		})
		w.must(err)
		n := w.start(nil, spread, serving(rec.queue("red", 1, succeed), rec.queue(queueName, 1, succeed)))
		w.sleep(20 * poll)
		began := w.elapsed()
		w.must(n.engine.RemoveQueue(w.Context(), queueName))
		w.within("the removal ended", w.elapsed()-began, 0, 200*time.Millisecond)
	})
}

// Settlements that the store defers are sent again before a shard is given up, for as long as
// handlers might take.
func TestAShardThatIsGivenUpSettlesWhatTheStoreDefers(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), spread, shards(1), func(s *setup) { s.ShutdownTimeout = 10 * time.Second })
		w.sleep(poll)
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return true } })
		w.pushEach(1)
		w.sleep(poll)
		w.wantCounts(0, 1, 0, 0)
		w.drain(n, true)
		w.sleep(5 * poll)
		w.wantOwners(even(1, n))
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
		w.sleep(poll)
		w.wantCounts(0, 0, 1, 0)
		w.wantOwners(map[string]int{})
		a.wantHandledOnce(1, "x")
	})
}

// A node that can't announce that it drains stops all the same.
func TestANodeStopsAlthoughItCannotAnnounceThat(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(longOr("long")), spread, shards(4))
		w.sleep(poll)
		w.push("long", "x")
		n.link.change(func() { n.link.refuse = func(method string) bool { return method == "Announce" } })
		began := w.elapsed()
		n.cancel()
		w.sleep(5 * time.Second)
		w.wantOwners(even(1, n))
		n.awaitEnd()
		w.within("Run returned", w.elapsed()-began, 9*time.Second, 11*time.Second)
		w.wantCounts(0, 0, 1, 0)
		w.wantOwners(map[string]int{})
	})
}

// The bound of a queue's lanes also holds if the queue is added to a running node.
func TestAnAddedQueueKeepsToItsLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, serving(rec.queue("red", 1, succeed)))
		w.sleep(poll)
		blue := rec.queue("blue", 4, lasting(time.Minute))
		blue.MaxLanes = 3
		w.fill("blue", 4, 100)
		w.must(n.engine.AddQueue(blue))
		w.sleep(2 * poll)
		if got := rec.runningNow("blue"); got != 3 {
			w.Errorf("%d lanes run the queue, want 3", got)
		}
	})
}

package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestHistoryCountsJobsWithTheirWaitAndRunTimes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(each(func(_ context.Context, c *core.Claim) error {
			time.Sleep(100 * time.Millisecond)
			if c.ID == "job-3" && c.Fresh() {
				return errors.New("no")
			}
			return nil
		}))
		w.sleep(poll)
		w.pushEach(10) // the last of them waits for 900 ms
		w.sleep(3 * poll)
		got := w.minute(0)
		if got.Processed != 9 || got.Failed != 1 {
			w.Errorf("processed %d, failed %d; want 9 and 1", got.Processed, got.Failed)
		}
		var wait, run core.Histogram
		for i := range 10 {
			wait.Observe(time.Duration(i) * 100 * time.Millisecond)
			run.Observe(100 * time.Millisecond)
		}
		if diff := cmp.Diff(wait, got.Wait); diff != "" {
			w.Errorf("waits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(run, got.Run); diff != "" {
			w.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

func TestStatisticsGoAlongAtMostOnceASecond(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(each(succeed))
		for range 100 {
			w.push("job", "x")
			w.sleep(100 * time.Millisecond)
		}
		sent := 0
		for _, turn := range n.link.turnsSent() {
			if turn.request.Stats != nil {
				sent++
			}
		}
		if sent < 9 || sent > 11 {
			w.Errorf("statistics were sent %d times in 10 s", sent)
		}
		w.sleep(2 * poll)
		if got := w.minute(0); got.Processed != 100 {
			w.Errorf("processed %d, want 100", got.Processed)
		}
	})
}

func TestStatisticsAreSentBeforeTheNodeEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		w.push("job-0", "x")
		w.push("job-1", "x")
		n.stop()
		if got := w.minute(0); got.Processed != 2 {
			w.Errorf("processed %d, want 2", got.Processed)
		}
	})
}

func TestAClaimShowsItsNodeLaneAndTime(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(untilCancelled), shards(2), lanes(2))
		w.sleep(poll)
		id := idIn(1, 2)
		w.push(id, "x")
		got := w.find(id).Claim
		want := &ports.ClaimView{
			Shard: shardOfQueue(1), Owner: n.owner, Node: "node-1", Lane: 1, Since: core.InstantOf(time.Now()), Count: 1,
		}
		if got == nil {
			w.Fatal("the job is not claimed")
		}
		want.Claim = got.Claim
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("claim (-want +got):\n%s", diff)
		}
	})
}

func TestANodeIsListedUntilItDies(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(5 * ttl)
		nodes := w.nodesListed()
		if len(nodes) != 1 || nodes[0].Name != "node-1" || nodes[0].Host != "host" || nodes[0].PID != 1 ||
			!cmp.Equal(nodes[0].Queues, []string{queueName}) || nodes[0].StartedAt != core.InstantOf(w.began) {
			w.Errorf("Nodes = %+v", nodes)
		}
		n.cutOff()
		w.sleep(ttl)
		if nodes := w.nodesListed(); len(nodes) != 0 {
			w.Errorf("a dead node is listed: %+v", nodes)
		}
	})
}

// watcher is an observer that keeps what it sees.
type watcher struct {
	ports.NopObserver
	batches chan ports.BatchEvent
	leases  chan ports.LeaseEvent
	turns   chan ports.TurnEvent
}

type watchedKey struct{}

func (watcher) BatchStart(ctx context.Context, _ ports.BatchEvent) context.Context {
	return context.WithValue(ctx, watchedKey{}, "seen")
}

func (o watcher) BatchEnd(ctx context.Context, e ports.BatchEvent) {
	if ctx.Value(watchedKey{}) != "seen" {
		e.Claims = nil
	}
	o.batches <- e
}

func (o watcher) LeaseChanged(e ports.LeaseEvent) { o.leases <- e }
func (o watcher) TurnEnd(e ports.TurnEvent)       { o.turns <- e }

func TestAnObserverSeesBatchesTurnsAndLeases(t *testing.T) {
	inWorld(t, func(w *world) {
		o := watcher{
			batches: make(chan ports.BatchEvent, 100),
			leases:  make(chan ports.LeaseEvent, 100),
			turns:   make(chan ports.TurnEvent, 100),
		}
		n := w.start(each(func(ctx context.Context, _ *core.Claim) error {
			if ctx.Value(watchedKey{}) != "seen" {
				w.Error("the handler's context is not the observer's")
			}
			time.Sleep(time.Millisecond)
			return nil
		}), func(s *setup) { s.Observer = o }, noWakeups)
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(2 * poll)
		n.stop()
		batch := <-o.batches
		if len(batch.Claims) != 1 || batch.Claims[0].ID != "job" || batch.Outcomes[0].Kind != core.Done || batch.Took != time.Millisecond {
			w.Errorf("BatchEnd with %+v", batch)
		}
		if first, last := <-o.leases, <-o.leases; first.Change != ports.LeaseAcquired || last.Change != ports.LeaseReleased {
			w.Errorf("leases %+v and %+v, want one acquired and released", first, last)
		}
		claimed, settled := 0, 0
		for range len(o.turns) {
			turn := <-o.turns
			claimed, settled = claimed+turn.Claimed, settled+turn.Settled
		}
		if claimed != 1 || settled != 1 {
			w.Errorf("turns claimed %d and settled %d, want 1 and 1", claimed, settled)
		}
	})
}

// minute is what was counted in a minute of the test.
func (w *world) minute(number int) ports.MinuteStats {
	w.Helper()
	minutes, err := w.store.History(context.Background(), ports.HistoryRequest{Queue: queueName})
	if err != nil || len(minutes) <= number {
		w.Fatalf("History = %+v, %v", minutes, err)
	}
	return minutes[number]
}

func (w *world) nodesListed() []ports.Node {
	w.Helper()
	nodes, err := w.store.Nodes(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return nodes
}

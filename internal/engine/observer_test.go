package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

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

func (o watcher) TurnEnd(e ports.TurnEvent) { o.turns <- e }

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

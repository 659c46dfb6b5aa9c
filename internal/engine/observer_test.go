package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// watcher is an observer that keeps its events.
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
		if len(batch.Claims) != 1 || batch.Claims[0].ID != "job" || batch.Outcomes[0].Kind != core.Done ||
			batch.Took != time.Millisecond {
			w.Errorf("BatchEnd with %+v", batch)
		}
		if first, last := <-o.leases, <-o.leases; first.Change != ports.LeaseAcquired ||
			last.Change != ports.LeaseReleased {
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

// panicky is an observer whose methods all panic.
type panicky struct{}

func (panicky) Pushed(context.Context, ports.PushEvent) { panic("Pushed") }
func (panicky) BatchStart(context.Context, ports.BatchEvent) context.Context {
	panic("BatchStart")
}
func (panicky) BatchEnd(context.Context, ports.BatchEvent) { panic("BatchEnd") }
func (panicky) TurnEnd(ports.TurnEvent)                    { panic("TurnEnd") }
func (panicky) JobsEnded(ports.EndEvent)                   { panic("JobsEnded") }
func (panicky) TicksFired(ports.TickEvent)                 { panic("TicksFired") }
func (panicky) DeadLettersExpired(ports.ExpiryEvent)       { panic("DeadLettersExpired") }
func (panicky) SlotsTaken(ports.SlotEvent)                 { panic("SlotsTaken") }
func (panicky) QueueSlowed(ports.SlowEvent)                { panic("QueueSlowed") }
func (panicky) HandlerOverran(ports.OverrunEvent)          { panic("HandlerOverran") }
func (panicky) StoreFailed(ports.FailureEvent)             { panic("StoreFailed") }
func (panicky) LeaseChanged(ports.LeaseEvent)              { panic("LeaseChanged") }
func (panicky) NodeChanged(ports.NodeEvent)                { panic("NodeChanged") }
func (panicky) ShardsAssigned(ports.AssignEvent)           { panic("ShardsAssigned") }

// A panic of the observer stops no work, and is in the log once for each method.
func TestAPanicOfTheObserverStopsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		var done atomic.Int64
		n := w.start(each(func(ctx context.Context, _ *core.Claim) error {
			if ctx == nil {
				w.Error("the handler has no context")
			}
			done.Add(1)
			return nil
		}), spread, shards(1), func(s *setup) { s.Observer = panicky{} })
		other := w.start(each(succeed), spread, shards(1))
		w.sleep(poll)
		other.stop()
		for range 3 {
			w.push("job", "x")
			w.sleep(2 * poll)
		}
		n.stop()
		if done.Load() < 3 || w.stats().Claimed != 0 {
			w.Errorf("%d jobs ran and %d are claimed, want 3 and none", done.Load(), w.stats().Claimed)
		}
		for _, method := range []string{
			"BatchStart",
			"BatchEnd",
			"TurnEnd",
			"LeaseChanged",
			"NodeChanged",
			"ShardsAssigned",
		} {
			if said := len(n.log.lines("the Observer panicked", "method="+method+" ")); said != 1 {
				w.Errorf("the log has the panic of %s %d times, want once", method, said)
			}
		}
	})
}

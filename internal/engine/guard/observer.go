package guard

import (
	"context"
	"log/slog"
	"sync"

	"github.com/skeinq/skein/ports"
)

// observer calls the user's observer so that its panics harm only its own measurements. It costs a
// deferred call. A Goexit of the observer still ends the goroutine that it is called in.
type observer struct {
	observer ports.Observer
	log      *slog.Logger
	// said has the methods whose panics have been logged.
	said *sync.Map
}

// Observer returns an observer whose methods don't panic: the first panic of each is logged. It
// returns nil for nil.
func Observer(o ports.Observer, log *slog.Logger) ports.Observer {
	if o == nil {
		return nil
	}
	return observer{o, log, new(sync.Map)}
}

func (g observer) call(method string, f func()) {
	err := Call(func() error { f(); return nil })
	if err == nil {
		return
	}
	if _, known := g.said.LoadOrStore(method, true); !known {
		g.log.Error("the Observer panicked; its figures are wrong, and further panics in this method are not logged",
			"method", method, "error", err)
	}
}

// Pushed implements ports.Observer.
func (g observer) Pushed(ctx context.Context, e ports.PushEvent) {
	g.call("Pushed", func() { g.observer.Pushed(ctx, e) })
}

// BatchStart implements ports.Observer. After a panic, or if the observer returns nil, the batch
// keeps the context that it had.
func (g observer) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	own := ctx
	g.call("BatchStart", func() {
		if changed := g.observer.BatchStart(ctx, e); changed != nil {
			own = changed
		}
	})
	return own
}

// BatchEnd implements ports.Observer.
func (g observer) BatchEnd(ctx context.Context, e ports.BatchEvent) {
	g.call("BatchEnd", func() { g.observer.BatchEnd(ctx, e) })
}

// TurnEnd implements ports.Observer.
func (g observer) TurnEnd(e ports.TurnEvent) {
	g.call("TurnEnd", func() { g.observer.TurnEnd(e) })
}

// JobsEnded implements ports.Observer.
func (g observer) JobsEnded(e ports.EndEvent) {
	g.call("JobsEnded", func() { g.observer.JobsEnded(e) })
}

// TicksFired implements ports.Observer.
func (g observer) TicksFired(e ports.TickEvent) {
	g.call("TicksFired", func() { g.observer.TicksFired(e) })
}

// DeadLettersExpired implements ports.Observer.
func (g observer) DeadLettersExpired(e ports.ExpiryEvent) {
	g.call("DeadLettersExpired", func() { g.observer.DeadLettersExpired(e) })
}

// SlotsTaken implements ports.Observer.
func (g observer) SlotsTaken(e ports.SlotEvent) {
	g.call("SlotsTaken", func() { g.observer.SlotsTaken(e) })
}

// QueueSlowed implements ports.Observer.
func (g observer) QueueSlowed(e ports.SlowEvent) {
	g.call("QueueSlowed", func() { g.observer.QueueSlowed(e) })
}

// HandlerOverran implements ports.Observer.
func (g observer) HandlerOverran(e ports.OverrunEvent) {
	g.call("HandlerOverran", func() { g.observer.HandlerOverran(e) })
}

// StoreFailed implements ports.Observer.
func (g observer) StoreFailed(e ports.FailureEvent) {
	g.call("StoreFailed", func() { g.observer.StoreFailed(e) })
}

// LeaseChanged implements ports.Observer.
func (g observer) LeaseChanged(e ports.LeaseEvent) {
	g.call("LeaseChanged", func() { g.observer.LeaseChanged(e) })
}

// NodeChanged implements ports.Observer.
func (g observer) NodeChanged(e ports.NodeEvent) {
	g.call("NodeChanged", func() { g.observer.NodeChanged(e) })
}

// ShardsAssigned implements ports.Observer.
func (g observer) ShardsAssigned(e ports.AssignEvent) {
	g.call("ShardsAssigned", func() { g.observer.ShardsAssigned(e) })
}

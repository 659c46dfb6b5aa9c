package skein_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// askingObserver calls the server, the store and the client in each of its methods.
type askingObserver struct {
	skein.NopObserver
	ask   func(method string)
	calls [11]atomic.Int64
}

func (o *askingObserver) count(at int, method string) { o.calls[at].Add(1); o.ask(method) }

func (o *askingObserver) Pushed(context.Context, skein.PushEvent) { o.calls[0].Add(1) }
func (o *askingObserver) BatchStart(ctx context.Context, _ skein.BatchEvent) context.Context {
	o.count(1, "BatchStart")
	return ctx
}
func (o *askingObserver) BatchEnd(context.Context, skein.BatchEvent) { o.count(2, "BatchEnd") }
func (o *askingObserver) TurnEnd(skein.TurnEvent)                    { o.count(3, "TurnEnd") }
func (o *askingObserver) JobsEnded(skein.EndEvent)                   { o.count(4, "JobsEnded") }
func (o *askingObserver) LeaseChanged(skein.LeaseEvent)              { o.count(5, "LeaseChanged") }
func (o *askingObserver) NodeChanged(ports.NodeEvent)                { o.count(6, "NodeChanged") }
func (o *askingObserver) ShardsAssigned(ports.AssignEvent)           { o.count(7, "ShardsAssigned") }
func (o *askingObserver) HandlerOverran(skein.OverrunEvent)          { o.count(8, "HandlerOverran") }
func (o *askingObserver) StoreFailed(skein.FailureEvent)             { o.count(9, "StoreFailed") }

// An Observer may call the server, read the store and push: no method is called under a lock of
// theirs.
func TestAnObserverMayAskBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		looks := inspect.New(store, inspect.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Timeout: time.Second, Shards: 2})
		o := &askingObserver{}
		client := skein.NewClient(store, skein.ClientOptions{Observer: o})
		var server *skein.Server

		o.ask = func(method string) {
			server.Node()
			if _, err := looks.Stats(t.Context()); err != nil {
				t.Errorf("%s: %v", method, err)
			}
			if o.calls[0].Load() < 50 {
				if err := q.Push(t.Context(), client, method, "x"); err != nil {
					t.Errorf("%s: %v", method, err)
				}
			}
		}

		server = skein.NewServer(store, skein.ServerOptions{Observer: o, Lanes: 2},
			q.Each(func(_ context.Context, id, _ string) error {
				if id == "hangs" {
					time.Sleep(2 * time.Minute)
				}
				return errBoom
			}))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx) }()
		push(t, store, q, "hangs", "x")
		time.Sleep(5 * time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}

		for i := range o.calls[:9] { // the store fails nothing
			if o.calls[i].Load() == 0 {
				t.Errorf("method %d was never called", i)
			}
		}
	})
}

// slowObserver blocks for longer than a lease lasts, once, in a method.
type slowObserver struct {
	skein.NopObserver
	method string
	slept  atomic.Bool
	lost   atomic.Int64
}

func (o *slowObserver) sleep(method string) {
	if method == o.method && !o.slept.Swap(true) {
		time.Sleep(45 * time.Second)
	}
}

func (o *slowObserver) BatchStart(ctx context.Context, _ skein.BatchEvent) context.Context {
	o.sleep("BatchStart")
	return ctx
}
func (o *slowObserver) BatchEnd(context.Context, skein.BatchEvent) { o.sleep("BatchEnd") }
func (o *slowObserver) JobsEnded(skein.EndEvent)                   { o.sleep("JobsEnded") }
func (o *slowObserver) TurnEnd(skein.TurnEvent)                    { o.sleep("TurnEnd") }
func (o *slowObserver) LeaseChanged(e skein.LeaseEvent) {
	if o.sleep("LeaseChanged"); e.Change == ports.LeaseDropped {
		o.lost.Add(1)
	}
}

// An Observer that blocks while jobs run and end keeps up the lane that called it: the others work
// on. Whatever blocks, no job runs twice. A lease is lost by a TurnEnd alone that blocks for
// longer than it lasts.
func TestAnObserverThatBlocksLosesNothing(t *testing.T) {
	for _, method := range []string{"BatchStart", "BatchEnd", "JobsEnded", "TurnEnd", "LeaseChanged"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 8})
				o := &slowObserver{method: method}

				var runs atomic.Int64
				log := newRecorder(slog.LevelWarn)
				stop := serveLogged(t, store, skein.ServerOptions{Observer: o, Lanes: 4}, log,
					q.Each(func(context.Context, string, string) error {
						runs.Add(1)
						return nil
					}))

				pushMany(t, store, q, 100)
				time.Sleep(30 * time.Second)
				got := runs.Load()
				if of := method == "BatchStart" || method == "BatchEnd" || method == "JobsEnded"; of && got < 50 ||
					got == 100 && method == "BatchStart" {
					t.Errorf("%d of 100 jobs have run while it blocks; want those of other lanes", got)
				}

				time.Sleep(time.Minute)
				stop()
				lost := int64(0)
				if method == "TurnEnd" { // it blocks renewals
					lost = 1
				}

				if got = runs.Load(); got != 100 || o.lost.Load() != lost || !o.slept.Load() {
					t.Errorf("%d runs, %d leases lost; want 100 and %d", got, o.lost.Load(), lost)
				}
			})
		})
	}
}

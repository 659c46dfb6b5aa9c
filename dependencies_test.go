package skein_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// A push after success may be for later, counted from that success.
func TestThenKeepsTheDelayOfItsPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newThenWorld(t)
		w.run(w.source.Handler(func(ctx context.Context, id string, _ []string) error {
			return w.next.Then(ctx, w.client, id, "p", skein.In(time.Hour))
		}), "x")
		equal(t, "after the success", stateOf(t, w.store, "next", "id"), `queued ["p"], retry -1, in 1h0m0s, error ""`)

		runs := 0
		count := w.next.Handler(func(context.Context, string, []string) error { runs++; return nil })
		for _, c := range []struct {
			wait time.Duration
			runs int
		}{{0, 0}, {time.Hour - time.Microsecond, 0}, {time.Microsecond, 1}} {
			time.Sleep(c.wait) // virtual time
			runDue(t, w.store, skein.ServerOptions{}, count)
			equal(t, "runs", runs, c.runs)
		}
	})
}

// Each job of a chain starts the next one, in a queue that nobody knew before. The client's
// middleware sees these pushes.
func TestAChainOfThenRunsInOrder(t *testing.T) {
	const steps = 10
	store := memory.New(memory.Options{})
	var pushed, ran []string
	client := skein.NewClient(store, skein.ClientOptions{Middleware: []skein.PushMiddleware{
		func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, p *skein.RawPush) error {
				for _, entry := range p.Entries {
					pushed = append(pushed, p.Queue+" "+entry.ID)
				}
				return next(ctx, p)
			}
		},
	}})

	queues := make([]*skein.Queue[int], steps)
	for n := range queues {
		queues[n] = skein.NewQueue(fmt.Sprint("step-", n), skein.QueueOptions[int]{})
	}

	if err := queues[0].Push(t.Context(), client, "id", 0); err != nil {
		t.Fatal(err)
	}

	var want []string
	for n, queue := range queues {
		want = append(want, queue.Name()+" id")
		known, err := inspect.New(store, inspect.Options{}).Queues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "queues", len(known), n+1)

		runDue(t, store, skein.ServerOptions{}, queue.Handler(func(ctx context.Context, id string, _ []int) error {
			ran = append(ran, queue.Name()+" "+id)
			if n+1 == steps {
				return nil
			}
			return queues[n+1].Then(ctx, client, id, n)
		}))
		equal(t, "runs", ran, want)
	}

	equal(t, "pushes", pushed, want)
}

// A job asks for the ids that it depends on, and waits while one of them is not settled. Ids that
// are done, or that nobody has pushed, hold it up no longer.
func TestAJobWaitsUntilOthersAreSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		inspector := inspect.New(store, inspect.Options{})
		parts := skein.NewQueue("parts", skein.QueueOptions[time.Duration]{})
		orders := skein.NewQueue("orders", skein.QueueOptions[string]{PushRule: skein.Earliest()})
		needs := map[string][]string{"unknown": {"never"}, "done": {"early"}, "waits": {"early", "short", "long"}}

		start := time.Now()
		var mu sync.Mutex
		ended := map[string]time.Duration{}

		pack := parts.Handler(func(_ context.Context, _ string, takes []time.Duration) error {
			time.Sleep(takes[0]) // virtual time
			return nil
		})

		ship := orders.Handler(func(ctx context.Context, id string, _ []string) error {
			for _, part := range needs[id] {
				settled, _, err := inspector.Settled(ctx, "parts", part, time.Time{})
				if err != nil {
					return err
				}
				if !settled {
					return skein.Await(time.Minute)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			ended[id] = time.Since(start)
			return nil
		})

		push(t, store, parts, "early", 0)
		runDue(t, store, skein.ServerOptions{}, pack)
		push(t, store, parts, "short", 10*time.Second)
		push(t, store, parts, "long", 5*time.Minute-time.Second)
		for id := range needs {
			push(t, store, orders, id, "x")
		}

		run(t, skein.NewServer(store, skein.ServerOptions{Logger: quiet}, pack, ship), func() { time.Sleep(time.Hour) })
		equal(t, "orders that ended at once", []time.Duration{ended["unknown"], ended["done"]}, []time.Duration{0, 0})
		equal(t, "the end of the order that waits", ended["waits"], 5*time.Minute)
		equal(t, "orders that ended", len(ended), len(needs))
	})
}

// A job that waits for parts, as docs/guide/dependencies.md shows it, runs to its end once, and not
// before every part is packed, however servers' runs lie between the pushes. Reports that come
// before its own push, or again after its end, change nothing.
func TestAJobRunsOnceAfterItsParts(t *testing.T) {
	const allPushed = ""
	needs := []string{"lamp", "table", "shade"}
	for runs := range 1 << (len(needs) + 1) { // bit n: servers run after the push n
		t.Run(fmt.Sprintf("%04b", runs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				client, inspector := skein.NewClient(store, skein.ClientOptions{}),
					inspect.New(store, inspect.Options{})
				parts := skein.NewQueue("parts", skein.QueueOptions[string]{})
				invoices := skein.NewQueue("invoices", skein.QueueOptions[string]{PushRule: skein.Earliest()})

				var packed []string
				sent := 0

				pack := parts.Handler(func(ctx context.Context, part string, orders []string) error {
					packed = append(packed, part)
					return invoices.Then(ctx, client, orders[0], part)
				})

				invoice := invoices.Handler(func(ctx context.Context, _ string, got []string) error {
					if !slices.Contains(got, allPushed) {
						return nil
					}
					for _, part := range needs {
						if slices.Contains(got, part) {
							continue
						}
						settled, _, err := inspector.Settled(ctx, "parts", part, time.Time{})
						if err != nil {
							return err
						}
						if !settled {
							return skein.Await(time.Minute)
						}
					}
					sent++
					equal(t, "packed parts", len(packed), len(needs))
					return nil
				})

				work := func() {
					for range 3 {
						runDue(t, store, skein.ServerOptions{}, invoice)
						runDue(t, store, skein.ServerOptions{}, pack)
						runDue(t, store, skein.ServerOptions{}, invoice)
					}
				}

				for n, part := range needs {
					push(t, store, parts, part, "order-1")
					if runs&(1<<n) != 0 {
						work()
					}
				}
				push(t, store, invoices, "order-1", allPushed)
				if runs&(1<<len(needs)) != 0 {
					work()
				}

				time.Sleep(time.Minute) // virtual time
				work()
				push(t, store, invoices, "order-1", needs[0]) // a report that is repeated
				work()

				equal(t, "invoices that were sent", sent, 1)
				left := counts(t, store, "invoices")
				equal(t, "jobs left", left.Entries(), 0)
			})
		})
	}
}

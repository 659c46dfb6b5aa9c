package skein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// thenWorld is a store with a queue whose handlers push to another one.
type thenWorld struct {
	t            *testing.T
	store        *memory.Store
	client       *skein.Client
	source, next *skein.Queue[string]
}

func newThenWorld(t *testing.T) *thenWorld {
	store := memory.New(memory.Options{})
	return &thenWorld{
		t:      t,
		store:  store,
		client: skein.NewClient(store, skein.ClientOptions{}),
		source: skein.NewQueue("source", skein.QueueOptions[string]{
			Backoff: func(int) time.Duration { return time.Hour },
		}),
		next: skein.NewQueue("next", skein.QueueOptions[string]{}),
	}
}

// run pushes payloads of one id and handles what is due, once.
func (w *thenWorld) run(h skein.Handler, payloads ...string) {
	w.t.Helper()
	for _, p := range payloads {
		if err := w.source.Push(w.t.Context(), w.client, "id", p); err != nil {
			w.t.Fatal(err)
		}
	}
	runDue(w.t, w.store, skein.ServerOptions{}, h)
}

// pushed checks which payloads of the next queue wait for an id, in order.
func (w *thenWorld) pushed(id string, want ...string) {
	w.t.Helper()
	found, err := inspect.New(w.store, inspect.Options{}).Find(w.t.Context(), "next", id)
	if err != nil && !errors.Is(err, inspect.ErrUnknownQueue) {
		w.t.Fatal(err)
	}
	var got []string
	if found.Queued != nil {
		for _, p := range found.Queued.Payloads {
			got = append(got, strings.Trim(string(p.Data), `"`))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("pushed for %q (-want +got):\n%s", id, diff)
	}
}

func (w *thenWorld) then(ctx context.Context, id, payload string) {
	if err := w.next.Then(ctx, w.client, id, payload); err != nil {
		w.t.Error(err)
	}
}

func TestThenPushesAfterSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		outcome func(job *skein.Job[string]) error
		want    []string
	}{
		"done":             {func(*skein.Job[string]) error { return nil }, []string{"a", "b"}},
		"settled as done":  {func(j *skein.Job[string]) error { j.Settle(nil); return nil }, []string{"a", "b"}},
		"failed":           {func(*skein.Job[string]) error { return errBoom }, nil},
		"panicked":         {func(*skein.Job[string]) error { panic("boom") }, nil},
		"buried":           {func(*skein.Job[string]) error { return skein.Bury(errBoom) }, nil},
		"snoozed":          {func(*skein.Job[string]) error { return skein.Snooze(time.Hour) }, nil},
		"awaiting":         {func(*skein.Job[string]) error { return skein.Await(time.Hour) }, nil},
		"settled as fails": {func(j *skein.Job[string]) error { j.Settle(errBoom); return nil }, nil},
		"failed with a payload done": {func(j *skein.Job[string]) error {
			j.Payloads[0].Done()
			return errBoom
		}, []string{"a", "b"}},
		"failed with a payload buried": {func(j *skein.Job[string]) error {
			j.Payloads[0].Bury(errBoom)
			return errBoom
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newThenWorld(t)
			w.run(w.source.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
				w.then(ctx, job.ID, "a")
				w.then(ctx, job.ID, "b")
				w.pushed(job.ID) // not before the end
				return c.outcome(job)
			}), "x", "y")
			w.pushed("id", c.want...)
		})
	}
}

// Queues are pushed to in the order of their first Then, and a push that fails ends it. So a push
// to the last queue is a sign that the others were stored.
func TestThenPushesQueuesInOrder(t *testing.T) {
	w := newThenWorld(t)
	var pushed []string
	client := skein.NewClient(w.store, skein.ClientOptions{
		Middleware: []skein.PushMiddleware{func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, p *skein.RawPush) error {
				pushed = append(pushed, fmt.Sprint(p.Queue, len(p.Entries)))
				if p.Queue == "c" {
					return errBoom
				}
				return next(ctx, p)
			}
		}},
	})
	w.run(w.source.Handler(func(ctx context.Context, _ string, _ []string) error {
		var failed error
		for _, queue := range []string{"b", "a", "c", "b", "d", "a"} {
			failed = errors.Join(failed,
				skein.NewQueue(queue, skein.QueueOptions[string]{}).Then(ctx, client, "id", queue))
		}
		return failed
	}), "x")
	equal(t, "pushes", pushed, []string{"b2", "a2", "c1"})
}

// Each pushes what a payload asked for when that payload is done, whatever becomes of others.
func TestThenInEach(t *testing.T) {
	w := newThenWorld(t)
	w.run(w.source.Each(func(ctx context.Context, _, payload string) error {
		w.then(ctx, payload, "of "+payload)
		switch payload {
		case "b":
			return skein.Bury(errBoom)
		case "d":
			panic("boom")
		}
		w.pushed(payload)
		return nil
	}), "a", "b", "c", "d", "e")
	for id, want := range map[string][]string{"a": {"of a"}, "b": nil, "c": {"of c"}, "d": nil, "e": nil} {
		w.pushed(id, want...)
	}
}

// One job of a batch pushes for itself, and middleware sees its end first.
func TestThenOfABatchAndMiddleware(t *testing.T) {
	w := newThenWorld(t)
	w.source = skein.NewQueue("source", skein.QueueOptions[string]{BatchSize: 4, Shards: 1})
	for _, id := range []string{"a", "b", "c"} {
		if err := w.source.Push(t.Context(), w.client, id, "p"); err != nil {
			t.Fatal(err)
		}
	}

	refuses := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error {
			err := next(ctx, b)
			if b.Jobs[0].ID == "c" {
				return errBoom
			}
			return err
		}
	}

	handler := w.source.Handler(func(ctx context.Context, id string, _ []string) error {
		w.then(ctx, id, "p")
		if id == "b" {
			return errBoom
		}
		return nil
	})

	runDue(t, w.store, skein.ServerOptions{Middleware: []skein.Middleware{refuses}}, handler)
	w.pushed("a", "p")
	w.pushed("b")
	w.pushed("c")
}

func TestThenRefuses(t *testing.T) {
	w := newThenWorld(t)
	refused := func(what string, err error, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}

	refused("no handler's context", w.next.Then(t.Context(), w.client, "id", "p"), skein.ErrInvalidOptions)
	var kept context.Context
	w.run(w.source.Handler(func(ctx context.Context, _ string, _ []string) error {
		kept = ctx
		refused("a bad id", w.next.Then(ctx, w.client, "", "p"), skein.ErrInvalidID)
		refused("no client", w.next.Then(ctx, nil, "id", "p"), skein.ErrInvalidOptions)
		refused("a bad queue", skein.NewQueue("", skein.QueueOptions[int]{}).Then(ctx, w.client, "id", 1),
			skein.ErrInvalidQueue)
		for n := range skein.MaxThenEntries {
			w.then(ctx, "id", fmt.Sprint(n))
		}
		refused("too many", w.next.Then(ctx, w.client, "id", "p"), skein.ErrInvalidOptions)
		if err := skein.SettleIn(ctx, w.store); err == nil {
			t.Error("SettleIn after Then is accepted")
		}
		return nil
	}), "x")

	refused("after the handler", w.next.Then(kept, w.client, "id", "p"), skein.ErrInvalidOptions)
	w.run(w.source.Handler(func(ctx context.Context, _ string, _ []string) error {
		w.then(ctx, "large", strings.Repeat("x", 500<<10))
		w.then(ctx, "large", strings.Repeat("y", 500<<10))
		refused("too large", w.next.Then(ctx, w.client, "large", strings.Repeat("z", 100<<10)), skein.ErrInvalidOptions)
		return nil
	}), "x")

	w.run(w.source.Handler(func(ctx context.Context, _ string, _ []string) error {
		if err := skein.SettleIn(ctx, w.store); err != nil {
			return err
		}
		refused("Then after SettleIn", w.next.Then(ctx, w.client, "id", "p"), skein.ErrInvalidOptions)
		return nil
	}), "x")

	w.run(w.source.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
		if err := job.Payloads[0].SettleIn(ctx, w.store); err != nil {
			return err
		}
		refused("Then after a payload's SettleIn", w.next.Then(ctx, w.client, "id", "p"), skein.ErrInvalidOptions)
		return nil
	}), "x", "y")

	w.run(w.source.BatchHandler(func(ctx context.Context, _ *skein.Batch[string]) error {
		err := w.next.Then(ctx, w.client, "id", "p")
		refused("a batch", err, skein.ErrInvalidOptions)
		if !strings.Contains(err.Error(), "call PushMany at the handler's end") {
			t.Errorf("the error of a batch does not name the cure: %v", err)
		}
		return nil
	}), "x")
}

// What the documentation of Then advises for a BatchHandler has its guarantee: a job is done only
// if its push was stored, and a job that has failed by itself pushes nothing.
func TestABatchHandlerPushesAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newThenWorld(t)
		w.source = skein.NewQueue("source", skein.QueueOptions[string]{
			BatchSize: 4, Shards: 1, Backoff: func(int) time.Duration { return time.Minute },
		})

		shaky := skein.NewClient(&unsteady{Store: w.store}, skein.ClientOptions{})
		for _, id := range []string{"a", "b", "fails", "c"} {
			push(t, w.store, w.source, id, "p")
		}

		handler := w.source.BatchHandler(func(ctx context.Context, batch *skein.Batch[string]) error {
			var entries []skein.Entry[string]
			for _, job := range batch.Jobs() {
				if job.ID == "fails" && job.Retries == 0 {
					job.Settle(errBoom)
					continue
				}
				entries = append(entries, skein.Entry[string]{ID: job.ID, Payload: "p"})
			}
			return w.next.PushMany(ctx, shaky, entries)
		})

		for _, want := range []struct {
			processed, failed int64
			pushed            string
		}{{0, 4, ""}, {0, 8, "a b c fails"}, {4, 8, "a b c fails"}} {
			runDue(t, w.store, skein.ServerOptions{}, handler)
			got := counts(t, w.store, "source")
			equal(t, "processed, failed", []int64{got.Processed, got.Failed}, []int64{want.processed, want.failed})

			for _, id := range []string{"a", "b", "c", "fails"} {
				if strings.Contains(want.pushed, id) {
					w.pushed(id, "p")
				} else {
					w.pushed(id)
				}
			}
			time.Sleep(time.Minute) // virtual time
		}
	})
}

// If the push fails, the job fails, whatever its handler has returned: it must run again.
func TestThenThatFailsIsAFailure(t *testing.T) {
	for name, result := range map[string]error{
		"done":     nil,
		"buried":   skein.Bury(errBoom),
		"snoozed":  skein.Snooze(time.Minute),
		"awaiting": skein.Await(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			w := newThenWorld(t)
			mismatched := skein.NewQueue("source", skein.QueueOptions[string]{Shards: 3}) // the store refuses it
			w.run(w.source.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
				job.Payloads[0].Done()
				if err := mismatched.Then(ctx, w.client, "id", "p"); err != nil {
					t.Error(err)
				}
				return result
			}), "a", "b")

			found, err := inspect.New(w.store, inspect.Options{}).Find(t.Context(), "source", "id")
			if err != nil {
				t.Fatal(err)
			}
			if q := found.Queued; q == nil || q.PayloadCount != 2 ||
				!strings.Contains(q.LastError, "push after the job") || found.DeadLetter != nil {
				t.Errorf("queued %+v, dead %+v; want both payloads to be retried for the push", q, found.DeadLetter)
			}
		})
	}
}

// A goroutine that outlives its handler can't push for the job any more, not even while what the
// handler asked for is pushed.
func TestThenRefusesWhatComesLate(t *testing.T) {
	w := newThenWorld(t)
	var late context.Context
	client := skein.NewClient(w.store, skein.ClientOptions{
		Middleware: []skein.PushMiddleware{func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, push *skein.RawPush) error {
				if err := w.next.Then(late, w.client, "late", "p"); !errors.Is(err, skein.ErrInvalidOptions) {
					t.Errorf("pushed after the handler's return: %v", err)
				}
				return next(ctx, push)
			}
		}},
	})
	w.run(w.source.Handler(func(ctx context.Context, _ string, _ []string) error {
		late = ctx
		return w.next.Then(ctx, client, "in time", "p")
	}), "x")
	w.pushed("in time", "p")
	w.pushed("late")
}

// The context of a job that has ended can't push for the job that runs now.
func TestThenRefusesTheContextOfAnotherJob(t *testing.T) {
	w := newThenWorld(t)
	w.source = skein.NewQueue("source", skein.QueueOptions[string]{BatchSize: 2, Shards: 1})
	for _, id := range []string{"a", "b"} {
		if err := w.source.Push(t.Context(), w.client, id, "p"); err != nil {
			t.Fatal(err)
		}
	}
	var first context.Context
	runDue(t, w.store, skein.ServerOptions{}, w.source.Handler(func(ctx context.Context, id string, _ []string) error {
		if first == nil {
			first = ctx
			return nil
		}
		if err := w.next.Then(first, w.client, id, "p"); !errors.Is(err, skein.ErrInvalidOptions) {
			t.Errorf("%q pushed by the context of another job: %v", id, err)
		}
		return nil
	}))
	w.pushed("b")
}

// unsteady is a store whose pushes to the queue next fail two times of three, before they have
// taken effect or after.
type unsteady struct {
	skein.Store
	calls int
}

var errUnsteady = errors.New("connection lost")

func (f *unsteady) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	f.calls++
	switch f.calls % 3 {
	case 1:
		return ports.PushReply{}, errUnsteady
	case 2:
		if _, err := f.Store.Push(ctx, r); err != nil {
			return ports.PushReply{}, err
		}
		return ports.PushReply{}, errUnsteady
	}
	return f.Store.Push(ctx, r)
}

// If a source is done, its target was pushed, whatever the pushes ran into; and a payload that was
// marked as done runs again if its push has failed.
func TestThenLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newThenWorld(t)
		w.source = skein.NewQueue("source", skein.QueueOptions[string]{
			Backoff: func(int) time.Duration { return time.Second },
		})
		shaky := skein.NewClient(&unsteady{Store: w.store}, skein.ClientOptions{})

		const ids = 100
		for n := range ids {
			if err := w.source.Push(t.Context(), w.client, fmt.Sprint("id-", n), "p"); err != nil {
				t.Fatal(err)
			}
		}

		handler := w.source.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
			if job.Retries == 0 {
				job.Payloads[0].Done()
			}
			return w.next.Then(ctx, shaky, job.ID, "after "+job.ID)
		})

		stop := serveLogged(t, w.store, skein.ServerOptions{Lanes: 1}, newRecorder(0), handler)
		time.Sleep(time.Minute)
		stop()

		stats, err := inspect.New(w.store, inspect.Options{}).Stats(t.Context(), "source")
		if err != nil {
			t.Fatal(err)
		}
		if stats[0].Processed != ids || stats[0].Failed == 0 {
			t.Errorf("%d processed and %d failures; want %d and some", stats[0].Processed, stats[0].Failed, ids)
		}

		for n := range ids {
			w.pushed(fmt.Sprint("id-", n), fmt.Sprint("after id-", n))
		}
	})
}

func ExampleQueue_Then() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	invoices := skein.NewQueue("invoices", skein.QueueOptions[int]{})

	pack := orders.Each(func(ctx context.Context, id, event string) error {
		fmt.Println("packed", id)
		return invoices.Then(ctx, client, id, 1)
	})
	invoice := invoices.Each(func(_ context.Context, id string, _ int) error {
		fmt.Println("invoiced", id)
		return nil
	})
	if err := orders.Push(ctx, client, "order-42", "paid"); err != nil {
		panic(err)
	}
	for range 2 {
		if _, err := skein.NewServer(store, skein.ServerOptions{}, pack, invoice).RunDue(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// packed order-42
	// invoiced order-42
}

// A store that hangs keeps no lane for longer than the queue's Timeout: the push after a job has a
// Timeout of its own.
func TestThenHasTheTimeoutOfItsQueue(t *testing.T) {
	for name, handler := range map[string]func(*skein.Queue[string], func(context.Context, string)) skein.Handler{
		"Handler": func(q *skein.Queue[string], then func(context.Context, string)) skein.Handler {
			return q.Handler(func(ctx context.Context, id string, _ []string) error { then(ctx, id); return nil })
		},
		"Each": func(q *skein.Queue[string], then func(context.Context, string)) skein.Handler {
			return q.Each(func(ctx context.Context, id, _ string) error { then(ctx, id); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				hung := skein.NewClient(storekit.Intercept(store,
					func(ctx context.Context, _ storekit.Call, _ func(context.Context) error) error {
						<-ctx.Done()
						return context.Cause(ctx)
					}), skein.ClientOptions{})

				source := skein.NewQueue("source", skein.QueueOptions[string]{Timeout: time.Second})
				next := skein.NewQueue("next", skein.QueueOptions[string]{})
				push(t, store, source, "id", "x")

				began := time.Now()
				runDue(t, store, skein.ServerOptions{}, handler(source, func(ctx context.Context, id string) {
					if err := next.Then(ctx, hung, id, "y"); err != nil {
						t.Error(err)
					}
				}))

				equal(t, "how long the lane was kept", time.Since(began), time.Second)
				found, err := inspect.New(store, inspect.Options{}).Find(t.Context(), "source", "id")
				if err != nil || found.Queued == nil {
					t.Fatalf("the job is not queued: %+v, %v", found, err)
				}
				if text := found.Queued.LastError; !strings.Contains(text, skein.ErrTimeout.Error()) {
					t.Errorf("the job failed with %q, want %v", text, skein.ErrTimeout)
				}
			})
		})
	}
}

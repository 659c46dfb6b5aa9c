package skein_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// A parent awaits its children's pushes. It runs at each, also after a failure of its own, and also
// if the push came while it ran. It does not wait for its delay once.
func TestAwaitRunsAtTheNextPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const children = 20
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		parents := skein.NewQueue("parents", skein.QueueOptions[int]{PushRule: skein.Earliest()})

		push := func(child int) {
			if err := parents.Push(t.Context(), client, "p", child); err != nil {
				t.Error(err)
			}
		}

		var runs, failures int
		var done atomic.Bool
		handler := parents.Handler(func(_ context.Context, _ string, reports []int) error {
			runs++
			switch {
			case runs == 3:
				failures++
				return skein.RetryIn(time.Second, errBoom)
			case runs == 6:
				push(children) // while it runs
			}
			if len(reports) <= children {
				return skein.Await(24 * time.Hour)
			}
			done.Store(true)
			return nil
		})

		log := newRecorder(slog.LevelInfo)
		stop := serveLogged(t, store, skein.ServerOptions{}, log, handler)
		start := time.Now()
		for child := range children {
			push(child)
			time.Sleep(3 * time.Second)
		}
		stop()

		if !done.Load() || failures != 1 || time.Since(start) > time.Hour {
			t.Errorf("done %v after %v, %d runs, %d failures", done.Load(), time.Since(start), runs, failures)
		}
		if runs < children || runs > children+2 {
			t.Errorf("%d runs for %d pushes", runs, children+1)
		}
		if warned := log.of(
			slog.LevelWarn,
			"a handler awaits a push, but the queue's pushes don't run waiting jobs; set PushRule to skein.Earliest()",
		); len(warned) > 0 {
			t.Errorf("a queue with Earliest was warned: %v", warned)
		}
	})
}

// Without Earliest a push waits for the delay, and the log warns once.
func TestAwaitWarnsWithoutEarliest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("q", skein.QueueOptions[string]{})

		runs := 0
		handler := queue.Each(func(_ context.Context, _, _ string) error {
			runs++
			return fmt.Errorf("not yet: %w", skein.Await(10*time.Second))
		})

		log := newRecorder(slog.LevelInfo)
		pushMany(t, store, queue, 1)
		stop := serveLogged(t, store, skein.ServerOptions{}, log, handler)
		time.Sleep(35 * time.Second)
		stop()

		warned := log.of(slog.LevelWarn,
			"a handler awaits a push, but the queue's pushes don't run waiting jobs; set PushRule to skein.Earliest()")
		if runs != 4 || len(warned) != 1 {
			t.Errorf("%d runs and %d warnings, want 4 and 1", runs, len(warned))
		}
	})
}

// An order is shipped when all its parts have reported. Each report runs the order's job, which
// waits again if a part is missing.
func ExampleAwait() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	parts := skein.NewQueue("parts", skein.QueueOptions[string]{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{PushRule: skein.Earliest()})

	pack := parts.Handler(func(ctx context.Context, id string, _ []string) error {
		return orders.Then(ctx, client, "order-42", id)
	})
	ship := orders.Handler(func(_ context.Context, id string, packed []string) error {
		for _, part := range []string{"lamp", "table"} {
			if !slices.Contains(packed, part) {
				fmt.Println(id, "waits for the", part)
				return skein.Await(time.Minute)
			}
		}
		fmt.Println("shipped", id)
		return nil
	})

	for _, part := range []string{"table", "lamp"} {
		if err := parts.Push(ctx, client, part, "oak"); err != nil {
			panic(err)
		}
		for _, handler := range []skein.Handler{pack, ship} {
			if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
				panic(err)
			}
		}
	}
	// Output:
	// order-42 waits for the lamp
	// shipped order-42
}

// An urgent push ends the wait under any push rule.
func TestAnUrgentPushEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{})
		push(t, store, q, "a", "x")
		runDue(t, store, skein.ServerOptions{},
			q.Handler(func(context.Context, string, []string) error { return skein.Await(time.Hour) }))
		push(t, store, q, "a", "y")
		equal(t, "after another push", stateOf(t, store, "q", "a"), `queued ["x" "y"], retry -1, in 1h0m0s, error ""`)
		push(t, store, q, "a", "z", skein.Urgent(time.Minute))
		equal(t, "after an urgent push",
			stateOf(t, store, "q", "a"), `queued ["x" "y" "z"], retry -1, in -1m0s, error ""`)
	})
}

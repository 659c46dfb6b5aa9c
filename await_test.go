package skein_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
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
		if warned := log.of(slog.LevelWarn, "a handler awaits a push, but the queue's pushes don't run waiting jobs; set PushRule to skein.Earliest()"); len(warned) > 0 {
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
		warned := log.of(slog.LevelWarn, "a handler awaits a push, but the queue's pushes don't run waiting jobs; set PushRule to skein.Earliest()")
		if runs != 4 || len(warned) != 1 {
			t.Errorf("%d runs and %d warnings, want 4 and 1", runs, len(warned))
		}
	})
}

func ExampleAwait() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	client, inspector := skein.NewClient(store, skein.ClientOptions{}), inspect.New(store, inspect.Options{})
	parts := skein.NewQueue("parts", skein.QueueOptions[string]{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{PushRule: skein.Earliest()})

	pack := parts.Handler(func(ctx context.Context, id string, _ []string) error {
		fmt.Println("packed", id)
		return orders.Push(ctx, client, "order-42", id)
	})
	ship := orders.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
		for _, part := range []string{"lamp", "table"} {
			settled, dead, err := inspector.Settled(ctx, "parts", part, time.Time{})
			switch {
			case err != nil:
				return err
			case dead:
				return skein.Bury(fmt.Errorf("part %s is in the morgue", part))
			case !settled:
				fmt.Println(job.ID, "waits for", part)
				return skein.Await(time.Minute)
			}
		}
		fmt.Println("shipped", job.ID)
		return nil
	})

	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	run := func(handler skein.Handler) {
		_, err := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler).RunDue(ctx)
		must(err)
	}
	must(parts.Push(ctx, client, "table", "oak"))
	must(orders.Push(ctx, client, "order-42", "placed"))
	run(ship)
	run(pack)
	run(ship)
	// Output:
	// order-42 waits for table
	// packed table
	// shipped order-42
}

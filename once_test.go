package skein_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/virtual"
)

// onceWorld is a queue of texts, whose clock the test moves.
type onceWorld struct {
	t      *testing.T
	clock  *virtual.Clock
	store  *memory.Store
	client *skein.Client
	queue  *skein.Queue[string]
}

func newOnceWorld(t *testing.T, merge skein.MergeRule) *onceWorld {
	clock := virtual.NewClock(time.Unix(1_800_000_000, 0))
	store := memory.New(memory.Options{Clock: clock.Now})
	return &onceWorld{
		t: t, clock: clock, store: store,
		client: skein.NewClient(store, skein.ClientOptions{}),
		queue:  skein.NewQueue("texts", skein.QueueOptions[string]{Shards: 2, Merge: merge}),
	}
}

// push pushes to the id a and returns what that met.
func (w *onceWorld) push(payload string, options ...skein.PushOption) (met skein.Met) {
	w.t.Helper()
	check(w.t, w.queue.Push(context.Background(), w.client, "a", payload, append(options, skein.Tell(&met))...))
	return met
}

func TestOnceInDropsRepeats(t *testing.T) {
	for name, merge := range map[string]skein.MergeRule{
		"union": skein.Union(), "latest": skein.Latest(1), "every": skein.Every(), "every.last": skein.Every().Last(2),
	} {
		t.Run(name, func(t *testing.T) {
			w := newOnceWorld(t, merge)
			once := skein.OnceIn(time.Hour)
			equal(t, "the first push", w.push("x", once), skein.Met{New: 1})
			equal(t, "a repeat", w.push("x", once, skein.Score(1), skein.Tags("tag")), skein.Met{Repeated: 1})
			server := skein.NewServer(w.store, skein.ServerOptions{}, w.queue.Each(
				func(context.Context, string, string) error { return nil }))
			if _, err := server.RunDue(context.Background()); err != nil {
				t.Fatal(err)
			}

			w.clock.Advance(time.Hour - time.Microsecond)
			equal(t, "a repeat of what is done", w.push("x", once), skein.Met{Repeated: 1})
			equal(t, "another payload", w.push("y", once), skein.Met{New: 1})
			w.clock.Advance(time.Microsecond)
			if met := w.push("x", once); met.New+met.Merged != 1 {
				t.Errorf("a push after the time met %+v", met)
			}
			queues, err := inspect.New(w.store, inspect.Options{}).Stats(context.Background(), "texts")
			if err != nil || queues[0].Repeated != 2 {
				t.Errorf("%d repeats are counted, %v", queues[0].Repeated, err)
			}
		})
	}
}

func TestOnceInOfManyEntries(t *testing.T) {
	w := newOnceWorld(t, skein.Union())
	entry := func(id string, options ...skein.PushOption) skein.Entry[string] {
		return skein.Entry[string]{ID: id, Payload: "x", Options: options}
	}
	var met skein.Met
	err := w.queue.PushMany(context.Background(), w.client, []skein.Entry[string]{
		entry("a", skein.OnceIn(time.Hour)), entry("b"),
		entry("a", skein.OnceIn(time.Second)), entry("c", skein.OnceIn(time.Hour)),
	}, skein.Tell(&met))
	check(t, err)
	equal(t, "what the entries met", met, skein.Met{New: 3, Repeated: 1})
}

func TestOnceInIsRefused(t *testing.T) {
	w := newOnceWorld(t, skein.Union())
	for _, d := range []time.Duration{-time.Second, 0, time.Second - 1, 3650*24*time.Hour + 1} {
		err := w.queue.Push(context.Background(), w.client, "a", "x", skein.OnceIn(d))
		if !errors.Is(err, skein.ErrInvalidTime) {
			t.Errorf("OnceIn(%v): %v", d, err)
		}
	}
	err := w.queue.Schedule(context.Background(), w.client, "hourly", skein.Interval(time.Hour), "a", "x",
		skein.OnceIn(time.Hour))
	if !errors.Is(err, skein.ErrInvalidOptions) {
		t.Errorf("a schedule with OnceIn: %v", err)
	}
	equal(t, "a push after that", w.push("x", skein.OnceIn(time.Hour)), skein.Met{New: 1})
}

// A handler that runs again pushes again by Then, and what it has pushed does not run twice.
func TestOnceInOfThen(t *testing.T) {
	w := newOnceWorld(t, skein.Union())
	letters := skein.NewQueue("letters", skein.QueueOptions[string]{Shards: 1})
	sent := 0
	server := skein.NewServer(w.store, skein.ServerOptions{},
		w.queue.Each(func(ctx context.Context, id, text string) error {
			return letters.Then(ctx, w.client, id, text, skein.OnceIn(time.Hour))
		}),
		letters.Each(func(context.Context, string, string) error { sent++; return nil }))
	for range 3 {
		w.push("welcome")
		for range 2 {
			if _, err := server.RunDue(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.Advance(time.Minute)
	}
	equal(t, "letters sent", sent, 1)
}

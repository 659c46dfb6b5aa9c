package skein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// A full stream of urgent jobs keeps no other job waiting for more than d beyond its turn: the
// start that it would have in the order of the pushes. The server works at its limit all the time,
// and the urgent pushes alone are as many as it can handle.
func TestUrgentJobsStarveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			d      = 3 * time.Second
			took   = 10 * time.Millisecond
			pushes = 3_000
			every  = 10 // of how many urgent pushes one is followed by another job
		)

		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{Shards: 3})
		begin := time.Now()
		var ran atomic.Int64
		var latest, urgentLatest time.Duration

		handler := q.Handler(func(_ context.Context, id string, turns []int) error {
			late := time.Since(begin) - time.Duration(turns[0])*took
			if id[0] == 'u' {
				urgentLatest = max(urgentLatest, late)
			} else {
				latest = max(latest, late)
			}
			time.Sleep(took)
			ran.Add(1)
			return nil
		})

		server := skein.NewServer(store,
			skein.ServerOptions{Logger: quiet, Lanes: 1, PollInterval: 100 * time.Millisecond}, handler)
		run(t, server, func() {
			n := 0
			for i := range pushes {
				push(t, store, q, fmt.Sprint("u", i), n, skein.Urgent(d))
				n++
				if i%every == 0 {
					push(t, store, q, fmt.Sprint("other", i), n)
					n++
				}
				time.Sleep(took)
			}
			for int(ran.Load()) < n {
				time.Sleep(time.Second)
			}
		})

		if latest > d+time.Second {
			t.Errorf("a job started %v after its turn, want at most %v", latest, d+time.Second)
		}
		if latest < d/2 || urgentLatest > time.Second {
			t.Errorf("others started up to %v and urgent jobs up to %v after their turn; want urgent jobs first",
				latest, urgentLatest)
		}
	})
}

func TestAnUrgentPushMakesWaitingJobsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, o := range map[string]skein.QueueOptions[string]{
			"keep":     {},
			"earliest": {PushRule: skein.Earliest()},
			"debounce": {PushRule: skein.Debounce(5*time.Second, time.Minute)},
			"latest":   {Merge: skein.Latest(2)},
		} {
			store := memory.New(memory.Options{})
			q := skein.NewQueue(name, o)
			push(t, store, q, "a", "later", skein.At(time.Now().Add(time.Hour)))
			push(t, store, q, "a", "now", skein.Urgent(time.Minute))
			equal(t, name, stateOf(t, store, name, "a"), `queued ["later" "now"], retry -1, in -1m0s, error ""`)
			push(t, store, q, "new", "x", skein.Urgent(time.Second))
			equal(t, name, stateOf(t, store, name, "new"), `queued ["x"], retry -1, in -1s, error ""`)
		}
	})
}

func TestAnUrgentPushKeepsABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Backoff: func(int) time.Duration { return time.Hour }})
		push(t, store, q, "a", "x")
		runDue(t, store, skein.ServerOptions{},
			q.Handler(func(context.Context, string, []string) error { return errBoom }))
		push(t, store, q, "a", "y", skein.Urgent(time.Minute))
		equal(t, "state", stateOf(t, store, "q", "a"), `queued ["x" "y"], retry 0, in 1h0m0s, error "boom"`)
	})
}

// In PushMany each entry has its own urgency, and so has each push of Then.
func TestUrgencyBelongsToTheEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newThenWorld(t)
		later := []skein.PushOption{skein.In(time.Hour)}
		err := w.next.PushMany(t.Context(), w.client, []skein.Entry[string]{
			{ID: "a", Payload: "p", Options: later}, {ID: "b", Payload: "p", Options: later},
			{ID: "b", Payload: "q", Options: []skein.PushOption{skein.Urgent(time.Minute)}}, {ID: "a", Payload: "q"},
		})
		equal(t, "PushMany", err, nil)
		w.run(w.source.Handler(func(ctx context.Context, id string, _ []string) error {
			return errors.Join(w.next.Then(ctx, w.client, "c", "p"),
				w.next.Then(ctx, w.client, "d", "p", skein.Urgent(time.Minute)))
		}), "x")
		for id, want := range map[string]string{
			"a": `queued ["p" "q"], retry -1, in 1h0m0s, error ""`,
			"b": `queued ["p" "q"], retry -1, in -1m0s, error ""`,
			"c": `queued ["p"], retry -1, in 0s, error ""`,
			"d": `queued ["p"], retry -1, in -1m0s, error ""`,
		} {
			equal(t, id, stateOf(t, w.store, "next", id), want)
		}
	})
}

func TestUrgentIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		options []skein.PushOption
		want    error
		text    string
	}{
		"0": {
			[]skein.PushOption{skein.Urgent(0)}, skein.ErrInvalidTime, "an urgency of 0s; give 1ms to 24h0m0s",
		},
		"below 0":   {[]skein.PushOption{skein.Urgent(-time.Hour)}, skein.ErrInvalidTime, "an urgency of -1h0m0s"},
		"too small": {[]skein.PushOption{skein.Urgent(time.Millisecond - 1)}, skein.ErrInvalidTime, "999.999µs"},
		"too large": {[]skein.PushOption{skein.Urgent(24*time.Hour + 1)}, skein.ErrInvalidTime, "24h0m0.000000001s"},
		"with In": {
			[]skein.PushOption{skein.Urgent(time.Hour), skein.In(time.Hour)},
			skein.ErrInvalidOptions,
			"Urgent together with At or In",
		},
		"with At": {
			[]skein.PushOption{skein.At(time.Now()), skein.Urgent(time.Hour)},
			skein.ErrInvalidOptions,
			"Urgent together with At or In",
		},
		"with no At": {[]skein.PushOption{skein.At(time.Time{}), skein.Urgent(time.Hour)}, nil, ""},
		"the least":  {[]skein.PushOption{skein.Urgent(time.Millisecond)}, nil, ""},
		"the most":   {[]skein.PushOption{skein.Urgent(24 * time.Hour)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", skein.QueueOptions[string]{})
			err := q.PushMany(t.Context(), skein.NewClient(store, skein.ClientOptions{}), []skein.Entry[string]{
				{ID: "a", Payload: "x"}, {ID: "b", Payload: "x", Options: c.options},
			})
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("PushMany = %v; want %v with %q", err, c.want, c.text)
			}
			if queues, _ := store.Queues(t.Context()); c.want != nil && len(queues) > 0 {
				t.Error("something was stored")
			}
		})
	}
}

// Statistics and observers count the wait of an urgent job from its push.
func TestUrgencyIsNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1})
		push(t, store, q, "a", "x", skein.Urgent(10*time.Minute))
		time.Sleep(2 * time.Second)
		inspector := inspect.New(store, inspect.Options{})
		stats, err := inspector.Stats(t.Context(), "q")
		if err != nil || stats[0].Lag != 2*time.Second {
			t.Errorf("Stats = %+v, %v; want a lag of 2s", stats, err)
		}
		observer := &waits{}
		runDue(t, store, skein.ServerOptions{Observer: observer}, nop(q))
		equal(t, "waits", observer.all, []time.Duration{2 * time.Second})
		history, err := inspector.History(t.Context(), "q", inspect.HistoryOptions{})
		if err != nil || len(history) != 1 || history[0].WaitMean != 2*time.Second {
			t.Errorf("History = %+v, %v; want a mean wait of 2s", history, err)
		}
	})
}

// waits notes how long each job waited.
type waits struct {
	ports.NopObserver
	all []time.Duration
}

func (w *waits) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	for i := range e.Claims {
		w.all = append(w.all, e.Wait(i))
	}
	return ctx
}

package skein_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// quiet drops a server's log.
var quiet = slog.New(slog.DiscardHandler)

// run runs a server in a bubble until f returns, and fails the test if it does
// not drain cleanly.
func run(t *testing.T, s *skein.Server, f func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	f()
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(24 * time.Hour): // a running server keeps its bubble's time moving
		panic(t.Name() + ": Run has not returned a day after the stop")
	}
}

// runDue works all that is due on the store.
func runDue(t *testing.T, store ports.ShardStore, o skein.ServerOptions, handlers ...skein.Handler) {
	t.Helper()
	o.Logger = quiet
	if _, err := skein.NewServer(store, o, handlers...).RunDue(t.Context()); err != nil {
		t.Fatalf("RunDue: %v", err)
	}
}

func push[T any](t *testing.T, store ports.ShardStore, q *skein.Queue[T], id string, payload T, o ...skein.PushOption) {
	t.Helper()
	if err := q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), id, payload, o...); err != nil {
		t.Fatalf("Push(%q): %v", id, err)
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestPayloadsOfAnIDAreMergedAndHandledInOrderOfScore(t *testing.T) {
	store := memory.New(memory.Options{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	push(t, store, queue, "order-1", "paid", skein.Score(2))
	push(t, store, queue, "order-1", "created", skein.Score(1))
	push(t, store, queue, "order-1", "shipped", skein.Score(3))
	push(t, store, queue, "order-1", "created", skein.Score(9))
	var calls [][]string
	runDue(t, store, skein.ServerOptions{}, queue.Handler(func(_ context.Context, id string, payloads []string) error {
		calls = append(calls, append([]string{id}, payloads...))
		return nil
	}))
	equal(t, "calls", calls, [][]string{{"order-1", "created", "paid", "shipped"}})
}

func TestAFailedJobIsRetriedUntilTheMorgue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{
			MaxRetries: 2,
			Backoff:    func(retry int) time.Duration { return time.Duration(retry+1) * time.Hour },
		})
		push(t, store, queue, "order-1", "a")

		var at []time.Duration
		h := queue.Handler(func(context.Context, string, []string) error {
			at = append(at, time.Since(start))
			return errors.New("boom")
		})

		run(t, skein.NewServer(store, skein.ServerOptions{Logger: quiet}, h), func() {
			time.Sleep(24 * time.Hour)
		})

		equal(t, "executions", at, []time.Duration{0, time.Hour, 3 * time.Hour})
		found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "order-1", Payloads: 1000})
		if err != nil || found.DeadLetter == nil || found.DeadLetter.Failures.Newest().Text != "boom" {
			t.Errorf("Find = %+v, %v; want it in the morgue with its error", found, err)
		}
	})
}

// TestEachServerOptionCounts has a case for each option, that fails if the option
// is ignored.
func TestEachServerOptionCounts(t *testing.T) {
	var queue = skein.NewQueue("q", skein.QueueOptions[string]{Shards: 4})
	cases := []struct {
		option string
		check  func(t *testing.T, store *memory.Store)
	}{
		{"Lanes", func(t *testing.T, store *memory.Store) {
			var most, now int
			var mu sync.Mutex

			h := queue.Handler(func(context.Context, string, []string) error {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return nil
			})

			for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				push(t, store, queue, id, "x")
			}

			run(t, skein.NewServer(store, skein.ServerOptions{Lanes: 2, Logger: quiet}, h),
				func() { time.Sleep(time.Minute) })
			equal(t, "batches at once", most, 2)
		}},
		{"PollInterval", func(t *testing.T, store *memory.Store) {
			start := time.Now()
			var took time.Duration
			h := queue.Handler(func(context.Context, string, []string) error {
				took = time.Since(start)
				return nil
			})
			deaf := struct{ ports.ShardStore }{store} // without wake-ups
			run(t, skein.NewServer(deaf, skein.ServerOptions{
				PollInterval: 7 * time.Second,
				LeaseTTL:     time.Minute,
				Logger:       quiet,
			}, h), func() {
				time.Sleep(time.Millisecond)
				push(t, store, queue, "a", "x")
				time.Sleep(time.Minute)
			})
			equal(t, "seen after", took, 7*time.Second)
		}},
		{"TTL", func(t *testing.T, store *memory.Store) {
			run(t, skein.NewServer(store, skein.ServerOptions{LeaseTTL: 3 * time.Second, Logger: quiet}, nop(queue)),
				func() {
					synctest.Wait()
					stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"q"}})
					if err != nil {
						t.Fatal(err)
					}
					equal(t, "lease", stats[0].Shards[0].ExpiresAt.Sub(stats[0].Now), 3*time.Second)
				})
		}},
		{"Prefetch", func(t *testing.T, store *memory.Store) {
			equal(t, "most claimed without prefetch", mostClaimed(t, store, queue, skein.NoPrefetch), 1)
			equal(t, "most claimed with a prefetch of 3", mostClaimed(t, store, queue, 3), 4)
		}},
		{"RecoverOrphans", func(t *testing.T, store *memory.Store) {
			dead := skein.NewQueue("dead", skein.QueueOptions[string]{Shards: 1})
			push(t, store, dead, "a", "x")
			shard := core.Shard{Queue: "dead"}
			lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
				Shard:      shard,
				Shards:     1,
				Generation: 1,
				Owner:      "dead",
				Attempt:    1,
				TTL:        time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}

			if _, err := store.Turn(t.Context(), ports.TurnRequest{
				Lease:  ports.Lease{Shard: shard, Owner: "dead", Token: lease.Token},
				Number: 1,
				TTL:    time.Second,
				Want:   1,
			}); err != nil {
				t.Fatal(err)
			}

			for recovers, claimed := range []int64{1, 0} {
				o := skein.ServerOptions{RecoverOrphans: recovers == 1, Logger: quiet}
				run(t, skein.NewServer(store, o, nop(queue)), func() { time.Sleep(time.Minute) })
				stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"dead"}})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "claimed jobs", stats[0].Claimed, claimed)
			}
		}},
		{"ShutdownTimeout", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x")
			var took time.Duration
			var cause error

			h := queue.Handler(func(ctx context.Context, _ string, _ []string) error {
				time.Sleep(time.Second)
				stopped := time.Now()
				<-ctx.Done()
				took, cause = time.Since(stopped), context.Cause(ctx)
				return ctx.Err()
			})

			s := skein.NewServer(store, skein.ServerOptions{ShutdownTimeout: 9 * time.Second, Logger: quiet}, h)
			run(t, s, func() { time.Sleep(time.Second); synctest.Wait() })
			equal(t, "patience", took, 9*time.Second)
			if !errors.Is(cause, skein.ErrShutdown) {
				t.Errorf("cause = %v, want ErrShutdown", cause)
			}

			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
			if err != nil || found.Queued == nil || found.Queued.RetryCount != core.FreshRetryCount {
				t.Errorf("Find = %+v, %v; want it back untouched", found, err)
			}
		}},
		{"Splitter", func(t *testing.T, store *memory.Store) {
			for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				push(t, store, queue, id, "x")
			}
			o := skein.ServerOptions{Splitter: skein.NodeSplitter{Nodes: 2, Node: 1}}
			runDue(t, store, o, queue.Handler(func(_ context.Context, id string, _ []string) error {
				if shard := core.ShardOf(id, 4); shard%2 != 1 {
					t.Errorf("%q of shard %d ran on node 1 of 2", id, shard)
				}
				return nil
			}))
			if _, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"q"}}); err != nil {
				t.Fatal(err)
			}
		}},
		{"Scheduler", func(t *testing.T, store *memory.Store) {
			low := skein.NewQueue("low", skein.QueueOptions[string]{Shards: 1})
			high := skein.NewQueue("high", skein.QueueOptions[string]{Shards: 1})
			var order []string

			note := func(_ context.Context, id string, _ []string) error {
				order = append(order, id)
				time.Sleep(time.Second)
				return nil
			}

			o := skein.ServerOptions{Lanes: 1, Scheduler: skein.StrictBy("high", "low"), Logger: quiet}
			run(t, skein.NewServer(store, o, low.Handler(note), high.Handler(note)), func() {
				synctest.Wait() // both shards are this server's now
				for _, id := range []string{"low 1", "low 2"} {
					push(t, store, low, id, "x")
				}
				time.Sleep(time.Millisecond)
				for _, id := range []string{"high 1", "high 2"} {
					push(t, store, high, id, "x")
				}
				time.Sleep(time.Minute)
			})

			equal(t, "order", order, []string{"low 1", "high 1", "high 2", "low 2"})
		}},
		{"Middleware", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x", skein.Score(1))
			var notes []string

			note := func(name string) skein.Middleware {
				return func(next skein.RunFunc) skein.RunFunc {
					return func(ctx context.Context, b *skein.RawBatch) error {
						notes = append(notes, name, b.Queue, b.Jobs[0].ID, string(b.Jobs[0].Payloads[0].Data))
						return next(context.WithValue(ctx, noteKey{}, name), b)
					}
				}
			}

			h := queue.Handler(func(ctx context.Context, _ string, _ []string) error {
				notes = append(notes, "handler in "+ctx.Value(noteKey{}).(string))
				return nil
			})

			runDue(t, store, skein.ServerOptions{Middleware: []skein.Middleware{note("outer"), note("inner")}}, h)
			equal(t, "notes", notes, []string{
				"outer", "q", "a", `"x"`, "inner", "q", "a", `"x"`, "handler in inner",
			})
		}},
		{"OnStart", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x")
			refuse := errors.New("not today")
			h := queue.Handler(func(context.Context, string, []string) error {
				t.Error("a job ran although OnStart refused")
				return nil
			})
			o := skein.ServerOptions{Logger: quiet, OnStart: func(context.Context) error { return refuse }}
			if err := skein.NewServer(store, o, h).Run(t.Context()); !errors.Is(err, refuse) {
				t.Errorf("Run = %v, want what OnStart returned", err)
			}
		}},
		{"OnBuried", func(t *testing.T, store *memory.Store) {
			once := skein.NewQueue("once", skein.QueueOptions[string]{MaxRetries: skein.NoRetries})
			push(t, store, once, "a", "x", skein.Score(1))
			push(t, store, once, "done", "x")

			var got []skein.Buried
			o := skein.ServerOptions{OnBuried: func(_ context.Context, b skein.Buried) error {
				got = append(got, b)
				panic("this stops nothing")
			}}

			runDue(t, store, o, once.Handler(func(_ context.Context, id string, _ []string) error {
				switch id {
				case "done":
					return nil
				}
				return errors.New("boom")
			}))

			equal(t, "buried", got, []skein.Buried{{
				Queue:    "once",
				ID:       "a",
				Payloads: []core.Payload{{Data: []byte(`"x"`), Score: 1}},
				Reason:   skein.BuriedExhausted,
				Error:    "boom",
				Group:    "boom",
			}})
		}},
		{"OnFatal", func(t *testing.T, store *memory.Store) {
			push(t, store, skein.NewQueue("q", skein.QueueOptions[string]{Shards: 3}), "a", "x")
			var last error
			o := skein.ServerOptions{Logger: quiet, OnFatal: func(err error) { last = err }}
			err := skein.NewServer(store, o, nop(queue)).Run(t.Context())
			if !errors.Is(err, skein.ErrShardCountMismatch) || last != err ||
				!strings.Contains(err.Error(), "docs/guide/resharding.md") {
				t.Errorf("Run = %v, last words %v; want ErrShardCountMismatch in both", err, last)
			}
		}},
		{"Jitter", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x")
			start := time.Now()
			runDue(t, store, skein.ServerOptions{Jitter: func() int { return 7 }}, failing(queue, errors.New("boom")))
			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
			if err != nil || found.Queued == nil {
				t.Fatalf("Find = %+v, %v; want it queued", found, err)
			}
			equal(t, "wait", found.Queued.PerformAt.Sub(core.InstantOf(start)), 22*time.Second)
		}},
		{"FormatError", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x")
			o := skein.ServerOptions{FormatError: func(err error) string { return "<" + err.Error() + ">" }}
			runDue(t, store, o, failing(queue, errors.New("boom")))
			equal(t, "stored error", lastError(t, store, "a"), "<boom>")
		}},
		{"ErrorCodec", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x")
			var last string
			o := skein.ServerOptions{ErrorCodec: skein.ErrorCodec{
				Encode: func(s string) string { return strings.ToUpper(s) },
				Decode: func(s string) string { return strings.ToLower(s) },
			}}

			h := queue.JobHandler(func(_ context.Context, j *skein.Job[string]) error {
				last = j.LastError
				if f := j.Failures(); last != "" && (f[0].Text != last || f[0].At.IsZero()) {
					t.Errorf("the failures are %+v, want the newest to be %q", f, last)
				}
				return skein.RetryIn(0, errors.New("boom "+last))
			})

			s := skein.NewServer(store, skein.ServerOptions{Logger: quiet, ErrorCodec: o.ErrorCodec}, h)
			run(t, s, synctest.Wait)
			if last == "" || !strings.HasPrefix(last, "boom ") {
				t.Errorf("LastError = %q, want it decoded", last)
			}

			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
			if err != nil || found.DeadLetter == nil || !strings.HasPrefix(found.DeadLetter.Failures.Newest().Text, "BOOM ") {
				t.Errorf("Find = %+v, %v; want the error stored encoded", found, err)
			}
		}},
		{"Logger", func(t *testing.T, store *memory.Store) {
			var out bytes.Buffer
			o := skein.ServerOptions{
				Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			run(t, skein.NewServer(store, o, nop(queue)), synctest.Wait)
			if !strings.Contains(out.String(), "lease acquired") {
				t.Errorf("log has no lease: %s", out.String())
			}
		}},
		{"Observer", func(t *testing.T, store *memory.Store) {
			push(t, store, queue, "a", "x")
			seen := &watcher{}
			runDue(t, store, skein.ServerOptions{Observer: seen},
				queue.Handler(func(ctx context.Context, _ string, _ []string) error {
					if ctx.Value(noteKey{}) != "observer" {
						t.Error("the handler's context is not the observer's")
					}
					return nil
				}))
			equal(t, "seen", seen.counts,
				map[string]int{"start": 1, "done": 1, "claimed": 1, "settled": 1, "acquired": 4, "released": 4})
		}},
		{"Name", func(t *testing.T, store *memory.Store) {
			run(t, skein.NewServer(store, skein.ServerOptions{Name: "north", Logger: quiet}, nop(queue)), func() {
				synctest.Wait()
				reply, err := store.Nodes(t.Context())
				if err != nil || len(reply.Nodes) != 1 || reply.Nodes[0].Name != "north" {
					t.Errorf("Nodes = %+v, %v; want north", reply, err)
				}
			})
		}},
	}

	for _, c := range cases {
		t.Run(c.option, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.check(t, memory.New(memory.Options{})) })
		})
	}
}

type noteKey struct{}

func nop(q *skein.Queue[string]) skein.Handler { return failing(q, nil) }

func failing(q *skein.Queue[string], err error) skein.Handler {
	return q.Handler(func(context.Context, string, []string) error { return err })
}

func lastError(t *testing.T, store ports.ShardStore, id string) string {
	t.Helper()
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: id, Payloads: 1000})
	if err != nil || found.Queued == nil {
		t.Fatalf("Find(%q) = %+v, %v; want it queued", id, found, err)
	}
	return found.Queued.Failures.Newest().Text
}

// mostClaimed runs short jobs of one shard one after another, and returns how many
// were claimed at once, the running one included.
func mostClaimed(t *testing.T, store *memory.Store, q *skein.Queue[string], prefetch int) (most int) {
	t.Helper()
	for i := range 40 {
		push(t, store, q, strings.Repeat("a", i+1), "x")
	}
	h := q.Handler(func(context.Context, string, []string) error {
		time.Sleep(time.Millisecond)
		stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"q"}})
		if err != nil {
			return err
		}
		for _, s := range stats[0].Shards {
			most = max(most, int(s.Claimed))
		}
		return nil
	})
	s := skein.NewServer(store, skein.ServerOptions{Lanes: 1, Prefetch: prefetch, Logger: quiet}, h)
	run(t, s, func() { time.Sleep(time.Minute) })
	return most
}

// watcher counts the calls of an observer.
type watcher struct {
	ports.NopObserver
	mu     sync.Mutex
	counts map[string]int
}

func (w *watcher) add(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts == nil {
		w.counts = make(map[string]int)
	}
	if n > 0 {
		w.counts[what] += n
	}
}

func (w *watcher) Pushed(_ context.Context, e ports.PushEvent) { w.add("pushed", e.Entries) }

func (w *watcher) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	w.add("start", len(e.Claims))
	return context.WithValue(ctx, noteKey{}, "observer")
}

func (w *watcher) BatchEnd(_ context.Context, e ports.BatchEvent) {
	if e.Outcomes[0].Kind == core.Done {
		w.add("done", 1)
	}
}

func (w *watcher) TurnEnd(e ports.TurnEvent) {
	w.add("claimed", e.Claimed)
	w.add("settled", e.Settled)
}

func (w *watcher) LeaseChanged(e ports.LeaseEvent) {
	w.add([]string{"acquired", "released", "dropped"}[e.Change], 1)
}

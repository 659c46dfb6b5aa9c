package skein_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

var errBoom = errors.New("boom")

// stateOf returns where a job is after its execution, in short.
func stateOf(t *testing.T, store *memory.Store, queue, id string) string {
	t.Helper()
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: queue, ID: id, Payloads: 1000})
	if err != nil {
		t.Fatal(err)
	}

	var parts []string
	if q := found.Queued; q != nil {
		wait := q.PerformAt.Sub(core.InstantOf(time.Now()))
		parts = append(parts,
			fmt.Sprintf("queued %s, retry %d, in %v, error %q", datas(q.Payloads), q.RetryCount, wait, q.Failures.Newest().Text))
	}
	if d := found.DeadLetter; d != nil {
		parts = append(parts, fmt.Sprintf("dead %s, error %q", datas(d.Payloads), d.Failures.Newest().Text))
	}
	if found.Claim != nil {
		parts = append(parts, "claimed")
	}

	return strings.Join(parts, "; ")
}

func datas(payloads []core.Payload) (all []string) {
	for _, p := range payloads {
		all = append(all, string(p.Data))
	}
	return all
}

// TestAnOutcomeIsAnErrorValue runs a handler once on payloads 1, 2 and 3.
func TestAnOutcomeIsAnErrorValue(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("indexing: %w", err) }
	cases := []struct {
		name    string
		err     error
		retries int
		want    string
		failed  int64
	}{
		{"nil is done", nil, 5, "", 0},
		{"an error is retried with backoff", errBoom, 5, `queued [1 2 3], retry 0, in 1m0s, error "boom"`, 1},
		{
			"without retries the first payload is buried",
			errBoom,
			skein.NoRetries,
			`queued [2 3], retry -1, in 1h0m0s, error "boom"; dead [1], error "boom"`,
			1,
		},
		{"bury", skein.Bury(errBoom), 5, `dead [1 2 3], error "boom"`, 1},
		{"bury, wrapped", wrap(skein.Bury(errBoom)), 5, `dead [1 2 3], error "indexing: bury: boom"`, 1},
		{"bury without a reason", skein.Bury(nil), 5, `dead [1 2 3], error "no reason given"`, 1},
		{"snooze", skein.Snooze(time.Hour), 5, `queued [1 2 3], retry -1, in 1h0m0s, error ""`, 0},
		{"snooze, wrapped", wrap(skein.Snooze(time.Hour)), 5, `queued [1 2 3], retry -1, in 1h0m0s, error ""`, 0},
		{"retry in", skein.RetryIn(time.Hour, errBoom), 5, `queued [1 2 3], retry 0, in 1h0m0s, error "boom"`, 1},
		{
			"retry in counts as a retry",
			skein.RetryIn(time.Hour, errBoom),
			skein.NoRetries,
			`queued [2 3], retry -1, in 1h0m0s, error "boom"; dead [1], error "boom"`,
			1,
		},
		{
			"bury comes before the others",
			errors.Join(skein.Snooze(1), skein.RetryIn(1, errBoom), skein.Bury(errBoom)),
			5,
			`dead [1 2 3], error "snooze for 1ns\nretry in 1ns: boom\nbury: boom"`,
			1,
		},
		{
			"retry in comes before snooze",
			errors.Join(skein.Snooze(1), skein.RetryIn(time.Second, errBoom)),
			5,
			`queued [1 2 3], retry 0, in 1s, error "snooze for 1ns\nretry in 1s: boom"`,
			1,
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[int]{
					MaxRetries: c.retries, Backoff: func(int) time.Duration { return time.Minute },
				})
				for i := 1; i <= 3; i++ {
					push(t, store, q, "a", i)
				}

				calls := 0
				runDue(t, store, skein.ServerOptions{}, q.Handler(func(context.Context, string, []int) error {
					if calls++; calls > 1 { // payloads left after exhaustion are due at once
						return skein.Snooze(time.Hour)
					}
					return c.err
				}))

				equal(t, "state", stateOf(t, store, "q", "a"), c.want)
				stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"q"}})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "failed", stats[0].Failed, c.failed)
			})
		})
	}
}

func TestAPanicIsAFailureWithItsStack(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	push(t, store, q, "a", "x")

	var seen error
	note := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error {
			seen = next(ctx, b)
			return seen
		}
	}

	o := skein.ServerOptions{Middleware: []skein.Middleware{note}}
	runDue(t, store, o, q.Handler(func(context.Context, string, []string) error { panic(errBoom) }))

	var caught *skein.PanicError
	if !errors.As(seen, &caught) || !errors.Is(seen, errBoom) {
		t.Errorf("middleware saw %v, want a PanicError around what was thrown", seen)
	}

	text := lastError(t, store, "a")
	if !strings.HasPrefix(text, "panic: boom") || !strings.Contains(text, "handler_test.go") {
		t.Errorf("kept %q, want the value and the stack", text)
	}
}

func TestAHandlerThatEndsItsGoroutineFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1})
		push(t, store, q, "a", "x")
		push(t, store, q, "b", "x")

		h := q.Handler(func(_ context.Context, id string, _ []string) error {
			if id == "a" {
				runtime.Goexit()
			}
			return nil
		})
		run(t, skein.NewServer(store, skein.ServerOptions{Lanes: 1, Logger: quiet}, h), synctest.Wait)

		if text := lastError(t, store, "a"); !strings.Contains(text, "Goexit") {
			t.Errorf("kept %q, want it to speak of Goexit", text)
		}
		equal(t, "the lane goes on with b", stateOf(t, store, "q", "b"), "")
	})
}

func TestAnErrorWhoseTextPanicsIsKeptAsSuch(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	push(t, store, q, "a", "x")
	runDue(t, store, skein.ServerOptions{}, failing(q, badError{}))
	if text := lastError(t, store, "a"); !strings.Contains(text, "badError") {
		t.Errorf("kept %q, want the error's type", text)
	}
}

type badError struct{}

func (badError) Error() string { panic("no text") }

func TestAJobHandlerSeesItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{Backoff: func(int) time.Duration { return time.Hour }})
		start := time.Now().UTC()
		push(t, store, q, "a", 1, skein.Score(10), skein.Meta([]byte("trace")))
		time.Sleep(time.Minute)
		push(t, store, q, "a", 2, skein.Score(20))

		var seen []skein.Job[int]
		h := q.JobHandler(func(_ context.Context, j *skein.Job[int]) error {
			equal(t, "values", j.Values(), []int{1, 2})
			equal(t, "scores", []float64{j.Payloads[0].Score, j.Payloads[1].Score}, []float64{10, 20})
			equal(t, "meta", string(j.Payloads[0].Meta), "trace")
			seen = append(seen, skein.Job[int]{
				ID:        j.ID,
				PerformAt: j.PerformAt,
				FirstPush: j.FirstPush,
				Retries:   j.Retries,
				LastError: j.LastError,
			})
			return errBoom
		})

		runDue(t, store, skein.ServerOptions{}, h)
		time.Sleep(time.Hour)
		runDue(t, store, skein.ServerOptions{}, h)

		want := []skein.Job[int]{
			{ID: "a", PerformAt: start, FirstPush: start},
			{ID: "a", PerformAt: start.Add(time.Hour + time.Minute), FirstPush: start, Retries: 1, LastError: "boom"},
		}
		for i := range want {
			if fmt.Sprint(seen[i]) != fmt.Sprint(want[i]) {
				t.Errorf("execution %d saw %v, want %v", i, seen[i], want[i])
			}
		}
	})
}

func TestPayloadsCanBeSettledByThemselves(t *testing.T) {
	cases := []struct {
		name   string
		settle func(j *skein.Job[int]) error
		want   string
	}{
		{"one is done and the rest fails", func(j *skein.Job[int]) error {
			j.Payloads[1].Done()
			return errBoom
		}, `queued [1 3], retry 0, in 1h0m0s, error "boom"`},
		{"one is buried and the rest is done", func(j *skein.Job[int]) error {
			j.Payloads[1].Bury(errors.New("not this one"))
			return nil
		}, `dead [2], error "not this one"`},
		{"the last mark counts", func(j *skein.Job[int]) error {
			j.Payloads[1].Bury(errBoom)
			j.Payloads[1].Done()
			return nil
		}, ""},
		{"all by themselves", func(j *skein.Job[int]) error {
			j.Payloads[2].Done()
			j.Payloads[0].Bury(nil)
			j.Payloads[1].Done()
			return errBoom
		}, `dead [1], error "no reason given"`},
		{"done, and the rest snoozes", func(j *skein.Job[int]) error {
			j.Payloads[0].Done()
			return skein.Snooze(time.Minute)
		}, `queued [2 3], retry -1, in 1m0s, error ""`},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[int]{Backoff: func(int) time.Duration { return time.Hour }})
				for i := 1; i <= 3; i++ {
					push(t, store, q, "a", i)
				}
				runDue(t, store, skein.ServerOptions{}, q.JobHandler(func(_ context.Context, j *skein.Job[int]) error {
					return c.settle(j)
				}))
				equal(t, "state", stateOf(t, store, "q", "a"), c.want)
			})
		})
	}
}

func TestABatchHandlerSettlesJobByJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{
			Shards: 1, BatchSize: 10, Backoff: func(int) time.Duration { return time.Hour },
		})
		for _, id := range []string{"done", "failed", "open 1", "open 2"} {
			push(t, store, q, id, 1)
		}

		runDue(t, store, skein.ServerOptions{}, q.BatchHandler(func(_ context.Context, b *skein.Batch[int]) error {
			for _, j := range b.Jobs() {
				switch j.ID {
				case "done":
					j.Settle(nil)
				case "failed":
					j.Settle(errBoom)
				}
			}
			return skein.Snooze(time.Minute)
		}))

		equal(t, "done", stateOf(t, store, "q", "done"), "")
		equal(t, "failed", stateOf(t, store, "q", "failed"), `queued [1], retry 0, in 1h0m0s, error "boom"`)
		equal(t, "open 1", stateOf(t, store, "q", "open 1"), `queued [1], retry -1, in 1m0s, error ""`)
		equal(t, "open 2", stateOf(t, store, "q", "open 2"), `queued [1], retry -1, in 1m0s, error ""`)
	})
}

func TestTheIDsOfABatchHaveOutcomesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{
			Shards: 1, BatchSize: 10, Backoff: func(int) time.Duration { return time.Hour },
		})
		for _, id := range []string{"a", "b", "c"} {
			push(t, store, q, id, 1)
		}

		seen := make(map[string]error)
		rescue := func(next skein.RunFunc) skein.RunFunc {
			return func(ctx context.Context, b *skein.RawBatch) error {
				err := next(ctx, b)
				equal(t, "jobs of a call", len(b.Jobs), 1)
				seen[b.Jobs[0].ID] = err
				if b.Jobs[0].ID == "c" {
					return skein.Bury(err)
				}
				return err
			}
		}

		o := skein.ServerOptions{Middleware: []skein.Middleware{rescue}}
		runDue(t, store, o, q.Handler(func(_ context.Context, id string, _ []int) error {
			switch id {
			case "a":
				panic("in a")
			case "c":
				return errBoom
			}
			return nil
		}))

		if text := lastError(t, store, "a"); !strings.HasPrefix(text, "panic: in a") {
			t.Errorf("a kept %q, want its panic", text)
		}
		equal(t, "b", stateOf(t, store, "q", "b"), "")
		equal(t, "c, as the middleware settled it", stateOf(t, store, "q", "c"), `dead [1], error "boom"`)

		var caught *skein.PanicError
		if !errors.As(seen["a"], &caught) || seen["b"] != nil || seen["c"] != errBoom {
			t.Errorf("the middleware saw %v, want the panic of a, nil and the error of c", seen)
		}
	})
}

func TestAJobWhoseCodecRefusesAllFailsAndIsBuried(t *testing.T) {
	for name, handler := range map[string]func(*skein.Queue[string]) skein.Handler{
		"Handler": nop,
		"JobHandler": func(q *skein.Queue[string]) skein.Handler {
			return q.JobHandler(func(context.Context, *skein.Job[string]) error { return nil })
		},
		"BatchHandler": func(q *skein.Queue[string]) skein.Handler {
			return q.BatchHandler(func(context.Context, *skein.Batch[string]) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", skein.QueueOptions[string]{Codec: bracketed{}})
			push(t, store, q, "a", "bad")
			runDue(t, store, skein.ServerOptions{}, handler(q))
			equal(t, "state", stateOf(t, store, "q", "a"), `dead [<bad>], error "decode payload: it is bad"`)
		})
	}
}

func TestFenceIsTheTokenOfTheLease(t *testing.T) {
	if _, ok := skein.Fence(t.Context()); ok {
		t.Error("a context that is no handler's has a token")
	}

	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1, Backoff: func(int) time.Duration { return 0 }})
	push(t, store, q, "a", "x")

	var tokens []int64
	h := q.Handler(func(ctx context.Context, _ string, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		token, ok := skein.Fence(ctx)
		stats, err := store.Stats(ctx, ports.StatsRequest{Queues: []string{"q"}})
		if err != nil || !ok || stats[0].Shards[0].Token != token {
			t.Errorf("Fence = %d, %t; want the lease's, %+v, %v", token, ok, stats, err)
		}
		tokens = append(tokens, token)
		return nil
	})

	runDue(t, store, skein.ServerOptions{}, h)
	push(t, store, q, "a", "x")
	runDue(t, store, skein.ServerOptions{}, h)

	if len(tokens) != 2 || tokens[1] <= tokens[0] {
		t.Errorf("tokens %v, want two that rise", tokens)
	}
}

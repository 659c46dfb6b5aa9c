package skein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

type (
	job      = skein.Job[int]
	wrapping = skein.Middleware
)

// mapping returns middleware that replaces a call's error by f's result.
func mapping(f func(b *skein.RawBatch, err error) error) wrapping {
	return func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error { return f(b, next(ctx, b)) }
	}
}

// TestAnOutcomeDoesNotDependOnTheSizeOfTheBatch runs the same handler on one job
// and on three that are one batch: each must end in the same way.
func TestAnOutcomeDoesNotDependOnTheSizeOfTheBatch(t *testing.T) {
	const (
		done     = ""
		failed   = `queued [1], retry 0, in 1h0m0s, error "boom"`
		snoozed  = `queued [1], retry -1, in 1m0s, error ""`
		panicked = `queued [1], retry 0, in 1h0m0s, error "panic: boom`
	)

	byHandler := func(f func(j *job) error) func(*skein.Queue[int]) skein.Handler {
		return func(q *skein.Queue[int]) skein.Handler {
			return q.JobHandler(func(_ context.Context, j *job) error { return f(j) })
		}
	}

	byBatch := func(f func(j *job), err error) func(*skein.Queue[int]) skein.Handler {
		return func(q *skein.Queue[int]) skein.Handler {
			return q.BatchHandler(func(_ context.Context, b *skein.Batch[int]) error {
				for _, j := range b.Jobs() {
					f(j)
				}
				return err
			})
		}
	}

	cases := []struct {
		name       string
		handler    func(*skein.Queue[int]) skein.Handler
		middleware wrapping
		want       string
	}{
		{"a settled job whose handler returns nil", byHandler(func(j *job) error {
			j.Settle(skein.Snooze(time.Minute))
			return nil
		}), nil, snoozed},
		{"a settled job whose handler returns an error", byHandler(func(j *job) error {
			j.Settle(nil)
			return errBoom
		}), nil, failed},
		{"a settled job whose handler panics", byHandler(func(j *job) error {
			j.Settle(nil)
			panic(errBoom)
		}), nil, panicked},
		{"a job settled twice", byHandler(func(j *job) error {
			j.Settle(errBoom)
			j.Settle(skein.Snooze(time.Minute))
			return nil
		}), nil, snoozed},
		{
			"a batch's settled job keeps its outcome",
			byBatch(func(j *job) { j.Settle(skein.Snooze(time.Minute)) }, errBoom),
			nil,
			snoozed,
		},
		{"a batch's open job has the error", byBatch(func(*job) {}, errBoom), nil, failed},
		{"middleware returns an error for nil", byHandler(func(*job) error { return nil }),
			mapping(func(*skein.RawBatch, error) error { return errBoom }), failed},
		{"middleware returns nil for an error", byHandler(func(*job) error { return errBoom }),
			mapping(func(*skein.RawBatch, error) error { return nil }), done},
		{"middleware returns another outcome", byHandler(func(*job) error { return errBoom }),
			mapping(func(_ *skein.RawBatch, err error) error {
				if err != errBoom {
					return fmt.Errorf("middleware saw %w", err)
				}
				return skein.Snooze(time.Minute)
			}), snoozed},
		{"middleware settles and returns nil", byHandler(func(*job) error { return errBoom }),
			mapping(func(b *skein.RawBatch, _ error) error {
				b.Jobs[0].Settle(skein.Snooze(time.Minute))
				return nil
			}), snoozed},
		{"middleware settles and returns an error", byHandler(func(*job) error { return nil }),
			mapping(func(b *skein.RawBatch, _ error) error {
				b.Jobs[0].Settle(skein.Snooze(time.Minute))
				return errBoom
			}), failed},
		{"middleware panics", byHandler(func(*job) error { return nil }),
			mapping(func(*skein.RawBatch, error) error { panic(errBoom) }), panicked},
		{"middleware returns another outcome for a batch", byBatch(func(*job) {}, errBoom),
			mapping(func(*skein.RawBatch, error) error { return skein.Snooze(time.Minute) }), snoozed},
		{"middleware settles a batch's jobs", byBatch(func(*job) {}, errBoom),
			mapping(func(b *skein.RawBatch, err error) error {
				for i := range b.Jobs {
					b.Jobs[i].Settle(skein.Snooze(time.Minute))
				}
				return err
			}), snoozed},
	}

	for _, c := range cases {
		for _, jobs := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d jobs", c.name, jobs), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := memory.New(memory.Options{})
					q := skein.NewQueue("q", skein.QueueOptions[int]{
						Shards: 1, BatchSize: 10, Backoff: func(int) time.Duration { return time.Hour },
					})

					var o skein.ServerOptions
					if c.middleware != nil {
						o.Middleware = []skein.Middleware{c.middleware}
					}
					for id := range jobs {
						push(t, store, q, fmt.Sprint(id), 1)
					}
					runDue(t, store, o, c.handler(q))

					for id := range jobs {
						got := stateOf(t, store, "q", fmt.Sprint(id))
						if strings.HasSuffix(c.want, `"`) || c.want == done {
							equal(t, "state", got, c.want)
						} else if !strings.HasPrefix(got, c.want) {
							t.Errorf("state %s, want %s…", got, c.want)
						}
					}
				})
			})
		}
	}
}

func TestOneJobOfABatchThatPanicsFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{
			Shards: 1, BatchSize: 10, Backoff: func(int) time.Duration { return time.Hour },
		})
		for _, id := range []string{"a", "b", "c"} {
			push(t, store, q, id, 1)
		}

		var ran []string
		runDue(t, store, skein.ServerOptions{}, q.JobHandler(func(_ context.Context, j *job) error {
			ran = append(ran, j.ID)
			if j.ID == "b" {
				panic("in b")
			}
			return nil
		}))

		equal(t, "jobs that ran", ran, []string{"a", "b", "c"})
		equal(t, "a", stateOf(t, store, "q", "a"), "")
		if text := lastError(t, store, "b"); !strings.HasPrefix(text, "panic: in b") ||
			!strings.Contains(text, "outcome_test.go") {
			t.Errorf("b kept %q, want its panic and the stack", text)
		}
		equal(t, "c", stateOf(t, store, "q", "c"), "")
	})
}

// Middleware is built once for each handler, and gets the batch that it was given
// or none.
func TestMiddlewareIsBuiltOnce(t *testing.T) {
	store := memory.New(memory.Options{})
	queues := []*skein.Queue[int]{
		skein.NewQueue("a", skein.QueueOptions[int]{}), skein.NewQueue("b", skein.QueueOptions[int]{}),
	}

	built, calls := 0, 0
	count := func(next skein.RunFunc) skein.RunFunc {
		built++
		return func(ctx context.Context, b *skein.RawBatch) error {
			calls++
			return next(ctx, b)
		}
	}

	var handlers []skein.Handler
	for _, q := range queues {
		for id := range 3 {
			push(t, store, q, fmt.Sprint(id), 1)
		}
		handlers = append(handlers, q.Handler(func(context.Context, string, []int) error { return nil }))
	}

	s := skein.NewServer(store, skein.ServerOptions{Middleware: []skein.Middleware{count}, Logger: quiet}, handlers...)
	for range 2 {
		if _, err := s.RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	equal(t, "times it was built", built, 2)
	equal(t, "calls", calls, 6)
}

func TestBadMiddlewareIsRefused(t *testing.T) {
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	for name, middleware := range map[string]wrapping{
		"nil":              nil,
		"that returns nil": func(skein.RunFunc) skein.RunFunc { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := skein.ServerOptions{Middleware: []skein.Middleware{middleware}, Logger: quiet}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := skein.NewServer(
				memory.New(memory.Options{}), o, nop(q),
			).Run(ended); !errors.Is(err, skein.ErrInvalidOptions) {
				t.Errorf("Run = %v, want ErrInvalidOptions", err)
			}
		})
	}

	t.Run("that passes on a batch of its own", func(t *testing.T) {
		store := memory.New(memory.Options{})
		push(t, store, q, "a", "x")
		own := func(next skein.RunFunc) skein.RunFunc {
			return func(ctx context.Context, _ *skein.RawBatch) error { return next(ctx, &skein.RawBatch{}) }
		}
		runDue(t, store, skein.ServerOptions{Middleware: []skein.Middleware{own}}, nop(q))
		if text := lastError(t, store, "a"); !strings.Contains(text, "a RawBatch of its own") {
			t.Errorf("kept %q, want what the middleware does wrong", text)
		}
	})
}

package skein_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// Each way to handle a job gets every push under Every, with its own bytes, score and Meta, also
// after a failure.
func TestEveryPushIsHandled(t *testing.T) {
	type seen struct {
		Payload int
		Score   float64
	}
	options := skein.QueueOptions[int]{
		Merge: skein.Every(), MaxPayloadBytes: 2,
		Backoff: func(int) time.Duration { return time.Minute },
	}

	handlers := map[string]func(q *skein.Queue[int], add func(p int, score float64), fail func() error) skein.Handler{
		"Each": func(q *skein.Queue[int], add func(int, float64), fail func() error) skein.Handler {
			return q.Each(func(_ context.Context, _ string, p int) error {
				if err := fail(); err != nil {
					return err
				}
				add(p, 0)
				return nil
			})
		},
		"Handler": func(q *skein.Queue[int], add func(int, float64), fail func() error) skein.Handler {
			return q.Handler(func(_ context.Context, _ string, payloads []int) error {
				if err := fail(); err != nil {
					return err
				}
				for _, p := range payloads {
					add(p, 0)
				}
				return nil
			})
		},
		"JobHandler": func(q *skein.Queue[int], add func(int, float64), fail func() error) skein.Handler {
			return q.JobHandler(func(_ context.Context, job *skein.Job[int]) error {
				if err := fail(); err != nil {
					return err
				}
				for i := range job.Payloads {
					add(job.Payloads[i].Value, job.Payloads[i].Score)
				}
				return nil
			})
		},
	}

	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				queue := skein.NewQueue("counter", options)

				var got []seen
				var raw []string
				failed := false
				fail := func() error {
					if failed {
						return nil
					}
					failed = true
					push(t, store, queue, "a", 5, skein.Score(4)) // while the others are claimed
					return errors.New("once")
				}

				h := handler(queue, func(p int, score float64) { got = append(got, seen{p, score}) }, fail)

				look := func(next skein.RunFunc) skein.RunFunc {
					return func(ctx context.Context, b *skein.RawBatch) error {
						for _, p := range b.Jobs[0].Payloads {
							raw = append(raw, string(p.Data))
						}
						return next(ctx, b)
					}
				}

				for i, p := range []int{5, -1, 5, 5} {
					push(t, store, queue, "a", p, skein.Score(float64(min(i, 2)))) // the last one repeats a push
				}
				for range 2 {
					runDue(t, store, skein.ServerOptions{Middleware: []skein.Middleware{look}}, h)
					time.Sleep(time.Hour)
				}

				want := []seen{{5, 0}, {-1, 1}, {5, 2}, {5, 4}}
				if name != "JobHandler" {
					for i := range want {
						want[i].Score = 0
					}
				}

				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("handled (-want +got):\n%s", diff)
				}
				if want := []string{"5", "-1", "5", "5", "-1", "5", "5"}; !cmp.Equal(raw, want) {
					t.Errorf("middleware saw %q, want %q", raw, want)
				}
			})
		})
	}
}

// The hook and the morgue show buried payloads of an Every queue as they were pushed.
func TestEveryPushIsBuriedAsItWasPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("counter", skein.QueueOptions[int]{
			Merge:      skein.Every().Last(3),
			MaxRetries: skein.NoRetries,
		})

		var buried []string
		options := skein.ServerOptions{OnBuried: func(_ context.Context, b skein.Buried) error {
			for _, p := range b.Payloads {
				buried = append(buried, fmt.Sprintf("%s@%v", p.Data, p.Score))
			}
			return nil
		}}

		for i := range 5 {
			push(t, store, queue, "a", 7, skein.Score(float64(i)))
		}
		for range 3 {
			runDue(t, store, options, queue.Each(func(context.Context, string, int) error { return errors.New("no") }))
			time.Sleep(time.Hour)
		}

		want := []string{"7@2", "7@3", "7@4"}
		if diff := cmp.Diff(want, buried); diff != "" {
			t.Errorf("OnBuried got (-want +got):\n%s", diff)
		}

		var dead []string
		found, err := inspect.New(store, inspect.Options{Logger: quiet}).Find(t.Context(), "counter", "a")
		if err != nil || found.DeadLetter == nil {
			t.Fatalf("the dead letter: %+v, %v", found, err)
		}
		for _, p := range found.DeadLetter.Payloads {
			dead = append(dead, fmt.Sprintf("%s@%v", p.Data, p.Score))
		}
		if diff := cmp.Diff(want, dead); diff != "" {
			t.Errorf("in the morgue (-want +got):\n%s", diff)
		}
	})
}

// Bytes that look like the stamp of Every belong to the payload, for each handler, for middleware
// and for the hook of burials. In a queue by Every they stand behind the stamp.
func TestBytesThatLookLikeAStampAreHandled(t *testing.T) {
	like := core.MergeRule{Same: core.SamePush}.Stored(core.Payload{Data: []byte("x"), Score: 7})
	for _, rule := range []skein.MergeRule{skein.Union(), skein.Newest(), skein.Every()} {
		t.Run(rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := skein.NewQueue("raw", skein.QueueOptions[[]byte]{
					Merge: rule, Codec: skein.RawCodec{}, MaxRetries: skein.NoRetries,
				})
				failed := errors.New("no")
				var handled, other []string
				note := func(p []byte) error {
					handled = append(handled, string(p))
					return failed
				}

				for _, handler := range []skein.Handler{
					queue.Each(func(_ context.Context, _ string, p []byte) error { return note(p) }),
					queue.Handler(func(_ context.Context, _ string, payloads [][]byte) error { return note(payloads[0]) }),
					queue.JobHandler(func(_ context.Context, j *skein.Job[[]byte]) error { return note(j.Payloads[0].Value) }),
					queue.BatchHandler(func(_ context.Context, b *skein.Batch[[]byte]) error {
						return note(b.Jobs()[0].Payloads[0].Value)
					}),
				} {
					store := memory.New(memory.Options{})
					push(t, store, queue, "a", like.Data, skein.Score(7))
					runDue(t, store, skein.ServerOptions{
						OnBuried: func(_ context.Context, b skein.Buried) error {
							other = append(other, string(b.Payloads[0].Data))
							return nil
						},
						Middleware: []skein.Middleware{func(next skein.RunFunc) skein.RunFunc {
							return func(ctx context.Context, b *skein.RawBatch) error {
								other = append(other, string(b.Jobs[0].Payloads[0].Data))
								return next(ctx, b)
							}
						}},
					}, handler)
				}

				for what, got := range map[string][]string{"handlers": handled, "middleware and OnBuried": other} {
					want := slices.Repeat([]string{string(like.Data)}, len(got))
					if diff := cmp.Diff(want, got); diff != "" || len(got) < 4 {
						t.Errorf("%s got %d (-want +got):\n%s", what, len(got), diff)
					}
				}
			})
		})
	}
}

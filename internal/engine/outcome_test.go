package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// Only the end of the handler's own context excuses it.
func TestAnErrorOfAnotherContextIsAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		runs := 0
		w.start(each(func(context.Context, *core.Claim) error {
			runs++
			return context.Canceled
		}))
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(poll)
		if runs != 1 {
			w.Errorf("%d runs, want 1 and a backoff", runs)
		}
		w.wantCounts(1, 0, 0, 1)
	})
}

// A failure has the time at which the handler returned, by the store's clock, and the name of its
// server. It stays when the job is put back untouched, and a burial has its own.
func TestAFailureHasItsTimeAndItsServer(t *testing.T) {
	inWorld(t, func(w *world) {
		var failed core.Instant
		w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(3 * time.Second)
			failed = core.InstantOf(time.Now())
			return errors.New("boom")
		}), func(s *setup) { s.queue.Policy.MaxRetries = 1 })

		w.sleep(poll)
		w.push("job", "x")
		w.sleep(5 * time.Second)
		want := core.Failure{At: failed, Node: "node-1", Text: "boom"}
		if got := w.find("job").Queued.Failures.Newest(); got != want {
			w.Errorf("the job has the failure %+v, want %+v", got, want)
		}

		w.sleep(time.Hour)
		want.At = failed // of the retry
		if got := w.find("job").DeadLetter.Failures.Newest(); got != want {
			w.Errorf("the dead letter has the failure %+v, want %+v", got, want)
		}
	})
}

// lateObserver lets f run between a handler's return and its settlement.
type lateObserver struct {
	ports.NopObserver
	f func()
}

func (o *lateObserver) BatchEnd(context.Context, ports.BatchEvent) { o.f() }

// TestWhatComesAfterTheHandlersReturnChangesNothing has all that a goroutine may do that
// the handler left behind, at the last moment before the job is settled.
func TestWhatComesAfterTheHandlersReturnChangesNothing(t *testing.T) {
	errLate := errors.New("late")
	cases := map[string]func(ctx context.Context, w *world, b *execution.Batch){
		"Settle as done":   func(_ context.Context, _ *world, b *execution.Batch) { b.SetOutcome(0, nil) },
		"Settle as failed": func(_ context.Context, _ *world, b *execution.Batch) { b.SetOutcome(0, errLate) },
		"Return":           func(_ context.Context, _ *world, b *execution.Batch) { b.Return(0, errLate) },
		"MarkDone":         func(_ context.Context, _ *world, b *execution.Batch) { b.MarkDone(0, 0) },
		"MarkBuried":       func(_ context.Context, _ *world, b *execution.Batch) { b.MarkBuried(0, 0, errLate) },
		"BuryUndecodable":  func(_ context.Context, _ *world, b *execution.Batch) { b.BuryUndecodable(0, 0, errLate) },
		"FailUndecodable": func(_ context.Context, _ *world, b *execution.Batch) {
			b.FailUndecodable(0, 1, errLate, true)
		},
		"Begin": func(ctx context.Context, w *world, b *execution.Batch) {
			if _, ok := b.Begin(ctx, 0); ok {
				w.Error("a job begins in a batch that has ended")
			}
		},
		"BeginPayload": func(_ context.Context, w *world, b *execution.Batch) {
			if b.BeginPayload(0, 0) {
				w.Error("a payload begins in a batch that has ended")
			}
		},
		"SettleIn": func(ctx context.Context, w *world, _ *execution.Batch) {
			if err := execution.SettleIn(context.WithoutCancel(ctx), w.store); err == nil {
				w.Error("a transaction settles in a batch that has ended")
			}
		},
	}

	for name, late := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)

				returned, over := make(chan struct{}), make(chan struct{})
				observer := &lateObserver{f: func() {
					close(returned)
					<-over
				}}

				n := w.start(func(ctx context.Context, b *execution.Batch) error {
					go func() {
						defer close(over)
						<-returned
						late(ctx, w, b)
					}()
					return errors.New("its own")
				}, func(s *setup) { s.Observer = observer })

				w.push("job", "a", "b")
				w.sleep(poll)
				n.stop()
				w.wantCounts(1, 0, 0, 1)

				found := w.find("job")
				if found.Queued == nil || found.DeadLetter != nil {
					w.Fatalf("found %+v, want the job back", found)
				}
				if diff := cmp.Diff([]string{"a", "b"}, texts(found.Queued.Payloads)); diff != "" ||
					found.Queued.Failures.Newest().Text != "its own" {
					w.Errorf("back for %q (-want +got):\n%s", found.Queued.Failures.Newest().Text, diff)
				}
			})
		})
	}
}

func TestAJobIsRetriedWithTheDefaultBackoffFor13Hours(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const failures = 12
		a := w.audit()
		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.RetryCount < failures-1 {
				return errors.New("not yet")
			}
			return nil
		}))
		w.sleep(time.Minute)
		w.push("job", "x")
		want := []time.Duration{time.Minute}
		for n := range failures {
			want = append(want, want[n]+core.DefaultBackoff(n, 0))
		}
		w.sleep(13 * time.Hour)
		if diff := cmp.Diff(want, a.starts("job")); diff != "" {
			w.Errorf("executions (-want +got):\n%s", diff)
		}
		w.wantCounts(0, 0, 1, failures)
	})
}

func TestSeveralPayloadsOfAFailedJobComeBackInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.Fresh() {
				return errors.New("not yet")
			}
			return nil
		}))
		w.sleep(poll)
		w.push("job", "a", "b")
		w.push("job", "0") // merges at score 1, and waits for the retry
		w.sleep(time.Minute)
		runs := a.wantRuns("job", 2)
		if diff := cmp.Diff([]string{"0", "a", "b"}, runs[1].payloads); diff != "" {
			w.Errorf("payloads of the retry (-want +got):\n%s", diff)
		}
	})
}

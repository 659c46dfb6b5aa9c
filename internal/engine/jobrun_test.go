package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
)

func TestEachJobOfABatchHasItsOwnTime(t *testing.T) {
	const s = time.Second
	took := []time.Duration{1 * s, 10 * s, 100 * s}
	cases := []struct {
		name string
		run  func(ctx context.Context, b *execution.Batch) error
		size int
		wait core.Histogram
		took core.Histogram
	}{
		{"one after another", func(ctx context.Context, b *execution.Batch) error {
			defer b.End()
			return eachIndex(func(i int) { time.Sleep(took[i]) })(ctx, b)
		}, 3, observed(0, 1*s, 11*s), observed(took...)},
		{"one after another, alone", func(ctx context.Context, b *execution.Batch) error {
			defer b.End()
			return eachIndex(func(int) { time.Sleep(10 * s) })(ctx, b)
		}, 1, observed(0, 10*s, 20*s), observed(10*s, 10*s, 10*s)},
		{"one after another, without an end", func(ctx context.Context, b *execution.Batch) error {
			return eachIndex(func(i int) { time.Sleep(took[i]) })(ctx, b)
		}, 3, observed(0, 1*s, 11*s), observed(took...)},
		{"at once", func(context.Context, *execution.Batch) error {
			time.Sleep(10 * s)
			return nil
		}, 3, observed(0, 0, 0), observed(10*s, 10*s, 10*s)},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.pushEach(3)
				w.start(tt.run, batches(tt.size), lanes(1))
				w.sleep(5 * time.Minute)

				got := w.history()
				if diff := cmp.Diff(tt.took, got.Run); diff != "" {
					w.Errorf("run times (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.wait, got.Wait); diff != "" {
					w.Errorf("waits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// eachIndex runs f for one job after another.
func eachIndex(f func(i int)) handler {
	return func(ctx context.Context, b *execution.Batch) error {
		for i := range b.Claims {
			if _, ok := b.Begin(ctx, i); ok {
				f(i)
				b.Return(i, nil)
			}
		}
		return nil
	}
}

// A drain lets the job that runs end, and starts no other of its batch.
func TestADrainStartsNoOtherJobOfABatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(5)
		var ran []int
		n := w.start(eachIndex(func(i int) {
			ran = append(ran, i)
			time.Sleep(time.Second)
		}), batches(5))
		w.sleep(1500 * time.Millisecond)
		n.stop()
		w.within("the stop", w.elapsed(), 2*time.Second, 2100*time.Millisecond)
		if diff := cmp.Diff([]int{0, 1}, ran); diff != "" {
			w.Errorf("jobs that ran (-want +got):\n%s", diff)
		}
		w.wantCounts(3, 0, 2, 0)
		for _, job := range w.jobs() {
			if job.RetryCount != core.FreshRetryCount || job.Recoveries != 0 {
				w.Errorf("%s is back with retry %d and %d recoveries, want it untouched",
					job.ID, job.RetryCount, job.Recoveries)
			}
		}
		if got := w.history(); got.Run.Count() != 2 || got.Wait.Count() != 2 {
			w.Errorf("%d run times and %d waits were observed, want those of the 2 that ran",
				got.Run.Count(), got.Wait.Count())
		}
	})
}

func TestABurialByRecoveryIsInTheHistoryToo(t *testing.T) {
	for _, withHook := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.declare(1)
			w.push("job", "x")
			abandoned := w.start(each(func(ctx context.Context, _ *core.Claim) error {
				<-ctx.Done()
				return errors.New("too late")
			}), func(s *setup) { s.queue.Policy.MaxRecoveries = 0 })
			w.sleep(poll)
			abandoned.cutOff()
			w.start(each(succeed), func(s *setup) {
				s.queue.Policy.MaxRecoveries = 0
				if withHook {
					s.Buried = func(context.Context, report.Buried) error { return nil }
				}
			})
			w.sleep(3 * ttl)
			w.wantCounts(0, 0, 0, 1)
			w.wantHistory(0, 1)
		})
	}
}

// TestAGoroutineLeftBehindSettlesNoOtherJob lets a goroutine that one job's handler left behind
// act while the next job of the batch runs.
func TestAGoroutineLeftBehindSettlesNoOtherJob(t *testing.T) {
	errOwn := errors.New("its own")
	cases := map[string]func(ctx context.Context, w *world, b *execution.Batch){
		"Settle as done": func(_ context.Context, _ *world, b *execution.Batch) { b.SetOutcome(0, nil) },
		"MarkDone":       func(_ context.Context, _ *world, b *execution.Batch) { b.MarkDone(0, 0) },
		"MarkBuried":     func(_ context.Context, _ *world, b *execution.Batch) { b.MarkBuried(0, 0, errOwn) },
		"SettleIn": func(ctx context.Context, w *world, _ *execution.Batch) {
			if err := execution.SettleIn(context.WithoutCancel(ctx), w.store); err == nil {
				w.Error("it settles in a transaction, although its handler has returned")
			}
		},
	}

	for name, late := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.pushEach(2)

				var batch *execution.Batch
				handle := each(func(ctx context.Context, c *core.Claim) error {
					if c.ID == "job-0" {
						go func() {
							time.Sleep(time.Second)
							late(ctx, w, batch)
						}()
						return errOwn
					}
					time.Sleep(2 * time.Second)
					return errOwn
				})

				n := w.start(func(ctx context.Context, b *execution.Batch) error {
					batch = b
					return handle(ctx, b)
				}, batches(2))

				w.sleep(5 * time.Second)
				n.stop()
				w.wantCounts(2, 0, 0, 2)
				for _, id := range []string{"job-0", "job-1"} {
					if f := w.find(id); f.Queued == nil || f.DeadLetter != nil || f.Queued.Failures.Newest().Text != "its own" {
						w.Errorf("%s: found %+v, want it back for its own error", id, f)
					}
				}
			})
		})
	}
}

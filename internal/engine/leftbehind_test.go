package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// TestAGoroutineLeftBehindSettlesNoOtherJob has what one job's handler left behind
// speak while the next job of the batch runs.
func TestAGoroutineLeftBehindSettlesNoOtherJob(t *testing.T) {
	errOwn := errors.New("its own")
	cases := map[string]func(ctx context.Context, w *world, b *engine.Batch){
		"Settle as done": func(_ context.Context, _ *world, b *engine.Batch) { b.SetOutcome(0, nil) },
		"MarkDone":       func(_ context.Context, _ *world, b *engine.Batch) { b.MarkDone(0, 0) },
		"MarkBuried":     func(_ context.Context, _ *world, b *engine.Batch) { b.MarkBuried(0, 0, errOwn) },
		"SettleIn": func(ctx context.Context, w *world, _ *engine.Batch) {
			if err := engine.SettleIn(context.WithoutCancel(ctx), w.store); err == nil {
				w.Error("it settles in a transaction, although its handler has returned")
			}
		},
	}
	for name, late := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.pushEach(2)
				var batch *engine.Batch
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
				n := w.start(func(ctx context.Context, b *engine.Batch) error {
					batch = b
					return handle(ctx, b)
				}, batches(2))
				w.sleep(5 * time.Second)
				n.stop()
				w.wantCounts(2, 0, 0, 2)
				for _, id := range []string{"job-0", "job-1"} {
					if f := w.find(id); f.Queued == nil || f.DeadLetter != nil || f.Queued.Error != "its own" {
						w.Errorf("%s: found %+v, want it back for its own error", id, f)
					}
				}
			})
		})
	}
}

// TestAGoexitFailsOnlyWhatHasBegun has a handler end its goroutine in the first job of
// a batch: those behind it have not run, so they have not failed.
func TestAGoexitFailsOnlyWhatHasBegun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(3)
		w.start(each(func(_ context.Context, c *core.Claim) error {
			if c.ID == "job-0" {
				runtime.Goexit()
			}
			return nil
		}), batches(3))
		w.sleep(5 * time.Second)
		w.wantCounts(1, 0, 2, 1)
	})
}

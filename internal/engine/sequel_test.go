package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// Turns of unknown fate don't make the engine forget what has committed.
func TestTransactionsCountOnceThoughRepliesAreLost(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs = 200
		w.declare(1)
		w.pushEach(jobs)
		n := w.start(each(func(ctx context.Context, _ *core.Claim) error {
			time.Sleep(time.Millisecond)
			return w.commit(ctx)
		}), roundTrip(3*time.Millisecond), loseReplies("Turn"))
		w.sleep(5 * time.Minute)
		n.stop()
		w.wantCounts(0, 0, jobs, 0)
		w.wantHistory(jobs, 0)
	})
}

func TestBurialsAreReportedAsTheTransactionEnds(t *testing.T) {
	cases := []struct {
		name string
		run  func(w *world, ctx context.Context, b *engine.Batch) error
		want []string
	}{
		{"done and committed", func(w *world, ctx context.Context, _ *engine.Batch) error { return w.commit(ctx) }, nil},
		{"committed, then an error", func(w *world, ctx context.Context, _ *engine.Batch) error {
			return errors.Join(w.commit(ctx), errors.New("late"))
		}, nil},
		{"not committed", func(w *world, ctx context.Context, _ *engine.Batch) error { return w.open(ctx) },
			[]string{engine.ErrNotCommitted.Error()}},
		{"failed and committed", func(w *world, ctx context.Context, b *engine.Batch) error {
			b.SetOutcome(0, errors.New("boom"))
			return w.commit(ctx)
		}, []string{"boom"}},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				var told []string
				w.start(func(ctx context.Context, b *engine.Batch) error { return tt.run(w, ctx, b) }, func(s *setup) {
					s.queue.Policy.MaxRetries = 0
					s.Buried = func(_ context.Context, b engine.Buried) error {
						told = append(told, b.Error)
						return nil
					}
				})
				w.push("job", "x")
				w.sleep(5 * poll)
				if diff := cmp.Diff(tt.want, told); diff != "" {
					w.Errorf("told (-want +got):\n%s", diff)
				}
			})
		})
	}
}

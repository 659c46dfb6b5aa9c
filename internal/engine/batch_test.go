package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
)

func TestTheJobsOfABatchEndEachInItsOwnWay(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			switch c.ID {
			case "job-1":
				return errors.New("no")
			case "job-2":
				panic("boom")
			}
			return nil
		}), batches(50), polling(time.Minute))
		w.sleep(time.Second)
		w.pushEach(50)
		w.sleep(time.Second)
		w.wantCounts(2, 0, 48, 2)
	})
}

func TestABatchHasSeveralIDsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(120)
		var sizes []int
		w.start(func(_ context.Context, b *execution.Batch) error {
			sizes = append(sizes, len(b.Claims))
			return nil
		}, batches(50))
		w.sleep(poll)
		if diff := cmp.Diff([]int{50, 50, 20}, sizes); diff != "" {
			w.Errorf("batches (-want +got):\n%s", diff)
		}
		w.wantCounts(0, 0, 120, 0)
	})
}

func TestAnErrorOfTheWholeBatchFailsOnlyWhatIsUndecided(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(10)
		w.start(func(_ context.Context, b *execution.Batch) error {
			b.SetOutcome(0, nil)
			b.SetOutcome(1, nil)
			b.SetOutcome(2, errors.New("its own"))
			return errors.New("the batch's")
		}, batches(10))
		w.sleep(poll)
		w.wantCounts(8, 0, 2, 8)
		reasons := make(map[string]int)
		for _, job := range w.jobs() {
			reasons[job.Failures.Newest().Text]++
		}
		if diff := cmp.Diff(map[string]int{"its own": 1, "the batch's": 7}, reasons); diff != "" {
			w.Errorf("errors (-want +got):\n%s", diff)
		}
	})
}

func TestPayloadsCanBeMarkedByThemselves(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(func(_ context.Context, b *execution.Batch) error {
			b.MarkBuried(0, 2, errors.New("bad"))
			b.MarkDone(0, 0)
			b.MarkDone(0, 0)
			return errors.New("not all")
		}, polling(time.Minute))
		w.sleep(time.Second)
		w.push("job", "a", "b", "c", "d")
		found := w.find("job")
		if diff := cmp.Diff([]string{"b", "d"}, texts(found.Queued.Payloads)); diff != "" {
			w.Errorf("to retry (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"c"}, texts(found.DeadLetter.Payloads)); diff != "" ||
			found.DeadLetter.Failures.Newest().Text != "bad" {
			w.Errorf("dead for %q (-want +got):\n%s", found.DeadLetter.Failures.Newest().Text, diff)
		}
	})
}

func TestWhatAHandlerLeftBehindChangesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		left := make(chan struct{})
		w.start(func(ctx context.Context, b *execution.Batch) error {
			go func() {
				defer close(left)
				<-ctx.Done()
				for range 100 {
					if _, ok := b.Begin(ctx, 0); ok {
						w.Error("a job of a batch that ended can begin")
					}
					b.SetOutcome(0, errors.New("late"))
					b.MarkDone(0, 0)
					b.MarkBuried(0, 0, errors.New("late"))
				}
			}()
			return nil
		})
		w.sleep(poll)
		w.push("job", "x")
		<-left
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestAfterALostLeaseNoOtherJobOfTheBatchStarts(t *testing.T) {
	for name, cancelled := range map[string]bool{"": false, "also if the running job was cancelled": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				a.allowOverlap = true
				slow := func(_ context.Context, c *core.Claim) error {
					if c.Recoveries == 0 {
						time.Sleep(time.Minute)
					}
					return nil
				}

				w.declare(1)
				w.pushEach(3)
				n := w.start(a.watch(slow), batches(3))
				w.sleep(poll)

				if cancelled {
					w.cancel(true, "job-0")
					w.sleep(2 * poll)
				}

				n.link.set(hanging)
				w.start(a.watch(slow), batches(3))
				w.sleep(59 * time.Second)

				for i := range 3 {
					for _, e := range a.of(fmt.Sprintf("job-%d", i)) {
						if e.recoveries == 0 && i > 0 {
							w.Errorf("job-%d started at %v, after the lease was lost", i, e.at)
						}
					}
				}

				w.sleep(2 * time.Minute)
				w.wantCounts(0, 0, w.stats().Processed, 0)
			})
		})
	}
}

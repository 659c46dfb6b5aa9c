package engine_test

import (
	"context"
	"testing"

	"github.com/skeinq/skein/core"
)

func TestCancellingAJobThatHasNotStartedLeavesTheOneThatRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(3)
		a := w.audit()
		w.start(a.watch(lasting(5*poll)), batches(3))
		w.sleep(poll)
		w.cancel(true, "job-1")
		w.sleep(20 * poll)
		for _, id := range []string{"job-0", "job-2"} {
			if run := a.wantRuns(id, 1)[0]; run.cause != nil {
				w.Errorf("the context of %q ended with %v", id, run.cause)
			}
		}
		a.wantRuns("job-1", 0)
		w.wantCounts(0, 0, 2, 0)
	})
}

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

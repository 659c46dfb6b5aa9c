package engine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

func TestAJobIsRetriedWithTheDefaultBackoffFor13Hours(t *testing.T) {
	real := time.Now()
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
	t.Logf("took %v of real time", time.Since(real))
}

func TestAHandlerThatPanicsFailsWithItsStack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(func(context.Context, *engine.Batch) error { panic("boom") })
		w.sleep(poll)
		w.push("job", "x")
		w.wantCounts(1, 0, 0, 1)
		for _, text := range []string{"panic: boom", "retry_test.go"} {
			if job := w.find("job").Queued; job == nil || !strings.Contains(job.Error, text) {
				w.Errorf("job %+v; want an error with %q", job, text)
			}
		}
	})
}

func TestAHandlerThatEndsItsGoroutineFailsAndItsLaneGoesOn(t *testing.T) {
	for name, scheduler := range map[string]core.SchedulerFunc{"lag": core.Lag, "seq": core.Seq} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				w.start(a.watch(func(_ context.Context, c *core.Claim) error {
					if c.ID == "bad" {
						runtime.Goexit()
					}
					return nil
				}), lanes(1), func(s *setup) { s.Scheduler = scheduler })
				w.sleep(poll)
				w.push("bad", "x")
				w.push("good", "x")
				w.sleep(4 * poll) // Seq waits after a round without success
				a.wantRuns("bad", 1)
				a.wantRuns("good", 1)
				w.wantCounts(1, 0, 1, 1)
				if job := w.find("bad").Queued; job == nil || !strings.Contains(job.Error, "Goexit") {
					w.Errorf("job %+v; want an error that names Goexit", job)
				}
			})
		})
	}
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

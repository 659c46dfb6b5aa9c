package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestAJobThatKillsItsProcessIsIsolatedAndBuried(t *testing.T) {
	inWorld(t, func(w *world) {
		const others = 20
		var alone atomic.Bool
		alone.Store(true)
		a := w.audit()
		w.declare(1)
		w.push("poison", "deadly", "harmless", "harmless too")
		w.sleep(time.Millisecond) // so that it is the first to run
		w.pushEach(others)
		for range 5 {
			var process *link
			w.start(a.watch(func(ctx context.Context, c *core.Claim) error {
				if c.Recoveries >= core.AloneRecoveries && w.stats().Claimed != 1 {
					alone.Store(false)
				}
				if string(c.Payloads[0].Data) != "deadly" {
					return nil
				}
				process.set(hanging)
				<-ctx.Done()
				return nil
			}), func(s *setup) { process = s.link })
			w.sleep(2 * ttl)
		}
		w.sleep(2 * ttl)

		runs := a.of("poison")
		var recoveries []int
		for _, r := range runs {
			recoveries = append(recoveries, r.recoveries)
		}
		if diff := cmp.Diff([]int{0, 1, 2, 3, 0}, recoveries); diff != "" {
			w.Fatalf("Recoveries of the executions (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"harmless", "harmless too"}, runs[4].payloads); diff != "" {
			w.Errorf("payloads of the last execution (-want +got):\n%s", diff)
		}
		if runs[4].retry != core.FreshRetryCount {
			w.Errorf("RetryCount %d of what is left, want fresh", runs[4].retry)
		}
		if !alone.Load() {
			w.Error("a job that was recovered twice ran while another was claimed")
		}
		dead := w.find("poison").DeadLetter
		if dead == nil || !strings.Contains(dead.Failures.Newest().Text, "crashing its process") {
			w.Fatalf("the morgue has %+v, want the payload and the reason", dead)
		}
		if diff := cmp.Diff([]string{"deadly"}, texts(dead.Payloads)); diff != "" {
			w.Errorf("dead payloads (-want +got):\n%s", diff)
		}
		w.wantCounts(0, 0, others+1, 1)
		a.wantHandledOnce(others, "x")
	})
}

func TestARecoveredJobThatSucceedsIsNoLongerSuspect(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		n.cutOff()
		w.start(a.watch(succeed))
		w.sleep(2 * ttl)
		w.push("job", "y")
		w.sleep(poll)
		runs := a.wantRuns("job", 3)
		if runs[1].recoveries != 1 || runs[2].recoveries != 0 {
			w.Errorf("Recoveries %d and then %d, want 1 and 0", runs[1].recoveries, runs[2].recoveries)
		}
	})
}

// A job that kills its process is found as fast as ever, although the nodes that recover it don't
// know the bound of its recoveries.
func TestAJobThatKillsEachServerOfItsQueueIsBuried(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.declare(1)
		w.startKeeper()
		w.push("poison", "deadly", "harmless")
		w.sleep(time.Millisecond)
		w.pushEach(5)

		for range 6 {
			var process *link
			server := w.start(a.watch(func(ctx context.Context, c *core.Claim) error {
				if c.Recoveries >= core.AloneRecoveries && w.stats().Claimed != 1 {
					w.Errorf("at %v: it was recovered %d times and runs beside others", w.elapsed(), c.Recoveries)
				}
				if string(c.Payloads[0].Data) != "deadly" {
					return nil
				}
				process.set(hanging)
				<-ctx.Done()
				return nil
			}), func(s *setup) { process = s.link })

			w.sleep(poll)
			server.cutOff()
			w.sleep(lookWithin)
			w.wantOrphans(0, 0)
		}

		var recoveries []int
		for _, run := range a.of("poison") {
			recoveries = append(recoveries, run.recoveries)
		}
		if diff := cmp.Diff([]int{0, 1, 2, 3, 0}, recoveries); diff != "" {
			w.Errorf("Recoveries of its executions (-want +got):\n%s", diff)
		}

		dead := w.find("poison").DeadLetter
		if dead == nil || !slices.Equal(texts(dead.Payloads), []string{"deadly"}) {
			w.Errorf("the morgue has %+v, want the deadly payload", dead)
		}
		w.wantCounts(0, 0, 6, 1)
	})
}

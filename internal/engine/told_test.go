package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// burialsTo is an option: jobs are not retried, and their burials are listed.
func recordBurials(told *[]string) func(*setup) {
	return func(s *setup) {
		s.queue.Policy.MaxRetries = 0
		s.Buried = func(_ context.Context, b engine.Buried) error {
			*told = append(*told, b.Error)
			return nil
		}
	}
}

func fails(context.Context, *core.Claim) error { return errors.New("boom") }

func TestABurialIsReportedAndCountedOnceAlthoughTheReplyIsLost(t *testing.T) {
	for name, losing := range map[string]bool{"the reply comes": false, "the reply is lost": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				var told []string
				lost := 0
				n := w.start(each(fails), recordBurials(&told), func(s *setup) {
					s.link.loseTurn = func(r ports.TurnRequest) bool {
						loses := losing && len(r.Settlements) > 0 && lost == 0
						if loses {
							lost++
						}
						return loses
					}
				})
				w.push("job", "x")
				w.sleep(5 * poll)
				if diff := cmp.Diff([]string{"boom"}, told); diff != "" {
					w.Errorf("told (-want +got):\n%s", diff)
				}
				if losing != (lost == 1) {
					w.Errorf("%d replies were lost", lost)
				}
				n.stop()
				w.wantHistory(0, 1)
			})
		})
	}
}

// What a lease did not live to settle has not happened: the next lease's settlement of
// the same claim is another one.
func TestABurialThatItsLeaseDidNotSettleIsNotReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var told []string
		var l *link
		runs := 0
		w.start(each(func(context.Context, *core.Claim) error {
			if runs++; runs > 1 {
				return nil
			}
			l.change(func() { l.broken[shardOfQueue(0)] = ports.ErrLeaseLost })
			return errors.New("boom")
		}), recordBurials(&told), func(s *setup) { l = s.link })
		w.push("job", "x")
		w.sleep(2 * poll)
		l.heal()
		w.sleep(5 * poll)
		if runs != 2 || told != nil {
			w.Errorf("%d runs, and told of %q; want 2 runs and nothing told", runs, told)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

// A cancel's wake-up makes the turn that tells of it; the ticks are for lost ones.
func TestACancelTakesEffectAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		w.sleepUntil(10*poll + poll/4)
		w.cancel(true, "job")
		w.sleep(poll / 10)
		w.within("the job ended", a.wantRuns("job", 1)[0].ended, 10*poll+poll/4, 10*poll+poll/4+10*time.Millisecond)
	})
}

package inspect_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// If Stop ends an action after each step and the caller continues it to the end, each entry is
// handled once, and the counts are exact.
func TestStopEndsAnActionBetweenItsStepsAndItGoesOn(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			const letters = 1000
			s.dead(numbered("d", letters)...)
			s.advance(time.Second)

			var o inspect.BulkOptions
			var asked []int
			o.Stop = func(done int) bool { asked = append(asked, done); return true }

			calls := 0
			for more := true; more; calls++ {
				asked = nil
				before := o.Continue
				result, err := reviving(s.Inspector)[name](t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}

				if len(asked) > 1 || len(asked) == 1 && (asked[0] <= 0 || asked[0] > 250) {
					t.Errorf("call %d asked Stop of %v", calls, asked)
				}
				if result.Handled != result.Done || result.Total != letters {
					t.Errorf("call %d: %+v", calls, result)
				}

				o.Continue = result.Checkpoint
				more = o.Continue != ""
				if more && o.Continue == before {
					t.Fatal("it does not get on")
				}
				if !more && result.Handled != letters {
					t.Errorf("handled %d of %d", result.Handled, letters)
				}
			}

			if calls < 4 {
				t.Errorf("done in %d calls", calls)
			}
			if c := s.counts(); c.Dead != 0 || c.Fresh != letters {
				t.Errorf("counts %+v", c)
			}
		})
	}
}

func TestStopEndsADryRun(t *testing.T) {
	s := newFixture(t)
	s.failed(numbered("f", 600)...)
	s.advance(time.Second)
	match := func(inspect.QueuedJob) bool { return true }
	stop := func(done int) bool { return done >= 200 }
	result, err := s.Bury(t.Context(), "orders",
		inspect.FailedJobs(match, inspect.BulkOptions{DryRun: true, Stop: stop}))
	if err != nil || result.Done < 200 || result.Done >= 600 || result.Total != 600 || result.Checkpoint != "" {
		t.Errorf("%+v, %v", result, err)
	}
}

package bulk

import (
	"errors"
	"testing"

	"github.com/skeinq/skein/ports"
)

// A step may reach few entries, as often as it takes, but steps that reach none come to an end.
func TestStepsEndOnlyWithoutProgress(t *testing.T) {
	for name, tt := range map[string]struct{ reached, steps int }{
		"steps that reach one": {1, partSteps + 1}, "steps that reach none": {0, partSteps},
	} {
		steps := 0
		err := Steps(new(Tally), make([]int, partSteps+1), func([]int) (ports.StepReply, error) {
			if steps++; steps > partSteps+1 {
				return ports.StepReply{}, errors.New("it does not end")
			}
			return ports.StepReply{Reached: tt.reached}, nil
		})
		if steps != tt.steps || (err == nil) != (tt.reached > 0) {
			t.Errorf("%s: %d steps, want %d; %v", name, steps, tt.steps, err)
		}
	}
}

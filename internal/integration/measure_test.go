package integration_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// scaled returns a bound for this machine, on which a server took the time start to start. If that
// is longer than on a quiet machine, the bound is longer by the same factor.
func scaled(bound, start, startOnQuiet time.Duration) time.Duration {
	return time.Duration(float64(bound) * max(1, start.Seconds()/startOnQuiet.Seconds()))
}

// trials is how often a call is tried if it is late, since another program may have used the
// machine.
const trials = 3

// inTime ends the test if all of a few trials were late. A trial returns by how much it was late.
func inTime(t *testing.T, trial func() (late time.Duration)) {
	t.Helper()
	for n := 1; ; n++ {
		late := trial()
		if late <= 0 {
			return
		}
		if n == trials {
			t.Fatalf("%v later than it may be, and late in all %d trials", late, n)
		}
		t.Logf("trial %d: %v later than it may be", n, late)
	}
}

// fromVariable returns the number in an environment variable, or the default without one.
func fromVariable(t *testing.T, variable string, byDefault int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// spread is the measured durations of something.
type spread []time.Duration

// at returns the most that the given per cent of measurements took, 0 if nothing was measured.
func (s spread) at(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(s)-1, len(s)*percent/100)]
}

func (s spread) String() string {
	round := func(percent int) time.Duration { return s.at(percent).Round(time.Millisecond) }
	return fmt.Sprintf("%d, p50 %v, p99 %v, most %v", len(s), round(50), round(99), round(100))
}

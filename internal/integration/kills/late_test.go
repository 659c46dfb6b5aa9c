package kills_test

import (
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

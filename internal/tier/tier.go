// Package tier divides the tests into those that make test runs, before each push, and those that
// only make test-all runs. CONTRIBUTING.md has the table of what runs where.
package tier

import "testing"

// Long skips the test under -short, which is how make test runs. The reason names what the test
// needs that a run before each push can't afford, such as "waits for a master's failover".
func Long(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-all runs it: " + reason)
	}
}

// Count returns how often a test repeats a random run: short under -short, and long otherwise.
func Count(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

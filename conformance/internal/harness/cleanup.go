package harness

import "testing"

// CleanupTB returns a testing.TB whose Cleanup is the given function, so that a test that makes
// many backends can end each one before it makes the next.
func CleanupTB(tb testing.TB, cleanup func(func())) testing.TB {
	return cleanupTB{TB: tb, cleanup: cleanup}
}

type cleanupTB struct {
	testing.TB
	cleanup func(func())
}

// Cleanup implements testing.TB.
func (tb cleanupTB) Cleanup(f func()) { tb.cleanup(f) }

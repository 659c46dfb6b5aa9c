// Package scores makes the default scores of pushes.
package scores

import (
	"sync/atomic"
	"time"
)

// Source makes default scores: the time in seconds. Each score is at least 1 µs above the one before
// (docs/rules.md 1). The zero value is ready. It is safe for concurrent use.
type Source struct{ last atomic.Int64 }

// Take reserves n scores that rise by 1 µs, and returns the first of them, in µs.
func (s *Source) Take(n int, now time.Time) (first int64) {
	for {
		last := s.last.Load()
		first = max(now.UnixMicro(), last+1)
		if s.last.CompareAndSwap(last, first+int64(n)-1) {
			return first
		}
	}
}

// At returns the score at a time in µs.
func At(micro int64) float64 { return float64(micro) / 1e6 }

package kit

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Spread is the measured durations of something.
type Spread []time.Duration

// At returns the most that the given per cent of measurements took, 0 if nothing was measured.
func (s Spread) At(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(s)-1, len(s)*percent/100)]
}

// String returns the number of measurements and their percentiles.
func (s Spread) String() string {
	round := func(percent int) time.Duration { return s.At(percent).Round(time.Millisecond) }
	return fmt.Sprintf("%d, p50 %v, p99 %v, most %v", len(s), round(50), round(99), round(100))
}

// PerJob reports the time of each job of a benchmark whose rounds handle size jobs.
func PerJob(b *testing.B, size int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/job")
}

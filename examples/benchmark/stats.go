package main

import (
	"math"
	"slices"
)

// summary is the middle of some values, and how far they spread.
type summary struct {
	median, min, max float64
}

// summarize sums up at least one value.
func summarize(values []float64) summary {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return summary{
		median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		min:    sorted[0],
		max:    sorted[n-1],
	}
}

// percentile returns the smallest of the values that at least p percent of them do not
// exceed. There must be one.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

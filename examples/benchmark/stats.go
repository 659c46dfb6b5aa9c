package main

import (
	"math"
	"slices"
)

// summary is the median of some values, and their spread.
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

// percentile returns the smallest value such that at least p percent of the values are not larger.
// There must be at least one value.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

package core

import (
	"math/bits"
	"time"
)

// HistogramBuckets is the number of buckets of a [Histogram].
const HistogramBuckets = 64

// Histogram counts durations in logarithmic buckets, two per octave, from under 16 µs to over 9
// hours. Within that range a quantile is in the same bucket as the true value, so from 16 µs on it is
// wrong by at most half of that. The zero value is empty.
type Histogram [HistogramBuckets]uint64

// smallest is the exponent of the first bucket's bound: 2^4 µs.
const smallest = 4

// bucketFor returns the index of the bucket of a duration.
func bucketFor(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	if us < 1<<smallest {
		return 0
	}
	octave := bits.Len64(us) - 1
	half := int(us >> (octave - 1) & 1)
	return min(1+2*(octave-smallest)+half, HistogramBuckets-1)
}

// BucketBounds returns the bounds of the durations that a bucket counts: from is inclusive, to is
// exclusive. The last bucket has no end; its to is the largest duration. A number below 0 means the
// first bucket, and a number above the last one means the last bucket.
func BucketBounds(bucket int) (from, to time.Duration) {
	if bucket >= HistogramBuckets-1 {
		return bucketStart(HistogramBuckets - 1), 1<<63 - 1
	}
	return bucketStart(max(bucket, 0)), bucketStart(max(bucket, 0) + 1)
}

func bucketStart(bucket int) time.Duration {
	if bucket == 0 {
		return 0
	}
	octave, half := smallest+(bucket-1)/2, (bucket-1)%2
	return time.Duration(1<<octave+half<<(octave-1)) * time.Microsecond
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) { h[bucketFor(d)]++ }

// Add adds the counts of another histogram.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// Subtract removes the counts of another histogram, which Add has added.
func (h *Histogram) Subtract(other *Histogram) {
	for i, n := range other {
		h[i] -= n
	}
}

// Count returns the number of counted durations.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h {
		n += c
	}
	return n
}

// Quantile returns the quantile q of the counted durations. It is interpolated between the bounds of
// the bucket that has the quantile, as if the durations in a bucket were spread evenly over it, like
// Prometheus's histogram_quantile. If that is the last bucket, Quantile returns its start. q is
// limited to 0 … 1; 0 stands for the smallest duration. For an empty histogram Quantile returns 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	total := h.Count()
	if total == 0 {
		return 0
	}
	rank := max(0, min(q, 1)) * float64(total)

	var before uint64
	for i, c := range h {
		if c == 0 || float64(before+c) < rank {
			before += c
			continue
		}

		from, to := BucketBounds(i)
		if i == HistogramBuckets-1 {
			return from
		}
		part := max(0, rank-float64(before)) / float64(c)
		return (from + time.Duration(part*float64(to-from))).Truncate(time.Microsecond)
	}

	return bucketStart(HistogramBuckets - 1)
}

package core_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

const last = core.HistogramBuckets - 1

// bucketFor is the bucket in which a histogram counts a duration.
func bucketFor(d time.Duration) int {
	var h core.Histogram
	h.Observe(d)
	return slices.Index(h[:], 1)
}

func TestBucketsFollowOneAnother(t *testing.T) {
	end := time.Duration(0)
	for bucket := range core.HistogramBuckets {
		from, to := core.BucketBounds(bucket)
		if from != end || to <= from {
			t.Fatalf("bucket %d is %v … %v, after one that ends at %v", bucket, from, to, end)
		}
		if bucketFor(from) != bucket || bucketFor(to-1) != bucket {
			t.Fatalf("bucket %d is %v … %v, but these fall into %d and %d",
				bucket, from, to, bucketFor(from), bucketFor(to-1))
		}
		end = to
	}
	if end != math.MaxInt64 {
		t.Errorf("the last bucket ends at %v", end)
	}
}

func TestBucketsReachFromMicrosecondsToHours(t *testing.T) {
	tests := []struct {
		duration time.Duration
		from, to time.Duration
	}{
		{math.MinInt64, 0, 16 * time.Microsecond},
		{0, 0, 16 * time.Microsecond},
		{16 * time.Microsecond, 16 * time.Microsecond, 24 * time.Microsecond},
		{time.Millisecond, 768 * time.Microsecond, 1024 * time.Microsecond},
		{time.Second, 786_432 * time.Microsecond, 1_048_576 * time.Microsecond},
		{9 * time.Hour, 3 << 33 * time.Microsecond, 1 << 35 * time.Microsecond},
		{10 * time.Hour, 1 << 35 * time.Microsecond, math.MaxInt64},
		{math.MaxInt64, 1 << 35 * time.Microsecond, math.MaxInt64},
	}

	for _, tt := range tests {
		if from, to := core.BucketBounds(bucketFor(tt.duration)); from != tt.from || to != tt.to {
			t.Errorf("%v is counted in %v … %v, want %v … %v", tt.duration, from, to, tt.from, tt.to)
		}
	}

	for _, outside := range []int{math.MinInt, -1} {
		if from, _ := core.BucketBounds(outside); from != 0 {
			t.Errorf("bucket %d starts at %v", outside, from)
		}
	}

	if from, to := core.BucketBounds(math.MaxInt); from != 1<<35*time.Microsecond || to != math.MaxInt64 {
		t.Errorf("a bucket past the last is %v … %v", from, to)
	}
}

// drawDuration returns a duration of a random order of magnitude.
func drawDuration(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "nanoseconds") >>
		rapid.IntRange(0, 62).Draw(t, "octaves"))
}

func TestQuantileIsInTheBucketThatHoldsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Custom(drawDuration), 1, 50).Draw(t, "durations")
		q := rapid.Float64Range(0, 1).Draw(t, "q")

		var h core.Histogram
		for _, d := range durations {
			h.Observe(d)
		}

		slices.Sort(durations)
		exact := durations[max(0, int(math.Ceil(q*float64(len(durations))))-1)]

		got := h.Quantile(q)
		from, to := core.BucketBounds(bucketFor(exact))
		switch {
		case bucketFor(exact) == last:
			if got != from {
				t.Fatalf("past the last bucket's start: %v, want %v", got, from)
			}
		case got < from || got > to:
			t.Fatalf("the %v quantile of %v is %v: got %v", q, durations, exact, got)
		case exact >= 16*time.Microsecond && math.Abs(float64(got-exact)) > 0.5*float64(exact):
			t.Fatalf("%v instead of %v is off by more than a half", got, exact)
		}
		if more := h.Quantile(q + 0.01); more < got {
			t.Fatalf("the %v quantile is %v, and a larger one %v", q, got, more)
		}
	})
}

// Within a bucket a quantile grows evenly, so that it does not jump from one bound to the next.
func TestQuantileIsInterpolated(t *testing.T) {
	var h core.Histogram
	for range 100 {
		h.Observe(time.Second) // 786.432 ms to 1,048.576 ms
	}
	for q, want := range map[float64]time.Duration{
		0:    786_432 * time.Microsecond,
		0.25: 851_968 * time.Microsecond,
		0.3:  865_075 * time.Microsecond, // in whole microseconds
		0.5:  917_504 * time.Microsecond,
		1:    1_048_576 * time.Microsecond,
	} {
		if got := h.Quantile(q); got != want {
			t.Errorf("the %v quantile is %v, want %v", q, got, want)
		}
	}
}

func TestQuantileEdges(t *testing.T) {
	var empty, h core.Histogram
	for range 99 {
		h.Observe(time.Millisecond)
	}
	h.Observe(time.Minute)

	from, ms := core.BucketBounds(bucketFor(time.Millisecond))
	_, minute := core.BucketBounds(bucketFor(time.Minute))

	tests := []struct {
		name string
		of   *core.Histogram
		q    float64
		want time.Duration
	}{
		{"empty", &empty, 0.5, 0},
		{"the smallest", &h, 0, from},
		{"99 %", &h, 0.99, ms},
		{"in the middle", &h, 0.495, from + (ms-from)/2},
		{"the largest", &h, 1, minute},
		{"below 0 is the smallest", &h, -3, from},
		{"above 1 is the largest", &h, 3, minute},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.of.Quantile(tt.q); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

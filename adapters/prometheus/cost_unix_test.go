//go:build unix

package prometheus

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/ports"
)

// processor returns the processor time of this process so far.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// measured reports the processor time of f, which is called b.N times: wall time is meaningless on
// a busy machine.
func measured(b *testing.B, f func(n int)) {
	b.ReportAllocs()
	began := processor(b)
	for n := range b.N {
		f(n)
	}
	b.ReportMetric(float64(processor(b)-began)/float64(b.N), "cpu-ns/op")
}

// BenchmarkMetricsOfAJob measures the cost of counting a job: by the floor, which is two counters
// and three histograms of the client's, with the options that ours have, and by the events of a
// batch of one.
func BenchmarkMetricsOfAJob(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		row, _ := metrics.Of("skein_job_wait_seconds")
		histogram := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: row.Name, Buckets: row.Buckets, NativeHistogramBucketFactor: nativeGrowth,
			NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
		})
		counters := [2]prometheus.Counter{
			prometheus.NewCounter(prometheus.CounterOpts{Name: "a"}),
			prometheus.NewCounter(prometheus.CounterOpts{Name: "b"}),
		}
		measured(b, func(int) {
			for range 3 {
				histogram.Observe(1e-6)
			}
			counters[0].Add(1)
			counters[1].Add(1)
		})
	})
	b.Run("metrics", func(b *testing.B) {
		m := newMetrics(b, Options{Queues: []string{"orders"}})
		shard := core.Shard{Queue: "orders"}
		e := ports.BatchEvent{
			Shard:    shard,
			Claims:   []core.Claim{{Job: core.Job{ID: "a", Payloads: make([]core.Payload, 1)}}},
			Now:      core.InstantOf(time.Unix(2, 0)),
			Took:     time.Microsecond,
			Outcomes: []core.Outcome{{}},
		}
		ended := make([]ports.EndedJob, 64)
		measured(b, func(n int) {
			m.BatchEnd(m.BatchStart(context.Background(), e), e)
			if n%len(ended) == 0 {
				m.JobsEnded(ports.EndEvent{Shard: shard, Jobs: ended})
			}
		})
	})
}

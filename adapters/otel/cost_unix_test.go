//go:build unix

package otel_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/otel"
	"github.com/skeinq/skein/core"
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

// BenchmarkMetricsOfAJob measures the cost of counting a job: by the floor, which is the three
// values that the SDK has to put into its histograms, and by the events of a batch of one.
func BenchmarkMetricsOfAJob(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		histogram, err := newMeter().Meter("floor").Float64Histogram("floor")
		if err != nil {
			b.Fatal(err)
		}
		with := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("queue", "orders")))}
		measured(b, func(int) {
			for range 3 {
				histogram.Record(context.Background(), 1e-6, with...)
			}
		})
	})
	b.Run("metrics", func(b *testing.B) {
		m := newMetrics(b, otel.MetricsOptions{MeterProvider: newMeter(), Queues: []string{"orders"}})
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

// BenchmarkSpanOfARun measures the cost of tracing a handler's call; one call in ten is sampled.
// It measures the floor, which is the start and the end of the SDK's span with the same options,
// and the middleware.
func BenchmarkSpanOfARun(b *testing.B) {
	tenth := sdk.NewTracerProvider(sdk.WithBatcher(dropped{}), sdk.WithSampler(sdk.TraceIDRatioBased(0.1)))
	b.Cleanup(func() { _ = tenth.Shutdown(context.Background()) })
	b.Run("floor", func(b *testing.B) {
		tracer := tenth.Tracer("floor")
		with := []trace.SpanStartOption{
			trace.WithNewRoot(),
			trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(
				attribute.String("messaging.system", "skein"),
				attribute.String("messaging.operation.name", "process"),
				attribute.String("messaging.operation.type", "process"),
				attribute.String("messaging.destination.name", "orders"),
			),
		}
		measured(b, func(int) {
			_, span := tracer.Start(context.Background(), "process orders", with...)
			if span.IsRecording() {
				span.SetAttributes(
					attribute.Int("messaging.batch.message_count", 1),
					attribute.Int("skein.jobs", 1),
					attribute.Int("skein.retries", 0),
				)
			}
			span.End()
		})
	})
	b.Run("middleware", func(b *testing.B) {
		run := otel.NewTracing(otel.TracingOptions{TracerProvider: tenth}).Run(
			func(context.Context, *skein.RawBatch) error { return nil })
		batch := &skein.RawBatch{
			Queue: "orders",
			Jobs:  []skein.RawJob{{ID: "a", Payloads: make([]skein.RawPayload, 1)}},
		}
		measured(b, func(int) {
			if err := run(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
		})
	})
}

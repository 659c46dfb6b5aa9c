package otel_test

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/otel"
	"github.com/skeinq/skein/internal/backends"
)

// dropped is an exporter that drops what it gets.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                        { return nil }

// BenchmarkBlankJobs pushes blank jobs to the store of SKEIN_URL, or in memory, and handles them: without anything, with metrics, with a span of each
// push and call, and with both. One trace in ten is sampled.
func BenchmarkBlankJobs(b *testing.B) {
	for _, c := range []struct {
		name            string
		metrics, traces bool
	}{{"without", false, false}, {"metrics", true, false}, {"traces", false, true}, {"both", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			provider := sdk.NewTracerProvider(sdk.WithBatcher(dropped{}), sdk.WithSampler(sdk.TraceIDRatioBased(0.1)))
			client, server := skein.ClientOptions{}, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}
			if c.metrics {
				m := newMetrics(b, otel.MetricsOptions{MeterProvider: newMeter(), Queues: []string{"blank"}})
				client.Observer, server.Observer = m, m
			}
			if c.traces {
				tracing := otel.NewTracing(otel.TracingOptions{TracerProvider: provider})
				client.Middleware, server.Middleware = []skein.PushMiddleware{tracing.Push}, []skein.Middleware{tracing.Run}
			}
			blankJobs(b, client, server)
			if err := provider.Shutdown(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func blankJobs(b *testing.B, client skein.ClientOptions, server skein.ServerOptions) {
	store, closeStore, err := backends.Open(b.Context(), cmp.Or(os.Getenv("SKEIN_URL"), "memory://"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = closeStore() }()
	blank := skein.NewQueue("blank", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})
	pusher := skein.NewClient(store, client)
	for b.Loop() {
		for n := range 200 {
			entries := make([]skein.Entry[[]byte], 500)
			for i := range entries {
				entries[i].ID = "order-" + strconv.Itoa(n*len(entries)+i)
			}
			if err := blank.PushMany(b.Context(), pusher, entries); err != nil {
				b.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(b.Context())
		var done atomic.Int64
		h := blank.Handler(func(context.Context, string, [][]byte) error {
			if done.Add(1) == 200*500 {
				stop()
			}
			return nil
		})
		if err := skein.NewServer(store, server, h).Run(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*200*500/b.Elapsed().Seconds(), "jobs/s")
}

package otel_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/otel"
	"github.com/skeinq/skein/internal/backends"
)

// dropped is an exporter that drops everything.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                        { return nil }

// BenchmarkBlankJobs pushes blank jobs to the store of SKEIN_URL, or in memory, and handles them:
// without anything, with metrics, with a span of each push and call, with spans of pushes and of
// those calls alone that a sampled push leads to, and with both. One trace in ten is sampled.
// SKEIN_WAIT is how long a handler waits.
func BenchmarkBlankJobs(b *testing.B) {
	for _, c := range []struct {
		name                 string
		metrics, traces, all bool
	}{
		{"without", false, false, false}, {"metrics", true, false, false}, {"traces", false, true, true},
		{"pushed", false, true, false}, {"both", true, true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			tenth := sdk.NewTracerProvider(sdk.WithBatcher(dropped{}), sdk.WithSampler(sdk.TraceIDRatioBased(0.1)))
			every := sdk.NewTracerProvider(sdk.WithBatcher(dropped{}))
			client, server := skein.ClientOptions{}, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}
			if c.metrics {
				m := newMetrics(b, otel.MetricsOptions{MeterProvider: newMeter(), Queues: []string{"blank"}})
				client.Observer, server.Observer = m, m
			}
			if c.traces {
				push := otel.NewTracing(otel.TracingOptions{TracerProvider: tenth})
				run := push
				if !c.all {
					run = otel.NewTracing(otel.TracingOptions{TracerProvider: every, OnlySampled: true})
				}
				client.Middleware, server.Middleware = []skein.PushMiddleware{push.Push}, []skein.Middleware{run.Run}
			}
			blankJobs(b, client, server)
			if err := errors.Join(tenth.Shutdown(b.Context()), every.Shutdown(b.Context())); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func blankJobs(b *testing.B, client skein.ClientOptions, server skein.ServerOptions) {
	wait, _ := time.ParseDuration(os.Getenv("SKEIN_WAIT")) // none without it
	if wait > 0 {
		server.Lanes = 1000
	}
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
			if wait > 0 {
				time.Sleep(wait)
			}
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

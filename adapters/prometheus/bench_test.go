package prometheus

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
)

// BenchmarkBlankJobs handles blank jobs on the memory store without an observer, with one that does nothing, and with Metrics.
func BenchmarkBlankJobs(b *testing.B) {
	for _, c := range []struct {
		name     string
		observer func() skein.Observer
	}{
		{"without", func() skein.Observer { return nil }},
		{"nop", func() skein.Observer { return skein.NopObserver{} }},
		{"metrics", func() skein.Observer { return newMetrics(b, Options{Queues: []string{"blank"}}) }},
	} {
		b.Run(c.name, func(b *testing.B) { blankJobs(b, c.observer()) })
	}
}

func blankJobs(b *testing.B, observer skein.Observer) {
	blank := skein.NewQueue("blank", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})
	const backlog = 200_000
	store := memory.New(memory.Options{})
	for left := b.N; left > 0; left -= backlog {
		b.StopTimer()
		n := min(left, backlog)
		fill(b, blank, store, n)
		b.StartTimer()
		ctx, stop := context.WithCancel(b.Context())
		var done atomic.Int64
		h := blank.Handler(func(context.Context, string, [][]byte) error {
			if done.Add(1) == int64(n) {
				stop()
			}
			return nil
		})
		o := skein.ServerOptions{Logger: slog.New(slog.DiscardHandler), Observer: observer}
		if err := skein.NewServer(store, o, h).Run(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

func fill(b *testing.B, blank *skein.Queue[[]byte], store skein.Store, n int) {
	client := skein.NewClient(store, skein.ClientOptions{})
	entries := make([]skein.Entry[[]byte], 0, 500)
	for i := range n {
		entries = append(entries, skein.Entry[[]byte]{ID: "order-" + strconv.Itoa(i)})
		if len(entries) == cap(entries) || i == n-1 {
			if err := blank.PushMany(b.Context(), client, entries); err != nil {
				b.Fatal(err)
			}
			entries = entries[:0]
		}
	}
}

// BenchmarkPlay is what all events cost together.
func BenchmarkPlay(b *testing.B) {
	m := newMetrics(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		play(m, core.Shard{Queue: "orders"})
	}
}

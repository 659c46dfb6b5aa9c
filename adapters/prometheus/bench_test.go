package prometheus

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/backends"
)

// BenchmarkBlankJobs pushes blank jobs to the store of SKEIN_URL, or in memory, and handles them:
// without an observer, with one that does nothing, and with Metrics. SKEIN_WAIT is how long a
// handler waits.
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

// Blank jobs of a round, and how many are pushed in a call.
const (
	roundJobs = 100_000
	pushJobs  = 500
)

func blankJobs(b *testing.B, observer skein.Observer) {
	wait, _ := time.ParseDuration(os.Getenv("SKEIN_WAIT")) // none without it
	store, closeStore, err := backends.Open(b.Context(), cmp.Or(os.Getenv("SKEIN_URL"), "memory://"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = closeStore() }()
	blank := skein.NewQueue("blank", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})
	client := skein.NewClient(store, skein.ClientOptions{Observer: observer})
	for b.Loop() {
		for n := range roundJobs / pushJobs {
			entries := make([]skein.Entry[[]byte], pushJobs)
			for i := range entries {
				entries[i].ID = "order-" + strconv.Itoa(n*pushJobs+i)
			}
			if err := blank.PushMany(b.Context(), client, entries); err != nil {
				b.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(b.Context())
		var done atomic.Int64
		h := blank.Handler(func(context.Context, string, [][]byte) error {
			if wait > 0 {
				time.Sleep(wait)
			}
			if done.Add(1) == roundJobs {
				stop()
			}
			return nil
		})
		o := skein.ServerOptions{Logger: slog.New(slog.DiscardHandler), Observer: observer}
		if wait > 0 {
			o.Lanes = 1000
		}
		if err := skein.NewServer(store, o, h).Run(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*roundJobs/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkPlay measures the cost of all events together.
func BenchmarkPlay(b *testing.B) {
	m := newMetrics(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		play(m, core.Shard{Queue: "orders"})
	}
}

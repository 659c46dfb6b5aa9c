package skein_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// counting is the destination of a log's lines; it costs as much as a quick disk.
type counting struct{ lines, bytes atomic.Int64 }

func (c *counting) Write(p []byte) (int, error) {
	c.lines.Add(1)
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// BenchmarkFailures measures the cost of a job that fails and is retried later, and its lines in
// the log.
func BenchmarkFailures(b *testing.B) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{
		Shards:  8,
		Backoff: func(int) time.Duration { return time.Hour },
	})
	c := skein.NewClient(store, skein.ClientOptions{})
	entries := make([]skein.Entry[string], b.N)
	for i := range entries {
		entries[i] = skein.Entry[string]{ID: fmt.Sprintf("id-%d", i), Payload: "x"}
	}
	if err := q.PushMany(b.Context(), c, entries); err != nil {
		b.Fatal(err)
	}

	var out counting
	var runs atomic.Int64
	ctx, stop := context.WithCancel(b.Context())
	h := q.Each(func(_ context.Context, id, _ string) error {
		if runs.Add(1) == int64(b.N) {
			stop()
		}
		return fmt.Errorf("charge %s: the bank is closed, try again in %d ms", id, runs.Load())
	})
	server := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.NewJSONHandler(&out, nil))}, h)

	b.ResetTimer()
	if err := server.Run(ctx); err != nil {
		b.Fatal(err)
	}

	b.ReportMetric(float64(out.lines.Load()), "lines")
	b.ReportMetric(float64(out.bytes.Load())/float64(b.N), "logbytes/op")
}

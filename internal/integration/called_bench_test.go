package integration_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/webhook"
)

// BenchmarkCallsOfAURL measures handlers of 10 ms in 100 lanes: a Go function, and a web server that
// is called as by skein work, without and with a signature. The web server is in the same process, so
// its own work counts too.
func BenchmarkCallsOfAURL(b *testing.B) {
	const lanes, takes = 100, 10 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(takes) // the work, also on a slow machine
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	secrets, err := webhook.ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(b, err)

	type handler func(context.Context, *skein.Job[[]byte]) error
	calls := func(secrets []webhook.Secret) handler {
		caller, err := webhook.New("called", webhook.Options{URL: server.URL, Lanes: lanes, Secrets: secrets})
		must(b, err)
		b.Cleanup(caller.Close)
		return caller.Handle
	}
	for _, tt := range []struct {
		name   string
		handle handler
	}{
		{"go", func(context.Context, *skein.Job[[]byte]) error {
			time.Sleep(takes) // the work, also on a slow machine
			return nil
		}},
		{"http", calls(nil)},
		{"signed", calls(secrets)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			connection := testservers.Redis(b)
			store := redis.New(connection, redis.Options{Prefix: testservers.Prefix(b, connection)})
			queue := skein.NewQueue("called", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Timeout: time.Minute})
			entries := make([]skein.Entry[[]byte], b.N)
			for i := range entries {
				entries[i] = skein.Entry[[]byte]{ID: fmt.Sprint(i), Payload: []byte(`{"number":1,"what":"paid"}`)}
			}
			must(b, queue.PushMany(b.Context(), skein.NewClient(store, skein.ClientOptions{}), entries))

			ctx, stop := context.WithCancel(b.Context())
			var left atomic.Int64
			left.Store(int64(b.N))
			worker := skein.NewServer(store, skein.ServerOptions{Lanes: lanes, Logger: slog.New(slog.DiscardHandler)},
				queue.JobHandler(func(ctx context.Context, job *skein.Job[[]byte]) error {
					err := tt.handle(ctx, job)
					if err != nil {
						b.Error(err)
					}
					if left.Add(-1) == 0 {
						stop()
					}
					return err
				}))
			b.ResetTimer()
			must(b, worker.Run(ctx))
			perSecond := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "jobs/s")
			b.ReportMetric(lanes/perSecond*1000-float64(takes.Milliseconds()), "ms-over/job")
		})
	}
}

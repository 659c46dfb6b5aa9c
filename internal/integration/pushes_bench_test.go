package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// pushedEvent is a payload of a usual size.
type pushedEvent struct {
	Number int    `json:"number"`
	What   string `json:"what"`
}

// BenchmarkPushesOverHTTP measures pushes over HTTP beside pushes from Go, one by one, by 8 clients
// at once, and 500 in a request. Each entry has an id of its own. HTTP costs a request, JSON and the
// canonical form.
func BenchmarkPushesOverHTTP(b *testing.B) {
	stores := map[string]func(b *testing.B) ports.ShardStore{
		"redis": func(b *testing.B) ports.ShardStore {
			client := testservers.Redis(b)
			return redis.New(client, redis.Options{Prefix: testservers.Prefix(b, client)})
		},
		"postgres": func(b *testing.B) ports.ShardStore {
			pool := testservers.OwnPostgres(b)
			schema := testservers.Schema(b, pool)
			must(b, postgres.Migrate(b.Context(), pool, postgres.MigrateOptions{Schema: schema}))
			return postgres.New(pool, postgres.Options{Schema: schema})
		},
	}

	for name, open := range stores {
		store := open(b)
		for way, push := range map[string]func(b *testing.B, first, count int){
			"go":   pushesFromGo(store),
			"http": pushesOverHTTP(b, store),
		} {
			for _, tt := range []struct{ clients, entries int }{{1, 1}, {8, 1}, {1, 500}} {
				b.Run(fmt.Sprintf("%s/%s/clients %d/entries %d", name, way, tt.clients, tt.entries), func(b *testing.B) {
					var last atomic.Int64
					next := func() { push(b, int(last.Add(int64(tt.entries))), tt.entries) }
					if tt.clients == 1 {
						for range b.N {
							next()
						}
					} else {
						b.SetParallelism(max(1, tt.clients/runtime.GOMAXPROCS(0)))
						b.RunParallel(func(pb *testing.PB) {
							for pb.Next() {
								next()
							}
						})
					}
					b.ReportMetric(float64(b.N*tt.entries)/b.Elapsed().Seconds(), "entries/s")
				})
			}
		}
	}
}

func pushesFromGo(store ports.ShardStore) func(b *testing.B, first, count int) {
	events := skein.NewQueue("events", skein.QueueOptions[pushedEvent]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	return func(b *testing.B, first, count int) {
		b.Helper()
		entries := make([]skein.Entry[pushedEvent], count)
		for at := range entries {
			entries[at].ID = fmt.Sprintf("go-%d-%d", b.N, first+at)
			entries[at].Payload = pushedEvent{first + at, "paid"}
		}
		must(b, events.PushMany(b.Context(), client, entries))
	}
}

func pushesOverHTTP(b *testing.B, store ports.ShardStore) func(b *testing.B, first, count int) {
	b.Helper()
	_, err := store.Declare(b.Context(), ports.DeclareRequest{Queue: "events", Shards: skein.DefaultShards})
	must(b, err)
	api, err := httpapi.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), httpapi.Options{})
	must(b, err)
	server := httptest.NewServer(api)
	b.Cleanup(server.Close)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	client := &http.Client{Transport: transport}

	return func(b *testing.B, first, count int) {
		b.Helper()
		var body strings.Builder
		body.WriteString(`{"entries":[`)
		for at := range count {
			payload, err := json.Marshal(pushedEvent{first + at, "paid"})
			must(b, err)
			if at > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"id":"http-%d-%d","payload":%s}`, b.N, first+at, payload)
		}
		body.WriteString("]}")

		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/api/v1/queues/events/jobs",
			strings.NewReader(body.String()))
		must(b, err)
		r.Header.Set("Content-Type", "application/json")
		reply, err := client.Do(r)
		must(b, err)
		text, err := io.ReadAll(reply.Body)
		must(b, err)
		must(b, reply.Body.Close())
		if reply.StatusCode != http.StatusOK {
			b.Fatalf("%s: %s", reply.Status, text)
		}
	}
}

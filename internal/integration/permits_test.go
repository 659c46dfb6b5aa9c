package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
)

const (
	permitServers = 3
	permitLimit   = 5
	permitJobs    = 500
)

var calls = skein.NewQueue[int]("calls", skein.QueueOptions[int]{Shards: 6, MaxRunning: permitLimit})

// gauge counts what runs at once.
type gauge struct {
	mu                  sync.Mutex
	running, most, done int
	by                  map[int]int
	all                 chan struct{}
}

// run is the handler of a server.
func (g *gauge) run(server int) skein.Handler {
	return calls.Handler(func(context.Context, string, []int) error {
		g.mu.Lock()
		g.running++
		g.most = max(g.most, g.running)
		g.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
		g.by[server]++
		if g.done++; g.done == permitJobs {
			close(g.all)
		}
		return nil
	})
}

// Servers with stores of their own never run more of a queue's batches than its MaxRunning in all, and as many while there
// is work.
func TestServersShareMaxRunning(t *testing.T) {
	redis, cluster, postgres := testservers.Redis(t), testservers.RedisCluster(t), testservers.Postgres(t)
	for name, url := range map[string]string{
		"Redis":         storeURL(redis) + "?prefix=" + testservers.Prefix(t, redis),
		"Redis Cluster": storeURL(cluster) + "&prefix=" + testservers.Prefix(t, cluster),
		"Postgres":      postgresStoreURL(t, testservers.Schema(t, postgres)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gauge{by: make(map[int]int), all: make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ended sync.WaitGroup
			defer ended.Wait()
			defer cancel()
			for i := range permitServers {
				store, closeStore, err := backends.Open(t.Context(), url)
				must(t, err)
				t.Cleanup(func() { _ = closeStore() })
				server := skein.NewServer(store, skein.ServerOptions{LeaseTTL: 5 * time.Second}, g.run(i))
				ended.Go(func() {
					if err := server.Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			store, closeStore, err := backends.Open(t.Context(), url)
			must(t, err)
			t.Cleanup(func() { _ = closeStore() })
			client := skein.NewClient(store, skein.ClientOptions{})
			for i := range permitJobs {
				must(t, calls.Push(ctx, client, fmt.Sprint("id-", i), i))
			}
			began := time.Now()
			select {
			case <-g.all:
			case <-time.After(testservers.Patience):
				t.Fatalf("%d of %d jobs ran", g.done, permitJobs)
			}
			t.Logf("%d jobs ran within %v of the last push, at most %d at once, by server: %v", permitJobs, time.Since(began), g.most, g.by)
			if g.most != permitLimit {
				t.Errorf("%d jobs ran at once at most, want %d", g.most, permitLimit)
			}
		})
	}
}

package integration_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const (
	permitServers = 3
	permitLimit   = 5
	permitJobs    = 500
)

var calls = skein.NewQueue[int]("calls", skein.QueueOptions[int]{Shards: 6, MaxRunning: permitLimit})

// gauge counts the batches that run at once. None ends before permitLimit of them run.
type gauge struct {
	mu                  sync.Mutex
	running, most, done int
	by                  map[int]int
	full, all           chan struct{}
}

func newGauge() *gauge {
	return &gauge{by: make(map[int]int), full: make(chan struct{}), all: make(chan struct{})}
}

// run is the handler of a server.
func (g *gauge) run(server int) skein.Handler {
	return calls.Handler(func(context.Context, string, []int) error {
		g.begin()
		<-g.full
		time.Sleep(5 * time.Millisecond) // in which one too many would begin; on a slow machine it may not, and the test passes
		g.end(server)
		return nil
	})
}

func (g *gauge) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
	if g.most = max(g.most, g.running); g.running == permitLimit {
		select {
		case <-g.full: // not for the first time
		default:
			close(g.full)
		}
	}
}

func (g *gauge) end(server int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.by[server]++
	if g.done++; g.done == permitJobs {
		close(g.all)
	}
}

// Servers, each with its own store, together run MaxRunning batches of a queue at once, and never
// more.
func TestServersShareMaxRunning(t *testing.T) {
	t.Parallel()
	for name, open := range kit.StoreAndClusterURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			g := newGauge()
			for i := range permitServers {
				g.serve(t, url, i)
			}
			store := kit.Open(t, url)
			client := skein.NewClient(store, skein.ClientOptions{})
			for i := range permitJobs {
				must(t, calls.Push(t.Context(), client, fmt.Sprint("id-", i), i))
			}
			wait(t, "as many batches as may run at once do", g.full)
			wait(t, "all jobs ran", g.all)
			t.Logf("%d jobs ran by server: %v", permitJobs, g.by)
			if g.most > permitLimit {
				t.Errorf("%d jobs ran at once at most, want %d", g.most, permitLimit)
			}
		})
	}
}

// serve runs a server with a store of its own until the test ends. It returns once the server has
// a shard, so that it runs a part of the jobs pushed then.
func (g *gauge) serve(t *testing.T, url string, server int) {
	t.Helper()
	holds := make(chan struct{})
	t.Cleanup(kit.Serve(t, skein.NewServer(kit.Open(t, url), skein.ServerOptions{
		LeaseTTL: time.Minute, Observer: &firstLease{acquired: holds}, Logger: slog.New(slog.DiscardHandler),
	}, g.run(server))))
	wait(t, "a server has a shard", holds)
}

// firstLease closes a channel when its server has acquired a lease.
type firstLease struct {
	ports.NopObserver
	acquired chan struct{}
	once     sync.Once
}

func (f *firstLease) LeaseChanged(e ports.LeaseEvent) {
	if e.Change == ports.LeaseAcquired {
		f.once.Do(func() { close(f.acquired) })
	}
}

// wait ends the test unless the channel is closed.
func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(testservers.Patience):
		t.Fatalf("not within %v: %s", testservers.Patience, what)
	}
}

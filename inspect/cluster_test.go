package inspect_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// cluster is some servers of one queue in virtual time, and the jobs that they run.
type cluster struct {
	*inspect.Inspector
	t     *testing.T
	store ports.ShardStore
	queue *skein.Queue[string]

	mu      sync.Mutex
	started map[string]time.Time
	// by counts the jobs that each server has started.
	by map[string]int
}

const clusterPoll, clusterTTL = time.Second, 30 * time.Second

// inCluster runs a test with three servers, whose jobs take as long as their payload states or
// until they are cancelled. The wake-ups of the store are hidden unless waking.
func inCluster(t *testing.T, waking bool, test func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		var store ports.ShardStore = memory.New(memory.Options{})
		if !waking {
			store = struct{ ports.ShardStore }{store}
		}

		c := &cluster{
			Inspector: inspect.New(store, inspect.Options{}), t: t, store: store,
			queue:   skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 12}),
			started: make(map[string]time.Time), by: make(map[string]int),
		}

		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for n := range 3 {
			name := fmt.Sprintf("node-%d", n)
			running.Go(func() {
				if err := c.server(name).Run(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}

		time.Sleep(2 * clusterTTL)
		synctest.Wait()
		test(c)

		stop()
		running.Wait()
	})
}

func (c *cluster) server(name string) *skein.Server {
	o := skein.ServerOptions{
		Name:         name,
		Version:      "v7",
		Lanes:        20,
		PollInterval: clusterPoll,
		LeaseTTL:     clusterTTL,
		Logger:       slog.New(slog.DiscardHandler),
	}

	return skein.NewServer(c.store, o, c.queue.Handler(func(ctx context.Context, id string, payloads []string) error {
		c.mu.Lock()
		c.started[id] = time.Now()
		c.by[name]++
		c.mu.Unlock()

		d, err := time.ParseDuration(payloads[0])
		if err != nil || d == 0 {
			return err
		}
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
}

// push pushes n jobs that take a while.
func (c *cluster) push(prefix string, n int, takes time.Duration) {
	c.t.Helper()
	client := skein.NewClient(c.store, skein.ClientOptions{})
	var entries []skein.Entry[string]
	for i := range n {
		entries = append(entries, skein.Entry[string]{ID: fmt.Sprint(prefix, i), Payload: takes.String()})
	}
	if err := c.queue.PushMany(c.t.Context(), client, entries); err != nil {
		c.t.Fatal(err)
	}
}

// startedOf returns how many jobs of a prefix have started.
func (c *cluster) startedOf(prefix string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.started {
		if strings.HasPrefix(id, prefix) {
			n++
		}
	}
	return n
}

func (c *cluster) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// acts is how soon an operator's action takes effect on each server.
var acts = map[string]struct {
	waking bool
	within time.Duration
}{
	"with wake-ups": {true, 10 * time.Millisecond},
	"by polling":    {false, clusterPoll},
}

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// Two deployments that disagree about the shard count of a queue.
const (
	oldShards, newShards = 3, 5
	countPoll            = 20 * time.Millisecond
)

// movedID is an id that the two deployments would put into different shards.
const movedID = "order-1"

// deployment is one version of a program: a client, and servers that write down the jobs that they
// handle.
type deployment struct {
	t      *testing.T
	name   string
	store  ports.ShardStore
	client *skein.Client
	queue  *skein.Queue[string]
	log    *kit.Log
	// ttl is the LeaseTTL of its servers. It is long: if a lease is lost on a busy machine, a job
	// is handled twice.
	ttl time.Duration

	mu      sync.Mutex
	handled []string
}

func newDeployment(t *testing.T, name string, shards int, store ports.ShardStore) *deployment {
	return &deployment{
		t:      t,
		name:   name,
		ttl:    time.Minute,
		store:  store,
		client: skein.NewClient(store, skein.ClientOptions{}),
		log:    &kit.Log{},
		queue:  skein.NewQueue("orders", skein.QueueOptions[string]{Shards: shards}),
	}
}

func (d *deployment) push(id, payload string) error {
	return d.queue.Push(d.t.Context(), d.client, id, payload)
}

func (d *deployment) server() *skein.Server {
	o := skein.ServerOptions{
		Name: d.name, LeaseTTL: d.ttl, PollInterval: 10 * countPoll, Logger: slog.New(slog.NewTextHandler(d.log, nil)),
	}
	return skein.NewServer(d.store, o, d.queue.Handler(func(_ context.Context, id string, payloads []string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.handled = append(d.handled, fmt.Sprint(id, payloads))
		return nil
	}))
}

// awaitHandled waits until the deployment's servers have handled n jobs, and returns them.
func (d *deployment) awaitHandled(n int) []string {
	d.t.Helper()
	for end := time.Now().Add(testservers.Patience); ; time.Sleep(countPoll) {
		d.mu.Lock()
		handled := append([]string(nil), d.handled...)
		d.mu.Unlock()
		if len(handled) >= n {
			return handled
		}
		if time.Now().After(end) {
			d.t.Fatalf("%s has handled %q, want %d jobs", d.name, handled, n)
		}
	}
}

// refused checks an error that a user of a deployment sees: it names the two counts, and the page
// to read.
func (d *deployment) refused(what string, err error, has int) {
	d.t.Helper()
	wants := []string{
		fmt.Sprintf("has %d shards", has), fmt.Sprintf("not %d", d.queueShards()), `"orders"`,
		"docs/guide/resharding.md",
	}
	if !errors.Is(err, skein.ErrShardCountMismatch) {
		d.t.Errorf("%s of %s: %v; want ErrShardCountMismatch", what, d.name, err)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			d.t.Errorf("%s of %s: %v; want an error with %q", what, d.name, err, want)
		}
	}
}

func (d *deployment) queueShards() int {
	return map[string]int{"old": oldShards, "new": newShards}[d.name]
}

// holdsNothing checks that the queue has a shard count, and no job of any kind.
func holdsNothing(t *testing.T, store ports.ShardStore, shards int) {
	t.Helper()
	stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	c := stats[0].Counts
	if diff := cmp.Diff([]int64{int64(shards), 0, 0, 0}, []int64{
		int64(len(stats[0].Shards)), c.Length(), c.Claimed, c.Dead,
	}); diff != "" {
		t.Errorf("shards, queued, claimed, dead (-want +got):\n%s", diff)
	}
}

// onEachStore runs a test on memory, Redis and Postgres.
func onEachStore(t *testing.T, test func(t *testing.T, store ports.ShardStore)) {
	urls := kit.StoreURLs(t)
	urls["memory"] = func(*testing.T) string { return "memory://" }
	for name, open := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := kit.Open(t, open(t))
			test(t, store)
		})
	}
}

package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

const (
	outageShards = 12
	// Without a wake-up a job would wait five times as long as it may.
	outagePoll = 10 * time.Minute
	// promptly is how long a job may take that nothing holds up, on a machine that is very busy.
	promptly = 2 * time.Minute
)

var outages = skein.NewQueue[int]("outages", skein.QueueOptions[int]{Shards: outageShards})

// outage is a Cluster with a failing master, a server that works on it, and a client that pushes
// to it.
type outage struct {
	*testing.T
	cluster *goredis.ClusterClient
	client  *skein.Client
	next    int
	// readTimeout is how long the clients wait for a reply; 0 is their default.
	readTimeout time.Duration

	mu      sync.Mutex
	handled map[string]chan struct{}
	log     kit.Log
}

// newOutage starts a Cluster and its users.
func newOutage(t *testing.T) *outage { return newOutageWith(t, outageFlags...) }

// newOutageWith is newOutage with other flags of the servers.
func newOutageWith(t *testing.T, flags ...string) *outage {
	cluster := testservers.OwnRedisCluster(t, flags...).(*goredis.ClusterClient)
	o := &outage{T: t, cluster: cluster, handled: map[string]chan struct{}{}}
	o.client = skein.NewClient(redis.New(o.connect(), redis.Options{}), skein.ClientOptions{})
	return o
}

// outageFlags make a Cluster serve the remaining slots, and fail over soon.
var outageFlags = []string{"--cluster-require-full-coverage", "no", "--cluster-node-timeout", "2000"}

// connect opens another client of the Cluster, as another process has it.
func (o *outage) connect() *goredis.ClusterClient {
	client := goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: o.cluster.Options().Addrs, ReadTimeout: o.readTimeout,
	})
	o.Cleanup(func() { client.Close() })
	return client
}

// waitForever makes all clients that are opened from now on wait for a reply for longer than any
// test: a call that waits for a hanging server is never late, but does not end.
func (o *outage) waitForever() {
	o.readTimeout = time.Hour
	o.client = skein.NewClient(redis.New(o.connect(), redis.Options{}), skein.ClientOptions{})
}

// serve runs a server until the test ends.
func (o *outage) serve() {
	handler := outages.Handler(func(_ context.Context, id string, _ []int) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if done := o.handled[id]; done != nil {
			close(done)
			delete(o.handled, id)
		}
		return nil
	})
	server := skein.NewServer(redis.New(o.connect(), redis.Options{}), skein.ServerOptions{
		PollInterval: outagePoll, Logger: slog.New(slog.DiscardHandler),
	}, handler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	o.Cleanup(func() {
		cancel()
		<-ended
	})
}

// master returns a client of the server that has a shard by the map of the test's client.
func (o *outage) master(shard int) *goredis.Client {
	o.Helper()
	node, err := o.cluster.MasterForKey(o.Context(), fmt.Sprintf("skein:{outages/%d}:m", shard))
	must(o, err)
	return testservers.RedisNode(o, node.Options().Addr)
}

// divide returns the shards of the server that has shard 0, and the others.
func (o *outage) divide() (failing *goredis.Client, lost, healthy []int) {
	o.Helper()
	failing = o.master(0)
	lost, healthy = o.divideBy(failing)
	return failing, lost, healthy
}

// divideBy returns the shards that a server has, and the others.
func (o *outage) divideBy(failing *goredis.Client) (lost, healthy []int) {
	o.Helper()
	for i := range outageShards {
		if o.master(i).Options().Addr == failing.Options().Addr {
			lost = append(lost, i)
		} else {
			healthy = append(healthy, i)
		}
	}
	return lost, healthy
}

// push pushes a new job of a shard, and returns a channel that is closed when it is handled.
func (o *outage) push(shard int, timeout time.Duration) (handled <-chan struct{}, err error) {
	o.Helper()
	var id string
	for ok := false; !ok; ok = core.ShardOf(id, outageShards) == shard {
		o.next++
		id = fmt.Sprint("job-", o.next)
	}
	done := make(chan struct{})
	o.mu.Lock()
	o.handled[id] = done
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(o.Context(), timeout)
	defer cancel()
	return done, outages.Push(ctx, o.client, id, 1)
}

// handles checks that jobs of shards are accepted and handled within a time, and returns the
// longest time that one took.
func (o *outage) handles(what string, shards []int, within time.Duration) (longest time.Duration) {
	o.Helper()
	for _, shard := range shards {
		began := time.Now()
		handled, err := o.push(shard, within)
		if err != nil {
			o.Fatalf("%s: push to shard %d: %v", what, shard, err)
		}
		select {
		case <-handled:
			longest = max(longest, time.Since(began))
		case <-time.After(within - time.Since(began)):
			o.Fatalf("%s: a job of shard %d is not handled within %v", what, shard, within)
		}
	}
	return longest
}

// listen subscribes to the wake-ups of all shards, and logs into o.log.
func (o *outage) listen() <-chan core.Shard {
	o.Helper()
	wakeups, err := redis.New(o.connect(), redis.Options{Logger: slog.New(slog.NewTextHandler(&o.log, nil))}).Wakeups(
		o.Context(), core.Shards("outages", outageShards),
	)
	must(o, err)
	return wakeups
}

// wakes checks that a job of each shard wakes it.
func (o *outage) wakes(wakeups <-chan core.Shard, shards []int) {
	o.Helper()
	woken := make(map[int]bool)
	for _, shard := range shards {
		if _, err := o.push(shard, promptly); err != nil {
			o.Fatal(err)
		}
		timeout := time.After(promptly)
		for !woken[shard] {
			select {
			case s := <-wakeups:
				woken[s.Index] = true
			case <-timeout:
				o.Fatalf("no wake-up of shard %d within %v", shard, promptly)
			}
		}
	}
}

// While a master of a Cluster is dead, pushes to the shards of the others are accepted and
// handled as before.
func TestRedisDeadMasterStopsOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	o.serve()
	failing, _, healthy := o.divide()
	o.Logf("before: %v", o.handles("before", healthy, testservers.Patience))
	o.handles("before", []int{0}, testservers.Patience)
	wakeups := o.listen()
	testservers.Kill(t, failing)
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(100 * time.Millisecond) {
		if took := o.handles("beside a dead master", healthy, promptly); took > time.Second {
			o.Logf("%v after it died a job took %v", time.Since(began), took)
		}
	}
	o.wakes(wakeups, healthy)
	for end := time.Now().Add(testservers.Patience); !strings.Contains(o.log.String(), "wake-ups are interrupted"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the log does not say that wake-ups are interrupted")
		}
	}
}

// The same holds while a master hangs. Its shards continue when it answers again.
func TestRedisHungMasterStopsOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	o.waitForever()
	o.serve()
	failing, lost, healthy := o.divide()
	o.handles("before", append(healthy, lost...), testservers.Patience)
	wakeups := o.listen()
	thaw := testservers.Freeze(t, failing)
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		if took := o.handles("beside a master that hangs", healthy, promptly); took > time.Second {
			o.Logf("%v after it hung a job took %v", time.Since(began), took)
		}
	}
	o.wakes(wakeups, healthy)
	thaw()
	for _, shard := range lost { // accepted as soon as the Cluster sees it as healthy again
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			if _, err := o.push(shard, promptly); err == nil {
				break
			} else if time.Since(began) > testservers.Patience {
				t.Fatalf("push to shard %d: %v", shard, err)
			}
		}
	}
	o.Logf("after: %v", o.handles("when it answers again", lost, outagePoll/2))
}

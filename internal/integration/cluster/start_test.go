package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// A server and a client that start while a master is dead work the shards that they can
// reach, and the others once a replica has taken its place.
func TestRedisServersStartBesideADeadMaster(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.without("skein:queues")
	replica := testservers.ClusterReplica(t, failing.Options().Addr, append(outageFlags,
		"--cluster-replica-no-failover", "yes")...)
	testservers.Kill(t, failing)
	o.serve()
	o.Logf("started: %v", o.handles("beside a dead master", healthy, testservers.Patience))
	wakeups := o.listen()
	o.wakes(wakeups, healthy)
	if _, err := o.push(lost[0], promptly); err == nil {
		t.Error("a push to a shard of the dead master was accepted")
	}
	o.logs("wake-ups are interrupted") // a shorter outage is not logged
	must(t, replica.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err())
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if _, err := o.push(lost[0], promptly); err == nil {
			break
		} else if time.Since(began) > outagePoll/2 {
			t.Fatalf("no push was accepted after the takeover: %v", err)
		}
	}
	o.Logf("after the takeover: %v", o.handles("after the takeover", lost, outagePoll/2))
	o.wakes(wakeups, lost)
	o.logs("wake-ups are back")
}

// logs waits until the log contains a text.
func (o *outage) logs(what string) {
	o.Helper()
	for began := time.Now(); !strings.Contains(o.log.String(), what); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > testservers.Patience {
			o.Fatalf("the log does not say that %s: %s", what, o.log.String())
		}
	}
}

// The same holds while a master hangs.
func TestRedisServersStartBesideAHungMaster(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.without("skein:queues")
	thaw := testservers.Freeze(t, failing)
	o.serve()
	o.Logf("started: %v", o.handles("beside a master that hangs", healthy, testservers.Patience))
	thaw()
	o.Logf("after: %v", o.handles("when it answers again", lost, testservers.Patience))
}

// without returns a server that has shards but not a key, its shards and the others.
func (o *outage) without(key string) (failing *goredis.Client, lost, healthy []int) {
	o.Helper()
	node, err := o.cluster.MasterForKey(o.Context(), key)
	must(o, err)
	for i := range outageShards {
		if failing = o.master(i); failing.Options().Addr != node.Options().Addr {
			lost, healthy = o.divideBy(failing)
			return failing, lost, healthy
		}
	}
	o.Fatal("one master has all shards")
	return nil, nil, nil
}

// A process that starts while the master with the list of queues is dead works the reachable
// shards of a queue that was declared before. A new queue can't be declared, and its declaration
// does not succeed.
func TestRedisServersStartBesideADeadRegistry(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.registry()
	o.fill(redis.New(o.connect(), redis.Options{}))
	o.startsBeside(lost, healthy, func() { testservers.Kill(t, failing) })
}

// The same holds while that master hangs. When it answers again, everything continues.
func TestRedisServersStartBesideAHungRegistry(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.registry()
	o.fill(redis.New(o.connect(), redis.Options{}))
	var thaw func()
	o.startsBeside(lost, healthy, func() { thaw = testservers.Freeze(t, failing) })
	thaw()
	o.pushes(lost[0])
	store := redis.New(o.connect(), redis.Options{})
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "new", Shards: 1})
		if err == nil {
			break
		}
		if time.Since(began) > testservers.Patience {
			t.Fatalf("a new queue is not declared after the outage: %v", err)
		}
	}
}

// registry returns the server that has the list of queues, its shards and the others.
func (o *outage) registry() (failing *goredis.Client, lost, healthy []int) {
	o.Helper()
	node, err := o.cluster.MasterForKey(o.Context(), "skein:queues")
	must(o, err)
	failing = testservers.RedisNode(o, node.Options().Addr)
	lost, healthy = o.divideBy(failing)
	return failing, lost, healthy
}

// startsBeside begins the outage, and then starts a client, a server and an inspector that have
// not called the Cluster before.
func (o *outage) startsBeside(lost, healthy []int, begin func()) {
	o.Helper()
	begin()
	o.client = skein.NewClient(redis.New(o.connect(), redis.Options{}), skein.ClientOptions{})
	o.serve()
	o.Logf("started: %v", o.handles("beside a dead registry", healthy, testservers.Patience))
	if _, err := o.push(lost[0], 10*time.Second); err == nil {
		o.Error("a push to a shard of the dead master was accepted")
	}
	o.wakes(o.listen(), healthy)
	stats, err := inspect.New(redis.New(o.connect(), redis.Options{}), inspect.Options{}).Stats(o.Context(), "outages")
	var part *inspect.PartialError
	if !errors.As(err, &part) || len(stats) != 1 || len(stats[0].Shards)+len(part.Unreached) != outageShards ||
		len(stats[0].Shards) == 0 {
		o.Errorf("statistics: %+v, %v", stats, err)
	}
	store := redis.New(o.connect(), redis.Options{})
	if _, err := store.Declare(o.Context(), ports.DeclareRequest{Queue: "new", Shards: 1}); err == nil ||
		!strings.Contains(err.Error(), "list of queues") {
		o.Errorf("a new queue's Declare = %v, want an error that names the list of queues", err)
	}
	if _, err := store.Declare(o.Context(), ports.DeclareRequest{
		Queue: "outages", Shards: outageShards + 1,
	}); !errors.Is(err, ports.ErrShardCountMismatch) {
		o.Errorf("Declare with another shard count = %v, want ErrShardCountMismatch", err)
	}
	if err := store.Pause(o.Context(), "outages"); err == nil {
		o.Error("a pause was accepted without the list of queues")
	}
	if err := store.Ping(o.Context()); err == nil {
		o.Error("Ping does not say that the list of queues is away")
	}
}

// pushes waits until a push to a shard is accepted.
func (o *outage) pushes(shard int) {
	o.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if _, err := o.push(shard, promptly); err == nil {
			return
		} else if time.Since(began) > testservers.Patience {
			o.Fatalf("push to shard %d: %v", shard, err)
		}
	}
}

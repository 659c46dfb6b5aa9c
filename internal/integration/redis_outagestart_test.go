package integration_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// A server and a client that start while a master is dead work the shards that they can
// reach, and the others once a replica has taken its place.
func TestRedisServersStartBesideADeadMaster(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.without("skein:queues")
	replica := testservers.ClusterReplica(t, failing.Options().Addr, append(outageFlags, "--cluster-replica-no-failover", "yes")...)
	testservers.Kill(t, failing)
	o.serve()
	o.Logf("started: %v", o.handles("beside a dead master", healthy, testservers.Patience))
	wakeups := o.listen()
	o.wakes(wakeups, healthy)
	if _, err := o.push(lost[0], promptly); err == nil {
		t.Error("a push to a shard of the dead master was accepted")
	}
	o.logs("wake-ups are interrupted") // what is back sooner is worth no line
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

// logs waits until the log says something.
func (o *outage) logs(what string) {
	o.Helper()
	for began := time.Now(); !strings.Contains(o.log.String(), what); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > testservers.Patience {
			o.Fatalf("the log does not say that %s: %s", what, o.log.String())
		}
	}
}

// So they do while one hangs.
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

package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// When a replica has taken the place of a dead master, its shards continue without a poll, and a
// client that only pushes finds it at once, also if pushes wait for replicas.
func TestRedisFailoverIsFoundByPushes(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.divide()
	replica := testservers.ClusterReplica(t, failing.Options().Addr, outageFlags...)
	o.serve()
	o.handles("before", append(healthy, lost...), testservers.Patience)
	waiting := redis.New(o.connect(), redis.Options{WaitReplicas: 1, WaitTimeout: time.Second})
	durable := ports.PushRequest{
		Queue: "outages", Shards: outageShards, Generation: 1, Entries: []core.Entry{{ID: idOfShard(0)}},
	}
	_, err := waiting.Push(t.Context(), durable)
	must(t, err)
	idle := o.idle(5, healthy[0])
	testservers.Kill(t, failing)
	promoted := o.promoted(replica)
	for {
		if _, err := o.push(0, promptly); err == nil {
			break
		} else if time.Since(promoted) > outagePoll/2 {
			t.Fatalf("no push was accepted %v after the promotion: %v", time.Since(promoted), err)
		}
	}
	o.Logf("accepted %v after the promotion", time.Since(promoted))
	for { // the promoted one has no replica, so that the push arrives and is not confirmed
		_, err := waiting.Push(t.Context(), durable)
		if err != nil && strings.Contains(err.Error(), "0 of 1 replicas") {
			break
		}
		if time.Since(promoted) > outagePoll/2 {
			t.Fatalf("no push that waits for replicas arrived %v after the promotion: %v", time.Since(promoted), err)
		}
	}
	o.Logf("handled within %v", o.handles("after the failover", lost, outagePoll/2))
	found := 0
	for _, store := range idle {
		if _, err := store.Push(t.Context(), durable); err == nil {
			found++
		}
	}
	if found == 0 { // the map of the Cluster may come too late for some, if the machine is busy
		t.Errorf("the first push to the dead master's shard by a client that had not heard of the failover "+
			"was refused for each of %d",
			len(idle))
	}
}

// idle returns stores of clients that know which server has which slots, and have pushed to one
// shard.
func (o *outage) idle(n, shard int) []*redis.Store {
	o.Helper()
	stores := make([]*redis.Store, n)
	for i := range stores {
		stores[i] = redis.New(o.connect(), redis.Options{})
		_, err := stores[i].Push(o.Context(), ports.PushRequest{
			Queue: "outages", Shards: outageShards, Generation: 1, Entries: []core.Entry{{ID: idOfShard(shard)}},
		})
		must(o, err)
	}
	return stores
}

// idOfShard returns an id of a shard.
func idOfShard(shard int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("waiting-", i); core.ShardOf(id, outageShards) == shard {
			return id
		}
	}
}

// promoted waits until a replica is a master, and returns when that was.
func (o *outage) promoted(replica *goredis.Client) time.Time {
	o.Helper()
	for {
		reply, err := replica.Do(o.Context(), "ROLE").Slice()
		must(o, err)
		if reply[0] == "master" {
			return time.Now()
		}
		time.Sleep(time.Millisecond)
	}
}

// When a replica has taken the place of a master that hangs, whose connections stay open and
// silent, wake-ups of its shards come from the replica.
func TestRedisHungMasterIsReplacedForWakeups(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	o := newOutage(t)
	failing, lost, _ := o.divide()
	replica := testservers.ClusterReplica(t, failing.Options().Addr, outageFlags...)
	_, err := redis.New(o.connect(), redis.Options{}).Declare(t.Context(),
		ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(t, err)
	wakeups := o.listen()
	testservers.Freeze(t, failing)
	o.promoted(replica)
	producer := redis.New(o.connect(), redis.Options{})
	for began, due := time.Now(), core.Instant(1e9); ; time.Sleep(100 * time.Millisecond) {
		due-- // each push is a wake-up: its job comes first
		ctx, cancel := context.WithTimeout(t.Context(), promptly)
		_, _ = producer.Push(ctx, ports.PushRequest{
			Queue: "outages", Shards: outageShards, Generation: 1, Rule: core.PushRule{Kind: core.Earliest},
			Entries: []core.Entry{{ID: idOfShard(lost[0]), When: core.At(due)}},
		})
		cancel()
		select {
		case s := <-wakeups:
			if s.Index == lost[0] {
				t.Logf("heard of %v after the promotion", time.Since(began))
				return
			}
		default:
		}
		if time.Since(began) > testservers.Patience {
			t.Fatalf("no wake-up of a shard of the master that hangs")
		}
	}
}

package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// While a slot of a Cluster migrates for a long time, a look at all shards still has the other
// shards of the slot's server, and names the one in the slot as missing.
func TestRedisASlotThatMovesHidesOnlyItsShard(t *testing.T) {
	tier.Long(t, "waits for slots to move")
	t.Parallel()
	o := newOutage(t)
	store := redis.New(o.connect(), redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(t, err)
	for i := range outageShards {
		_, err := store.Push(t.Context(), ports.PushRequest{
			Queue: "outages", Shards: outageShards, Generation: 1, Entries: []core.Entry{{ID: idOfShard(i)}}})
		must(t, err)
	}
	_, lost, _ := o.divide()
	if len(lost) < 2 {
		t.Fatalf("the server of shard 0 has the shards %v, want some", lost)
	}
	o.migrate(lost[0])
	moving := []core.Shard{{Queue: "outages", Index: lost[0]}}

	all := looks(store)
	all["heads"] = func(ctx context.Context) (int, []core.Shard, error) {
		reply, err := store.Heads(ctx, core.Shards("outages", outageShards))
		n := 0
		for _, head := range reply.Heads {
			if head.OK {
				n++
			}
		}
		return n, reply.Unreached, err
	}
	for what, look := range all {
		deadline := time.Now().Add(testservers.Patience)
		for {
			_, missing, err := look(t.Context()) // which ends though the slot moves for ever
			if err == nil && (len(missing) == 0 || slices.Equal(missing, moving)) {
				break // a look that reads without a script misses no shard
			}
			others := slices.ContainsFunc(missing, func(shard core.Shard) bool {
				return !slices.Contains(lost, shard.Index)
			})
			if err != nil || others || !slices.Contains(missing, moving[0]) || time.Now().After(deadline) {
				t.Errorf("%s lacks %v (%v), want %v", what, missing, err, moving)
				break
			}
			// A busy server answers later than a look waits for it: then all its shards are missing.
		}
	}
}

// migrate makes the server of a shard report that its slot migrates. The other server knows
// nothing of it yet.
func (o *outage) migrate(shard int) {
	o.Helper()
	var from goredis.UniversalClient = o.master(shard)
	key := fmt.Sprintf("skein:{outages/%d}:m", shard)
	slot, err := from.ClusterKeySlot(o.Context(), key).Result()
	must(o, err)
	ranges, err := from.ClusterSlots(o.Context()).Result()
	must(o, err)
	self := from.Do(o.Context(), "cluster", "myid").Val()
	at := slices.IndexFunc(ranges, func(r goredis.ClusterSlot) bool { return r.Nodes[0].ID != self })
	must(o, from.Do(o.Context(), "cluster", "setslot", slot, "MIGRATING", ranges[at].Nodes[0].ID).Err())
}

package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// declareMany declares queues of one shard, and returns these.
func declareMany(t *testing.T, store *redis.Store, count int) (shards []core.Shard) {
	t.Helper()
	for i := range count {
		shard := core.Shard{Queue: fmt.Sprint("queue-", i)}
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: shard.Queue, Shards: 1})
		must(t, err)
		shards = append(shards, shard)
	}
	return shards
}

// scheduleIn creates a schedule of a shard with a tick at a time.
func scheduleIn(t *testing.T, store *redis.Store, shard core.Shard, at time.Time) {
	t.Helper()
	_, err := store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
		Shard: shard, Shards: 1, Generation: 1, Changes: []ports.ScheduleChange{created(scheduled("a", "nightly", at))},
	})
	must(t, err)
}

// A server that holds many shards looks at their ticks once per poll interval. That costs a few
// commands for many shards without schedules.
func TestRedisLooksAtTheTicksOfManyShardsTogether(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	store := openFrozen(client)
	shards := declareMany(t, store, 130)
	look := func() map[string]int64 {
		t.Helper()
		_, err := store.Ticks(t.Context(), ports.TicksRequest{Shards: shards})
		must(t, err)
		must(t, client.ConfigResetStat(t.Context()).Err()) // the look before has loaded the script
		_, err = store.Ticks(t.Context(), ports.TicksRequest{Shards: shards})
		must(t, err)
		return commandCounts(t, client)
	}

	if diff := cmp.Diff(map[string]int64{"evalsha": 3, "exists": 6}, look()); diff != "" {
		t.Errorf("commands of a look at 130 shards without schedules (-want +got):\n%s", diff)
	}

	scheduleIn(t, store, shards[70], frozenNow)
	want := map[string]int64{"evalsha": 3, "exists": 5, "get": 64, "zrange": 64}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("commands of a look at 130 shards, one with a schedule (-want +got):\n%s", diff)
	}
}

// commandCounts returns how often each command was called since CONFIG RESETSTAT, by scripts too.
func commandCounts(t *testing.T, client *goredis.Client) map[string]int64 {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	must(t, err)
	counts := make(map[string]int64)
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		var calls int64
		if _, err := fmt.Sscanf(rest, "calls=%d", &calls); err == nil && name != "config|resetstat" {
			counts[name] = calls
		}
	}
	return counts
}

// A look at many shards finds what looks at each of them find: schedules, paused queues, queues that
// are not known, and keys that are damaged.
func TestRedisTicksOfManyShardsAreThoseOfEach(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *redis.Store, goredis.UniversalClient, string, []core.Shard){
		"no schedules": func(*testing.T, *redis.Store, goredis.UniversalClient, string, []core.Shard) {},
		"schedules and a pause": func(
			t *testing.T, store *redis.Store, _ goredis.UniversalClient, _ string, shards []core.Shard,
		) {
			scheduleIn(t, store, shards[2], frozenNow.Add(time.Hour))
			scheduleIn(t, store, shards[65], frozenNow.Add(-time.Hour))
			scheduleIn(t, store, shards[66], frozenNow)
			must(t, store.Pause(t.Context(), shards[66].Queue))
		},
		"an unknown queue": func(
			t *testing.T, store *redis.Store, _ goredis.UniversalClient, _ string, shards []core.Shard,
		) {
			must(t, store.Forget(t.Context(), shards[3].Queue))
		},
		"a damaged key": func(
			t *testing.T, _ *redis.Store, client goredis.UniversalClient, prefix string, shards []core.Shard,
		) {
			must(t, client.Set(t.Context(), prefix+"{"+shards[3].String()+"}:st", "x", 0).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := testservers.Redis(t)
			prefix := testservers.Prefix(t, client)
			store := redis.New(client, redis.Options{Prefix: prefix, Clock: func() time.Time { return frozenNow }})
			shards := declareMany(t, store, 70)
			change(t, store, client, prefix, shards)

			var want ports.TicksReply
			var failed error
			for _, shard := range shards {
				reply, err := store.Ticks(t.Context(), ports.TicksRequest{Shards: []core.Shard{shard}})
				if errors.Is(err, ports.ErrUnknownQueue) {
					failed = err
				} else if err != nil {
					want.Unreached = append(want.Unreached, shard)
					reply.Shards = make([]ports.ShardTicks, 1)
				}
				want.Shards = append(want.Shards, reply.Shards...)
			}
			if failed != nil {
				want = ports.TicksReply{}
			}
			got, err := store.Ticks(t.Context(), ports.TicksRequest{Shards: shards})
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(failed) {
				t.Errorf("together: error %v, and each by itself: %v (-each +together):\n%s", err, failed, diff)
			}
		})
	}
}

// Once a server has refused a script with keys of several slots, each shard has a script of its own.
func TestRedisLooksAtTheTicksOfEachShardAtAServerOfACluster(t *testing.T) {
	t.Parallel()
	counted := &joinedScripts{refuse: true}
	store, _ := ordersSeenBy(t, counted)
	for range 3 {
		reply, err := store.Ticks(t.Context(), ports.TicksRequest{Shards: core.Shards("orders", 5)})
		if err != nil || len(reply.Shards) != 5 || len(reply.Unreached) > 0 {
			t.Errorf("the ticks are %+v, error %v", reply, err)
		}
	}
	if n := counted.severalShards.Load(); n != 1 {
		t.Errorf("%d scripts with keys of several shards were sent, want the one that was refused", n)
	}
}

package redis_test

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// The eviction policy of every master of a Cluster is checked.
func TestRedisPolicyOfEachMaster(t *testing.T) {
	t.Parallel()
	cluster := testservers.OwnRedisCluster(t).(*goredis.ClusterClient)
	for _, address := range cluster.Options().Addrs {
		node := testservers.RedisNode(t, address)
		for _, policy := range []string{"allkeys-lru", "volatile-lru", "noeviction"} { // as it was, at the end
			usable := policy != "allkeys-lru"
			must(t, node.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
			var log bytes.Buffer
			store := redis.New(cluster, redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			_, err := store.Queues(t.Context())
			if (err == nil) != usable || !usable && !errors.Is(err, ports.ErrUnusable) {
				t.Errorf("%s of %s: the first call gave %v", policy, address, err)
			}
			if warned := strings.Contains(log.String(), "volatile-lru"); warned != (policy == "volatile-lru") {
				t.Errorf("%s of %s: the log says %q", policy, address, log.String())
			}
			if ping := store.Ping(t.Context()); (ping == nil) != usable {
				t.Errorf("%s of %s: Ping gave %v", policy, address, ping)
			}
		}
	}
}

// Asking for wake-ups reads the record of each queue once, however many shards it has.
func TestRedisWakeupsReadEachRecordOnce(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	store := redis.New(client, redis.Options{})
	var shards []core.Shard
	for _, queue := range []string{"orders", "mails"} {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 50})
		must(t, err)
		shards = append(shards, core.Shards(queue, 50)...)
	}
	must(t, client.ConfigResetStat(t.Context()).Err())
	_, err := store.Wakeups(t.Context(), append(shards, core.Shard{}))
	must(t, err)
	stats, err := client.Info(t.Context(), "commandstats").Result()
	must(t, err)
	if calls := regexp.MustCompile(`cmdstat_hmget:calls=(\d+)`).FindStringSubmatch(stats); calls == nil ||
		calls[1] != "2" {
		t.Errorf("HMGET was called %q times, want 2:\n%s", calls, stats)
	}
}

package redis_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// ownFactory is like factory, on a server whose data end with it. It passes
// the prefix of each backend to tidy when the backend's test has ended.
func ownFactory(client goredis.UniversalClient, tidy func(prefix string)) conformance.Factory {
	var backends atomic.Int64
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		prefix := "backend-" + strconv.FormatInt(backends.Add(1), 10) + ":"
		t.Cleanup(func() { tidy(prefix) })
		return func() ports.ShardStore { return redis.New(client, redis.Options{Prefix: prefix, Clock: clock}) }
	}
}

// eachKind runs a test on a server and a Cluster of its own.
func eachKind(t *testing.T, test func(*testing.T, goredis.UniversalClient)) {
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		test(t, testservers.OwnRedis(t))
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		test(t, testservers.OwnRedisCluster(t))
	})
}

// The suite passes while every connection is cut ten times a second.
func TestRedisCutConformance(t *testing.T) {
	tier.Long(t, "runs the suite while connections are cut")
	t.Parallel()
	eachKind(t, func(t *testing.T, client goredis.UniversalClient) {
		testservers.Chaos(t, client, 100*time.Millisecond)
		conformance.RunDisturbed(t, ownFactory(client, func(string) {}))
	})
}

// A subscriber whose connection was cut comes back, and gets wake-ups for all that it may have
// missed.
func TestRedisWakeupsComeBack(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, client goredis.UniversalClient) {
		store := redis.New(client, redis.Options{})
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3}); err != nil {
			t.Fatal(err)
		}
		shards := core.Shards("orders", 3)
		wakeups, err := store.Wakeups(t.Context(), shards)
		if err != nil {
			t.Fatal(err)
		}
		testservers.Cut(t, client)
		for missed := map[core.Shard]bool{}; len(missed) < len(shards); {
			missed[awaitWakeup(t, wakeups)] = true
		}
		_, err = store.Push(t.Context(),
			ports.PushRequest{Queue: "orders", Shards: 3, Generation: 1, Entries: []core.Entry{{ID: "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		if want := shards[core.ShardOf("a", 3)]; awaitWakeup(t, wakeups) != want {
			t.Errorf("a push to %v woke another shard", want)
		}
	})
}

// awaitWakeup waits for a wake-up.
func awaitWakeup(t *testing.T, wakeups <-chan core.Shard) core.Shard {
	t.Helper()
	select {
	case shard, open := <-wakeups:
		if !open {
			t.Fatal("the channel was closed")
		}
		return shard
	case <-time.After(testservers.Patience):
		t.Fatal("no wake-up came")
	}
	return core.Shard{}
}

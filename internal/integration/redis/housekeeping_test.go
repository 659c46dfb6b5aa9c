package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// Only an hour of history has a TTL. Other expired records are removed by later calls: nodes an
// hour after they expired, in case the clock steps back.
func TestRedisRemovesWhatIsOver(t *testing.T) {
	t.Parallel()
	client, now := testservers.OwnRedis(t), frozenNow
	store := redis.New(client, redis.Options{Clock: func() time.Time { return now }})
	announce := func(owner string) {
		t.Helper()
		_, err := store.Announce(t.Context(),
			ports.AnnounceRequest{Node: ports.Node{Owner: owner, Name: owner}, TTL: time.Minute})
		must(t, err)
	}
	known := func(what string, want int64) {
		t.Helper()
		for _, key := range []string{"skein:{/nodes}:n", "skein:{/nodes}:s"} {
			if n, err := client.HLen(t.Context(), key).Result(); n != want || err != nil {
				t.Errorf("%s: %s has %d nodes, want %d: %v", what, key, n, want, err)
			}
		}
	}
	announce("n1")
	now = now.Add(time.Hour)
	announce("n2")
	known("59 minutes after it ran out", 2)
	now = now.Add(2 * time.Minute)
	announce("n2")
	known("61 minutes after it ran out", 1)

	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	minute := core.InstantOf(now).Minute()
	must(t, store.Record(t.Context(), ports.RecordRequest{Owner: "n1", Records: []ports.Record{
		{Queue: "orders", Minute: minute, Stats: core.Stats{Processed: 1}},
	}}))
	key := fmt.Sprintf("skein:{orders/0}:h%d", now.Unix()/3600%27)
	over := time.Unix(now.Unix()/3600*3600, 0).Add(26 * time.Hour)
	if ttl, err := client.PTTL(t.Context(), key).Result(); err != nil || ttl > over.Sub(now) ||
		ttl < over.Sub(now)-time.Minute {
		t.Errorf("an hour of a history lasts for %v, want %v: %v", ttl, over.Sub(now), err)
	}
}

// A shard whose Declare broke off has no record. It is no obstacle to a pause, and
// is paused when the next Declare has made it.
func TestRedisPausesWithoutAShard(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	w := newWorker(t, client, false)
	must(t, client.Del(t.Context(), "skein:{orders/0}:m").Err())
	must(t, client.HSet(t.Context(), "skein:queues", "orders", "1 0 1 1 0").Err())
	must(t, pausing(w))
	must(t, w.declare("orders"))
	must(t, w.turn(ports.TurnRequest{Want: 1}))
	if _, claimed := w.claims["b"]; claimed {
		t.Error("the shard gives a job while its queue is paused")
	}
}

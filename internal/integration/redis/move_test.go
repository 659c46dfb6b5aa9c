package redis_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// The suite passes while the slots of its shards move between the masters of a
// Cluster. Nothing needs repeating by callers: the store waits for TRYAGAIN to
// end, and follows the slot.
//
// A slot that is half moved serves no script one of whose keys is absent. The
// pace is that of a resharding by redis-cli, ten keys at a time and one slot after
// another, each at rest for as long as it took to move and 50 ms.
func TestRedisMovingConformance(t *testing.T) {
	tier.Long(t, "runs the suite while slots move")
	t.Parallel()
	o := *testservers.OwnRedisCluster(t).(*goredis.ClusterClient).Options()
	o.ReadTimeout, o.WriteTimeout = testservers.Patience, testservers.Patience // the largest cases move 64 MiB
	client := goredis.NewClusterClient(&o)
	t.Cleanup(func() { client.Close() })
	testservers.MoveSlots(t, client, 50*time.Millisecond, "{orders/0}", "{orders/1}", "{day/0}", "{mail/0}", "{/nodes}")
	conformance.Run(t, ownFactory(client, func(prefix string) { unlink(client, prefix) }))
}

// unlink removes the keys below a prefix, which may move meanwhile: then one is missed, or is not
// found.
func unlink(client *goredis.ClusterClient, prefix string) {
	_ = client.ForEachMaster(context.Background(), func(ctx context.Context, node *goredis.Client) error {
		keys := node.Scan(ctx, 0, prefix+"*", 10_000).Iterator()
		for keys.Next(ctx) {
			_ = client.Unlink(ctx, keys.Val()).Err()
		}
		return keys.Err()
	})
}

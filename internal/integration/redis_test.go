package integration_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/internal/testservers"
	"github.com/skeinq/skein/ports"
)

// redisFactory makes each backend below a prefix of its own.
func redisFactory(client goredis.UniversalClient) conformance.Factory {
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		prefix := testservers.Prefix(t, client)
		return func() ports.ShardStore { return redis.New(client, redis.Options{Prefix: prefix, Clock: clock}) }
	}
}

func TestRedisConformance(t *testing.T) {
	conformance.Run(t, redisFactory(testservers.Redis(t)))
}

func TestRedisClusterConformance(t *testing.T) {
	conformance.Run(t, redisFactory(testservers.RedisCluster(t)))
}

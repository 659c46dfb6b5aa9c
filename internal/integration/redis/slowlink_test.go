package redis_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

func TestRedisPayloadsAreHandledThroughASlowLink(t *testing.T) {
	tier.Long(t, "carries 8 MiB at 1 MiB a second")
	t.Parallel()
	backend := testservers.OwnRedis(t)
	link := testservers.SlowLink(t, backend.(*goredis.Client).Options().Addr, 1<<20)
	throughLink := goredis.NewClient(&goredis.Options{Addr: link, ReadTimeout: time.Minute})
	t.Cleanup(func() { throughLink.Close() })
	kit.HandleThroughSlowLink(t, redis.New(backend, redis.Options{}),
		redis.New(throughLink, redis.Options{}), 4, 2, 1<<20)
}

package kit

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// Open opens a store by its URL until the test ends.
func Open(t *testing.T, url string) ports.ShardStore {
	t.Helper()
	store, closeStore, err := backends.Open(t.Context(), url)
	Must(t, err)
	t.Cleanup(func() { Must(t, closeStore()) })
	return store
}

// RedisURL is the argument by which a command uses the client's servers.
func RedisURL(client redis.UniversalClient) string {
	if c, ok := client.(*redis.ClusterClient); ok {
		addresses := c.Options().Addrs
		return "redis-cluster://" + addresses[0] + "?addr=" + strings.Join(addresses[1:], "&addr=")
	}
	return "redis://" + client.(*redis.Client).Options().Addr
}

// PostgresURL names a schema of the tests' server to backends.Open.
func PostgresURL(t *testing.T, schema string) string {
	t.Helper()
	server := testservers.PostgresURL(t)
	if strings.Contains(server, "?") {
		return server + "&schema=" + schema
	}
	return server + "?schema=" + schema
}

// StoreURLs returns for each kind of store a function that makes the URL of an empty one.
func StoreURLs(t *testing.T) map[string]func(*testing.T) (url string) {
	t.Helper()
	redis, postgres := testservers.Redis(t), testservers.Postgres(t)
	return map[string]func(*testing.T) string{
		"Redis": func(t *testing.T) string {
			return RedisURL(redis) + "?prefix=" + testservers.Prefix(t, redis)
		},
		"Postgres": func(t *testing.T) string {
			return PostgresURL(t, testservers.Schema(t, postgres))
		},
	}
}

// StoreAndClusterURLs is StoreURLs with a Redis Cluster too.
func StoreAndClusterURLs(t *testing.T) map[string]func(*testing.T) (url string) {
	t.Helper()
	stores, cluster := StoreURLs(t), testservers.RedisCluster(t)
	stores["Redis Cluster"] = func(t *testing.T) string {
		return RedisURL(cluster) + "&prefix=" + testservers.Prefix(t, cluster)
	}
	return stores
}

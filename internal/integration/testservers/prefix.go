package testservers

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Prefix returns a prefix for the test's keys, on a server that other programs may use too. The
// keys with the prefix are deleted when the test has ended. A test may take as many prefixes as it
// likes.
func Prefix(t testing.TB, client redis.UniversalClient) string {
	prefix := "test-" + rand.Text()[:13] + ":"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := eachMaster(ctx, client, func(ctx context.Context, node *redis.Client) error {
			return deleteBelow(ctx, node, prefix)
		})
		if err != nil {
			// The test may have stopped its server, which ends with it.
			t.Logf("delete what is below %s: %v", prefix, err)
		}
	})
	return prefix
}

// deleteBelow deletes the keys of one server, each by a command of its own since
// those of a Cluster's slots can't share one.
func deleteBelow(ctx context.Context, node *redis.Client, prefix string) error {
	var cursor uint64
	for {
		keys, next, err := node.Scan(ctx, cursor, prefix+"*", 1000).Result()
		if err != nil {
			return err
		}

		if len(keys) > 0 {
			_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, key := range keys {
					p.Unlink(ctx, key)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}

		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// eachMaster visits every server that has keys.
func eachMaster(
	ctx context.Context,
	client redis.UniversalClient,
	visit func(context.Context, *redis.Client) error,
) error {
	switch c := client.(type) {
	case *redis.Client:
		return visit(ctx, c)
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, visit)
	}
	return errUnknownClient
}

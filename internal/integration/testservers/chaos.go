package testservers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var errUnknownClient = errors.New("the client is neither a *redis.Client nor a *redis.ClusterClient")

// Chaos cuts every connection to the client's servers once in each interval, including those of
// subscribers and of other programs, until the test ends. So the servers must be the test's own. On
// a busy machine it cuts less often. It fails the test if no connection was cut.
func Chaos(t testing.TB, client redis.UniversalClient, interval time.Duration) {
	t.Helper()
	killer, err := apart(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killer.Close() })
	disturb(t, interval, func(ctx context.Context) (int64, error) {
		cut, _ := cutAll(ctx, killer) // a server that can't be reached now is tried again the next time
		return cut, nil
	})
}

// Cut cuts every connection to the client's servers once.
func Cut(t testing.TB, client redis.UniversalClient) {
	t.Helper()
	killer, err := apart(client)
	if err != nil {
		t.Fatal(err)
	}
	defer killer.Close()
	if _, err := cutAll(t.Context(), killer); err != nil {
		t.Fatal(err)
	}
}

// cutAll cuts every connection to the client's servers but its own, and returns how many.
func cutAll(ctx context.Context, killer redis.UniversalClient) (int64, error) {
	var cut atomic.Int64
	err := eachMaster(ctx, killer, func(ctx context.Context, node *redis.Client) error { return kill(ctx, node, &cut) })
	return cut.Load(), err
}

// apart returns another client for the same servers. Its connection, from which the others are cut,
// has no other user.
func apart(client redis.UniversalClient) (redis.UniversalClient, error) {
	switch c := client.(type) {
	case *redis.Client:
		o := *c.Options()
		return redis.NewClient(&o), nil
	case *redis.ClusterClient:
		o := *c.Options()
		return redis.NewClusterClient(&o), nil
	}
	return nil, errUnknownClient
}

// kill cuts all connections of one server but the caller's.
func kill(ctx context.Context, node *redis.Client, cut *atomic.Int64) error {
	for _, kind := range []string{"normal", "pubsub"} {
		n, err := node.ClientKillByFilter(ctx, "TYPE", kind, "SKIPME", "yes").Result()
		if err != nil {
			return err
		}
		cut.Add(n)
	}
	return nil
}

package testservers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// masters is the number of nodes of a Cluster. All are masters.
const masters = 3

var sharedCluster = sync.OnceValues(func() (string, error) {
	const variable = "SKEIN_TEST_REDIS_CLUSTER"
	if url := fromEnvironment(variable); url != "" {
		if _, err := redis.ParseClusterURL(url); err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return url, nil
	}
	g, err := cluster()
	if err != nil {
		return "", err
	}
	return clusterURL(g), nil
})

// RedisCluster is like [Redis], with a shared Cluster of three masters.
func RedisCluster(t testing.TB) redis.UniversalClient {
	t.Helper()
	return clusterClient(t, must(t, sharedCluster), func(o *redis.ClusterOptions) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = Patience, Patience, Patience, Patience
	})
}

// OwnRedisCluster is like [OwnRedis], with a Cluster of three masters.
func OwnRedisCluster(t testing.TB, flags ...string) redis.UniversalClient {
	t.Helper()
	g, err := cluster(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	return clusterClient(t, clusterURL(g))
}

func clusterClient(t testing.TB, url string, change ...func(*redis.ClusterOptions)) redis.UniversalClient {
	t.Helper()
	o, err := redis.ParseClusterURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.Addrs = slices.Clip(o.Addrs) // each client that is made of the same options appends to it
	for _, f := range change {
		f(o)
	}
	return closed(t, redis.NewClusterClient(o))
}

// clusterURL names every node, as [redis.ParseClusterURL] reads it.
func clusterURL(g *group) string {
	others := url.Values{}
	for i := 1; i < masters; i++ {
		others.Add("addr", g.address(i))
	}
	return "redis://" + g.address(0) + "?" + others.Encode()
}

// cluster makes a Cluster: the first ports are the nodes', the others those on
// which the nodes talk to each other.
func cluster(flags ...string) (*group, error) {
	return form(redisServer(), 2*masters, func(ctx context.Context, g *group) error {
		for i := range masters {
			own := append([]string{"--cluster-enabled", "yes", "--cluster-port", g.port(masters + i)}, flags...)
			if err := g.start(redisCommand(redisServer(), g, i, own...)...); err != nil {
				return err
			}
		}

		for i := range masters {
			if err := g.until(ctx, pinged(g.address(i))); err != nil {
				return err
			}
		}

		for i := range masters {
			if err := introduce(ctx, g, i); err != nil {
				return err
			}
		}

		return g.until(ctx, func(ctx context.Context) error { return joined(ctx, g) })
	})
}

// introduce gives the i-th node its share of the slots and an epoch of its own, and introduces it
// to the first node.
func introduce(ctx context.Context, g *group, i int) error {
	const slots = 1 << 14
	node := redis.NewClient(&redis.Options{Addr: g.address(i)})
	defer node.Close()
	_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ClusterAddSlotsRange(ctx, slots*i/masters, slots*(i+1)/masters-1)
		p.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		p.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", g.port(0), g.port(masters))
		return nil
	})
	return err
}

// joined checks whether every node serves and knows every other.
func joined(ctx context.Context, g *group) error {
	for i := range masters {
		node := redis.NewClient(&redis.Options{Addr: g.address(i)})
		info, err := node.ClusterInfo(ctx).Result()
		err = errors.Join(err, node.Close())
		if err != nil {
			return err
		}

		for _, want := range []string{
			"cluster_state:ok",
			fmt.Sprintf("cluster_size:%d", masters),
			fmt.Sprintf("cluster_known_nodes:%d", masters),
		} {
			if !strings.Contains(info, want+"\r\n") {
				return fmt.Errorf("node %d of the Cluster is not yet at %s:\n%s", i, want, info)
			}
		}
	}
	return nil
}

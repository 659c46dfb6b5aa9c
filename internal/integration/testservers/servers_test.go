package testservers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// until calls ask again and again until it returns true.
func until(t *testing.T, what string, ask func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	for !ask(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", testservers.Patience, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestServers(t *testing.T) {
	servers := []struct {
		name string
		open func(testing.TB) redis.UniversalClient
	}{
		{"Redis", testservers.Redis},
		{"Valkey", testservers.Valkey},
		{"own Redis", func(t testing.TB) redis.UniversalClient { return testservers.OwnRedis(t) }},
		{"Cluster", testservers.RedisCluster},
		{"own Cluster", func(t testing.TB) redis.UniversalClient { return testservers.OwnRedisCluster(t) }},
		{"Sentinel", testservers.RedisSentinel},
	}

	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			holdsKeysApart(t, server.open(t))
		})
	}
}

// holdsKeysApart writes keys that fall on every server below two prefixes, and
// looks for what one leaves behind.
func holdsKeysApart(t *testing.T, client redis.UniversalClient) {
	const keys = 64
	write := func(t *testing.T, prefix string) {
		for i := range keys {
			if err := client.Set(t.Context(), fmt.Sprint(prefix, i), "value", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}

	count := func(prefix string) (n int) {
		for i := range keys {
			found, err := client.Exists(t.Context(), fmt.Sprint(prefix, i)).Result()
			if err != nil {
				t.Fatal(err)
			}
			n += int(found)
		}
		return n
	}

	var theirs string
	ours := testservers.Prefix(t, client)
	write(t, ours)

	t.Run("another test", func(t *testing.T) {
		theirs = testservers.Prefix(t, client)
		if n := count(theirs); n != 0 {
			t.Errorf("a fresh prefix has %d keys, want none", n)
		}
		write(t, theirs)
	})

	if n := count(theirs); n != 0 {
		t.Errorf("%d of %d keys are left of a test that has ended", n, keys)
	}
	if n := count(ours); n != keys {
		t.Errorf("%d of %d keys are left of a test that runs", n, keys)
	}
}

func TestServersEvictAndStoreNothing(t *testing.T) {
	t.Parallel()
	want := map[string]string{"maxmemory-policy": "noeviction", "save": "", "appendonly": "no", "maxmemory": "8388608"}
	client := testservers.OwnRedis(t, "--maxmemory", "8mb")
	for name, value := range want {
		got, err := client.ConfigGet(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func TestClusterSpreadsKeysOverThreeMasters(t *testing.T) {
	t.Parallel()
	slots, err := testservers.RedisCluster(t).ClusterSlots(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	nodes, covered := map[string]bool{}, 0
	for _, s := range slots {
		nodes[s.Nodes[0].Addr] = true
		covered += s.End - s.Start + 1
	}
	if len(nodes) != 3 || covered != 1<<14 {
		t.Errorf("%d masters serve %d slots, want 3 and %d", len(nodes), covered, 1<<14)
	}
}

func TestSentinelPromotesTheReplica(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	client := testservers.RedisSentinel(t)

	if err := client.Set(t.Context(), "key", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Do(t.Context(), "WAIT", 1, testservers.Patience.Milliseconds()).Int(); n != 1 || err != nil {
		t.Fatalf("%d replicas have the write, %v; want 1", n, err)
	}
	// The server answers by closing the connection.
	_ = client.ShutdownNoSave(t.Context()).Err()

	until(t, "a write after the master went", func(ctx context.Context) bool {
		return client.Set(ctx, "another", "after", 0).Err() == nil
	})

	if got, err := client.Get(t.Context(), "key").Result(); got != "before" || err != nil {
		t.Errorf("the replica has %q, %v; want %q", got, err, "before")
	}
}

func TestChaosCutsConnections(t *testing.T) {
	for name, open := range map[string]func(testing.TB, ...string) redis.UniversalClient{
		"Redis": testservers.OwnRedis, "Cluster": testservers.OwnRedisCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t)
			cut := watchConnection(t, client)
			listener := client.Subscribe(t.Context(), "channel")
			defer listener.Close()

			if _, err := listener.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}

			testservers.Chaos(t, client, 20*time.Millisecond)
			until(t, "an idle connection is cut", func(context.Context) bool { return cut() })
			if m, err := listener.Receive(t.Context()); err == nil {
				t.Errorf("a subscriber got %v, want an error, since its connection is cut", m)
			}
		})
	}
}

// watchConnection opens a bare connection to one of the client's servers, and
// returns how to ask whether the server has closed it.
func watchConnection(t *testing.T, client redis.UniversalClient) (cut func() bool) {
	address := ""
	switch c := client.(type) {
	case *redis.Client:
		address = c.Options().Addr
	case *redis.ClusterClient:
		address = c.Options().Addrs[0]
	}

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })

	return func() bool {
		conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
	}
}

package redis_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// factory makes each backend below a prefix of its own.
func factory(client goredis.UniversalClient) conformance.Factory {
	cuts := &cutShards{}
	client.AddHook(cuts)
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		prefix := testservers.Prefix(t, client)
		return func() ports.ShardStore {
			store := redis.New(client, redis.Options{Prefix: prefix, Clock: clock})
			return damageable{severable{store, cuts, prefix}, client}
		}
	}
}

func TestRedisConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, factory(testservers.Redis(t)))
}

func TestRedisClusterConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, factory(testservers.RedisCluster(t)))
}

func TestValkeyConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, factory(testservers.Valkey(t)))
}

// A push or an acquire that no replica confirms is carried out, but its outcome is
// unknown. On a Cluster each master asks its own.
func TestRedisWaitsForReplicas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		client    goredis.UniversalClient
		confirmed bool
	}{
		{"alone", testservers.Redis(t), false},
		{"with a replica", testservers.RedisSentinel(t), true},
		{"Cluster alone", testservers.RedisCluster(t), false},
		{"Cluster with replicas", replicatedCluster(t), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := redis.New(tt.client, redis.Options{
				Prefix: testservers.Prefix(t, tt.client), WaitReplicas: 1, WaitTimeout: 100 * time.Millisecond,
			})
			// A busy replica may confirm too late, and so the call is repeated.
			confirmed := func(call func() error) (err error) {
				for end := time.Now().Add(testservers.Patience); ; {
					if err = call(); err == nil || !tt.confirmed || time.Now().After(end) {
						return err
					}
				}
			}
			if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3}); err != nil {
				t.Fatal(err)
			}
			r := ports.PushRequest{
				Queue: "orders", Shards: 3, Generation: 1, Entries: []core.Entry{{ID: "a"}, {ID: "b"}, {ID: "c"}},
			}
			err := confirmed(func() error {
				_, err := store.Push(t.Context(), r)
				return err
			})
			var partial *ports.PushError
			if tt.confirmed && err != nil {
				t.Errorf("a replica confirmed it, but Push gave %v", err)
			}
			if !tt.confirmed && (!errors.As(err, &partial) || len(partial.Entries) != 3) {
				t.Errorf("Push gave %v, want a *PushError that names 3 entries", err)
			}
			shards := core.Shards("orders", 3)
			err = confirmed(func() error {
				change := removed("a", "x")
				_, err := store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
					Shard:      shards[core.ShardOf("a", 3)],
					Shards:     3,
					Generation: 1,
					Changes:    []ports.ScheduleChange{change}})
				return err
			})
			if (err == nil) != tt.confirmed {
				t.Errorf("ChangeSchedules gave %v", err)
			}
			for _, shard := range shards {
				err := confirmed(func() error {
					_, err := store.Acquire(t.Context(), ports.AcquireRequest{
						Shard: shard, Shards: 3, Generation: 1, Owner: "test", Attempt: 1, TTL: time.Hour})
					return err
				})
				if (err == nil) != tt.confirmed {
					t.Errorf("Acquire of %v gave %v", shard, err)
				}
			}
			stats, err := severable{Store: store, cuts: new(cutShards)}.Stats(t.Context(),
				ports.StatsRequest{Queues: []string{"orders"}})
			if err != nil || stats[0].Fresh != 3 || stats[0].Shards[0].Owner != "test" {
				t.Errorf("%+v: %v; want 3 jobs and an owner", stats, err)
			}
		})
	}
}

// replicatedCluster is a Cluster each of whose masters has a replica.
func replicatedCluster(t *testing.T) goredis.UniversalClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	client := testservers.OwnRedisCluster(t, "--repl-diskless-sync-delay", "0").(*goredis.ClusterClient)
	for _, master := range client.Options().Addrs {
		host, port, err := net.SplitHostPort(master)
		if err != nil {
			t.Fatal(err)
		}
		replica := testservers.OwnRedis(t, "--replicaof", host, port)
		for follows := ""; !strings.Contains(follows, "master_link_status:up"); time.Sleep(10 * time.Millisecond) {
			if follows, err = replica.Info(ctx, "replication").Result(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return client
}

// A full server refuses pushes, and its queue can still be drained.
func TestRedisDrainsWhenFull(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t, "--maxmemory", "6mb")
	store := redis.New(client, redis.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	pushed, err := 0, error(nil)
	for err == nil {
		var entries []core.Entry
		for range 100 {
			id := strconv.Itoa(pushed + len(entries))
			entries = append(entries, core.Entry{ID: id, Payload: core.Payload{Data: make([]byte, 1000)}})
		}
		_, err = store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
		if err == nil {
			pushed += len(entries)
		}
	}
	if !errors.Is(err, ports.ErrFull) {
		t.Fatalf("Push gave %v, want %v", err, ports.ErrFull)
	}
	if drained := drain(t, store); drained != pushed || pushed == 0 {
		t.Errorf("%d jobs were pushed and %d handled", pushed, drained)
	}
	_, err = store.Push(t.Context(),
		ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}})
	if err != nil {
		t.Errorf("Push to the empty queue: %v", err)
	}
}

// drain settles all jobs of the only shard as done.
func drain(t *testing.T, store *redis.Store) (handled int) {
	t.Helper()
	shard := core.Shard{Queue: "orders"}
	a, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: "test", Attempt: 1, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	turn := ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "test", Token: a.Token},
		Number: 1,
		TTL:    time.Minute,
		Want:   core.MaxTurnJobs}
	for {
		reply, err := store.Turn(t.Context(), turn)
		if err != nil {
			t.Fatal(err)
		}
		if turn.Settlements = nil; len(reply.Claims) == 0 {
			return handled
		}
		for _, c := range reply.Claims {
			turn.Settlements = append(turn.Settlements, core.Settlement{ID: c.ID, Receipt: c.Receipt, Processed: true})
		}
		handled += len(reply.Claims)
		turn.Number = reply.Last + 1
	}
}

// Scripts are sent again to a server that has forgotten them.
func TestRedisForgetsScripts(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		entries := make([]core.Entry, 1200) // several scripts
		for k := range entries {
			entries[k] = core.Entry{ID: strconv.Itoa(k), Payload: core.Payload{Data: []byte{byte(i)}}}
		}
		_, err := store.Push(t.Context(),
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
		if err != nil {
			t.Fatal(err)
		}
	}
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "1199", Payloads: 1000})
	if err != nil || found.Queued == nil || len(found.Queued.Payloads) != 3 {
		t.Errorf("%+v: %v; want a job with 3 payloads", found.Queued, err)
	}
}

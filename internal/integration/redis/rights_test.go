package redis_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// The suite passes for a user who has the rights that docs/operations/redis.md lists and no others.
// Only the prefix is different, because the suite chooses it.
func TestRedisUserOfAPrefix(t *testing.T) {
	tier.Long(t, "runs the suite with the rights of one prefix")
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	rights := strings.NewReplacer("~skein:*", "~backend-*", "&skein:*", "&backend-*").Replace(documentedRights(t))
	conformance.Run(t, ownFactory(asUser(t, client, rights), func(string) {}))
}

// documentedRights are the arguments of ACL SETUSER skein in the documentation.
func documentedRights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "ACL SETUSER skein ")
	rights, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/operations/redis.md does not say what a user needs")
	}
	return strings.ReplaceAll(rights, "\\\n", " ")
}

// asUser is a client of a new user who has these rights.
func asUser(t *testing.T, admin *goredis.Client, rights string) goredis.UniversalClient {
	t.Helper()
	args := []any{"acl", "setuser", "skein"}
	for _, right := range strings.Fields(rights) {
		args = append(args, right)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	o := *admin.Options()
	o.Username, o.Password = "skein", "secret"
	client := goredis.NewClient(&o)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestRedisThatMayEvictIsRefused(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t, "--maxmemory-policy", "allkeys-lru").(*goredis.Client)
	declare := ports.DeclareRequest{Queue: "orders", Shards: 1}
	_, err := redis.New(client, redis.Options{}).Declare(t.Context(), declare)
	if err == nil || !strings.Contains(err.Error(), "allkeys-lru") || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("Declare gave %v, want an error that names both policies", err)
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("it stored %d keys", n)
	}

	var log bytes.Buffer
	banned := asUser(t, client, "on >secret ~* &* +@all -config")
	_, err = redis.New(banned, redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).Declare(t.Context(),
		declare)
	if err != nil || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "noeviction") {
		t.Errorf("without CONFIG, Declare gave %v and logged %q; want a warning about noeviction", err, log.String())
	}
}

// A store continues after Sentinel has promoted a replica, with everything that had been
// replicated, and its tokens grow.
func TestRedisFailsOver(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	client := testservers.RedisSentinel(t)
	store := redis.New(client, redis.Options{WaitReplicas: 1})
	if _, err := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	push := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}}
	if _, err := store.Push(ctx, push); err != nil {
		t.Fatal(err)
	}
	acquire := ports.AcquireRequest{Shard: core.Shard{
		Queue: "orders",
	}, Shards: 1, Generation: 1, Owner: "n1", Attempt: 1, TTL: time.Minute}
	before, err := store.Acquire(ctx, acquire)
	if err != nil {
		t.Fatal(err)
	}

	_ = client.ShutdownNoSave(ctx).Err() // the server answers by closing the connection
	after := redis.New(client, redis.Options{})
	push.Entries[0].ID = "b"
	for _, err = after.Push(ctx, push); err != nil; _, err = after.Push(ctx, push) {
		if ctx.Err() != nil {
			t.Fatalf("push after the failover: %v", err)
		}
	}
	acquire.Attempt++
	reply, err := after.Acquire(ctx, acquire)
	if err != nil || reply.Token <= before.Token {
		t.Errorf("Acquire gave token %d after %d: %v", reply.Token, before.Token, err)
	}
	stats, err := after.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil || stats[0].Fresh != 2 {
		t.Errorf("%+v: %v; want both jobs", stats, err)
	}
}

package redis_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// unusableRedis is a server that can't be used as it is set up, or a client of it.
type unusableRedis struct {
	name string
	// options change those of the client, whose server has a user "skein".
	options func(*goredis.Options)
	// rights are those of the user "skein", and config the server's.
	rights []any
	config []string
	// prefix is the store's.
	prefix string
	// says is a text that the error must contain.
	says string
	// cure makes the server usable, if that is possible without another client.
	cure []any
}

func asSkein(password string) func(*goredis.Options) {
	return func(o *goredis.Options) { o.Username, o.Password = "skein", password }
}

func unusableRedises() []unusableRedis {
	most := []any{"on", ">secret", "~*", "&*", "+@all"}
	return []unusableRedis{
		{name: "wrong password", options: asSkein("guessed"), rights: most, says: "password"},
		{name: "no password", rights: most, config: []string{"requirepass", "secret"}, says: "password"},
		{name: "no database", options: func(o *goredis.Options) { o.DB = 99 }, says: "DB"},
		{
			name: "no right to run scripts", options: asSkein("secret"), rights: append(most[:5:5], "-evalsha"),
			says: "docs/operations/redis.md", cure: []any{"+evalsha"},
		},
		{
			name:    "no right to a command of a script",
			options: asSkein("secret"),
			rights:  append(most[:5:5], "-zadd", "-hdel"),
			says:    "hdel, zadd",
			cure:    []any{"+zadd", "+hdel"},
		},
		{
			name:    "no right to the prefix",
			options: asSkein("secret"),
			rights:  []any{"on", ">secret", "~other:*", "&*", "+@all"},
			says:    "docs/operations/redis.md",
			cure:    []any{"~skein:*"},
		},
		{name: "evicting policy", config: []string{"maxmemory-policy", "allkeys-lru"}, says: "noeviction"},
		{name: "braces in the prefix", prefix: "{tenant}:", says: "braces"},
	}
}

// If waiting does not help, the first call of any method returns ErrUnusable, which names the cure,
// and nothing is stored. After the cure, the same handle works.
func TestRedisUnusable(t *testing.T) {
	for _, tt := range unusableRedises() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			admin, client := tt.open(t)
			store := redis.New(client,
				redis.Options{Prefix: tt.prefix, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			for method, err := range callEach(t, store) {
				if !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s gave %v, want %q with %q", method, err, ports.ErrUnusable, tt.says)
				}
			}
			if n, err := admin.DBSize(t.Context()).Result(); n != 0 || err != nil {
				t.Errorf("%d keys were stored: %v", n, err)
			}
			if tt.cure == nil {
				return
			}
			if err := admin.Do(t.Context(), append([]any{"acl", "setuser", "skein"}, tt.cure...)...).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
				t.Errorf("Declare after the cure: %v", err)
			}
		})
	}
}

// open sets a server up, and returns a client that may do all and that of the test.
func (tt *unusableRedis) open(t *testing.T) (admin, client *goredis.Client) {
	t.Helper()
	admin = testservers.OwnRedis(t).(*goredis.Client)
	if tt.rights != nil {
		if err := admin.Do(t.Context(), append([]any{"acl", "setuser", "skein"}, tt.rights...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(tt.config); i += 2 {
		if err := admin.ConfigSet(t.Context(), tt.config[i], tt.config[i+1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	o := *admin.Options()
	if tt.options != nil {
		tt.options(&o)
	}
	client = goredis.NewClient(&o)
	t.Cleanup(func() { client.Close() })
	return admin, client
}

// callEach returns the error of each kind of call.
func callEach(t *testing.T, store *redis.Store) map[string]error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	shard, errs := core.Shard{Queue: "orders"}, map[string]error{}
	_, errs["Declare"] = store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1})
	_, errs["Push"] = store.Push(ctx,
		ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}})
	_, errs["Acquire"] = store.Acquire(ctx, ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: "test", Attempt: 1, TTL: time.Minute})
	_, errs["Turn"] = store.Turn(ctx, ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: "test", Token: 1}, Number: 1, TTL: time.Minute, Want: 1})
	_, errs["Heads"] = store.Heads(ctx, []core.Shard{shard})
	_, errs["Queues"] = store.Queues(ctx)
	_, errs["Announce"] = store.Announce(ctx, ports.AnnounceRequest{Node: ports.Node{Owner: "test"}, TTL: time.Minute})
	errs["DrainNode"] = store.DrainNode(ctx, "test", true)
	errs["Retire"] = store.Retire(ctx, "test")
	errs["Pause"] = store.Pause(ctx, "orders")
	_, errs["Stats"] = store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
	_, errs["Wakeups"] = store.Wakeups(ctx, []core.Shard{shard})
	return errs
}

// A user without the right to subscribe gets an error from Wakeups, and works without wake-ups.
func TestRedisWithoutChannelsIsPolled(t *testing.T) {
	t.Parallel()
	client := asUser(t, testservers.OwnRedis(t).(*goredis.Client), "on >secret ~* resetchannels +@all")
	store := redis.New(client, redis.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Wakeups(t.Context(), []core.Shard{{Queue: "orders"}})
	if err == nil || errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "skein:*") {
		t.Errorf("Wakeups gave %v, want an error that names the channels and is not %q", err, ports.ErrUnusable)
	}
	push := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}}
	if _, err := store.Push(t.Context(), push); err != nil {
		t.Error(err)
	}
}

// A client of a Cluster whose server is in none reports which client to use.
func TestRedisClusterClientWithoutACluster(t *testing.T) {
	t.Parallel()
	address := testservers.OwnRedis(t).(*goredis.Client).Options().Addr
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{address}})
	defer client.Close()
	_, err := redis.New(client, redis.Options{}).Queues(t.Context())
	if !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "NewClient") {
		t.Errorf("Queues gave %v, want %q and what to connect with", err, ports.ErrUnusable)
	}
}

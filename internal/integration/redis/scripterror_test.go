package redis_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// If a script finds a key of a wrong type, its error names the file and the line of the command.
func TestRedisErrorsNameTheLineOfAScript(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]goredis.UniversalClient{
		"Redis":  testservers.Redis(t),
		"Valkey": testservers.Valkey(t),
	} {
		t.Run(name, func(t *testing.T) {
			prefix, shard := testservers.Prefix(t, client), core.Shard{Queue: "orders"}
			store := redis.New(client, redis.Options{Prefix: prefix})
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
			must(t, err)
			a, err := store.Acquire(t.Context(), ports.AcquireRequest{
				Shard: shard, Shards: 1, Generation: 1, Owner: "test", Attempt: 1, TTL: time.Minute})
			must(t, err)

			must(t, client.Set(t.Context(), prefix+"{orders/0}:k", "no hash", 0).Err())
			_, err = store.Turn(t.Context(), ports.TurnRequest{
				Lease:  ports.Lease{Shard: shard, Owner: "test", Token: a.Token},
				Number: 1, TTL: time.Minute, Resent: true})
			namesLine(t, err, "lib/claims.lua", "call('HGETALL', CANCELS)")

			must(t, client.Del(t.Context(), prefix+"{orders/0}:m").Err())
			must(t, client.HSet(t.Context(), prefix+"{orders/0}:m", "no", "string").Err())
			_, err = store.Push(t.Context(),
				ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{one("a", 1)}})
			namesLine(t, err, "push/push_plain.lua", "call('GET', META)")
		})
	}
}

// namesLine checks that an error names a line of a script's file, which has a text.
func namesLine(t *testing.T, err error, file, text string) {
	t.Helper()
	if err == nil {
		t.Fatal("the call succeeded")
	}
	found := regexp.MustCompile(`lua/(\w+/\w+\.lua):(\d+)`).FindStringSubmatch(err.Error())
	if found == nil || found[1] != file {
		t.Fatalf("got %v, want a line of lua/%s", err, file)
	}
	lines, err2 := os.ReadFile("../../../adapters/redis/lua/" + file)
	must(t, err2)
	n, err2 := strconv.Atoi(found[2])
	must(t, err2)
	if line := strings.Split(string(lines), "\n")[n-1]; !strings.Contains(line, text) {
		t.Errorf("got %v, whose line is %q; want that with %q", err, line, text)
	}
}

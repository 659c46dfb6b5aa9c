package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// refusedWhenFull reports whether a full server refuses the call: a script that may store more
// than it removes. All others pass, so that servers can start, and handle the queued jobs. The call
// of oldest pushes first.
func (c *scriptCall) refusedWhenFull() bool {
	return c.script == "push" || c.script == "oldest" || c.script == "track" || c.script == "edit" || c.script == "import" || c.script == "import_jobs" || c.script == "recount" || strings.HasPrefix(c.name, "revive")
}

// TestRedisFullServer makes every call on a server that is beyond its maxmemory. A call whose
// script is refused returns ErrFull and stores nothing. Any other call succeeds.
func TestRedisFullServer(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, call := range scriptCalls() {
		t.Run(call.name, func(t *testing.T) {
			must(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
			must(t, client.FlushAll(t.Context()).Err())
			w := newWorker(t, client, call.filled)
			w.prepare(call)
			must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
			before := allContents(t, client)
			err := call.do(w)
			switch changed := cmp.Diff(before, allContents(t, client)); {
			case !call.refusedWhenFull() && err != nil:
				t.Errorf("it gave %v on a full server", err)
			case call.refusedWhenFull() && !errors.Is(err, ports.ErrFull):
				t.Errorf("it gave %v on a full server, want %v", err, ports.ErrFull)
			case call.refusedWhenFull() && changed != "":
				t.Errorf("it was refused and has changed (-before +after):\n%s", changed)
			}
		})
	}
}

// allContents are all keys of a server that is no part of a Cluster.
func allContents(t *testing.T, client *goredis.Client) contents {
	t.Helper()
	keys, err := client.Keys(t.Context(), "*").Result()
	must(t, err)
	return (&slotServer{client: client}).readKeys(t, keys)
}

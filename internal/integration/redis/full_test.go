package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// refusedWhenFull reports whether a full server refuses the call: a script that may store more
// than it removes. All others pass, so that servers can start, and handle the queued jobs. The call
// of oldest pushes first.
func (c *scriptCall) refusedWhenFull() bool {
	if c.script == "change_schedules" {
		return !strings.HasPrefix(c.name, "remove")
	}
	return c.script == "push" || c.script == "oldest" || c.script == "track" || c.script == "edit" || c.script == "edit_queued" ||
		strings.HasPrefix(c.script, "import") || c.script == "recount" || strings.HasPrefix(c.name, "revive")
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

// A server that starts while Redis is full and has none of its scripts drains the queue, even if
// each job fails first.
func TestRedisFullServerIsDrainedByANewOne(t *testing.T) {
	t.Parallel()
	const jobs = 500
	client := testservers.OwnRedis(t).(*goredis.Client)
	queue := skein.NewQueue[int]("full", skein.QueueOptions[int]{Shards: 2})
	producer := skein.NewClient(redis.New(client, redis.Options{}), skein.ClientOptions{})
	for i := range jobs {
		must(t, queue.Push(t.Context(), producer, fmt.Sprint("job-", i), i))
	}
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	must(t, client.ScriptFlush(t.Context()).Err())
	if err := queue.Push(t.Context(), producer, "one more", 1); !errors.Is(err, ports.ErrFull) {
		t.Fatalf("the server is not full: Push gave %v", err)
	}
	store := redis.New(client, redis.Options{})
	server := skein.NewServer(store,
		skein.ServerOptions{Logger: slog.New(slog.DiscardHandler), PollInterval: 50 * time.Millisecond},
		queue.JobHandler(func(_ context.Context, job *skein.Job[int]) error {
			if job.Retries == 0 {
				return skein.RetryIn(0, errors.New(strings.Repeat("x", 4000)))
			}
			return nil
		}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	var stats []ports.QueueStats
	for began := time.Now(); len(stats) == 0 || stats[0].Processed < jobs; time.Sleep(10 * time.Millisecond) {
		var err error
		stats, err = store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"full"}})
		must(t, err)
		if time.Since(began) > testservers.Patience {
			t.Fatalf("not drained: %+v", stats[0])
		}
	}
	stop()
	must(t, <-ended)
}

// The growth of a full server by failed jobs is bounded: it keeps their newest failures alone, whose
// texts are cut.
func TestRedisFullServerCutsErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("größer ", 450)
	for _, tt := range []struct {
		maxmemory string
		cut       bool
	}{{"0", false}, {"1gb", false}, {"1", true}} {
		client := testservers.OwnRedis(t).(*goredis.Client)
		w := newWorker(t, client, false)
		must(t, client.ConfigSet(t.Context(), "maxmemory", tt.maxmemory).Err())
		back := core.Settlement{ID: "a", Receipt: w.claims["a"].Receipt, Failed: true, Rest: core.Requeue,
			PutBack: core.PutBack{Delay: time.Hour, Failures: core.Failures{{Text: long}, {Text: "older"}}}}
		must(t, w.turn(ports.TurnRequest{Settlements: []core.Settlement{back}}))
		found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "a", Payloads: 1000})
		must(t, err)
		if kept := len(found.Queued.Failures); kept != map[bool]int{true: 1, false: 2}[tt.cut] {
			t.Errorf("maxmemory %s: %d of 2 failures are kept", tt.maxmemory, kept)
		}
		got := found.Queued.Failures.Newest().Text
		if !utf8.ValidString(got) || !strings.HasPrefix(long, got) || (len(got) < len(long)) != tt.cut ||
			tt.cut && (len(got) > 128 || len(got) < 100) {
			t.Errorf("maxmemory %s: an error of %d bytes is kept with %d: %q", tt.maxmemory, len(long), len(got), got)
		}
	}
}

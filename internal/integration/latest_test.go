package integration_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// updatesOf returns queues that keep only the latest payload of an id, one for each push rule.
func updatesOf() map[string]*skein.Queue[[]byte] {
	queues := map[string]*skein.Queue[[]byte]{}
	for name, rule := range map[string]skein.PushRule{
		"keep":     {},
		"earliest": skein.Earliest(),
		"debounce": skein.Debounce(time.Hour, 2*time.Hour),
	} {
		queues[name] = skein.NewQueue(name,
			skein.QueueOptions[[]byte]{Shards: 1, Merge: skein.Latest(1), PushRule: rule, Codec: skein.RawCodec{}})
	}
	return queues
}

// updatesVariable names the number of updates of the id under the push rule Keep. Under the other
// rules there are a tenth as many.
const updatesVariable = "SKEIN_TEST_UPDATES"

func updatesUnder(t *testing.T, rule string, short int) int {
	n := kit.FromVariable(t, updatesVariable, tier.Count(short, 1_000_000))
	if rule != "keep" {
		n /= 10
	}
	return n
}

// pushUpdates pushes n updates of one id, with payloads of 100 bytes, by calls of 1 to 100. One
// in ten is older than the ones before. It calls each after some calls.
func pushUpdates(t *testing.T, store skein.Store, queue *skein.Queue[[]byte], n int, each func()) {
	t.Helper()
	client := skein.NewClient(store, skein.ClientOptions{})
	for pushed, calls := 0, 0; pushed < n; calls++ {
		entries := make([]skein.Entry[[]byte], min(1+rand.IntN(100), n-pushed))
		for i := range entries {
			version := pushed + i
			if version%10 == 9 {
				version -= 7
			}
			entries[i] = skein.Entry[[]byte]{
				ID:      "hot",
				Payload: fmt.Appendf(nil, "%0100d", pushed+i),
				Options: []skein.PushOption{skein.Score(float64(version))},
			}
			if pushed+i == 0 {
				entries[i].Options = append(entries[i].Options, skein.In(-time.Minute)) // the job is overdue from then on
			}
		}
		must(t, queue.PushMany(t.Context(), client, entries))
		pushed += len(entries)
		if calls%20 == 19 {
			each()
		}
	}
}

// checkLatest checks that one job with the latest payload is left, and that the others are counted.
func checkLatest(t *testing.T, store inspect.Store, queue string, n int) {
	t.Helper()
	inspector := inspect.New(store, inspect.Options{})
	found, err := inspector.Find(t.Context(), queue, "hot")
	must(t, err)
	stats, err := inspector.Stats(t.Context(), queue)
	must(t, err)
	latest := n - 1
	if latest%10 == 9 {
		latest--
	}
	if found.Queued == nil || found.Queued.PayloadCount != 1 ||
		string(found.Queued.Payloads[0].Data) != fmt.Sprintf("%0100d", latest) {
		t.Errorf("%s: after %d updates the job is %+v; want the payload %d", queue, n, found.Queued, latest)
	}
	if c := stats[0].Counts; c.Fresh != 1 || c.Superseded != int64(n)-1 {
		t.Errorf("%s: %d jobs, %d superseded; want 1 and %d", queue, c.Fresh, c.Superseded, n-1)
	}
}

// On Redis an id that is updated a million times takes less than a KiB, with all that its shard
// keeps beside it.
func TestRedisUpdatesOfWhichTheLatestStaysTakeAKilobyte(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	for name, queue := range updatesOf() {
		updates := updatesUnder(t, name, 10_000)
		pushUpdates(t, store, queue, updates, func() {})
		bytes := memoryOf(t, client, "skein:{"+name+"/0}:*")
		t.Logf("%s: %d updates have left %d bytes", name, updates, bytes)
		if bytes >= 1024 {
			t.Errorf("%s: %d updates have left %d bytes, fewer than 1024 are wanted", name, updates, bytes)
		}
		checkLatest(t, store, name, updates)
	}
}

// memoryOf returns the memory of all keys by a pattern.
func memoryOf(t *testing.T, client goredis.UniversalClient, pattern string) (bytes int64) {
	t.Helper()
	keys, err := client.Keys(t.Context(), pattern).Result()
	must(t, err)
	for _, key := range keys {
		n, err := client.MemoryUsage(t.Context(), key, 0).Result()
		must(t, err)
		bytes += n
	}
	if bytes == 0 {
		t.Errorf("no key by the pattern %q", pattern)
	}
	return bytes
}

// On Postgres an id that is updated a million times is one row. The dead rows are reused once they
// are vacuumed, and only the first push leaves a note in the inbox that the job is due early.
func TestPostgresUpdatesOfWhichTheLatestStaysAreOneRow(t *testing.T) {
	t.Parallel()
	const mostPages = 200
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	store := postgres.New(pool, postgres.Options{NoWakeups: true})
	for name, queue := range updatesOf() {
		updates := updatesUnder(t, name, 2000)
		kit.Exec(t, pool, "TRUNCATE skein.jobs, skein.payloads, skein.inbox")
		pushUpdates(t, store, queue, updates, func() { kit.Exec(t, pool, "VACUUM skein.jobs") }) // as autovacuum does
		var rows [3]int
		var pages int
		must(t,
			pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM skein.jobs), (SELECT count(*) FROM skein.payloads),
			(SELECT count(*) FROM skein.inbox), pg_relation_size('skein.jobs') / 8192`).Scan(&rows[0], &rows[1],
				&rows[2], &pages))
		t.Logf("%s: %d updates have left %d rows of jobs, payloads, inbox, and %d pages", name, updates, rows, pages)
		if rows != [3]int{1, 0, 1} || pages > mostPages {
			t.Errorf("%s: %d updates have left %d rows of jobs, payloads, inbox, and %d pages; "+
				"want a job, a note that it is due early, and at most %d pages",
				name, updates, rows, pages, mostPages)
		}
		checkLatest(t, store, name, updates)
	}
}

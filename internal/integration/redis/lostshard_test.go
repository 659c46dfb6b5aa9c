package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// lostShards is a queue of four shards. Shard 1 loses all its keys.
const lostShards = 4

type lostShard struct {
	*testing.T
	client *goredis.Client
	store  *redis.Store
	log    strings.Builder
}

func newLostShard(t *testing.T) *lostShard {
	t.Helper()
	l := &lostShard{T: t, client: testservers.OwnRedis(t).(*goredis.Client)}
	l.store = redis.New(l.client, redis.Options{Logger: slog.New(slog.NewTextHandler(&l.log, nil))})
	must(t, l.declare())
	return l
}

func (l *lostShard) declare() error {
	_, err := l.store.Declare(l.Context(), ports.DeclareRequest{Queue: "orders", Shards: lostShards})
	return err
}

func (l *lostShard) push(shard int) error {
	id := ""
	for n := 0; id == "" || core.ShardOf(id, lostShards) != shard; n++ {
		id = strings.Repeat("x", n+1)
	}
	_, err := l.store.Push(l.Context(),
		ports.PushRequest{Queue: "orders", Shards: lostShards, Generation: 1, Entries: []core.Entry{{ID: id}}})
	return err
}

const lostMeta = "skein:{orders/1}:m"

// missing reports whether shard 1 has no record.
func (l *lostShard) missing() bool {
	l.Helper()
	n, err := l.client.Exists(l.Context(), lostMeta).Result()
	must(l.T, err)
	return n == 0
}

// A shard that was declared and has lost its record is not made anew by a declaration, which would
// hide the loss of its contents: each call on it reports it. The others keep working.
func TestRedisALostShardIsNotDeclaredAnew(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	record, err := l.client.Get(t.Context(), lostMeta).Result()
	must(t, err)
	must(t, l.client.Del(t.Context(), lostMeta).Err())
	must(t, l.declare())
	must(t, l.store.Pause(t.Context(), "orders"))
	must(t, l.store.Resume(t.Context(), "orders"))
	must(t, l.declare())
	if !l.missing() {
		t.Error("a declaration has made a shard anew that had lost its record")
	}
	if n := strings.Count(l.log.String(), "lost their records, so nothing works there; skein repair recount"); n != 2 {
		t.Errorf("the log has it %d times, want it with each of 2 declarations", n)
	}
	shard := core.Shard{Queue: "orders", Index: 1}
	for name, call := range map[string]func(context.Context) error{
		"a push": func(context.Context) error { return l.push(1) },
		"an acquire": func(ctx context.Context) error {
			_, err := l.store.Acquire(ctx,
				ports.AcquireRequest{
					Shard:      shard,
					Shards:     lostShards,
					Generation: 1,
					Owner:      "n",
					Attempt:    1,
					TTL:        time.Minute,
				})
			return err
		},
		"a step": func(ctx context.Context) error {
			_, err := l.store.Bury(ctx, ports.JobStep{Shard: shard})
			return err
		},
	} {
		if err := call(t.Context()); !errors.Is(err, redis.ErrLostRecord) || errors.Is(err, ports.ErrUnknownQueue) {
			t.Errorf("%s gave %v, want %v", name, err, redis.ErrLostRecord)
		}
	}
	heads, err := l.store.Heads(t.Context(), core.Shards("orders", lostShards))
	if err != nil || len(heads.Unreached) != 1 || heads.Unreached[0] != shard {
		t.Errorf("heads are without %v (%v), want without %v", heads.Unreached, err, shard)
	}
	for _, other := range []int{0, 2, 3} {
		must(t, l.push(other))
	}
	stats, err := l.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil || len(stats) != 1 || stats[0].Counts.Fresh != 3 || len(stats[0].Unreached) != 1 ||
		stats[0].Unreached[0] != shard {
		t.Errorf("statistics are %+v (%v), want three jobs without %v", stats, err, shard)
	}
	must(t, l.client.Set(t.Context(), lostMeta, record, 0).Err())
	must(t, l.push(1))
}

// An operator's choices if the record is lost for good: to have the shards declared anew, or to
// forget the queue. If all is gone, with the queue's record, it is declared as at first.
func TestRedisALostShardIsMended(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(*lostShard) error{
		"by a Recount": func(l *lostShard) error {
			_, err := inspect.New(l.store, inspect.Options{}).Recount(l.Context(), "orders", nil)
			return err
		},
		"by a Forget":     func(l *lostShard) error { return l.store.Forget(l.Context(), "orders") },
		"after a FLUSHDB": func(l *lostShard) error { return l.client.FlushDB(l.Context()).Err() },
	} {
		l := newLostShard(t)
		must(t, l.client.Del(t.Context(), lostMeta).Err())
		must(t, mend(l))
		must(t, l.declare())
		must(t, l.push(1))
		must(t, l.client.Del(t.Context(), lostMeta).Err())
		if err := l.push(1); !errors.Is(err, redis.ErrLostRecord) {
			t.Errorf("lost again after it was mended %s, a push gave %v", name, err)
		}
	}
}

// A shard that was lost together with its queue's record is restored with it, and that is logged.
// Later losses are logged again.
func TestRedisALostShardOfALostQueueIsMended(t *testing.T) {
	t.Parallel()
	for _, damage := range []func(*lostShard) error{
		func(l *lostShard) error { return l.client.HDel(l.Context(), "skein:queues", "orders").Err() },
		func(l *lostShard) error { return l.client.HSet(l.Context(), "skein:queues", "orders", "x").Err() },
		func(l *lostShard) error { // of no shard
			return l.client.HSet(l.Context(), "skein:queues", "orders", "0 0 0 1 1").Err()
		},
	} {
		l := newLostShard(t)
		must(t, l.push(0))
		must(t, l.client.Del(t.Context(), lostMeta).Err())
		must(t, damage(l))
		if err := l.push(1); !errors.Is(err, redis.ErrLostRecord) {
			t.Errorf("before, a push gave %v, want %v", err, redis.ErrLostRecord)
		}
		l.recounts(1, true)
		must(t, l.push(1))
		must(t, l.client.Del(t.Context(), lostMeta).Err())
		if err := l.push(1); !errors.Is(err, redis.ErrLostRecord) {
			t.Errorf("lost again, a push gave %v, want %v", err, redis.ErrLostRecord)
		}
	}
}

// recounts recounts the queue, and expects that this restores some records and is logged once.
func (l *lostShard) recounts(shards int, queue bool) {
	l.Helper()
	l.log.Reset()
	logged := slog.New(slog.NewTextHandler(&l.log, nil))
	wrong, err := inspect.New(l.store, inspect.Options{Logger: logged}).Recount(l.Context(), "orders", nil)
	must(l.T, err)
	restored, queues := 0, 0
	for _, r := range wrong {
		restored += r.RestoredShards
		if r.RestoredQueue {
			queues++
		}
	}
	if restored != shards || queues > 1 || (queues == 1) != queue {
		l.Errorf("the recount reports %+v, want %d restored shards, and the queue: %v", wrong, shards, queue)
	}
	lines := strings.Count(l.log.String(), "have new ones")
	if want := min(shards, 1); lines != want ||
		shards > 0 && !strings.Contains(l.log.String(), fmt.Sprintf("queue=orders count=%d", shards)) || l.missing() {
		l.Errorf("the log has %d lines of %d restored shards, want %d:\n%s", lines, shards, want, l.log.String())
	}
}

// A recount reports the records that it has restored, and logs one line for all shards.
func TestRedisARecountReportsRestoredRecords(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	remove := func(queue bool, shards ...int) {
		for _, shard := range shards {
			must(t, l.client.Del(t.Context(), fmt.Sprintf("skein:{orders/%d}:m", shard)).Err())
		}
		if queue {
			must(t, l.client.HDel(t.Context(), "skein:queues", "orders").Err())
		}
	}
	l.recounts(0, false)
	remove(false, 1, 2, 3)
	l.recounts(3, false)
	remove(true, 1, 2, 3)
	l.recounts(3, true)
	remove(true)
	l.recounts(0, true)

	remove(true, 1, 2, 3)
	l.log.Reset()
	must(t, l.declare())
	if n := strings.Count(l.log.String(), "have new ones"); n != 1 ||
		!strings.Contains(l.log.String(), "queue=orders count=3") {
		t.Errorf("the log of a declaration has %d lines, want one for 3 shards:\n%s", n, l.log.String())
	}
}

// A recount beside a Forget, which has removed the shard, makes nothing anew and leaves the Forget
// its mark.
func TestRedisARecountLeavesAForget(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	forgotten := strings.TrimSuffix(l.client.HGet(t.Context(), "skein:queues", "orders").Val(), "+") + "NONCE"
	must(t, l.client.HSet(t.Context(), "skein:queues", "orders", forgotten).Err())
	must(t, l.client.Del(t.Context(), lostMeta).Err())
	_, err := kit.Recounted(t.Context(), l.store, core.Shard{Queue: "orders", Index: 1})
	if got := l.client.HGet(t.Context(), "skein:queues", "orders").Val(); !errors.Is(err, ports.ErrUnknownQueue) ||
		got != forgotten || !l.missing() {
		t.Errorf("a recount gave %v and left the record %q, want it as it was: %q", err, got, forgotten)
	}
}

// A Pause amid a recount that makes a shard anew holds for that shard too.
func TestRedisAPauseRacesARecount(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	must(t, l.client.Del(t.Context(), lostMeta).Err())
	late := goredis.NewClient(l.client.Options())
	defer late.Close()
	late.AddHook(&beforeShards{on: "skein:{orders/1}:", do: func() { must(t, l.store.Pause(t.Context(), "orders")) }})
	_, err := kit.Recounted(t.Context(), redis.New(late, redis.Options{Logger: slog.New(slog.DiscardHandler)}),
		core.Shard{Queue: "orders", Index: 1})
	must(t, err)
	if record := l.client.Get(t.Context(), lostMeta).Val(); !strings.HasPrefix(record, "0 1 4 ") {
		t.Errorf("the shard's record is %q, want that of the paused queue", record)
	}
}

// A Pause amid a recount that restores the queue's record holds for a lost shard too.
func TestRedisAPauseRacesARecountOfALostQueue(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	must(t, l.client.Del(t.Context(), lostMeta).Err())
	must(t, l.client.HDel(t.Context(), "skein:queues", "orders").Err())
	late := goredis.NewClient(l.client.Options())
	defer late.Close()
	late.AddHook(&beforeShards{on: "skein:{orders/1}:", scripts: true, do: func() {
		must(t, l.store.Pause(t.Context(), "orders"))
	}})
	_, err := kit.Recounted(t.Context(), redis.New(late, redis.Options{Logger: slog.New(slog.DiscardHandler)}),
		core.Shard{Queue: "orders"})
	must(t, err)
	if record := l.client.Get(t.Context(), lostMeta).Val(); !strings.HasPrefix(record, "0 1 4 ") {
		t.Errorf("the shard's record is %q, want that of the paused queue", record)
	}
}

// A Forget amid a recount is not undone by it.
func TestRedisAForgetRacesARecount(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	must(t, l.client.Del(t.Context(), lostMeta).Err())
	late := goredis.NewClient(l.client.Options())
	defer late.Close()
	late.AddHook(&beforeShards{on: "skein:{orders/1}:", do: func() { must(t, l.store.Forget(t.Context(), "orders")) }})
	_, err := kit.Recounted(t.Context(), redis.New(late, redis.Options{Logger: slog.New(slog.DiscardHandler)}),
		core.Shard{Queue: "orders", Index: 1})
	if left := l.client.Keys(t.Context(), "skein:{orders/*").Val(); !errors.Is(err, ports.ErrUnknownQueue) ||
		len(left) > 0 {
		t.Errorf("a recount gave %v and left %q of a queue that was forgotten", err, left)
	}
}

// A queue's record that its shards contradict is no declaration of all of them.
func TestRedisAShardOfAnotherLayoutIsNamed(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	must(t, l.client.HSet(t.Context(), "skein:queues", "orders", "0 0 6 1 7").Err())
	_, err := l.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 6})
	if record := l.client.HGet(t.Context(), "skein:queues", "orders").Val(); !errors.Is(
		err, ports.ErrShardCountMismatch,
	) || strings.HasSuffix(record, "+") {
		t.Errorf("a declaration gave %v and left %q, want %v", err, record, ports.ErrShardCountMismatch)
	}
	if _, err := kit.Recounted(t.Context(), l.store, core.Shard{
		Queue: "orders", Index: 1,
	}); !errors.Is(err, ports.ErrShardCountMismatch) {
		t.Errorf("a recount gave %v, want %v", err, ports.ErrShardCountMismatch)
	}
}

// A Recount makes the lost record of a queue's only shard anew.
func TestRedisTheOnlyShardIsMended(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	must(t, client.Del(t.Context(), key("m")).Err())
	_, err := inspect.New(w.store, inspect.Options{}).Recount(t.Context(), "orders", nil)
	must(t, err)
	must(t, w.push(one("new", 1)))
}

// A queue that has lost its record gets it again from its shards, by the next declaration or a
// Recount, with its shards, its pause and all jobs. Until then a caller that names it can look at
// it.
func TestRedisALostQueueRecordIsRestored(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]func(*lostShard) error{
		"by a Declare": (*lostShard).declare,
		"by a Declare of more shards": func(l *lostShard) error {
			_, err := l.store.Declare(l.Context(), ports.DeclareRequest{Queue: "orders", Shards: lostShards + 2})
			if !errors.Is(err, ports.ErrShardCountMismatch) {
				return fmt.Errorf("%v, want %w", err, ports.ErrShardCountMismatch)
			}
			return nil
		},
		"by a Recount": func(l *lostShard) error {
			_, err := inspect.New(l.store, inspect.Options{}).Recount(l.Context(), "orders", nil)
			return err
		},
	} {
		l := newLostShard(t)
		for shard := range lostShards {
			must(t, l.push(shard))
		}
		must(t, l.store.Pause(t.Context(), "orders"))
		record := l.client.HGet(t.Context(), "skein:queues", "orders").Val()
		must(t, l.client.HDel(t.Context(), "skein:queues", "orders").Err())
		other := redis.New(l.client, redis.Options{}) // which has not seen the record
		stats, err := other.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		if err != nil || len(stats) != 1 || stats[0].Counts.Fresh != lostShards || !stats[0].Queue.Paused {
			t.Errorf("%s: before, statistics are %+v, %v", name, stats, err)
		}
		if err := restore(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		must(t, l.declare())
		if got := l.client.HGet(t.Context(), "skein:queues", "orders").Val(); got != record {
			t.Errorf("%s: the record is %q, want %q", name, got, record)
		}
		for shard := range lostShards {
			must(t, l.push(shard))
		}
		must(t, l.client.FlushDB(t.Context()).Err())
		if _, err := l.store.Stats(t.Context(), ports.StatsRequest{
			Queues: []string{"orders"},
		}); !errors.Is(err, ports.ErrUnknownQueue) {
			t.Errorf("%s: statistics of a queue of which nothing is left gave %v", name, err)
		}
	}
}

// Of the records that shards have kept, the newest is restored: a Pause may not have come to all
// of them.
func TestRedisTheNewestRecordOfAQueueIsRestored(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	old := l.client.Get(t.Context(), lostMeta).Val()
	must(t, l.store.Pause(t.Context(), "orders"))
	must(t, l.client.Set(t.Context(), "skein:{orders/0}:m", old, 0).Err())
	must(t, l.client.HDel(t.Context(), "skein:queues", "orders").Err())
	must(t, l.declare())
	for _, key := range []string{"skein:{orders/0}:m", lostMeta} {
		if record := l.client.Get(t.Context(), key).Val(); !strings.HasPrefix(record, "0 1 4 ") {
			t.Errorf("the record of %s is %q, want that of the paused queue", key, record)
		}
	}
}

// A recount makes no shard that the queue does not have.
func TestRedisARecountMakesNoOtherShard(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	for _, lost := range []bool{false, true} {
		if lost {
			must(t, l.client.HDel(t.Context(), "skein:queues", "orders").Err())
		}
		for _, index := range []int{-1, lostShards} {
			_, err := kit.Recounted(t.Context(), l.store, core.Shard{Queue: "orders", Index: index})
			if keys := l.client.Keys(t.Context(), fmt.Sprintf("skein:{orders/%d}:*", index)).Val(); err == nil ||
				len(keys) > 0 {
				t.Errorf("a recount of shard %d gave %v and made %q", index, err, keys)
			}
		}
	}
}

// A declaration that has not reached a master does not record that all shards were declared. So
// a shard without a record does not count as lost.
func TestRedisADeclarationOfAPartIsNotWhole(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedisCluster(t).(*goredis.ClusterClient)
	cuts := &cutShards{}
	cut := goredis.NewClusterClient(client.Options())
	defer cut.Close()
	cut.AddHook(cuts)
	cuts.tags.Store("skein:{orders/1}", true)
	for _, tt := range []struct {
		by    *goredis.ClusterClient
		whole bool
	}{{cut, false}, {client, true}} {
		_, err := redis.New(tt.by, redis.Options{}).Declare(t.Context(),
			ports.DeclareRequest{Queue: "orders", Shards: lostShards})
		must(t, err)
		if record := client.HGet(t.Context(), "skein:queues", "orders").Val(); record == "" ||
			strings.HasSuffix(record, " +") != tt.whole {
			t.Errorf("the record is %q; want that all shards were declared: %v", record, tt.whole)
		}
	}
}

// While its shards can't be asked, nothing is declared in the place of a queue that may have lost
// its record.
func TestRedisALostQueueRecordIsNotDeclaredBlindly(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	must(t, l.store.Pause(t.Context(), "orders"))
	must(t, l.client.HDel(t.Context(), "skein:queues", "orders").Err())
	cuts := &cutShards{}
	cut := goredis.NewClient(l.client.Options())
	defer cut.Close()
	cut.AddHook(cuts)
	cuts.tags.Store("skein:{orders/", true)
	_, err := redis.New(cut, redis.Options{}).Declare(t.Context(),
		ports.DeclareRequest{Queue: "orders", Shards: lostShards + 2})
	if record := l.client.HGet(t.Context(), "skein:queues", "orders").Val(); err == nil || record != "" {
		t.Errorf("a declaration that could ask no shard gave %v and stored %q", err, record)
	}
	must(t, l.declare())
	if record := l.client.HGet(t.Context(), "skein:queues", "orders").Val(); !strings.HasPrefix(record, "0 1 4 ") {
		t.Errorf("the record is %q, want that of the paused queue", record)
	}
}

// A declaration that broke off is completed by the next.
func TestRedisADeclarationIsCompleted(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	cuts := &cutShards{reads: true}
	cut := goredis.NewClient(client.Options())
	defer cut.Close()
	cut.AddHook(cuts)
	cuts.tags.Store("skein:{orders/1}", true)
	l := &lostShard{T: t, client: client, store: redis.New(cut, redis.Options{})}
	if err := l.declare(); err == nil {
		t.Fatal("a declaration succeeded that could not reach a shard")
	}
	must(t, redis.New(client, redis.Options{}).Pause(t.Context(), "orders"))
	cuts.tags.Clear()
	must(t, l.declare())
	paused := strings.TrimSuffix(client.HGet(t.Context(), "skein:queues", "orders").Val(), " +")
	if record, err := client.Get(t.Context(), lostMeta).Result(); err != nil || record != paused ||
		!strings.HasPrefix(record, "0 1 4 1 ") {
		t.Errorf("the shard's record is %q (%v), want that of the paused queue", record, err)
	}
}

// A pause between the halves of the first declaration finds no shards. They are paused
// nevertheless.
func TestRedisPauseRacesTheFirstDeclare(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	late := goredis.NewClient(client.Options())
	defer late.Close()
	store := openFrozen(client)
	late.AddHook(&beforeShards{scripts: true, do: func() { must(t, store.Pause(t.Context(), "orders")) }})
	w := &worker{
		t:      t,
		client: client,
		store:  openFrozen(late),
		shard:  core.Shard{Queue: "orders"},
		claims: map[string]core.Claim{},
	}
	must(t, w.declare("orders"))
	must(t, w.push(one("a", 1)))
	must(t, w.acquire("n", 1))
	must(t, w.turn(ports.TurnRequest{Want: 1}))
	if len(w.claims) > 0 {
		t.Error("a shard of a paused queue gave a job")
	}
}

// However many shards of a queue have lost their records, a look logs one line, and another look by
// the same process none.
func TestRedisLostShardsOfAQueueAreOneLine(t *testing.T) {
	t.Parallel()
	l := newLostShard(t)
	for _, queue := range []string{"mails", "exports"} {
		_, err := l.store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: lostShards})
		must(t, err)
	}
	for _, queue := range []string{"orders", "mails"} {
		for _, shard := range core.Shards(queue, lostShards) {
			meta := strings.ReplaceAll(lostMeta, "orders/1", shard.String())
			must(t, l.client.Del(t.Context(), meta).Err())
		}
	}
	for range 2 {
		_, err := l.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders", "mails", "exports"}})
		must(t, err)
	}
	if lines := strings.Count(l.log.String(), "lost their records"); lines != 2 {
		t.Errorf("%d lines, want one for each queue:\n%s", lines, l.log.String())
	}
	for _, queue := range []string{"orders", "mails"} {
		if want := fmt.Sprintf("queue=%[1]s count=%[2]d shards=\"%[1]s/0, %[1]s/1",
			queue, lostShards); !strings.Contains(l.log.String(), want) {
			t.Errorf("no line has %s:\n%s", want, l.log.String())
		}
	}
}

// A record that can't be read is treated like a lost one: calls report it, a Pause skips it, a
// declaration leaves it, and a Recount makes it anew and keeps the jobs.
func TestRedisAShardWhoseRecordCanNotBeReadIsMended(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"", "garbage", "0 0 x"} {
		l := newLostShard(t)
		must(t, l.push(1))
		must(t, l.client.Set(t.Context(), lostMeta, damage, 0).Err())
		must(t, l.declare())
		must(t, l.store.Pause(t.Context(), "orders"))
		must(t, l.store.Resume(t.Context(), "orders"))
		if err := l.push(1); !errors.Is(err, redis.ErrLostRecord) || errors.Is(err, ports.ErrUnknownQueue) {
			t.Errorf("%q: a push gave %v, want %v", damage, err, redis.ErrLostRecord)
		}
		if _, err := inspect.New(l.store, inspect.Options{}).Recount(t.Context(), "orders", nil); err != nil {
			t.Errorf("%q: a recount gave %v", damage, err)
		}
		must(t, l.push(1))
		stats, err := l.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		if err != nil || len(stats) != 1 || stats[0].Counts.Fresh != 1 || len(stats[0].Unreached) != 0 {
			t.Errorf("%q: statistics are %+v (%v), want the job that was there", damage, stats, err)
		}
	}
}

func TestRedisAnUnreadableRecordOfAQueueIsNotChanged(t *testing.T) {
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	must(t, client.HSet(t.Context(), "skein:queues", "orders", "x").Err())
	for what, err := range map[string]error{
		"Pause": store.Pause(t.Context(), "orders"),
		"SetMerge": store.SetMerge(t.Context(),
			ports.SetMergeRequest{Queue: "orders", Merge: core.MergeRule{Stays: core.Highest}}),
	} {
		if err == nil || !strings.Contains(err.Error(), "skein repair recount restores it") {
			t.Errorf("%s returned %v, want the cure", what, err)
		}
	}
	if left := client.HGet(t.Context(), "skein:queues", "orders").Val(); left != "x" {
		t.Errorf("the record is %q", left)
	}
}

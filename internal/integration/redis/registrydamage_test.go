package redis_test

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A record of a node or of a permit that can't be read makes no call of other nodes fail.
func TestRedisADamagedNodeOrPermitIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	ctx := t.Context()
	must(t, w.announce(1))
	must(t, w.permit("node", 1))
	for _, record := range [][2]string{
		{"skein:{/nodes}:n", "garbage"}, {"skein:{/nodes}:n", "1 9000000000000000 1 0 no JSON"},
		{"skein:{/nodes}:s", "garbage"}, {"skein:{orders}:permits", "garbage"},
	} {
		must(t, w.client.HSet(ctx, record[0], "damaged", record[1]).Err())
		must(t, w.announce(1))
		must(t, w.permit("other", 1))
		nodes, err := w.store.Nodes(ctx)
		if err != nil || len(nodes.Nodes) != 1 {
			t.Errorf("beside %q: %+v, %v; want one node", record, nodes.Nodes, err)
		}
		must(t, w.store.Retire(ctx, "damaged"))
	}
	if left := w.client.HLen(ctx, "skein:{/nodes}:n").Val(); left != 1 {
		t.Errorf("%d nodes are stored, want one", left)
	}
}

// A queue whose record can't be read hides no other, and looks at it use the copies in its shards.
// Each damage is logged once. A recount restores the record.
func TestRedisADamagedQueueRecordHidesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	ctx := t.Context()
	must(t, w.declare("others"))
	var log strings.Builder
	w.store = redis.New(w.client, redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, text := range []string{"garbage", "1 0 0 1 1", "", "1 0 x"} {
		must(t, w.client.HSet(ctx, "skein:queues", "orders", text).Err())
		for range 2 {
			queues, err := w.store.Queues(ctx)
			if err != nil || len(queues) != 1 || queues[0].Name != "others" {
				t.Errorf("beside %q: %+v, %v; want the other queue", text, queues, err)
			}
		}
		stats, err := w.store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
		if err != nil || len(stats[0].Shards) != 1 {
			t.Errorf("of the queue with the record %q: %+v, %v", text, stats, err)
		}
		if err := w.store.Pause(ctx, "orders"); err == nil {
			t.Errorf("the queue with the record %q was paused", text)
		}
	}
	_, err := kit.Recounted(ctx, w.store, w.shard)
	must(t, err)
	if queues, err := w.store.Queues(ctx); err != nil || len(queues) != 2 {
		t.Errorf("after a recount: %+v, %v; want both queues", queues, err)
	}
	if n := strings.Count(log.String(), "record of a queue can't be read"); n != 4 {
		t.Errorf("the log has it %d times, want 4:\n%s", n, log.String())
	}
}

// A record under an odd id that can't be read is set aside, and its shard works on.
func TestRedisADamagedRecordUnderAnOddIDIsSetAside(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"empty":        "",
		"70,000 bytes": strings.Repeat("i", 70_000),
		"no UTF-8":     "\xff\xfe",
		"a NUL":        "a\x00b",
		"a line's end": "a\r\nb",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(t, testservers.OwnRedis(t), false)
			must(t, w.client.HSet(t.Context(), "skein:{orders/0}:j", id, "\xff\xff\xff").Err())
			must(t, w.client.ZAdd(t.Context(), "skein:{orders/0}:r", goredis.Z{Score: 1, Member: id}).Err())
			if err := w.turn(ports.TurnRequest{Want: 10}); err != nil {
				t.Errorf("a turn: %.300v", err)
			}
			if page, err := w.store.Quarantined(t.Context(), ports.QuarantineRequest{Shard: w.shard}); err != nil ||
				len(page.Records) != 1 {
				t.Errorf("%d are shown as set aside: %v", len(page.Records), err)
			}
		})
	}
}

// A job at an impossible time is listed and found, and makes no call fail.
func TestRedisAnOddTimeStopsNothing(t *testing.T) {
	t.Parallel()
	for _, score := range []string{"-5", "1.5", "-inf", "inf", "1e300", "1e17"} {
		t.Run(score, func(t *testing.T) {
			w := newWorker(t, testservers.OwnRedis(t), false)
			ctx := t.Context()
			must(t, w.client.Do(ctx, "zadd", "skein:{orders/0}:r", score, "b").Err())
			must(t, w.push(one("c", 1)))
			page, err := w.store.Jobs(ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
			if err != nil || len(page.Jobs) == 0 {
				t.Errorf("Jobs: %+v, %v", page.Jobs, err)
			}
			if found, err := w.store.Find(ctx, ports.FindRequest{
				Queue: "orders", ID: "b", Payloads: 1000,
			}); err != nil || found.Queued == nil {
				t.Errorf("Find: %+v, %v", found, err)
			}
			if err := w.turn(ports.TurnRequest{Want: 10}); err != nil {
				t.Errorf("a turn: %v", err)
			}
			if _, err := w.store.Claimed(ctx, ports.PageRequest{Queue: "orders"}); err != nil {
				t.Errorf("Claimed: %v", err)
			}
		})
	}
}

// A minute, or a node's hour, that can't be read hides no other.
func TestRedisADamagedMinuteHidesNoOther(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"no block": "\x05", "a record beyond its end": "\x05\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01",
		"a record that is none": "\x05\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(t, testservers.OwnRedis(t), false)
			ctx := t.Context()
			minute := core.InstantOf(frozenNow).Minute()
			must(t, w.store.Record(ctx, ports.RecordRequest{Owner: "n1", Records: []ports.Record{
				{Queue: "orders", Minute: minute, Stats: core.Stats{Processed: 7}},
			}}))
			keys := w.client.Keys(ctx, "skein:{orders/0}:h*").Val()
			if len(keys) != 1 {
				t.Fatalf("hours are kept in %q, want one key", keys)
			}
			fields := slices.DeleteFunc(w.client.HKeys(ctx, keys[0]).Val(), func(f string) bool { return f == "hour" })
			if len(fields) != 1 {
				t.Fatalf("an hour has the fields %q, want one of the node", fields)
			}
			must(t, w.client.HSet(ctx, keys[0], fields[0]+"b", damage).Err()) // of the same minutes, by another node
			history, err := w.store.History(ctx, ports.HistoryRequest{Queue: "orders"})
			if err != nil || len(history.Minutes) != 1 || history.Minutes[0].Processed != 7 {
				t.Errorf("History: %+v, %v; want the minute of the other node", history, err)
			}
		})
	}
}

// A day that can't be read hides no other, and begins anew.
func TestRedisADamagedDayHidesNoOther(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"empty": "", "no statistics": "\x00\x00\x01",
		"a number without end":     "\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a bucket beyond the last": "\x00\x00\x00\x01\x01\x01\x01" + strings.Repeat("\x00", 16) + "\xff\x7f\x01\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(t, testservers.OwnRedis(t), false)
			ctx, now := t.Context(), core.InstantOf(frozenNow)
			record := func(minute core.Instant) {
				t.Helper()
				must(t, w.store.Record(ctx, ports.RecordRequest{Owner: "n1", Records: []ports.Record{
					{Queue: "orders", Minute: minute.Minute(), Stats: core.Stats{Processed: 7}},
				}}))
			}
			const key = "skein:{orders/0}:days"
			today := strconv.FormatInt(frozenNow.Unix()/86400, 10)
			must(t, w.client.HSet(ctx, key, today, damage, "x", damage, "-5", damage).Err())
			record(now.Add(-time.Hour))
			record(now)
			history, err := w.store.History(ctx, ports.HistoryRequest{Queue: "orders", Step: ports.Day})
			if err != nil || len(history.Minutes) != 1 || history.Minutes[0].Processed != 14 {
				t.Errorf("History: %+v, %v; want a day with 14 jobs", history, err)
			}
		})
	}
}

// The hour of a record that Redis has lost counts once in its day.
func TestRedisALostHourCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	ctx, minute := t.Context(), core.InstantOf(frozenNow).Minute()
	record := func(minute core.Instant) {
		t.Helper()
		must(t, w.store.Record(ctx, ports.RecordRequest{Owner: "n1", Records: []ports.Record{
			{Queue: "orders", Minute: minute, Stats: core.Stats{Processed: 7}},
		}}))
	}
	record(minute)
	must(t, w.client.Del(ctx, w.client.Keys(ctx, "skein:{orders/0}:h*").Val()...).Err())
	record(minute)
	record(minute.Add(-2 * time.Hour))
	var total uint64
	history, err := w.store.History(ctx, ports.HistoryRequest{Queue: "orders", Step: ports.Day})
	must(t, err)
	for _, day := range history.Minutes {
		total += day.Processed
	}
	if total != 14 {
		t.Errorf("%d jobs are counted by day, want 14", total)
	}
}

// A queue has at most 33 days, in one key.
func TestRedisKeepsThirtyThreeDays(t *testing.T) {
	t.Parallel()
	client, now := testservers.OwnRedis(t), frozenNow
	store := redis.New(client, redis.Options{Clock: func() time.Time { return now }})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	for range 60 {
		now = now.Add(ports.Day)
		must(t, store.Record(t.Context(), ports.RecordRequest{Owner: "n1", Records: []ports.Record{
			{Queue: "orders", Minute: core.InstantOf(now).Minute(), Stats: core.Stats{Processed: 1}},
		}}))
	}
	days := client.HKeys(t.Context(), "skein:{orders/0}:days").Val()
	slices.Sort(days)
	if len(days) != storekit.DaysStored || days[0] != strconv.FormatInt(now.Unix()/86400-32, 10) {
		t.Errorf("the days %v are kept, want the last 33", days)
	}
}

package integration_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// The history that is measured: how many nodes recorded it, and for how long.
const (
	recordingNodes = 16
	recordedTime   = 24 * time.Hour
)

// The test logs how long it takes to read a history of 24 hours, which 16 nodes have recorded for a
// queue of SKEIN_TEST_LIST_SHARDS shards. Redis keeps at most 8 MiB of it.
func TestRedisHistoryOfADay(t *testing.T) {
	tier.Long(t, "measures")
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	declareRecorded(t, store)
	used := func() int64 {
		text, err := client.Info(t.Context(), "memory").Result()
		must(t, err)
		_, text, _ = strings.Cut(text, "\nused_memory:")
		text, _, _ = strings.Cut(text, "\r")
		n, err := strconv.ParseInt(text, 10, 64)
		must(t, err)
		return n
	}
	before, busy := used(), mainThread(t, client)
	recordADay(t, store)
	kept, wrote := used()-before, mainThread(t, client)-busy
	t.Logf("kept: %.2f MiB; %v of processor time to record it", float64(kept)/(1<<20), wrote)
	if kept > 8<<20 {
		t.Errorf("%d bytes are kept, want at most 8 MiB", kept)
	}
	busy = mainThread(t, client)
	reads := measureHistory(t, store)
	t.Logf("%v of processor time for each", (mainThread(t, client)-busy)/time.Duration(reads))
}

// As TestRedisHistoryOfADay.
func TestPostgresHistoryOfADay(t *testing.T) {
	tier.Long(t, "measures")
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	store := postgres.New(pool, postgres.Options{NoWakeups: true})
	declareRecorded(t, store)
	recordADay(t, store)
	var kept int64
	must(t, pool.QueryRow(t.Context(), `SELECT pg_total_relation_size('skein.minute_records')`).Scan(&kept))
	t.Logf("kept: %.2f MiB, with indexes", float64(kept)/(1<<20))
	kit.Exec(t, pool, `VACUUM ANALYZE skein.minute_records`)
	measureHistory(t, store)
}

func declareRecorded(t *testing.T, store ports.ShardStore) {
	t.Helper()
	shards := kit.FromVariable(t, "SKEIN_TEST_LIST_SHARDS", 50)
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: shards})
	must(t, err)
	t.Logf("%d nodes, %d shards, %v", recordingNodes, shards, recordedTime)
}

// recordADay records minutes in which each node has run 600 jobs whose times are in ten buckets or
// so.
func recordADay(t *testing.T, store ports.ShardStore) {
	t.Helper()
	reply, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	must(t, err)
	now, took := reply[0].Now.Minute(), time.Duration(0)
	calls := 0
	for node := range recordingNodes {
		var records []ports.Record
		var kinds [7]core.Stats
		for n := range kinds {
			kinds[n] = core.Stats{Processed: 595, Failed: 5}
			for job := range 600 {
				kinds[n].ObserveWait(time.Duration(job*job*(n+1)) * time.Microsecond)
				kinds[n].ObserveRun(time.Duration(200+job*(node+3)) * 20 * time.Microsecond)
			}
		}
		for n := range int(recordedTime / time.Minute) {
			s := kinds[n%len(kinds)]
			records = append(records,
				ports.Record{Queue: "orders", Minute: now.Add(-time.Duration(n) * time.Minute), Stats: s})
		}
		for some := range slices.Chunk(records, ports.MaxRecords) {
			began := time.Now()
			must(t, store.Record(t.Context(),
				ports.RecordRequest{Owner: fmt.Sprintf("node-%04d-%s", node, strings.Repeat("x", 26)), Records: some}))
			took += time.Since(began)
			calls++
		}
	}
	t.Logf("recorded %d minutes in %d calls, %v", recordingNodes*int(recordedTime/time.Minute), calls, took)
}

// measureHistory times reads of all and of a part, and returns how many of them there were.
func measureHistory(t *testing.T, store ports.ShardStore) (reads int) {
	t.Helper()
	present, rounds := core.InstantOf(time.Now()), 3
	if os.Getenv("SKEIN_TEST_LIST_SHARDS") != "" {
		rounds = 30
	}
	for _, read := range []struct {
		name    string
		request ports.HistoryRequest
		least   int
	}{
		{"24 h by minute", ports.HistoryRequest{Queue: "orders"}, 1430},
		{"24 h by 15 minutes", ports.HistoryRequest{Queue: "orders", Step: 15 * time.Minute}, 96},
		{"the last 10 minutes", ports.HistoryRequest{Queue: "orders", From: present.Add(-10 * time.Minute)}, 8},
		{"one hour of yesterday", ports.HistoryRequest{Queue: "orders", From: present.Add(-20 * time.Hour), To: present.Add(-19 * time.Hour)}, 59},
	} {
		var times []time.Duration
		for range rounds {
			began := time.Now()
			history, err := store.History(t.Context(), read.request)
			times = append(times, time.Since(began))
			must(t, err)
			if len(history.Minutes) < read.least {
				t.Fatalf("%s has %d entries", read.name, len(history.Minutes))
			}
		}
		slices.Sort(times)
		t.Logf("%-22s p50 %6.2f ms, max %6.2f ms",
			read.name, times[rounds/2].Seconds()*1000, times[rounds-1].Seconds()*1000)
		reads += rounds
	}
	return reads
}

// The tests log what the days of a queue cost when all of them are kept: memory and rows, the time of a
// read, and that of a record, which servers send every few seconds.
func TestRedisHistoryOfAMonth(t *testing.T) {
	tier.Long(t, "measures")
	client := testservers.OwnRedis(t)
	now := time.Now()
	store := redis.New(client, redis.Options{Clock: func() time.Time { return now }})
	declareRecorded(t, store)
	recordAMonth(t, store, &now)

	kept, err := client.MemoryUsage(t.Context(), "skein:{orders/0}:days", 0).Result()
	must(t, err)
	t.Logf("kept: %d bytes", kept)
	if kept > 16<<10 {
		t.Errorf("%d bytes are kept, want at most 16 KiB", kept)
	}
	measureMonth(t, store)
	busy := mainThread(t, client)
	calls := measureRecords(t, store, now)
	t.Logf("%v of processor time for a record", (mainThread(t, client)-busy)/time.Duration(calls))
}

// As TestRedisHistoryOfAMonth.
func TestPostgresHistoryOfAMonth(t *testing.T) {
	tier.Long(t, "measures")
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	now := time.Now()
	store := postgres.New(pool, postgres.Options{NoWakeups: true, Clock: func() time.Time { return now }})
	declareRecorded(t, store)
	recordAMonth(t, store, &now)

	var rows, bytes int64
	const sizes = `SELECT count(*), sum(pg_column_size(d)) FROM skein.day_records d`
	must(t, pool.QueryRow(t.Context(), sizes).Scan(&rows, &bytes))
	t.Logf("kept: %d rows, %d bytes", rows, bytes)
	measureMonth(t, store)
	measureRecords(t, store, now)
	var size int64
	must(t, pool.QueryRow(t.Context(), `SELECT pg_total_relation_size('skein.day_records')`).Scan(&size))
	t.Logf("the table has %d KiB then, with dead rows", size>>10)
}

// busyMinute returns statistics like those of a minute of a busy server.
func busyMinute(rounds int) core.Stats {
	s := core.Stats{Processed: uint64(595 * rounds), Failed: uint64(5 * rounds)}
	for job := range 600 * rounds {
		s.ObserveWait(time.Duration(job*job) * time.Microsecond)
		s.ObserveRun(time.Duration(200+job*7) * 20 * time.Microsecond)
	}
	return s
}

// recordAMonth records minutes of 40 days, and leaves the clock at the last.
func recordAMonth(t *testing.T, store ports.ShardStore, now *time.Time) {
	t.Helper()
	end := *now
	for ago := 40; ago >= 0; ago-- {
		*now = end.Add(-time.Duration(ago) * ports.Day)
		for node := range recordingNodes {
			record := ports.Record{Queue: "orders", Minute: core.InstantOf(*now).Minute(), Stats: busyMinute(5)}
			must(t, store.Record(t.Context(),
				ports.RecordRequest{Owner: fmt.Sprintf("node-%04d", node), Records: []ports.Record{record}}))
		}
	}
}

// measureMonth times reads of all days.
func measureMonth(t *testing.T, store ports.ShardStore) {
	t.Helper()
	var times []time.Duration
	for range 30 {
		began := time.Now()
		history, err := store.History(t.Context(), ports.HistoryRequest{Queue: "orders", Step: ports.Day})
		times = append(times, time.Since(began))
		must(t, err)
		if len(history.Minutes) != ports.DaysKept+1 {
			t.Fatalf("%d days are listed", len(history.Minutes))
		}
	}
	slices.Sort(times)
	t.Logf("30 days by day p50 %.2f ms, max %.2f ms", times[15].Seconds()*1000, times[29].Seconds()*1000)
}

// measureRecords times records of a minute whose counts rise, and returns how many there were.
func measureRecords(t *testing.T, store ports.ShardStore, now time.Time) (calls int) {
	t.Helper()
	const rounds = 50
	var stats [rounds]core.Stats
	for n := range stats {
		stats[n] = busyMinute(6 + n/10)
		stats[n].Processed += uint64(n)
	}

	began := time.Now()
	for _, s := range stats {
		for node := range recordingNodes {
			record := ports.Record{Queue: "orders", Minute: core.InstantOf(now).Minute(), Stats: s}
			must(t, store.Record(t.Context(),
				ports.RecordRequest{Owner: fmt.Sprintf("node-%04d", node), Records: []ports.Record{record}}))
			calls++
		}
	}
	t.Logf("a record takes %v", time.Since(began)/time.Duration(calls))
	return calls
}

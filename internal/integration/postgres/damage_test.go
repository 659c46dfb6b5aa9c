package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// jobsCounted returns how many jobs the queue orders has by the statistics and by the tables.
func (w *workbench) jobsCounted() (counted, there int64) {
	w.t.Helper()
	stats, err := w.store.Stats(w.t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	w.must(err)
	w.must(w.pool.QueryRow(w.t.Context(), fmt.Sprintf(
		`SELECT (SELECT count(*) FROM %[1]s.jobs) + (SELECT count(*) FROM %[1]s.claimed)`, w.schema,
	)).Scan(&there))
	return stats[0].Fresh + stats[0].Retrying + stats[0].Claimed, there
}

// The table admits no job that can't have a payload.
func TestPostgresAJobHasAPayload(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.must(w.push(w.store, "a"))
	_, err := w.pool.Exec(t.Context(), `UPDATE `+w.schema+`.jobs SET data = NULL`)
	if err == nil || !strings.Contains(err.Error(), "jobs_payload") {
		t.Errorf("a job without data and without other payloads is admitted: %v", err)
	}
}

// The tables admit no times that no clock shows, and no scores that have no order.
func TestPostgresATimeIsAnInstantAndAScoreANumber(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.queue("a", 2, false)
	kit.Exec(t, w.pool, strings.ReplaceAll(`
		INSERT INTO {s}.dead_letters (shard, id, changed_at, grp) VALUES (0, 'a', 1, 'g');
		INSERT INTO {s}.dead_letter_payloads (shard, id, digest, score, data) VALUES (0, 'a', '', 1, 'p');
		INSERT INTO {s}.inbox (shard, kind, perform_at, id) VALUES (0, 'push', 1, 'a')`, "{s}", w.schema))
	for constraint, columns := range map[string][]string{
		"jobs_times":                 {"perform_at", "first_push"},
		"jobs_score":                 {"score"},
		"payloads_score":             {"score"},
		"dead_letters_times":         {"changed_at"},
		"dead_letter_payloads_score": {"score"},
		"inbox_times":                {"perform_at", "first_push", "letter.changed_at"},
		"inbox_score":                {"score"},
	} {
		values := []any{"'NaN'", "'Infinity'", "'-Infinity'"}
		if columns[0] != "score" {
			values = []any{-1, int64(core.MaxInstant) + 1}
		}
		table := constraint[:strings.LastIndex(constraint, "_")]
		for _, column := range columns {
			for _, value := range values {
				_, err := w.pool.Exec(t.Context(),
					fmt.Sprintf(`UPDATE %s.%s SET %s = %v`, w.schema, table, column, value))
				if err == nil || !strings.Contains(err.Error(), constraint) {
					t.Errorf("%s.%s = %v is admitted: %v", table, column, value, err)
				}
			}
		}
	}
}

// A job whose payloads were deleted by another program stops nothing, and does not stay counted.
func TestPostgresAJobWithoutPayloadsIsRemoved(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{-1, 3} {
		t.Run(fmt.Sprintf("retry count %d", retries), func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			w.must(w.push(w.store, "a", "b", "c"))
			kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.jobs SET data = NULL, has_more = true WHERE id = 'b'`, w.schema))
			if retries >= 0 {
				kit.Exec(t, w.pool,
					fmt.Sprintf(`UPDATE %[1]s.jobs SET retry_count = %d WHERE id = 'b'; UPDATE %[1]s.shards SET fresh = fresh - 1, retrying = retrying + 1`,
						w.schema, retries))
			}
			w.acquire("n1")
			got := idsOf(w.next(10).Claims)
			got = append(got, idsOf(w.next(10).Claims)...)
			w.same("claimed", strings.Join(got, " "), "a c")
			if counted, there := w.jobsCounted(); counted != there || there != 2 {
				t.Errorf("%d jobs are counted, %d are there", counted, there)
			}
		})
	}
}

// A dead letter whose payloads were deleted by another program is purged like any other: by its id,
// and in steps over all.
func TestPostgresADeadLetterWithoutPayloadsIsPurged(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]ports.DeadLetterStep{
		"over all": {Before: core.MaxInstant},
		"by id":    {DeadLetters: []ports.DeadLetterRef{{ID: "a"}, {ID: "b"}, {ID: "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			w.must(w.push(w.store, "a", "b", "c"))
			step.Shard = w.turn.Lease.Shard
			_, err := w.store.Bury(t.Context(), ports.JobStep{Shard: step.Shard, IDs: []string{"a", "b", "c"}})
			w.must(err)
			kit.Exec(t, w.pool, `DELETE FROM `+w.schema+`.dead_letter_payloads WHERE id = 'b'`)
			reply, err := w.store.Purge(t.Context(), step)
			w.must(err)
			if reply.More || reply.Handled != 3 {
				t.Errorf("%d purged, more %t", reply.Handled, reply.More)
			}
			stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			w.must(err)
			groups, err := w.store.Groups(t.Context(), ports.GroupsRequest{Queue: "orders"})
			w.must(err)
			w.same("dead letters", stats[0].Dead, int64(0))
			w.same("groups", len(groups.Groups), 0)
		})
	}
}

// The processor time of a step is by the bytes that it moves, not by jobs times bytes.
func TestPostgresAStepOf8MiBInManyJobs(t *testing.T) {
	tier.Long(t, "compares processor times")
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	one := w.pool.Config()
	one.MaxConns = 1 // whose server process does all the work
	pool, err := pgxpool.NewWithConfig(t.Context(), one)
	w.must(err)
	t.Cleanup(pool.Close)
	store := postgres.New(pool, postgres.Options{Schema: w.schema})
	used := func() time.Duration { return processorTime(t, pool) }
	took := func(jobs int) (bury, revive time.Duration) {
		r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
		var ids []string
		var letters []ports.DeadLetterRef
		x := uint64(jobs)
		for i := range jobs {
			data := make([]byte, (8<<20)/jobs-100)
			for k := range data { // not to be compressed
				x = x*6364136223846793005 + 1442695040888963407
				data[k] = byte(x >> 33)
			}
			ids = append(ids, fmt.Sprintf("%d-%d", jobs, i))
			letters = append(letters, ports.DeadLetterRef{ID: ids[i]})
			r.Entries = append(r.Entries, core.Entry{ID: ids[i], Payload: core.Payload{Data: data}})
		}
		_, err := store.Push(t.Context(), r)
		w.must(err)
		began := used()
		reply, err := store.Bury(t.Context(), ports.JobStep{Shard: w.turn.Lease.Shard, IDs: ids})
		w.must(err)
		w.same("buried", reply.Handled, jobs)
		bury, began = used()-began, used()
		reply, err = store.Revive(t.Context(), ports.DeadLetterStep{Shard: w.turn.Lease.Shard, DeadLetters: letters})
		w.must(err)
		w.same("revived", reply.Handled, jobs)
		return bury, used() - began
	}
	took(16)
	bury16, revive16 := took(16)
	bury250, revive250 := took(250)
	t.Logf("in 16 jobs: bury %v, revive %v; in 250: %v, %v", bury16, revive16, bury250, revive250)
	if bury250 > 3*bury16+200*time.Millisecond || revive250 > 3*revive16+200*time.Millisecond {
		t.Error("8 MiB in 250 jobs hold their shard for as much longer")
	}
}

// processorTime returns the processor time of the server's process for a pool's only connection. It
// skips the test if that process is on another machine.
func processorTime(t *testing.T, pool *pgxpool.Pool) time.Duration {
	t.Helper()
	var pid int
	if err := pool.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("the server's processor time can't be read: %v", err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // a name precedes
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// A node or minute that can't be read hides no other.
func TestPostgresADamagedNodeOrMinuteHidesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	ctx := t.Context()
	_, err := w.store.Announce(ctx, ports.AnnounceRequest{
		Node: ports.Node{Owner: "o", Name: "n", Status: ports.NodeStatus{Busy: 3}}, TTL: time.Minute,
	})
	w.must(err)
	minute := core.InstantOf(time.Now()).Minute()
	w.must(w.store.Record(ctx, ports.RecordRequest{
		Owner: "o", Records: []ports.Record{{Queue: "orders", Minute: minute, Stats: core.Stats{Processed: 7}}},
	}))
	kit.Exec(t, w.pool, fmt.Sprintf(`
		INSERT INTO %[1]s.nodes SELECT 'damaged', name, host, pid, lanes, queues, version, draining, asked, started, expires, ttl, '[1]' FROM %[1]s.nodes;
		INSERT INTO %[1]s.minute_records SELECT queue, minute, 'damaged', 1, '\x0501' FROM %[1]s.minute_records`,
		w.schema))
	nodes, err := w.store.Nodes(ctx)
	w.must(err)
	w.same("nodes", len(nodes.Nodes), 2)
	w.same("busy", nodes.Nodes[1].Status.Busy, 3)
	history, err := w.store.History(ctx, ports.HistoryRequest{Queue: "orders"})
	w.must(err)
	w.same("minutes", len(history.Minutes), 1)
	w.same("processed", history.Minutes[0].Stats.Processed, uint64(7))
}

// A queue has at most 33 days. The table refuses a day that can't be read.
func TestPostgresKeepsThirtyThreeDays(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	ctx := t.Context()
	insert := func(sums string) error {
		_, err := w.pool.Exec(ctx, fmt.Sprintf(`INSERT INTO %[1]s.day_records
			SELECT q.id, n * 86400000000, %[2]s FROM %[1]s.queues q CROSS JOIN generate_series(1, 60) n`, w.schema, sums))
		return err
	}
	for _, damaged := range []string{`'{}'`, `'{1,2}'`, `array_fill(NULL::float8, ARRAY[134])`} {
		if err := insert(damaged); err == nil {
			t.Errorf("the table has a day with the sums %s", damaged)
		}
	}
	w.must(insert(`array_fill(1::float8, ARRAY[134])`))
	kit.Exec(t, w.pool, fmt.Sprintf(`INSERT INTO %[1]s.minute_records
		SELECT d.queue, d.day, 'o', 1, '' FROM %[1]s.day_records d`, w.schema))

	minute := core.InstantOf(time.Now()).Minute()
	w.must(w.store.Record(ctx, ports.RecordRequest{
		Owner: "o", Records: []ports.Record{{Queue: "orders", Minute: minute, Stats: core.Stats{Processed: 7}}},
	}))
	var kept int
	var first int64
	days := fmt.Sprintf(`SELECT count(*), min(day) FROM %s.day_records`, w.schema)
	w.must(w.pool.QueryRow(ctx, days).Scan(&kept, &first))
	w.same("days kept", kept, storekit.DaysStored)
	var without int
	w.must(w.pool.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM %[1]s.minute_records h WHERE NOT EXISTS (
		SELECT FROM %[1]s.day_records d WHERE d.queue = h.queue AND d.day = h.minute - h.minute %% 86400000000)`,
		w.schema)).Scan(&without))
	w.same("minutes without their day", without, 0)
	w.same("the first of them", first/int64(ports.Day/time.Microsecond), int64(60-storekit.DaysStored+2))
}

// A column failures that another program has damaged stops neither the turns and acquires of its
// shard nor a look at other jobs.
func TestPostgresADamagedFailureStopsNothing(t *testing.T) {
	t.Parallel()
	for _, damaged := range []string{
		`{}`, `"boom"`, `5`, `["boom"]`, `[[]]`, `[{"text":5}]`, `[{"text":"a","node":{}}]`, `[{"text":"a","at":"now"}]`,
		`[{"text":"a","at":1.5}]`, `[{"text":"a"},5]`, `[{"text":"a"},{"text":[]}]`, `[{"text":"a","at":9223372036854775808}]`,
	} {
		t.Run(damaged, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			ctx := t.Context()
			w.must(w.push(w.store, "a", "b", "c", "d"))
			_, err := w.store.Bury(ctx, ports.JobStep{Shard: w.turn.Lease.Shard, IDs: []string{"d"}})
			w.must(err)
			for _, table := range []string{"jobs WHERE id = 'b'", "dead_letters"} {
				name, where, _ := strings.Cut(table, " ")
				kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.%s SET failures = '%s' %s`, w.schema, name, damaged, where))
			}

			page := ports.PageRequest{Queue: "orders"}
			for _, errorBytes := range []int{0, 100, -1} { // the server truncates errors itself
				short := page
				short.ErrorBytes = errorBytes
				if got, err := w.store.Jobs(ctx, ports.JobsRequest{PageRequest: short}); err != nil || len(got.Jobs) != 3 {
					t.Errorf("the list with %d bytes of errors has %d jobs, want 3: %v", errorBytes, len(got.Jobs), err)
				}
				got, err := w.store.Morgue(ctx, ports.MorgueRequest{PageRequest: short})
				if err != nil || len(got.DeadLetters) != 1 {
					t.Errorf("the morgue with %d bytes of errors has %d dead letters, want 1: %v",
						errorBytes, len(got.DeadLetters), err)
				}
			}
			if _, err := w.store.Find(ctx, ports.FindRequest{Queue: "orders", ID: "b"}); err != nil {
				t.Errorf("the job can't be found: %v", err)
			}

			w.acquire("n1")
			next := w.turn
			next.Number, next.Want = 1, 10
			if got, err := w.store.Turn(ctx, next); err != nil || len(got.Claims) != 3 {
				t.Errorf("a turn claims %q, want a, b and c: %v", idsOf(got.Claims), err)
			}
			if got, err := w.store.Claimed(ctx, page); err != nil || len(got.Claims) != 3 {
				t.Errorf("%d jobs are listed as claimed, want 3: %v", len(got.Claims), err)
			}

			w.must(w.store.Release(ctx, w.turn.Lease))
			got, err := w.store.Acquire(ctx, ports.AcquireRequest{
				Shard: w.turn.Lease.Shard, Shards: 1, Generation: 1, Owner: "n2", Attempt: 1, TTL: time.Minute,
			})
			if err != nil || len(got.Claims) != 3 {
				t.Errorf("an acquire hands over %q, want a, b and c: %v", idsOf(got.Claims), err)
			}
		})
	}
}

// A failure whose time is no instant is damage like any other: nobody sees such a time, which no
// JSON can have.
func TestPostgresAFailureHasATimeThatIsAnInstant(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{-1, int64(core.MaxInstant) + 1, 1<<63 - 1} {
		w := newWorkbench(t, time.Minute)
		w.must(w.push(w.store, "a"))
		_, err := w.pool.Exec(t.Context(),
			fmt.Sprintf(`UPDATE %s.jobs SET failures = '[{"text":"boom","at":%d}]'`, w.schema, at))
		if err != nil {
			continue // the table admits no such time
		}
		page, err := w.store.Jobs(t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
		w.must(err)
		for _, j := range page.Jobs {
			if at := j.Failures.Newest().At; at < 0 || at > core.MaxInstant {
				t.Errorf("a list shows a failure at %d µs", at)
			}
		}
	}
}

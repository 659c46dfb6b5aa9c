package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// queue puts a due job with n payloads into the store: "first", with score 0, and others of 20
// bytes with rising scores or, if ties, with equal ones.
func (w *workbench) queue(id string, payloads int, ties bool) {
	w.t.Helper()
	kit.Exec(w.t, w.pool,
		strings.NewReplacer("{s}", w.schema, "{id}", id, "{n}", fmt.Sprint(payloads-1),
			"{ties}", fmt.Sprint(ties)).Replace(`
		INSERT INTO {s}.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
		VALUES (0, '{id}', 1, 1, -1, 0, true, 0, 'first');
		INSERT INTO {s}.payloads (shard, id, digest, score, data)
		SELECT 0, '{id}', sha256(d), CASE WHEN {ties} THEN 1 ELSE g END, d
		FROM generate_series(1, {n}) g, LATERAL (SELECT lpad(g::text, 20, '0')::bytea AS d) d`))
}

// pages makes a turn of the shard and rolls it back. It returns how many pages of tables and
// indexes the turn has read.
func (w *workbench) pages(want int) int {
	w.t.Helper()
	return w.pagesOf(fmt.Sprintf(`
		SELECT * FROM %s.turn(p_queue => 'orders', p_index => 0, p_owner => '%s', p_token => %d, p_number => %d,
		p_ttl => 60000000, p_now => NULL, p_want => %d, p_per_job => 1000, p_bytes => 4194304, p_node => 'n')`,
		w.schema, w.turn.Lease.Owner, w.turn.Lease.Token, w.turn.Number+1, want))
}

// pagesOf is pagesRead for the store's schema.
func (w *workbench) pagesOf(statement string) int {
	w.t.Helper()
	return pagesRead(w.t, w.pool, w.schema, statement, pgx.QueryExecModeSimpleProtocol)
}

// pagesRead executes a statement and rolls it back. It returns how many pages of the schema's
// tables and indexes the statement has read. Pages of the catalog are not counted: a session reads
// hundreds of them again whenever others have changed many tables.
func pagesRead(t *testing.T, pool *pgxpool.Pool, schema, statement string, args ...any) int {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	before := pagesFetched(t, tx, schema)
	rows, err := tx.Query(t.Context(), statement, args...)
	must(t, err)
	rows.Close()
	must(t, rows.Err())
	return pagesFetched(t, tx, schema) - before
}

// pagesFetched returns how many pages of the schema's relations the transaction has read so far.
func pagesFetched(t *testing.T, tx pgx.Tx, schema string) (n int) {
	t.Helper()
	must(t, tx.QueryRow(t.Context(), `
		SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relnamespace = to_regnamespace($1)
			OR c.oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = to_regnamespace($1))`,
		schema).Scan(&n))
	return n
}

// The reads of a list of one id's payloads are proportional to their number: no page counts them
// again.
func TestPostgresPagesOfPayloadsReadWhatTheyReturn(t *testing.T) {
	t.Parallel()
	read := map[int]int{}
	for _, payloads := range []int{3_000, 24_000} {
		v := newViewed(t, 1)
		kit.Exec(t, v.pool, fmt.Sprintf(`
			INSERT INTO %[1]s.dead_letters (shard, id, changed_at, grp) SELECT 0, 'big', 1, 'bang';
			INSERT INTO %[1]s.dead_letter_payloads (shard, id, digest, score, data)
			SELECT 0, 'big', sha256(g::text::bytea), g, g::text::bytea FROM generate_series(1, %[2]d) g;
			ANALYZE %[1]s.dead_letter_payloads`, v.schema, payloads))
		tracer := &seen{}
		s := v.openAs("pages", postgres.Options{NoWakeups: true}, func(c *pgxpool.Config) {
			c.ConnConfig.Tracer = tracer
		})
		listed := 0
		for _, err := range inspect.New(s, inspect.Options{}).Payloads(
			t.Context(), "orders", "big", inspect.PayloadOptions{Place: inspect.PlaceDead},
		) {
			must(t, err)
			listed++
		}
		if listed != payloads {
			t.Errorf("%d payloads are listed of %d", listed, payloads)
		}
		for _, q := range tracer.sent() {
			read[payloads] += pagesRead(t, v.pool, v.schema, q.SQL, q.Args...)
		}
	}
	if read[24_000] > 12*read[3_000] {
		t.Errorf("the pages of 24,000 payloads read %d blocks, those of 3,000 %d", read[24_000], read[3_000])
	}
}

// A turn's reads depend on the jobs that it claims, not on those that wait behind them.
func TestPostgresATurnCostsWhatItClaims(t *testing.T) {
	t.Parallel()
	for name, ties := range map[string]bool{"rising scores": false, "equal scores": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := map[int]int{}
			for _, payloads := range []int{2_000, 40_000} {
				w := newWorkbench(t, time.Minute)
				w.queue("hot", payloads, ties)
				w.acquire("n1")
				read[payloads] = w.pages(1)
				claim := w.next(1).Claims[0]
				w.same("claimed", len(claim.Payloads), core.MaxTurnPayloads)
				w.same("first", string(claim.Payloads[0].Data), "first")
				w.same("last", string(claim.Payloads[999].Data), fmt.Sprintf("%020d", 999))
				w.next(0, done(claim))
				w.same("then", string(w.next(1).Claims[0].Payloads[0].Data), fmt.Sprintf("%020d", 1000))
			}
			if most := read[2_000] * 2; read[40_000] > most {
				t.Errorf("a claim of 1,000 payloads of 40,000 reads %d pages, of 2,000 %d", read[40_000], read[2_000])
			}
		})
	}
}

// pushApart pushes payloads of the given size in a transaction of its own.
func (w *workbench) pushApart(rule core.PushRule, payloads, size int, id func(int) string) {
	w.t.Helper()
	tx, err := w.pool.Begin(w.t.Context())
	w.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	const most = 4 << 20
	for n := 0; n < payloads; {
		r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Rule: rule}
		for ; n < payloads && len(r.Entries) < 1000 && len(r.Entries)*size < most; n++ {
			data := fmt.Appendf(make([]byte, 0, size+20), "%010d", n)
			data = append(data, make([]byte, max(0, size-len(data)))...)
			r.Entries = append(r.Entries, core.Entry{ID: id(n), Payload: core.Payload{Data: data, Score: float64(n)}})
		}
		_, err = w.store.Tx(tx).Push(w.t.Context(), r)
		w.must(err)
	}
	w.must(tx.Commit(w.t.Context()))
}

// waiting returns how many rows wait in the inbox.
func (w *workbench) waiting() (n int) {
	w.t.Helper()
	w.must(w.pool.QueryRow(w.t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s.inbox`, w.schema)).Scan(&n))
	return n
}

// A turn merges no more rows and bytes of the inbox than one step may carry, and the next turn
// continues. An id with rows left in the inbox is not claimed.
func TestPostgresTurnsMergeTheInboxInParts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payloads, size int
		left           []int
	}{
		"rows":           {2_500, 10, []int{1_500, 500, 0}},
		"bytes":          {20, 1 << 20, []int{12, 4, 0}},
		"large payloads": {3, 10 << 20, []int{2, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			w.acquire("n1")
			w.pushApart(core.PushRule{}, tt.payloads, tt.size, func(int) string { return "a" })
			for _, left := range tt.left {
				reply := w.next(1)
				w.same("rows left", w.waiting(), left)
				w.same("claimed", len(reply.Claims) > 0, left == 0)
				w.same("the head is due", reply.Head.DueBy(reply.Now), left > 0)
			}
		})
	}
}

// A turn merges many debounced pushes of one id with few reads for each, although each of them
// moves the job.
func TestPostgresMergesDebouncedPushesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	w.pushApart(core.PushRule{Kind: core.Debounce}, 900, 10, func(int) string { return "a" })
	if n := w.pages(0); n > 30*900 {
		t.Errorf("a turn that merges 900 debounced pushes of one id reads %d pages", n)
	}
	reply := w.next(1)
	w.same("claimed", len(reply.Claims[0].Payloads), 900)
}

// Merged rows are not read again, even while a transaction stays open.
func TestPostgresPassesOverMergedRowsOnce(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	open, err := w.pool.Begin(t.Context())
	w.must(err)
	defer func() { _ = open.Rollback(context.Background()) }()
	w.must(w.push(w.store.Tx(open), "late"))
	w.pushApart(core.PushRule{}, 4_000, 1_500, func(n int) string { return fmt.Sprint(n % 100) })
	for w.waiting() > 0 {
		w.next(0)
	}
	for range 2 { // the first sees that the transaction stays open
		_, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.turn.Lease, TTL: w.turn.TTL})
		w.must(err)
	}
	if n := w.pages(0); n > 300 {
		t.Errorf("an empty turn beside 4,000 merged rows reads %d pages", n)
	}
	w.must(open.Commit(t.Context()))
	w.must(w.push(w.store, "later"))
	var claimed []string
	for range 9 {
		claimed = append(claimed, idsOf(w.next(core.MaxTurnJobs).Claims)...)
	}
	for _, id := range []string{"late", "later"} {
		w.same(id+" is claimed", slices.Contains(claimed, id), true)
	}
}

// Claims of many payloads are put back and handed over in parts.
func TestPostgresPutsBackAndHandsOverInParts(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	for _, id := range []string{"a", "b", "c"} {
		w.queue(id, 600, false)
	}
	w.acquire("n1")
	var claims []core.Claim
	for len(claims) < 3 {
		claims = append(claims, w.next(1).Claims...)
	}
	w.must(w.store.Release(t.Context(), w.turn.Lease))
	acquired := w.acquire("n2")
	w.same("handed over at once", idsOf(acquired.Claims), []string{"a"})
	w.same("the head is due", acquired.Head.DueBy(acquired.Now), true)
	w.same("handed over again", idsOf(w.reacquire("n2").Claims), []string{"a"})
	w.same("handed over next", idsOf(w.next(9).Orphans), []string{"b"})
	w.same("handed over last", idsOf(w.next(9).Orphans), []string{"c"})

	settle := make([]core.Settlement, 3)
	for i, c := range claims {
		settle[i] = failed(c)
		for at := 0; at < len(c.Payloads); at += 2 {
			settle[i].Except = append(settle[i].Except, core.PayloadDisposition{Position: at, Disposition: core.Bury})
		}
	}
	reply := w.next(0, settle...)
	w.same("deferred", reply.Deferred, []int{1, 2})
	w.same("deferred then", w.next(0, settle[1:]...).Deferred, []int{1})
	w.same("deferred at last", w.next(0, settle[2]).Deferred, []int(nil))
	found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "b", Payloads: 1000})
	w.must(err)
	w.same("put back and buried", []int{len(found.Queued.Payloads), len(found.DeadLetter.Payloads)}, []int{300, 300})
}

// Operators bury, delete, revive and purge an id of many payloads step by step.
func TestPostgresStepsTakeLargeJobsInParts(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.queue("big", 2_500, false)
	w.queue("small", 2, false)
	jobs := ports.JobStep{Shard: w.turn.Lease.Shard, IDs: []string{"big", "small"}}
	letters := ports.DeadLetterStep{Shard: jobs.Shard, DeadLetters: []ports.DeadLetterRef{{ID: "big"}, {ID: "small"}}}
	parts := []ports.StepReply{{}, {}, {Handled: 2, Reached: 2}}
	step := func(what string, do func() (ports.StepReply, error)) {
		t.Helper()
		var got []ports.StepReply
		for range parts {
			reply, err := do()
			w.must(err)
			reply.Now = 0
			got = append(got, reply)
		}
		w.same(what, got, parts)
	}
	counted := func(fresh, dead int64) {
		t.Helper()
		stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		w.must(err)
		w.same("fresh and dead", []int64{stats[0].Fresh, stats[0].Dead}, []int64{fresh, dead})
	}
	_, err := kit.Recounted(t.Context(), w.store, jobs.Shard)
	w.must(err)
	step("bury", func() (ports.StepReply, error) { return w.store.Bury(t.Context(), jobs) })
	counted(0, 2)
	step("revive", func() (ports.StepReply, error) { return w.store.Revive(t.Context(), letters) })
	counted(2, 0)
	found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "big"})
	w.must(err)
	w.same("payloads after both", found.Queued.Count, 2_500)
	step("delete", func() (ports.StepReply, error) { return w.store.Delete(t.Context(), jobs) })
	counted(0, 0)
}

package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// plannedFor are the contents of the tables at the last analyze: none, as after a quiet night, or
// the present ones, for which the value is true.
var plannedFor = map[string]bool{"an empty table": false, "what is there": true}

// plansFor has the planner analyze the tables' present contents, and prevents another analyze.
func (w *workbench) plansFor(tables ...string) {
	w.t.Helper()
	for _, table := range tables {
		kit.Exec(w.t, w.pool,
			fmt.Sprintf(`ALTER TABLE %[1]s.%[2]s SET (autovacuum_enabled = off); ANALYZE %[1]s.%[2]s`, w.schema, table))
	}
}

// A push finds the rows that it adds to by index, however many payloads and jobs there are.
func TestPostgresAPushReadsWhatItMeets(t *testing.T) {
	t.Parallel()
	for name, analyzed := range plannedFor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := map[int]int{}
			for _, rows := range []int{2_000, 100_000} {
				w := newWorkbench(t, time.Minute)
				w.plansFor("jobs", "payloads")
				w.queue("hot", rows, false)
				kit.Exec(t, w.pool, fmt.Sprintf(`
					INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
					SELECT 0, 'other-' || g, 1, 1, -1, 0, false, 0, 'x' FROM generate_series(1, %[2]d) g`,
					w.schema, rows))
				if analyzed {
					w.plansFor("jobs", "payloads")
				}
				read[rows] = w.pagesOf(fmt.Sprintf(`
					SELECT %s.add_payloads(array_agg(0), array_agg('hot'::text), array_agg(1e9::float8 + g), array_agg(('new ' || g)::bytea), array_agg(NULL::bytea))
					FROM generate_series(1, 100) g`, w.schema))
			}
			if read[100_000] > 2*read[2_000] {
				t.Errorf("100 payloads beside 100,000 read %d pages, beside 2,000 %d", read[100_000], read[2_000])
			}
		})
	}
}

// A settlement in a transaction finds its claims by index, however many jobs are claimed and
// queued.
func TestPostgresASettlementReadsWhatItSettles(t *testing.T) {
	t.Parallel()
	for name, analyzed := range plannedFor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := map[int]int{}
			for _, rows := range []int{500, 50_000} {
				w := newWorkbench(t, time.Minute)
				w.plansFor("jobs", "claimed", "inbox")
				kit.Exec(t, w.pool, fmt.Sprintf(`
					INSERT INTO %[1]s.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, id, node, owner, data)
					SELECT 1, 1, 1, 1, 1, 0, 0, -1, 0, 'id-' || g, 'n', 'o', 'x' FROM generate_series(1, %[2]d) g;
					INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
					SELECT 0, 'id-' || g, 1, 1, -1, 0, false, 0, 'x' FROM generate_series(1, %[2]d) g`,
					w.schema, rows))
				if analyzed {
					w.plansFor("jobs", "claimed")
				}
				read[rows] = w.pagesOf(fmt.Sprintf(`
					SELECT * FROM %s.settle_in_tx('orders', 0, NULL, (SELECT json_agg(json_build_object('id', 'id-' || g, 'token', 1, 'number', 1,
						'dispositions', '1', 'time_rule', 1, 'delay', 0, 'retry_count', 0, 'recoveries', 0, 'error', '', 'processed', true,
						'failed', false)) FROM generate_series(%d, %d) g))`, w.schema, rows-19, rows))
			}
			if read[50_000] > 2*read[500] {
				t.Errorf("20 settlements beside 50,000 claims read %d pages, beside 500 %d", read[50_000], read[500])
			}
		})
	}
}

// Before the first analyze of a table, the planner takes a shard for a small part of it and sorts
// the rows that an index has in order. Heads reads the first jobs of a long queue by that index.
func TestPostgresHeadsReadLittleBeforeTheFirstAnalyze(t *testing.T) {
	t.Parallel()
	const jobs, most = 100_000, 300
	v := newViewed(t, 1)
	kit.Exec(t, v.pool, fmt.Sprintf(`
		ALTER TABLE %[1]s.jobs SET (autovacuum_enabled = off);
		INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
		SELECT 0, 'order-' || g, g, 1, g %% 2 - 1, 0, false, 0, 'x' FROM generate_series(1, %[2]d) g`,
		v.schema, jobs))
	tracer := &seen{}
	s := v.openAs("heads", postgres.Options{NoWakeups: true}, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	heads, err := s.Heads(t.Context(), []core.Shard{{Queue: "orders"}})
	v.must(err)
	if want := (core.Head{Due: 1, OK: true}); heads.Heads[0] != want {
		t.Errorf("the head is %+v, want %+v", heads.Heads[0], want)
	}
	for _, q := range tracer.sent() {
		if n := pagesRead(t, v.pool, v.schema, q.SQL, q.Args...); n > most {
			t.Errorf("%d blocks are read by %s", n, q.SQL)
		}
	}
}

// Before the first analyze, a page of any list reads little more than its entries: the first page
// and the second one, in both directions. The planner estimates the number of rows by the size of
// the file, so a few wide rows replace many.
func TestPostgresListsReadLittleBeforeTheFirstAnalyze(t *testing.T) {
	t.Parallel()
	const entries, most = 30_000, 2000
	v := newViewed(t, 1)
	kit.Exec(t, v.pool, fmt.Sprintf(`
		ALTER TABLE %[1]s.jobs SET (autovacuum_enabled = off);
		ALTER TABLE %[1]s.dead_letters SET (autovacuum_enabled = off);
		ALTER TABLE %[1]s.dead_letter_payloads SET (autovacuum_enabled = off);
		INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
		SELECT 0, 'order-' || g, g, 1, g %% 3 - 1, 0, false, 0, repeat('x', 1500)::bytea FROM generate_series(1, %[2]d) g;
		INSERT INTO %[1]s.dead_letters (shard, id, changed_at, failures, grp)
		SELECT 0, 'order-' || g, g, jsonb_build_array(jsonb_build_object('text', repeat('x', 1500))), 'bang' FROM generate_series(1, %[2]d) g;
		INSERT INTO %[1]s.dead_letter_payloads (shard, id, digest, score, data)
		SELECT 0, 'order-' || g, '', 0, 'x' FROM generate_series(1, %[2]d) g`, v.schema, entries))
	tracer := &seen{}
	s := v.openAs("lists", postgres.Options{NoWakeups: true}, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	lists := map[string]func(ports.PageRequest) (int, ports.Cursor, error){}
	for name, order := range map[string]ports.SortBy{
		"jobs by time":      ports.ByTime,
		"jobs by id":        ports.ByID,
		"retrying by time":  ports.RetryingByTime,
		"retrying by id":    ports.RetryingByID,
		"retrying by count": ports.RetryingByCount,
	} {
		lists[name] = func(r ports.PageRequest) (int, ports.Cursor, error) {
			page, err := s.Jobs(t.Context(), ports.JobsRequest{PageRequest: r, SortBy: order})
			return len(page.Jobs), page.Next, err
		}
	}
	for name, m := range map[string]ports.MorgueRequest{
		"dead letters by time":    {},
		"dead letters by id":      {ByID: true},
		"dead letters of a group": {Group: "bang"},
	} {
		lists[name] = func(r ports.PageRequest) (int, ports.Cursor, error) {
			m.PageRequest = r
			page, err := s.Morgue(t.Context(), m)
			return len(page.DeadLetters), page.Next, err
		}
	}
	for name, list := range lists {
		for _, descending := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, descending %t", name, descending), func(t *testing.T) {
				r := ports.PageRequest{Queue: "orders", Limit: 100, Descending: descending, Payloads: 1}
				for range 2 {
					before := len(tracer.sent())
					n, next, err := list(r)
					must(t, err)
					if n != r.Limit {
						t.Errorf("a page has %d entries, want %d", n, r.Limit)
					}
					for _, q := range tracer.sent()[before:] {
						if n := pagesRead(t, v.pool, v.schema, q.SQL, q.Args...); n > most {
							t.Errorf("%d blocks are read by %s", n, q.SQL)
						}
					}
					r.After = next
				}
			})
		}
	}
}

// turnsAndLooks are calls that look for rows of transactions that have been open for long.
var turnsAndLooks = map[string]string{
	"a usual turn": `SELECT * FROM {s}.turn_fast({turn}, p_settle_ids => NULL, p_settle_tokens => NULL, p_settle_numbers => NULL)`,
	"a turn":       `SELECT * FROM {s}.turn({turn})`,
	"heads":        `SELECT * FROM {s}.heads(ARRAY['orders'], ARRAY[0], NULL)`,
	"a merge":      `SELECT * FROM {s}.merge_inboxes('orders', NULL, NULL)`,
	"a fold":       `SELECT {s}.take_count_changes(s.id, s.counts_from, s.counts_open) FROM {s}.shards s`,
	"counts":       `SELECT * FROM {s}.counts`,
}

// A transaction that writes and stays open keeps merged rows from being removed. Turns and looks do
// not read them, also with plans that a session made while the tables held little.
func TestPostgresTurnsReadLittleBesideALongWriter(t *testing.T) {
	t.Parallel()
	const rows, most = 20_000, 100
	w := newWorkbench(t, time.Minute)
	w.stopClock()
	kit.Exec(t, w.pool, fmt.Sprintf(`
		ALTER TABLE %[1]s.inbox SET (autovacuum_enabled = off);
		ALTER TABLE %[1]s.count_changes SET (autovacuum_enabled = off)`, w.schema))
	w.acquire("me")
	writer, err := w.pool.Begin(t.Context())
	w.must(err)
	var writes string
	w.must(writer.QueryRow(t.Context(), `SELECT pg_current_xact_id()::text`).Scan(&writes))
	session, err := w.pool.Acquire(t.Context())
	w.must(err)
	turn := fmt.Sprintf(`p_queue => 'orders', p_index => 0, p_owner => 'me', p_token => %d, p_number => 1, p_ttl => 60000000,
		p_now => 1800000000000000, p_want => 1, p_per_job => 1000, p_bytes => 4194304, p_node => 'n'`,
		w.turn.Lease.Token)
	pages := func(statement string) int {
		tx, err := session.Begin(t.Context())
		w.must(err)
		defer func() { w.must(tx.Rollback(t.Context())) }()
		before := pagesFetched(t, tx, w.schema)
		_, err = tx.Exec(t.Context(), strings.NewReplacer("{s}", w.schema, "{turn}", turn).Replace(statement))
		w.must(err)
		return pagesFetched(t, tx, w.schema) - before
	}
	leave := func(n int) { // rows that are merged and stay
		kit.Exec(t, w.pool, fmt.Sprintf(`
			INSERT INTO %[1]s.inbox (shard, kind, perform_at, id) SELECT 0, 'push', 1, g::text FROM generate_series(1, %[2]d) g;
			INSERT INTO %[1]s.count_changes (shard, fresh, retrying, dead, processed, failed)
			SELECT 0, 1, 0, 0, 0, 0 FROM generate_series(1, %[2]d)`, w.schema, n))
		kit.Exec(t, w.pool, fmt.Sprintf(`
			DELETE FROM %[1]s.inbox; DELETE FROM %[1]s.count_changes;
			UPDATE %[1]s.shards SET inbox_from = pg_current_xact_id(), inbox_open = ARRAY['%[2]s'::xid8],
				counts_from = pg_current_xact_id(), counts_open = ARRAY['%[2]s'::xid8]`, w.schema, writes))
	}
	leave(20)
	for _, statement := range turnsAndLooks {
		for range 10 { // the server keeps a plan after some
			pages(statement)
		}
	}
	leave(rows)
	for name, statement := range turnsAndLooks {
		if n := pages(statement); n > most {
			t.Errorf("%s reads %d pages beside %d dead rows, want at most %d", name, n, rows, most)
		}
	}
	session.Release()
	w.must(writer.Rollback(t.Context()))
}

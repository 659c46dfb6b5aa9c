package integration_test

import (
	"fmt"
	"testing"
	"time"
)

// plannedFor are what the tables held when the planner last counted: nothing, as after a quiet night, or what
// they hold now.
var plannedFor = map[string]bool{"an empty table": false, "what is there": true}

// plansFor has the planner count what tables hold now, and nobody count it again.
func (w *workbench) plansFor(tables ...string) {
	w.t.Helper()
	for _, table := range tables {
		execAll(w.t, w.pool, fmt.Sprintf(`ALTER TABLE %[1]s.%[2]s SET (autovacuum_enabled = off); ANALYZE %[1]s.%[2]s`, w.schema, table))
	}
}

// What a push adds to jobs is looked up by index, however many payloads and jobs there are.
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
				execAll(t, w.pool, fmt.Sprintf(`
					INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data, error)
					SELECT 0, 'other-' || g, 1, 1, -1, 0, false, 0, 'x', '' FROM generate_series(1, %[2]d) g`, w.schema, rows))
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

// A settlement in a transaction looks up what it settles by index, however much is claimed and queued.
func TestPostgresASettlementReadsWhatItSettles(t *testing.T) {
	t.Parallel()
	for name, analyzed := range plannedFor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := map[int]int{}
			for _, rows := range []int{500, 50_000} {
				w := newWorkbench(t, time.Minute)
				w.plansFor("jobs", "claimed", "inbox")
				execAll(t, w.pool, fmt.Sprintf(`
					INSERT INTO %[1]s.claimed (token, number, perform_at, first_push, since, score, shard, retry_count, recoveries, id, node, owner, error, data)
					SELECT 1, 1, 1, 1, 1, 0, 0, -1, 0, 'id-' || g, 'n', 'o', '', 'x' FROM generate_series(1, %[2]d) g;
					INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data, error)
					SELECT 0, 'id-' || g, 1, 1, -1, 0, false, 0, 'x', '' FROM generate_series(1, %[2]d) g`, w.schema, rows))
				if analyzed {
					w.plansFor("jobs", "claimed")
				}
				read[rows] = w.pagesOf(fmt.Sprintf(`
					SELECT * FROM %s.settle_in_tx('orders', 0, NULL, (SELECT jsonb_agg(jsonb_build_object('id', 'id-' || g, 'token', 1, 'number', 1,
						'rest', 1, 'same_time', true, 'delay', 0, 'retry_count', 0, 'recoveries', 0, 'error', '', 'bury_error', '', 'processed', true,
						'failed', false)) FROM generate_series(%d, %d) g))`, w.schema, rows-19, rows))
			}
			if read[50_000] > 2*read[500] {
				t.Errorf("20 settlements beside 50,000 claims read %d pages, beside 500 %d", read[50_000], read[500])
			}
		})
	}
}

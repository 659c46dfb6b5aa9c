package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// takeOf takes nine grants of each of the limiters, whose rate is one a second, and nine at once.
func (w *workbench) takeOf(keys ...string) ports.TakeReply {
	w.t.Helper()
	r := ports.TakeRequest{Queue: "orders"}
	for _, key := range keys {
		r.Takes = append(r.Takes, ports.Take{Key: key, Rate: core.Rate{Count: 1, Per: time.Second, Burst: 8}, Want: 9})
	}
	reply, err := w.store.Take(w.t.Context(), r)
	w.must(err)
	return reply
}

// countOf returns the only value of a query, whose %s becomes the workbench's schema.
func (w *workbench) countOf(query string) int {
	w.t.Helper()
	var n int
	w.must(w.pool.QueryRow(w.t.Context(), fmt.Sprintf(query, w.schema)).Scan(&n))
	return n
}

// A take changes its row within the page, so that the index does not grow.
func TestPostgresATakeStaysInItsPage(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.takeOf("a")

	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }() // else a failed test waits for its connection
	now := core.InstantOf(time.Now()).Add(time.Minute)
	for range 20 {
		now = now.Add(time.Second)
		var granted []int
		w.must(tx.QueryRow(t.Context(), fmt.Sprintf("SELECT granted FROM %s.take('orders', ARRAY['a'], "+
			"ARRAY[1000000], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[1], ARRAY[0], ARRAY[0], $1)", w.schema), now).Scan(&granted))
		if len(granted) != 1 || granted[0] != 1 {
			t.Fatalf("a take grants %v, want 1", granted)
		}
	}

	var updates, within int
	w.must(tx.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
WHERE relid = to_regclass($1)`, w.schema+".limiters").Scan(&updates, &within))
	if updates < 20 || within != updates { // the server counts the first take too
		t.Errorf("20 takes update %d rows, %d of them within their page; want all", updates, within)
	}
	w.must(tx.Rollback(t.Context()))
}

// Limiters are deleted once they are gone, some by each call, except rows that another session has
// locked.
func TestPostgresDeletesLimitersThatAreGone(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	now := time.UnixMicro(1_700_000_000_000_000)
	w.store = postgres.New(w.pool, postgres.Options{Schema: w.schema, Clock: func() time.Time { return now }})

	var keys []string
	for n := range 100 {
		keys = append(keys, fmt.Sprint("key ", n))
	}
	w.takeOf(keys...)
	left := func() int { return w.countOf("SELECT count(*) FROM %s.limiters") }
	if n := left(); n != 100 {
		t.Fatalf("%d limiters, want 100", n)
	}

	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	_, err = tx.Exec(t.Context(), fmt.Sprintf("SELECT FROM %s.limiters WHERE key = 'key 0' FOR UPDATE", w.schema))
	w.must(err)

	now = now.Add(9*time.Second + core.LimiterKept)
	w.takeOf("z")
	if n := left(); n >= 101 || n < 80 {
		t.Errorf("%d limiters are left after a take, want up to 22 fewer", n)
	}
	for range 20 {
		w.takeOf("z")
	}
	if n := left(); n != 2 {
		t.Errorf("%d limiters are left, want that of the takes and the locked one", n)
	}

	w.must(tx.Rollback(t.Context()))
	w.takeOf("z")
	if n := left(); n != 1 {
		t.Errorf("%d limiters are left, want 1", n)
	}
}

// A take reads its own rows, and some that it may delete, also in a queue with many limiters of
// which the server has no statistics.
func TestPostgresATakeReadsItsRowsAlone(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	_, err := w.pool.Exec(t.Context(), fmt.Sprintf(`
INSERT INTO %[1]s.limiters (queue, key, next, started, last, stopped, changed)
SELECT q.id, i::text, 9007199254740992, 0, 0, 0, 0 FROM %[1]s.queues q, generate_series(1, 20000) i`, w.schema))
	w.must(err)

	for _, call := range []string{
		"take('orders', ARRAY['500', 'new'], ARRAY[10, 10], ARRAY[0, 0], ARRAY[1, 1], ARRAY[0, 0], ARRAY[1, 1], ARRAY[0, 0], " +
			"ARRAY[0, 0], NULL)",
		"stop('orders', '500', 1000000, NULL)",
	} {
		tx, err := w.pool.Begin(t.Context())
		w.must(err)
		defer func() { _ = tx.Rollback(context.Background()) }()
		_, err = tx.Exec(t.Context(), fmt.Sprintf("SELECT * FROM %s.%s", w.schema, call))
		w.must(err)

		var read int
		w.must(tx.QueryRow(t.Context(), `SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
FROM pg_stat_xact_user_tables WHERE relid = to_regclass($1)`, w.schema+".limiters").Scan(&read))
		if read < 2 || read > 100 {
			t.Errorf("%s reads %d rows, want at most 100", call, read)
		}
		w.must(tx.Rollback(t.Context()))
	}
}

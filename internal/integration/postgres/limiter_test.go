package postgres_test

import (
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
	now := time.UnixMicro(1_700_000_000_000_000)
	w.store = postgres.New(w.pool, postgres.Options{Schema: w.schema, Clock: func() time.Time { return now }})
	for range 1000 {
		if got := w.takeOf("a").Grants[0].Granted; got < 1 {
			t.Fatalf("%d grants, want at least 1", got)
		}
		now = now.Add(time.Second)
	}
	if pages := w.countOf("SELECT pg_relation_size('%s.limiters_pkey') / current_setting('block_size')::int"); pages > 2 {
		t.Errorf("the index has %d pages, want at most 2", pages)
	}
	if pages := w.countOf("SELECT pg_relation_size('%s.limiters') / current_setting('block_size')::int"); pages > 1 {
		t.Errorf("the table has %d pages, want 1", pages)
	}
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

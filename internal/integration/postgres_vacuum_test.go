package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
)

// Autovacuum is not counted here.
func TestPostgresVacuumsAfterSoManyClaims(t *testing.T) {
	t.Parallel()
	const batch = 500
	w := newWorkbench(t, time.Minute)
	w.store = postgres.New(w.pool, postgres.Options{Schema: w.schema, NoWakeups: true, VacuumEvery: 2 * batch})
	w.acquire("me")
	var settle []core.Settlement
	deadline := time.Now().Add(30 * time.Second)
	for n := 0; w.vacuums() == 0; n++ {
		if time.Now().After(deadline) {
			t.Fatalf("no vacuum after %d claims", n*batch)
		}
		ids := make([]string, batch)
		for i := range ids {
			ids[i] = fmt.Sprintf("%d-%d", n, i)
		}
		w.must(w.push(w.store, ids...))
		claims := w.next(batch, settle...).Claims
		settle = settle[:0]
		for _, c := range claims {
			settle = append(settle, done(c))
		}
	}
}

// vacuums is how often the table of jobs was vacuumed by somebody.
func (w *workbench) vacuums() (n int) {
	w.t.Helper()
	w.must(w.pool.QueryRow(w.t.Context(), `SELECT vacuum_count FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'jobs'`,
		w.schema).Scan(&n))
	return n
}

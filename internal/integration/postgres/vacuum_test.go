package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const vacuumBatch = 250

// Autovacuum is not counted here.
func TestPostgresVacuumsAfterSoManyClaims(t *testing.T) {
	t.Parallel()
	w := newVacuumed(t)
	deadline := time.Now().Add(testservers.Patience)
	for n := 0; w.vacuums("jobs") == 0; n++ {
		if time.Now().After(deadline) {
			t.Fatalf("no vacuum after %d claims", n*vacuumBatch)
		}
		w.handle(n)
	}
}

// Other tables in the schema are their owner's, who may have reasons to leave them alone.
func TestPostgresVacuumsItsOwnTablesOnly(t *testing.T) {
	t.Parallel()
	w := newVacuumed(t)
	mine := pgx.Identifier{w.schema, "mine"}.Sanitize()
	kit.Exec(t, w.pool, "CREATE TABLE "+mine+" (id int) WITH (autovacuum_enabled = off); INSERT INTO "+mine+
		" SELECT generate_series(1, 100000); DELETE FROM "+mine)
	deadline := time.Now().Add(testservers.Patience)
	for n := 0; w.vacuums("claimed") < 2; n++ { // its group is that of all tables but the backlog's
		if time.Now().After(deadline) {
			t.Fatalf("no vacuum after %d claims", n*vacuumBatch)
		}
		w.handle(n)
	}
	if n := w.vacuums("mine"); n > 0 {
		t.Errorf("a table of the user's was vacuumed %d times", n)
	}
}

// failsVacuums cancels vacuums.
type failsVacuums struct{}

func (failsVacuums) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if !strings.HasPrefix(q.SQL, "VACUUM") {
		return ctx
	}
	ended, cancel := context.WithDeadline(ctx, time.Now())
	cancel()
	return ended
}

func (failsVacuums) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Vacuums that fail are logged once for each group of tables.
func TestPostgresSaysThatAVacuumFailed(t *testing.T) {
	t.Parallel()
	w := newVacuumed(t)
	lines := make(chan string, 100)
	logger := slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	failing := kit.PoolLike(t, w.pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer = failsVacuums{} })
	w.store = postgres.New(failing,
		postgres.Options{Schema: w.schema, NoWakeups: true, VacuumEvery: vacuumBatch, Logger: logger})
	w.acquire("me")
	deadline := time.Now().Add(testservers.Patience)
	for n := 0; len(lines) < 2; n++ { // one for each group of tables
		if time.Now().After(deadline) {
			t.Fatalf("%d warnings after %d claims, want 2", len(lines), n*vacuumBatch)
		}
		w.handle(n)
	}
	for n := range 10 {
		w.handle(-1 - n)
	}
	if n := len(lines); n != 2 {
		t.Errorf("%d warnings, want one for each group of tables", n)
	}
	if line := <-lines; !strings.Contains(line, "level=WARN") || !strings.Contains(line, "a vacuum failed") {
		t.Errorf("it says %s", line)
	}
}

// lineWriter sends written lines.
type lineWriter chan<- string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// A table that is locked when its turn comes is vacuumed later, once the lock is gone, without more
// claims.
func TestPostgresVacuumsWhatWasBusy(t *testing.T) {
	t.Parallel()
	w := newVacuumed(t)
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	defer tx.Rollback(context.Background()) // or the pool waits for it
	_, err = tx.Exec(t.Context(),
		"LOCK TABLE "+pgx.Identifier{w.schema, "jobs"}.Sanitize()+" IN SHARE UPDATE EXCLUSIVE MODE")
	w.must(err)
	deadline := time.Now().Add(testservers.Patience)
	for n := 0; w.vacuums("claimed") == 0; n++ {
		if time.Now().After(deadline) {
			t.Fatalf("no vacuum of claimed after %d claims", n*vacuumBatch)
		}
		w.handle(n)
	}
	if n := w.vacuums("jobs"); n > 0 {
		t.Fatalf("jobs vacuumed %d times while locked", n)
	}
	w.must(tx.Rollback(t.Context()))
	for w.vacuums("jobs") == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no vacuum of jobs after its lock was given up, without more claims")
		}
		time.Sleep(50 * time.Millisecond) // a slow machine looks less often
	}
}

// vacuumed is a shard whose store vacuums after few claims.
type vacuumed struct {
	*workbench
	settle []core.Settlement
}

func newVacuumed(t *testing.T) *vacuumed {
	w := &vacuumed{workbench: newWorkbench(t, time.Minute)}
	w.store = postgres.New(w.pool, postgres.Options{Schema: w.schema, NoWakeups: true, VacuumEvery: 2 * vacuumBatch})
	w.acquire("me")
	return w
}

// handle pushes and claims a batch, and settles the one before.
func (w *vacuumed) handle(n int) {
	w.t.Helper()
	ids := make([]string, vacuumBatch)
	for i := range ids {
		ids[i] = fmt.Sprintf("%d-%d", n, i)
	}
	w.must(w.push(w.store, ids...))
	claims := w.next(vacuumBatch, w.settle...).Claims
	w.settle = w.settle[:0]
	for _, c := range claims {
		w.settle = append(w.settle, done(c))
	}
}

// vacuums returns how often a table was vacuumed, without autovacuum.
func (w *vacuumed) vacuums(table string) (n int) {
	w.t.Helper()
	w.must(w.pool.QueryRow(w.t.Context(),
		`SELECT vacuum_count FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2`,
		w.schema, table).Scan(&n))
	return n
}

// A transaction that stays open keeps all that died since from being removed.
func TestPostgresStatsReadLittleBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	const batches, most = 40, 300
	w := newVacuumed(t)
	now := time.Now()
	o := postgres.Options{Schema: w.schema, NoWakeups: true, VacuumEvery: -1, Clock: func() time.Time { return now }}
	w.store = postgres.New(w.pool, o)
	tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.must(err)
	defer func() { w.must(tx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = tx.Exec(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{w.schema, "jobs"}.Sanitize())
	w.must(err)

	w.acquire("me")
	for n := range batches {
		w.handle(n)
		now = now.Add(2 * time.Second)
	}
	w.next(0, w.settle...)
	v := w.viewed()
	tracer := &seen{}
	s := v.openAs("looks", o, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	w.must(err)
	want := ports.Counts{Processed: batches * vacuumBatch}
	if diff := cmp.Diff(want, stats[0].Counts); diff != "" {
		t.Error(diff)
	}
	for _, q := range tracer.sent() {
		if n := pagesRead(t, v.pool, v.schema, q.SQL, q.Args...); n > most {
			t.Errorf("%d blocks are read by %s", n, q.SQL)
		}
	}
}

package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultVacuumEvery is how many jobs a store claims between vacuums unless
// Options say otherwise.
const DefaultVacuumEvery = 100_000

// vacuumLimit is how long a vacuum of all tables may take.
const vacuumLimit = 10 * time.Minute

// sweeper has the tables looked at after so many claims, and vacuumed. Autovacuum
// comes once a minute at most, in which indexes may grow by millions of dead
// entries, and stay so large. The zero value is ready.
type sweeper struct {
	mu      sync.Mutex
	running bool
	claimed int // since the last vacuum
	kept    int // dead rows that it could not remove
}

// add counts claims, and reports whether to vacuum now. What an open transaction
// keeps from being removed makes vacuums rarer, so that they don't read it again
// and again.
func (w *sweeper) add(claims, every int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed += claims
	if w.running || w.claimed < max(every, w.kept) {
		return false
	}
	w.running, w.claimed = true, 0
	return true
}

func (w *sweeper) done(kept int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.kept = false, kept
}

// claimed counts claims towards the next vacuum. It never blocks.
func (s *Store) claimed(n int) {
	every := s.options.VacuumEvery
	if every == 0 {
		every = DefaultVacuumEvery
	}
	if every > 0 && n > 0 && s.sweeper.add(n, every) {
		go func() {
			kept := 0
			defer func() { s.sweeper.done(kept) }()
			ctx, cancel := context.WithTimeout(context.Background(), vacuumLimit)
			defer cancel()
			kept, _ = s.vacuum(ctx, every) // autovacuum does what this does not
		}()
	}
}

// deadSQL gives the tables that have many dead rows, also beside the live ones, of
// which a vacuum reads every index entry, and how many. Only their owner may
// vacuum them.
//
//	$1 the schema, quoted, $2 how many are many
const deadSQL = `
SELECT t.relname::text, t.n_dead_tup FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
WHERE c.relnamespace = to_regnamespace($1) AND t.n_dead_tup >= greatest($2, t.n_live_tup) AND pg_has_role(c.relowner, 'USAGE')
ORDER BY t.relname`

// vacuum vacuums the tables that have many dead rows, on a connection of its own,
// and gives how many are left in the worst of them. It takes no lock that turns or
// pushes wait for, and passes over a table that is being vacuumed.
func (s *Store) vacuum(ctx context.Context, every int) (kept int, err error) {
	conn, err := s.apart(ctx)
	if err != nil {
		return 0, err
	}
	defer closeSoon(conn)
	dead, err := s.dead(ctx, conn, every/10)
	if err != nil {
		return 0, err
	}
	for table := range dead {
		name := s.schema + "." + pgx.Identifier{table}.Sanitize()
		if _, err := conn.Exec(ctx, "VACUUM (SKIP_LOCKED, TRUNCATE false) "+name, pgx.QueryExecModeSimpleProtocol); err != nil {
			return 0, err
		}
	}
	if dead, err = s.dead(ctx, conn, every/10); err != nil {
		return 0, err
	}
	for _, n := range dead {
		kept = max(kept, n)
	}
	return kept, nil
}

// dead are the dead rows of tables that have so many.
func (s *Store) dead(ctx context.Context, conn *pgx.Conn, many int) (map[string]int, error) {
	rows, err := conn.Query(ctx, deadSQL, pgx.QueryExecModeSimpleProtocol, s.schema, many)
	if err != nil {
		return nil, err
	}
	dead := make(map[string]int)
	var (
		table string
		n     int
	)
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error {
		dead[table] = n
		return nil
	})
	return dead, err
}

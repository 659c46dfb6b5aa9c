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
// which a vacuum reads every index entry, how many, and whether somebody vacuums or
// alters them. Only their owner may vacuum them.
//
//	$1 the schema, quoted, $2 how many are many
const deadSQL = `
SELECT t.relname::text, t.n_dead_tup, EXISTS (SELECT FROM pg_locks k
  WHERE k.locktype = 'relation' AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND k.relation = c.oid AND k.granted AND k.pid <> pg_backend_pid()
    AND k.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
WHERE c.relnamespace = to_regnamespace($1) AND t.n_dead_tup >= greatest($2, t.n_live_tup) AND pg_has_role(c.relowner, 'USAGE')
ORDER BY t.relname`

// vacuumAgain is how long to wait while all tables are busy.
const vacuumAgain = 500 * time.Millisecond

// table is one that has many dead rows.
type table struct {
	name string
	dead int
	busy bool
}

// vacuum vacuums the tables that have many dead rows, on a connection of its own,
// and gives how many are left in the worst of them. It takes no lock that turns or
// pushes wait for. If somebody is at work on a table, it does the others and comes
// back: a vacuum leaves what has died since it began.
func (s *Store) vacuum(ctx context.Context, every int) (kept int, err error) {
	conn, err := s.apart(ctx)
	if err != nil {
		return 0, err
	}
	defer closeSoon(conn)
	done := make(map[string]bool)
	for {
		tables, err := s.dead(ctx, conn, every/100)
		if err != nil {
			return 0, err
		}
		kept, waiting, idle := 0, false, true
		for _, t := range tables {
			if done[t.name] {
				kept = max(kept, t.dead)
				continue
			}
			waiting = true
			if t.busy {
				continue
			}
			if err := s.vacuumTable(ctx, conn, t.name); err != nil {
				return 0, err
			}
			done[t.name], idle = true, false
		}
		if !waiting {
			return kept, nil
		}
		if idle && !sleep(ctx, vacuumAgain) {
			return 0, ctx.Err()
		}
	}
}

// vacuumTable vacuums a table, unless somebody has begun to since it was looked for.
func (s *Store) vacuumTable(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "VACUUM (SKIP_LOCKED, TRUNCATE false) "+s.schema+"."+pgx.Identifier{name}.Sanitize(),
		pgx.QueryExecModeSimpleProtocol)
	return err
}

// dead are the tables that have so many dead rows.
func (s *Store) dead(ctx context.Context, conn *pgx.Conn, many int) ([]table, error) {
	rows, err := conn.Query(ctx, deadSQL, pgx.QueryExecModeSimpleProtocol, s.schema, many)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		return t, row.Scan(&t.name, &t.dead, &t.busy)
	})
}

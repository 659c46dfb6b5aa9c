package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultVacuumEvery is how many jobs a store claims between vacuums unless
// Options say otherwise.
const DefaultVacuumEvery = 50_000

// vacuumMany is the part of those claims that makes a table's dead rows many.
const vacuumMany = 50

// vacuumLimit is how long a vacuum of all tables may take.
const vacuumLimit = 10 * time.Minute

// sweeper has tables looked at after so many claims, and vacuumed. Autovacuum
// comes once a minute at most, in which indexes may grow by millions of dead
// entries, and stay so large. The zero value is ready.
type sweeper struct {
	mu      sync.Mutex
	running bool
	claimed int // since the last vacuum began
	kept    int // dead rows that it could not remove
}

// add counts claims, and gives how many there were since the last vacuum if it is time
// for one, else 0. What an open transaction keeps from being removed makes vacuums rarer,
// so that they don't read it again and again.
func (w *sweeper) add(claims, every int) (since int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed += claims
	if w.running || w.claimed < max(every, w.kept) {
		return 0
	}
	since, w.claimed, w.running = w.claimed, 0, true
	return since
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
	if every <= 0 || n <= 0 {
		return
	}
	for h := range halves {
		if since := s.sweepers[h].add(n, every); since > 0 {
			go s.sweep(h, dying{claims: since, many: every / vacuumMany})
		}
	}
}

// half is one of the two halves in which the tables are swept, beside each other:
// what a backlog has made large may take as long as the backlog itself, in which the
// tables of what is claimed would become as large.
type half int

const (
	claims half = iota
	backlog
	halves
)

// dying is what is known of dead rows before the server says so, up to a second later:
// how many claims there were since the last vacuum, each of a row of jobs that is dead
// now and of one of claimed that is or soon will be; and how many dead rows are many.
type dying struct{ claims, many int }

// sweep vacuums a half of the tables. If it can't, autovacuum does.
func (s *Store) sweep(h half, d dying) {
	kept := 0
	defer func() { s.sweepers[h].done(kept) }()
	ctx, cancel := context.WithTimeout(context.Background(), vacuumLimit)
	defer cancel()
	kept, _ = s.vacuum(ctx, h, d)
}

// deadSQL gives the tables that have many dead rows, how many the server knows of, and
// whether somebody vacuums or alters them. A vacuum reads every entry and page of their
// indexes, so dead rows are few beside more live ones, and beside a third as many pages.
// Only a table's owner may vacuum it.
//
//	$1 the schema, quoted, $2 how many are many, $3 whether those of a backlog,
//	$4 how many rows of jobs and claimed have died at least
const deadSQL = `
SELECT t.relname::text, t.n_dead_tup, EXISTS (SELECT FROM pg_locks k
  WHERE k.locktype = 'relation' AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND k.relation = c.oid AND k.granted AND k.pid <> pg_backend_pid()
    AND k.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
WHERE c.relnamespace = to_regnamespace($1) AND t.relname IN ('jobs', 'payloads') = $3 AND pg_has_role(c.relowner, 'USAGE')
  AND greatest(t.n_dead_tup, CASE WHEN t.relname IN ('jobs', 'claimed') THEN $4::bigint END) >= greatest($2, t.n_live_tup,
    (SELECT 3 * sum(i.relpages) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid))
ORDER BY t.relname`

// vacuumAgain is how long to wait while all tables are busy.
const vacuumAgain = 500 * time.Millisecond

// table is one that has many dead rows.
type table struct {
	name string
	dead int
	busy bool
}

// vacuum vacuums those of the half's tables that have many dead rows, on a connection
// of its own, and gives how many are left in the worst of them. It takes no lock that
// turns or pushes wait for. If somebody is at work on a table, it does the others and
// comes back: a vacuum leaves what has died since it began.
func (s *Store) vacuum(ctx context.Context, h half, d dying) (kept int, err error) {
	tables, err := s.dead(ctx, h, d)
	if err != nil || len(tables) == 0 {
		return 0, err
	}
	conn, err := s.apart(ctx)
	if err != nil {
		return 0, err
	}
	defer closeSoon(conn)
	done := make(map[string]bool)
	for {
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
		if tables, err = s.dead(ctx, h, d); err != nil {
			return 0, err
		}
	}
}

// vacuumTable vacuums a table, unless somebody has begun to since it was looked for.
func (s *Store) vacuumTable(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "VACUUM (SKIP_LOCKED, TRUNCATE false) "+s.schema+"."+pgx.Identifier{name}.Sanitize(),
		pgx.QueryExecModeSimpleProtocol)
	return err
}

// dead are the half's tables that have so many dead rows.
func (s *Store) dead(ctx context.Context, h half, d dying) ([]table, error) {
	rows, err := s.pool.Query(ctx, deadSQL, pgx.QueryExecModeSimpleProtocol, s.schema, d.many, h == backlog, d.claims)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		return t, row.Scan(&t.name, &t.dead, &t.busy)
	})
}

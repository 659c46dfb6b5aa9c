package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DefaultVacuumEvery is the default of Options.VacuumEvery: the number of jobs that a store claims
// between vacuums.
const DefaultVacuumEvery = 50_000

// vacuumFraction divides VacuumEvery: a table has many dead rows if it has at least a fiftieth of
// VacuumEvery.
const vacuumFraction = 50

// vacuumLimit is the maximum duration of a vacuum of a group of tables.
const vacuumLimit = 10 * time.Minute

// vacuumer decides after how many claims a group of tables is vacuumed. Autovacuum comes once a
// minute at most. In that time indexes may grow by millions of dead entries, and they don't shrink
// again. The zero value is ready.
type vacuumer struct {
	mu      sync.Mutex
	running bool
	claimed int // since the last vacuum began
	left    int // dead rows that the last vacuum could not remove
	warned  time.Time
}

// add counts claims. It returns how many there were since the last vacuum if the next one is due,
// else 0. Rows that an open transaction keeps from being removed make vacuums rarer, so that they
// don't read these rows again and again.
func (w *vacuumer) add(claims, every int) (since int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed += claims
	if w.running || w.claimed < max(every, w.left) {
		return 0
	}
	since, w.claimed, w.running = w.claimed, 0, true
	return since
}

// worthSaying reports whether to log a vacuum's failure: the server refused it, or it took too
// long. Other failures mean that the server can't be reached, which other calls report, or that the
// pool is being closed.
func worthSaying(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) || errors.Is(err, context.DeadlineExceeded)
}

// warnEvery is how often a vacuum that keeps failing is logged.
const warnEvery = time.Hour

func (w *vacuumer) mayWarn(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.warned.IsZero() && now.Sub(w.warned) < warnEvery {
		return false
	}
	w.warned = now
	return true
}

func (w *vacuumer) done(left int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.left = false, left
}

// countClaims counts claims towards the next vacuum. It never blocks.
func (s *Store) countClaims(n int) {
	every := s.options.VacuumEvery
	if every == 0 {
		every = DefaultVacuumEvery
	}
	if every <= 0 || n <= 0 {
		return
	}
	for g := range tableGroups {
		if since := s.vacuumers[g].add(n, every); since > 0 {
			go s.runVacuum(g, deadRows{atLeast: since, many: every / vacuumFraction})
		}
	}
}

// tableGroup is one of the two groups of tables that are vacuumed independently. A table that a
// backlog has enlarged may take as long to vacuum as the backlog itself, and in that time the
// other tables would grow as large.
type tableGroup int

const (
	otherTables   tableGroup = iota
	backlogTables            // jobs and payloads
	tableGroups
)

// deadRows is an estimate of dead rows before the server reports them, up to a second later.
// atLeast is the least number of dead rows in jobs and in claimed: each claim since the last vacuum
// has deleted a row of the first and will delete one of the other. many is the number from which
// rows are many.
type deadRows struct{ atLeast, many int }

// ownTables are the tables of each group. Nothing else in the schema is touched.
func ownTables(g tableGroup) []string {
	if g == backlogTables {
		return []string{"jobs", "payloads"}
	}
	return []string{
		"actions", "claimed", "count_changes", "day_records", "dead_groups", "dead_letter_payloads",
		"dead_letters", "identity", "inbox", "limiters", "minute_records", "nodes", "once", "past", "permits", "quarantine", "queues",
		"schedule_names", "schedules", "shards", "tracked", "turn_log",
	}
}

// runVacuum vacuums a group of tables. If it can't, autovacuum does.
func (s *Store) runVacuum(g tableGroup, d deadRows) {
	ctx, cancel := context.WithTimeout(context.Background(), vacuumLimit)
	defer cancel()
	left, err := s.vacuum(ctx, g, d)
	if worthSaying(err) && s.vacuumers[g].mayWarn(time.Now()) {
		s.logger().Warn("a vacuum failed; autovacuum does it later, and tables grow meanwhile",
			"schema", s.schema, "error", err)
	}
	s.vacuumers[g].done(left)
}

// deadSQL returns the tables that have many dead rows, how many dead rows the server knows of, and
// whether another session vacuums or alters them. A vacuum reads every entry and page of their
// indexes, so dead rows count as few if there are more live ones, or if there are fewer than three
// for each page. Only a table's owner may vacuum it.
//
//	$1 the schema, quoted, $2 the number from which dead rows are many, $3 the tables,
//	$4 the least number of dead rows in jobs and claimed
const deadSQL = `
SELECT t.relname::text, t.n_dead_tup, EXISTS (SELECT FROM pg_locks k
  WHERE k.locktype = 'relation' AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND k.relation = c.oid AND k.granted AND k.pid <> pg_backend_pid()
    AND k.mode IN
      ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
WHERE c.relnamespace = to_regnamespace($1) AND t.relname = ANY ($3::text[]) AND pg_has_role(c.relowner, 'USAGE')
  AND greatest(t.n_dead_tup, CASE WHEN t.relname IN ('jobs', 'claimed') THEN $4::bigint END)
    >= greatest($2, t.n_live_tup, (
      SELECT 3 * sum(i.relpages) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid
    ))
ORDER BY t.relname`

// vacuumPause is the wait between two looks while all tables are busy.
const vacuumPause = 500 * time.Millisecond

// dirtyTable is a table that has many dead rows.
type dirtyTable struct {
	name string
	dead int
	busy bool
}

// vacuum vacuums the tables of the group that have many dead rows, on a connection of its own. It
// returns the number of dead rows that are left in the worst table. It takes no lock that turns or
// pushes wait for. If another session vacuums or alters a table, vacuum does the other tables first
// and then comes back, because the other session's vacuum leaves rows that have died since it
// began.
func (s *Store) vacuum(ctx context.Context, g tableGroup, d deadRows) (left int, err error) {
	tables, err := s.dirtyTables(ctx, g, d)
	if err != nil || len(tables) == 0 {
		return 0, err
	}

	conn, err := s.takeConnection(ctx)
	if err != nil {
		return 0, err
	}
	defer closeSoon(conn)

	done := make(map[string]bool)
	for {
		left, waiting, idle := 0, false, true
		for _, t := range tables {
			if done[t.name] {
				left = max(left, t.dead)
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
			return left, nil
		}
		if idle && !sleep(ctx, vacuumPause) {
			return 0, ctx.Err()
		}

		if tables, err = s.dirtyTables(ctx, g, d); err != nil {
			return 0, err
		}
	}
}

// vacuumTable vacuums a table, unless another session has locked it since it was listed.
func (s *Store) vacuumTable(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "VACUUM (SKIP_LOCKED, TRUNCATE false) "+s.schema+"."+pgx.Identifier{name}.Sanitize(),
		pgx.QueryExecModeSimpleProtocol)
	return err
}

// dirtyTables returns the group's tables that have many dead rows.
func (s *Store) dirtyTables(ctx context.Context, g tableGroup, d deadRows) ([]dirtyTable, error) {
	rows, err := s.current().Query(ctx, deadSQL,
		pgx.QueryExecModeSimpleProtocol, s.schema, d.many, ownTables(g), d.atLeast)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t dirtyTable, err error) {
		return t, row.Scan(&t.name, &t.dead, &t.busy)
	})
}

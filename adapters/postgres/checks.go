package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// checkedFor is the maximum duration of all checks together, and answersFor that of the first one.
// So a caller learns soon that the server can't be reached or does not answer.
const (
	checkedFor = 5 * time.Second
	answersFor = 2 * time.Second
)

// Check implements [ports.Checker]. A role with only the right to SELECT sees most rows; to see
// what other roles run, it must be a member of pg_monitor. Each count of table rows has a limit,
// and no query is repeated. One check writes a temporary file.
func (s *Store) Check(ctx context.Context) ([]ports.Check, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}

	looking, cancel := context.WithTimeout(ctx, checkedFor)
	defer cancel()
	first, done := context.WithTimeout(looking, answersFor)
	defer done()
	if err := once(first, func() error { return s.look(first) }); err != nil {
		return unanswered(ctx, err)
	}

	rows := []ports.Check{{Name: "answers", Value: "yes"}}
	for _, c := range checks {
		row := ports.Check{Name: c.name}
		err := once(looking, func() error {
			return s.current().
				QueryRow(looking, s.sql(c.sql), s.inbox(), ownTables(backlogTables), ownTables(otherTables)).
				Scan(&row.Value, &row.Status)
		})

		var refused *pgconn.PgError
		switch {
		case err != nil && looking.Err() == nil && !errors.As(err, &refused):
			return unanswered(ctx, err)
		case err != nil:
			row.Status, row.Value, row.Advice = ports.CheckUnknown, translate(ctx, err).Error(), unknownAdvice(err)
		case row.Status == ports.CheckUnknown:
			row.Advice = "grant pg_monitor to the role, or run the checks with a role that has it"
		case row.Status != ports.CheckOK:
			row.Advice, row.Refuses = c.advice, c.name == writesCheck
		case c.name == writesCheck:
			s.tryDisk(looking, &row)
		}
		if c.name == recordsCheck {
			s.addBrokenSettings(looking, &row)
		}

		rows = append(rows, row)
	}
	return rows, nil
}

// addBrokenSettings adds the queues whose settings can't be read to the row of records.
func (s *Store) addBrokenSettings(ctx context.Context, row *ports.Check) {
	queues, err := s.queues(ctx, nil)
	if err != nil {
		return // other rows show the cause
	}

	var broken []string
	for i := range queues {
		if queues[i].Settings.Broken {
			broken = append(broken, queues[i].Name)
		}
	}
	if len(broken) == 0 {
		return
	}

	names := strings.Join(broken[:min(len(broken), recordsNamed)], ", ")
	if more := len(broken) - recordsNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	row.Value += "; the settings of the queues " + names + " can't be read"
	advice := "set one of their settings again, which replaces them: " +
		"until then servers keep those that they have read, and start with the options of their code"
	if row.Advice != "" {
		advice = row.Advice + "; " + advice
	}
	row.Status, row.Advice = max(row.Status, ports.CheckWarn), advice
}

// tryDisk writes a temporary file on the disk of the jobs, and changes the row of writes if that
// fails. Only an attempt shows that a disk is full. The file needs no right and no transaction id,
// and leaves no dead rows.
func (s *Store) tryDisk(ctx context.Context, row *ports.Check) {
	err := once(ctx, func() error {
		return pgx.BeginFunc(ctx, s.current(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, spillSQL, s.schema+".jobs"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `SELECT count(*) FROM generate_series(1, 20000)`)
			return err
		})
	})

	var refused *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &refused) && outOfRoom(refused):
		row.Status, row.Refuses = ports.CheckFail, true
		row.Value, row.Advice =
			fmt.Sprintf("no: %s (SQLSTATE %s)", refused.Message, refused.Code), giveRoom(refused.Code)
	default:
		row.Status, row.Value, row.Advice = ports.CheckUnknown, translate(ctx, err).Error(), unknownAdvice(err)
	}
}

// spillSQL lets a transaction write the rows of a function to a temporary file, in the tablespace
// of a table. A role without the right to create objects there gets the tablespace of the database.
//
//	$1 the name of the table
const spillSQL = `SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', coalesce((
  SELECT quote_ident(t.spcname) FROM pg_class c JOIN pg_tablespace t ON t.oid = c.reltablespace
  WHERE c.oid = $1::text::regclass AND has_tablespace_privilege(t.oid, 'CREATE')
), ''), true)`

// outOfRoom reports whether a server is full. A limit that is configured for the role is not one of
// the server.
func outOfRoom(e *pgconn.PgError) bool {
	return lacksRoom(e.Code, e.Message) && remedyFor(e.Code) == ""
}

// moreTime is the advice for a check that ran out of time.
const moreTime = "the check ran out of time: run it again when the server has less to do, " +
	"or raise statement_timeout for the role"

// unknownAdvice returns the advice for a check that failed.
func unknownAdvice(err error) string {
	switch sqlState(err) {
	case "", queryCanceled:
		return moreTime
	case noRight:
		return "grant the role the rights that docs/operations/postgres-dba.md lists, or check this by hand"
	}
	return "check this by hand"
}

// unanswered returns the rows for a server that could not be asked: one, or two if the server
// answers that it has no room. It returns the error instead if the cause is the caller, the schema
// or the store's settings.
func unanswered(ctx context.Context, err error) ([]ports.Check, error) {
	interrupted, advice := storekit.Interrupted(ctx, err), notReached

	var refused *pgconn.PgError
	if errors.As(err, &refused) && outOfRoom(refused) {
		return []ports.Check{
			{Name: "answers", Value: "yes, but only that it has no room"},
			{
				Name:    writesCheck,
				Status:  ports.CheckFail,
				Refuses: true,
				Value:   fmt.Sprintf("no: %s (SQLSTATE %s)", refused.Message, refused.Code),
				Advice:  giveRoom(refused.Code),
			},
		}, nil
	}

	if sqlState(err) == queryCanceled {
		advice = moreTime
	}
	if err = translate(ctx, err); interrupted != nil || storekit.HasKnownOutcome(err) {
		return nil, err
	}

	return []ports.Check{{
		Name:    "answers",
		Status:  ports.CheckFail,
		Refuses: true,
		Value:   err.Error(),
		Advice:  advice,
	}}, nil
}

// notReached is the advice for a server that does not answer.
const notReached = "start the server, or make it reachable for this process; " +
	"if it does not start, see its log: it needs free disk space to start"

// check is a statement that returns a text and a ports.CheckStatus: 0 ok, 1 unknown, 2 warn, 3
// fail.
//
//	$1 the name of a table of the schema, $2 and $3 the names of all tables
type check struct{ name, sql, advice string }

// writesCheck is the check that pushes depend on.
const writesCheck = "writes"

// recordsCheck is the check of what the store can't read. recordsNamed is the maximum number of queues
// of which it names unreadable settings.
const (
	recordsCheck = "records"
	recordsNamed = 5
)

// checks are in display order. Each begins with its parameters, so that all take the same ones.
var checks = [...]check{
	{"version", params + `
SELECT format('postgres %s, up for %s', current_setting('server_version'),
    CASE WHEN u.days > 1 THEN u.days || ' days' WHEN u.days = 1 THEN '1 day'
      ELSE to_char(u.up, 'FMHH24"h"FMMI"m"') END), 0
FROM p, (
  SELECT up, extract(day FROM up) AS days
  FROM (SELECT clock_timestamp() - pg_postmaster_start_time() AS up) s
) u`, ""},
	{"schema_version", params + `
SELECT format('version %s', (SELECT max(version) FROM {schema}.migrations)), 0
FROM p`, ""},
	{writesCheck, params + `
SELECT CASE
    WHEN pg_is_in_recovery() THEN 'a standby'
    WHEN current_setting('transaction_read_only')::boolean THEN 'read only'
    ELSE 'yes' END,
  CASE
    WHEN NOT current_setting('transaction_read_only')::boolean THEN 0
    -- A role or a connection that only looks may be read only on purpose.
    WHEN pg_is_in_recovery() OR s.source IN ('client', 'user', 'database user') THEN 2
    ELSE 3 END
FROM p, pg_settings s WHERE s.name = 'default_transaction_read_only'`,
		"servers and producers need the primary: " + findPrimary},
	{"durability", params + `
SELECT format('fsync %s, synchronous_commit %s', current_setting('fsync'), current_setting('synchronous_commit')),
  CASE
    WHEN current_setting('fsync') = 'off' THEN 3
    WHEN current_setting('synchronous_commit') = 'off' THEN 2
    ELSE 0 END
FROM p`,
		"turn both on: otherwise a crash of the server loses acknowledged writes"},
	// A role without the right to see another's session sees only its database and user, which only
	// sessions of clients have both.
	{"connections", params + `
SELECT format('%s of %s', n, most), CASE WHEN n >= 0.95 * most THEN 3 WHEN n >= 0.8 * most THEN 2 ELSE 0 END
FROM p, (
  SELECT count(*) AS n, current_setting('max_connections')::int AS most FROM pg_stat_activity
  WHERE backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL AND usesysid IS NOT NULL
) c`,
		"make the pools smaller, put PgBouncer before the server, or raise max_connections"},
	{"oldest_transaction", params + `
SELECT CASE WHEN a.who IS NULL THEN 'none'
    ELSE format('%s, open for %s', a.who, date_trunc('second', clock_timestamp() - a.since)) END
    || CASE WHEN h.n > 0 THEN format('; this role may not see the age of %s more', h.n) ELSE '' END,
  CASE
    WHEN clock_timestamp() - a.since > interval '1 hour' THEN 3
    WHEN clock_timestamp() - a.since > interval '10 minutes' THEN 2
    WHEN h.n > 0 THEN 1
    ELSE 0 END
FROM p CROSS JOIN (
  SELECT count(*) AS n FROM pg_stat_activity
  WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND backend_type IS NULL
) h LEFT JOIN LATERAL (
  SELECT format('pid %s of %s, %s', pid, coalesce(usename, '?'), coalesce(state, '?')) AS who,
    xact_start AS since
  FROM pg_stat_activity
  WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
  UNION ALL SELECT format('the prepared transaction %s of %s', gid, owner), prepared FROM pg_prepared_xacts
  ORDER BY since LIMIT 1
) a ON true`,
		"end this transaction: while it is open no dead row can be removed, and tables and indexes grow"},
	{"replication_slots", params + `
SELECT CASE WHEN s.slot_name IS NULL THEN 'none'
    ELSE format('%s keeps %s of WAL', s.slot_name, pg_size_pretty(s.kept)) END,
  CASE WHEN s.kept > 10 * 1073741824::bigint THEN 3 WHEN s.kept > 1073741824 THEN 2 ELSE 0 END
FROM p LEFT JOIN LATERAL (
  SELECT slot_name, pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
      ELSE pg_current_wal_lsn() END,
    restart_lsn) AS kept
  FROM pg_replication_slots WHERE restart_lsn IS NOT NULL ORDER BY 2 DESC LIMIT 1
) s ON true`,
		"let the slot's reader catch up, or drop the slot: it keeps WAL on the disk, " +
			"and a logical slot also keeps dead rows of the catalog"},
	{"dead_rows", params + `
SELECT format('%s: %s dead, %s live, vacuumed %s', t.relname, t.n_dead_tup, t.n_live_tup,
    coalesce(to_char(
      greatest(t.last_vacuum, t.last_autovacuum) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), 'never')),
  CASE WHEN t.n_dead_tup > 1000000 AND t.n_dead_tup > 2 * t.n_live_tup THEN 2 ELSE 0 END
FROM p LEFT JOIN LATERAL (
  SELECT t.* FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
  WHERE c.relnamespace = p.namespace AND t.relname = ANY (p.own) ORDER BY t.n_dead_tup DESC LIMIT 1
) t ON true`,
		"see oldest_transaction; if no transaction is old, " +
			"let the role that owns the tables vacuum them (docs/operations/postgres-dba.md)"},
	{"autovacuum", params + `
SELECT current_setting('autovacuum')
    || CASE WHEN current_setting('track_counts')::boolean THEN '' ELSE ', track_counts off' END,
  CASE WHEN current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean THEN 0 ELSE 2 END
FROM p`,
		"turn autovacuum and track_counts on: the store vacuums only its busiest tables, and analyzes none"},
	{"indexes", params + `
SELECT format('%s: %s of indexes, %s of rows', t.relname, pg_size_pretty(t.indexes), pg_size_pretty(t.rows)),
  CASE WHEN t.indexes > 268435456 AND t.indexes > 4 * t.rows THEN 2 ELSE 0 END
FROM p LEFT JOIN LATERAL (
  SELECT c.relname, pg_indexes_size(c.oid) AS indexes, pg_table_size(c.oid) AS rows FROM pg_class c
  WHERE c.relnamespace = p.namespace AND c.relkind = 'r' AND c.relname = ANY (p.own)
  ORDER BY pg_indexes_size(c.oid) DESC LIMIT 1
) t ON true`,
		"run REINDEX INDEX CONCURRENTLY on the table's indexes: they grew while dead rows could not be removed, " +
			"and don't shrink by themselves"},
	{"inbox", params + `
SELECT CASE WHEN n > 10000 THEN 'more than 10000 rows wait to be merged'
    ELSE format('%s rows wait to be merged', n) END,
  CASE WHEN n > 10000 THEN 2 ELSE 0 END
FROM p, (SELECT count(*) AS n FROM (SELECT FROM {schema}.inbox LIMIT 10001) i) c`,
		"check that servers run for all queues: their turns merge the rows that transactions have pushed"},
	{recordsCheck, params + `
SELECT coalesce(left(l.text, 400), format('all %s shards have their rows', l.shards)),
  CASE WHEN l.text IS NULL THEN 0 ELSE 3 END
FROM p, (
  SELECT coalesce(sum(m.shards), 0) AS shards,
    string_agg(
      format('%s lacks the rows of %s of its %s shards', m.name, m.lost, m.shards), '; ' ORDER BY m.name
    ) FILTER (WHERE m.lost > 0) AS text
  FROM (
    SELECT q.name, q.shards, q.shards - count(s.id) AS lost
    FROM {schema}.queues q LEFT JOIN {schema}.shards s ON s.queue = q.name
    GROUP BY q.id
  ) m
) l`,
		"insert the rows as docs/operations/postgres-dba.md shows, under lost rows, " +
			"and run skein repair recount with the queue's name: " +
			"until then no server works these shards, and the queue has no statistics"},
}

// params is the common beginning of the statements of checks.
const params = `WITH p AS MATERIALIZED (
  SELECT (SELECT relnamespace FROM pg_class WHERE oid = $1::text::regclass) AS namespace,
    $2::text[] || $3::text[] AS own
) `

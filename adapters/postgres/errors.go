package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// status is a schema function's reason for a refusal. Unless its comment states otherwise, the
// function has then written nothing.
type status string

const (
	statusOK             status = "ok"
	statusRepeated       status = "repeated" // a turn that had been carried out before
	statusUnknownQueue   status = "unknown_queue"
	statusNoSuchShard    status = "no_such_shard"
	statusLayoutMismatch status = "layout_mismatch"
	statusByRule         status = "by_rule" // a push to a queue with a merge rule: push_by_rule pushes to it
	statusLeaseLost      status = "lease_lost"
	statusStaleTurn      status = "stale_turn"
	statusStaleAttempt   status = "stale_attempt"
	statusLeaseHeld      status = "lease_held"
	statusNotEmpty       status = "not_empty"
	statusConflict       status = "conflict" // of settings
	statusFull           status = "full"     // a list of tracked ids
	statusNotPaused      status = "not_paused"
	statusNotUTF8        status = "not_utf8"
	statusSearchPath     status = "search_path"
)

// err returns the port's error for a refused call on a shard, or nil if the call was accepted.
// Errors that name more than the shard are made by the callers of err.
func (s status) err(shard core.Shard) error {
	switch s {
	case statusOK, statusRepeated:
		return nil
	case statusUnknownQueue:
		return storekit.UnknownQueue(shard.Queue)
	case statusNoSuchShard:
		return storekit.NoSuchShard(shard)
	case statusNotPaused:
		return storekit.NotPaused(shard)
	case statusNotUTF8:
		return errClientEncoding
	case statusSearchPath:
		return errSearchPath
	}
	return fmt.Errorf("postgres: the schema returned the status %q for shard %v, "+
		"which this program does not support; update the program",
		string(s), shard)
}

// layoutErr is err for a call that carries the queue's layout.
func (s status) layoutErr(shard core.Shard, asked storekit.Layout) error {
	if s == statusLayoutMismatch {
		return storekit.LayoutMismatch(shard.Queue, asked, storekit.Layout{})
	}
	return s.err(shard)
}

// leaseErr is err for a call under a lease.
func (s status) leaseErr(l ports.Lease) error {
	if s == statusLeaseLost {
		return storekit.LeaseLost(l)
	}
	return s.err(l.Shard)
}

// translate returns the port's error for an error of the driver. An error of unknown outcome keeps
// its text. Its type is hidden, but [ports.FailureOf] still reports whether the server was reached.
func translate(ctx context.Context, err error) error {
	if err == nil || storekit.HasKnownOutcome(err) {
		return err
	}
	if interrupted := storekit.Interrupted(ctx, err); interrupted != nil {
		return fmt.Errorf("postgres: %w", interrupted)
	}

	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return storekit.UnknownOutcome("postgres", err)
	}
	if remedy := remedyFor(pg.Code); remedy != "" {
		return fmt.Errorf("postgres: %w: %s (SQLSTATE %s); %s", ports.ErrUnusable, pg.Message, pg.Code, remedy)
	}

	switch {
	case lacksRoom(pg.Code, pg.Message) && pg.SeverityUnlocalized == "PANIC":
		// Work that was committed just before may be on disk.
		return fmt.Errorf(
			"postgres: the server has stopped: %s (SQLSTATE %s); free disk space, without which it can't start",
			pg.Message, pg.Code)
	case lacksRoom(pg.Code, pg.Message):
		return fmt.Errorf("postgres: %w: %s (SQLSTATE %s); %s", ports.ErrFull, pg.Message, pg.Code, giveRoom(pg.Code))
	case pg.Code == notText:
		return fmt.Errorf("postgres: %w: %s (SQLSTATE %s)", ports.ErrInvalidRequest, pg.Message, pg.Code)
	case pg.Code == queryCanceled:
		return fmt.Errorf("postgres: %s (SQLSTATE %s); %s", pg.Message, pg.Code, giveTime)
	case pg.Code == readOnlyServer:
		return fmt.Errorf("postgres: %w: %s (SQLSTATE %s); %s", ports.ErrReadOnly, pg.Message, pg.Code, findPrimary)
	}
	return fmt.Errorf("postgres: %s (SQLSTATE %s)", pg.Message, pg.Code)
}

// notText is a parameter with bytes that no text can have: the server has run nothing.
const notText = "22021"

// findPrimary is the advice on how a pool finds the server that writes.
const findPrimary = "connect to the primary: name all servers in the pool's URL " +
	"with target_session_attrs=read-write; " +
	"if this is the primary, turn default_transaction_read_only off for the role or the database"

// giveTime is the advice for a statement that was cancelled. Some drivers also cancel it when the
// context of a call ends.
const giveTime = "if neither an operator nor the call's context cancelled the statement, " +
	"raise statement_timeout for the role"

const tooManyConnections = "53300"

const diskFull = "53100"

// giveRoom returns the remedy for a server without room. Draining is no remedy for a full disk: a
// turn copies the jobs that it claims before it deletes any. A vacuum frees the space of deleted
// rows, and it writes as well.
func giveRoom(code string) string {
	if code == diskFull || code == internalError {
		return "give the server more disk: until then no queue shrinks, because a turn writes before it deletes"
	}
	return "give the server more memory or other resources"
}

// lacksRoom reports whether an error is of a server without disk or memory for a statement or a
// session. A server that has started on a full disk refuses each session that can't write its cache
// of the catalog, by an error without a code of its own.
func lacksRoom(code, message string) bool {
	if code == internalError {
		return strings.Contains(message, "could not write init file")
	}
	return strings.HasPrefix(code, "53") && code != tooManyConnections
}

// internalError is the code of errors that have no code of their own.
const internalError = "XX000"

// remedyFor returns, by SQLSTATE, the advice for an error that waiting does not end. It returns ""
// for any other error.
func remedyFor(code string) string {
	switch code {
	case "28P01", "28000":
		return "correct the role and the password with which the pool connects, or admit that role in pg_hba.conf"
	case "3D000":
		return "create the database, or correct its name in the pool's configuration"
	case noRight:
		return "grant the role the rights that docs/operations/postgres.md lists"
	case undefinedTable, undefinedSchema, undefinedFunction:
		return `create the schema with "skein migrate up" or postgres.Migrate, or correct its name`
	case "53400": // configuration limit exceeded
		return "raise the limit that this names, such as temp_file_limit, for the role"
	case "26000", "42P05": // a prepared statement is absent, or is another one
		return "a pooler spreads this program's connection over several of the server: " +
			"add default_query_exec_mode=cache_describe " +
			"to the pool's URL, or enable prepared statements in the pooler (max_prepared_statements of PgBouncer)"
	}
	return ""
}

// noRight is the server's error for a role without a right.
const noRight = "42501"

// The server's errors for a schema that is absent, or is not the store's.
const (
	undefinedTable    = "42P01"
	undefinedFunction = "42883"
	undefinedSchema   = "3F000"
)

// sqlState returns the code of the server's error, or "" if the error is not the server's.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return ""
	}
	return pg.Code
}

func class(e *pgconn.PgError) string { return e.Code[:min(2, len(e.Code))] }

package postgres

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/ports/storekit"
)

// retry is the condition under which a call may be repeated after a failure.
type retry int

const (
	// ifRolledBack: only if the server reports, or the driver knows, that nothing was committed.
	ifRolledBack retry = 0
	// idempotent: also after an unknown outcome.
	idempotent retry = 1
	// operated, combined with one of the others: not at a read-only server, once a new connection has
	// met it too. Servers and producers wait for a failover to end; an operator gets the error at
	// once.
	operated retry = 2
)

// A call is repeated for repeatedFor. The wait between two tries doubles, from firstBackoff up to
// lastBackoff.
const (
	repeatedFor  = 5 * time.Second
	firstBackoff = 2 * time.Millisecond
	lastBackoff  = 250 * time.Millisecond
)

// query runs one statement in a transaction of its own, repeats it as the mode allows, and calls
// read with its rows, anew at each try. The template's {schema} becomes the store's. The error is
// the port's.
func (s *Store) query(ctx context.Context, mode retry, read func(pgx.Rows) error, template string, args ...any) error {
	return s.call(ctx, mode, func(ctx context.Context) error { return s.send(ctx, read, template, args...) })
}

// send sends one statement once, and calls read with its rows.
func (s *Store) send(ctx context.Context, read func(pgx.Rows) error, template string, args ...any) error {
	rows, err := s.current().Query(ctx, s.sql(template), args...)
	if err != nil {
		return err
	}
	defer rows.Close()

	conn := rows.Conn().PgConn()
	if err = read(rows); err == nil {
		rows.Close()
		err = rows.Err()
	}
	s.release(ctx, conn, err)
	return err
}

// queryOne is query for a statement that returns one row, which it reads.
func (s *Store) queryOne(ctx context.Context, mode retry, into []any, template string, args ...any) error {
	return s.query(ctx, mode, func(rows pgx.Rows) error {
		if !rows.Next() {
			return cmp.Or(rows.Err(), errNoRow)
		}
		return rows.Scan(into...)
	}, template, args...)
}

// call calls do once the schema is known to be usable, and repeats it as the mode allows. The
// error is the port's.
func (s *Store) call(ctx context.Context, mode retry, do func(context.Context) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return attempt(ctx, &s.pooled, mode, do)
}

// attempt is call without the check of the schema. After a call that met a read-only server, as
// the primary is once it becomes a standby, the pool makes its connections anew and finds the new
// primary.
func attempt(ctx context.Context, pool *pooled, mode retry, do func(context.Context) error) error {
	began, anew := time.Now(), false
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		err := do(ctx)
		pool.note(ctx, began, err)
		if onlyReads(err) {
			if anew && mode&operated != 0 {
				return errReadOnlyHere
			}
			anew = !pool.reset().Before(began)
		}

		if err == nil || !repeatable(ctx, err, mode) || time.Since(began) > repeatedFor || !sleep(ctx, wait) {
			return translate(ctx, err)
		}
	}
}

// once calls do once. It calls do again only if the pool's connection had been cut, because that
// error reveals nothing about the server.
func once(ctx context.Context, do func() error) error {
	err := do()
	for wait := firstBackoff; lostSession(err) && wait <= lastBackoff && sleep(ctx, wait); wait *= 2 {
		err = do()
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// rolledBack reports whether an error of the server means that nothing was committed and a repeat
// may succeed: serialization failure, deadlock, lock not available, no connection left, a
// read-only server.
func rolledBack(e *pgconn.PgError) bool {
	switch e.Code {
	case "40001", "40P01", "55P03", tooManyConnections, readOnlyServer:
		return true
	}
	return sessionEnded(e)
}

// repeatable reports whether a failed call may be repeated.
func repeatable(ctx context.Context, err error, mode retry) bool {
	if storekit.HasKnownOutcome(err) || storekit.Interrupted(ctx, err) != nil {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return rolledBack(pg) || mode&idempotent != 0 && class(pg) == "08"
	}
	var connecting *pgconn.ConnectError
	return pgconn.SafeToRetry(err) || errors.As(err, &connecting) || mode&idempotent != 0 && connectionLost(err)
}

// connectionLost reports whether the connection broke.
func connectionLost(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network)
}

// lostSession reports whether an established connection was cut.
func lostSession(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return sessionEnded(pg)
	}
	var connecting *pgconn.ConnectError
	return !errors.As(err, &connecting) && connectionLost(err)
}

// onlyReads reports whether a server refused to write at all.
func onlyReads(err error) bool { return sqlState(err) == readOnlyServer }

// sessionEnded reports whether the server ended the session by an operator's or its own decision.
// It reports that only while nothing is being committed.
func sessionEnded(e *pgconn.PgError) bool {
	return class(e) == "57" && e.Code != queryCanceled
}

const (
	queryCanceled  = "57014"
	readOnlyServer = "25006"
)

var errNoRow = errors.New("the reply has no row")

// eachRow calls scan for one row after another.
func eachRow(rows pgx.Rows, scan func() error) error {
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return nil
}

// noRows is the read function for statements that return no rows.
func noRows(pgx.Rows) error { return nil }

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// status is how a function of ours says what it refused; it has then written
// nothing, unless its header says otherwise.
type status int16

const (
	accepted status = iota
	unknownQueue
	noSuchShard
	layoutMismatch
	leaseLost
	staleTurn
	staleAttempt
	leaseHeld
	notEmpty
)

// err is the port's error for a refused call on a shard; nil if it was accepted.
func (s status) err(shard core.Shard) error {
	switch s {
	case accepted:
		return nil
	case unknownQueue:
		return fmt.Errorf("%w: %q", ports.ErrUnknownQueue, shard.Queue)
	case noSuchShard:
		return fmt.Errorf("%w: %q has no shard %d", ports.ErrInvalidRequest, shard.Queue, shard.Index)
	case layoutMismatch:
		return fmt.Errorf("%w: %q; declare it again", ports.ErrShardCountMismatch, shard.Queue)
	case leaseLost:
		return fmt.Errorf("%w: %v; acquire it again", ports.ErrLeaseLost, shard)
	case staleTurn:
		return fmt.Errorf("%w: %v has made later ones; drop it", ports.ErrStaleTurn, shard)
	case staleAttempt:
		return fmt.Errorf("%w: %v; use a larger one", ports.ErrStaleAttempt, shard)
	}
	return fmt.Errorf("postgres: status %d of shard %v, which this version does not know", s, shard)
}

// translate makes the driver's error one of the port's. What is unknown stays
// so, and loses its type.
func translate(err error) error {
	if err == nil || owned(err) {
		return err
	}
	if ctx := ending(err); ctx != nil {
		return fmt.Errorf("postgres: the call was given up: %w", ctx)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("postgres: %v", err)
	}
	if cure := cureOf(pg.Code); cure != "" {
		return fmt.Errorf("postgres: %w: %s (SQLSTATE %s); %s", ports.ErrUnusable, pg.Message, pg.Code, cure)
	}
	switch class(pg) {
	case "53": // insufficient resources
		if pg.Code != tooManyConnections {
			return fmt.Errorf("%w: %s; let servers drain the queue, or give the database room", ports.ErrFull, pg.Message)
		}
	}
	return fmt.Errorf("postgres: %s (SQLSTATE %s)", pg.Message, pg.Code)
}

const tooManyConnections = "53300"

// cureOf is what to do about an error that comes again however long one waits; empty for
// all others.
func cureOf(code string) string {
	switch code {
	case "28P01", "28000":
		return "correct the role and the password with which the pool connects, or let that role in by pg_hba.conf"
	case "3D000":
		return "create the database, or correct its name in the pool's configuration"
	case "42501":
		return "grant the role the rights that docs/postgres.md lists"
	case undefinedTable, undefinedSchema, undefinedFunction:
		return "make the schema with postgres.Migrate, or correct Options.Schema"
	}
	return ""
}

// What the server says of a schema that is not there, or is not ours.
const (
	undefinedTable    = "42P01"
	undefinedFunction = "42883"
	undefinedSchema   = "3F000"
)

func class(e *pgconn.PgError) string { return e.Code[:min(2, len(e.Code))] }

// owned reports whether an error is the port's already.
func owned(err error) bool {
	for _, sentinel := range []error{
		ports.ErrUnknownQueue, ports.ErrShardCountMismatch, ports.ErrQueueMismatch, ports.ErrLeaseHeld, ports.ErrLeaseLost,
		ports.ErrStaleTurn, ports.ErrStaleAttempt, ports.ErrInvalidRequest, ports.ErrFull, ports.ErrUnusable, ports.ErrNotEmpty,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// ending is the context's error that another wraps, if it does.
func ending(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return nil
}

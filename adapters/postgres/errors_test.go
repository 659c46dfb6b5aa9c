package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func pgError(code, severity string) error {
	return fmt.Errorf("wrapped: %w", &pgconn.PgError{
		Code:                code,
		Severity:            severity,
		SeverityUnlocalized: severity,
		Message:             "why",
	})
}

func TestTranslate(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error // nil is an unknown outcome
	}{
		{"disk full", pgError("53100", "ERROR"), ports.ErrFull},
		{"a server that stops since its WAL finds no disk", pgError("53100", "PANIC"), nil},
		{"out of memory", pgError("53200", "ERROR"), ports.ErrFull},
		{
			"no disk for a session's cache",
			&pgconn.PgError{Code: "XX000", Message: "could not write init file"},
			ports.ErrFull,
		},
		{"another internal error", pgError("XX000", "ERROR"), nil},
		{"a limit of the role's", pgError("53400", "ERROR"), ports.ErrUnusable},
		{"too many connections", pgError("53300", "FATAL"), nil},
		{"a server that only reads", pgError("25006", "ERROR"), ports.ErrReadOnly},
		{"a timeout of the role's", pgError("57014", "ERROR"), nil},
		{"serialization failure", pgError("40001", "ERROR"), nil},
		{"wrong password", pgError("28P01", "FATAL"), ports.ErrUnusable},
		{"refused role", pgError("28000", "FATAL"), ports.ErrUnusable},
		{"no rights", pgError("42501", "ERROR"), ports.ErrUnusable},
		{"no database", pgError("3D000", "FATAL"), ports.ErrUnusable},
		{"no function of ours", pgError("42883", "ERROR"), ports.ErrUnusable},
		{"a statement prepared on another connection", pgError("26000", "ERROR"), ports.ErrUnusable},
		{"a statement prepared by another process", pgError("42P05", "ERROR"), ports.ErrUnusable},
		{"a server that starts", pgError("57P03", "FATAL"), nil},
		{"lost connection", io.ErrUnexpectedEOF, nil},
		{"the port's own", fmt.Errorf("x: %w", ports.ErrLeaseLost), ports.ErrLeaseLost},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := translate(t.Context(), tt.err)
			if tt.want != nil && !errors.Is(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}

			var pg *pgconn.PgError
			if errors.As(got, &pg) || tt.want == nil && storekit.HasKnownOutcome(got) {
				t.Errorf("got %v, want an error of unknown outcome without the driver's type", got)
			}
		})
	}

	if translate(t.Context(), nil) != nil {
		t.Error("no error became one")
	}
}

func TestRepeatable(t *testing.T) {
	tests := []struct {
		name                     string
		err                      error
		ifRolledBack, idempotent bool
	}{
		{"serialization failure", pgError("40001", "ERROR"), true, true},
		{"deadlock", pgError("40P01", "ERROR"), true, true},
		{"lock timeout", pgError("55P03", "ERROR"), true, true},
		{"session ended by an operator", pgError("57P01", "FATAL"), true, true},
		{"cancelled statement", pgError("57014", "ERROR"), false, false},
		{"connection lost in the middle", io.ErrUnexpectedEOF, false, true},
		{"disk full", pgError("53100", "ERROR"), false, false},
		{"refused by us", ports.ErrStaleTurn, false, false},
		{"too many connections", pgError("53300", "FATAL"), true, true},
		{"never connected", &pgconn.ConnectError{Config: &pgconn.Config{}}, true, true},
		{"arguments that can't be sent", errors.New("failed to encode"), false, false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := repeatable(t.Context(), tt.err, ifRolledBack); got != tt.ifRolledBack {
				t.Errorf("ifRolledBack: got %t", got)
			}
			if got := repeatable(t.Context(), tt.err, idempotent); got != tt.idempotent {
				t.Errorf("idempotent: got %t", got)
			}
		})
	}
}

func TestStatusIsTheSentinelOfThePort(t *testing.T) {
	shard := core.Shard{Queue: "orders", Index: 3}
	turn := &ports.TurnRequest{Lease: ports.Lease{Shard: shard, Owner: "n1", Token: 7}, Number: 3}
	layout := storekit.Layout{Shards: 4, Generation: 1}

	for _, tt := range []struct{ got, want error }{
		{statusUnknownQueue.err(shard), ports.ErrUnknownQueue},
		{statusNoSuchShard.err(shard), ports.ErrInvalidRequest},
		{statusLayoutMismatch.layoutErr(shard, layout), ports.ErrShardCountMismatch},
		{statusNotPaused.layoutErr(shard, layout), ports.ErrNotPaused},
		{statusLeaseLost.leaseErr(turn.Lease), ports.ErrLeaseLost},
		{turnError(&header{Status: statusLeaseLost, LeaseToken: 7, Last: 1}, turn), ports.ErrLeaseLost},
		{turnError(&header{Status: statusLeaseLost, LeaseToken: 8}, turn), ports.ErrLeaseLost},
		{turnError(&header{Status: statusStaleTurn, LeaseToken: 7, Last: 4}, turn), ports.ErrStaleTurn},
		{acquireError(&header{Status: statusStaleAttempt}, &ports.AcquireRequest{Shard: shard}), ports.ErrStaleAttempt},
		{acquireError(&header{Status: statusLeaseHeld}, &ports.AcquireRequest{Shard: shard}), ports.ErrLeaseHeld},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}

	if err := statusOK.err(shard); err != nil {
		t.Errorf("statusOK is %v", err)
	}
}

// A connection that takes too long is not the caller's deadline, and the error contains its
// address.
func TestATimeoutOfAConnectionNamesItsAddress(t *testing.T) {
	config, err := pgxpool.ParseConfig("postgres://127.0.0.1:1/shop?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{Deadline: time.Now().Add(-time.Second)}).DialContext(ctx, network, addr)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	err = translate(t.Context(), pool.Ping(t.Context()))
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v; want an error that names 127.0.0.1:1 and is no deadline of the caller's", err)
	}
	if err != nil && ports.FailureOf(err) != ports.FailureUnreachable {
		t.Errorf("%v is a failure of the kind %v, want %v", err, ports.FailureOf(err), ports.FailureUnreachable)
	}
}

// Only a full disk keeps servers from handling jobs, so only its error reports that.
func TestTheRemedyForAServerWithoutRoom(t *testing.T) {
	for code, want := range map[string]bool{"53100": true, "53200": false, "53000": false} {
		if err := translate(
			t.Context(), pgError(code, "ERROR"),
		); strings.Contains(err.Error(), "no queue shrinks") != want {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// A server that has no room for a session has answered, and refuses pushes. That its disk is full
// is the reason, and not that it does not run.
func TestAServerWithoutRoomForASessionHasAnswered(t *testing.T) {
	for name, err := range map[string]error{
		"a session's cache": &pgconn.PgError{Code: "XX000", Message: "could not write init file"},
		"a statement":       pgError("53100", "ERROR"),
		"the WAL":           pgError("53100", "PANIC"),
	} {
		rows, failed := unanswered(t.Context(), err)
		if failed != nil || len(rows) != 2 || rows[0].Status != ports.CheckOK {
			t.Errorf("%s: %+v, %v; want a row that it answers", name, rows, failed)
			continue
		}
		if full := rows[1]; full.Name != "writes" || full.Status != ports.CheckFail || !full.Refuses ||
			!strings.Contains(full.Advice, "more disk") {
			t.Errorf("%s: %+v, want that it needs disk", name, full)
		}
	}

	if rows, failed := unanswered(t.Context(), pgError("53400", "ERROR")); failed == nil {
		t.Errorf("a limit of the role's gives %+v, want an error", rows)
	}
}

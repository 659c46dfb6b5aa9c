package storekit_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Operators read the texts: each names its subject and ends with the cure, except for unknown
// queues, whose sentinel has it.
func TestErrorsNameTheirSentinelAndWhatToDo(t *testing.T) {
	shard := core.Shard{Queue: "orders", Index: 3}
	lease := ports.Lease{Shard: shard, Owner: "n1", Token: 42}
	turn := &ports.TurnRequest{Lease: lease, Number: 7}
	three := storekit.Layout{Shards: 3, Generation: 1}

	tests := []struct {
		err  error
		is   error
		text string
	}{
		{storekit.UnknownQueue("orders"), ports.ErrUnknownQueue, `"orders"`},
		{storekit.UnknownNode("n1"), ports.ErrUnknownNode, `"n1"`},
		{
			storekit.NoSuchShard(shard),
			ports.ErrInvalidRequest,
			`"orders" has no shard 3; its shards are numbered from 0`,
		},
		{storekit.LayoutMismatch("orders", three, storekit.Layout{Shards: 5, Generation: 2}),
			ports.ErrShardCountMismatch,
			`"orders" has 5 shards in generation 2, not 3 in 1; declare it again`},
		{storekit.LayoutMismatch("orders", three, storekit.Layout{}), ports.ErrShardCountMismatch,
			`"orders" does not have 3 shards in generation 1; declare it again`},
		{storekit.CheckDeclared(ports.DeclareRequest{Queue: "orders", Shards: 3}, ports.Queue{Shards: 5}),
			ports.ErrShardCountMismatch,
			`"orders" has 5 shards, not 3; its count is permanent`},
		{storekit.CheckDeclared(ports.DeclareRequest{Queue: "orders", Shards: 3},
			ports.Queue{Shards: 3, IndexIDs: true}), ports.ErrQueueMismatch,
			`"orders" was declared with an index of ids (IndexIDs), which is permanent`},
		{
			storekit.CheckDeclared(ports.DeclareRequest{Queue: "orders", Shards: 3},
				ports.Queue{Shards: 3, Generation: 2, Paused: true}),
			nil,
			"",
		},
		{storekit.StaleAttempt(&ports.AcquireRequest{Shard: shard, Owner: "n1", Attempt: 2}), ports.ErrStaleAttempt,
			`attempt 2 at orders/3 by "n1"; use a larger one`},
		{storekit.StalePermit(&ports.PermitRequest{Queue: "orders", Owner: "n1", Attempt: 2}), ports.ErrStaleAttempt,
			`call 2 for permits of "orders" by "n1"; use a larger number`},
		{
			storekit.LeaseLost(lease),
			ports.ErrLeaseLost,
			`orders/3 is not leased to "n1" with token 42; acquire it again`,
		},
		{
			storekit.TurnsLost(turn, 5),
			ports.ErrLeaseLost,
			`turn 7 of orders/3, but the store's last turn is 5; acquire the shard again`,
		},
		{storekit.StaleTurn(turn, 9), ports.ErrStaleTurn, `turn 7 of orders/3 came after turn 9; drop the late call`},
		{
			storekit.NoOtherPayload(shard, &core.PayloadSettlement{ID: "a", Position: 1}),
			ports.ErrInvalidRequest,
			`settle payload 1 of the claimed job "a" of orders/3: it has no such payload, or no other one; ` +
				`settle the last payload of a job with Settle`,
		},
		{
			storekit.NotClaimed(shard, 1, 2),
			ports.ErrLeaseLost,
			`only 1 of 2 jobs of orders/3 are still claimed under the receipts of their settlements; roll back: ` +
				`another server has taken over the others, or the transaction is not on the store of the jobs`,
		},
		{
			storekit.TooManyTracked("orders"),
			ports.ErrTooManyTracked,
			`queue "orders" has 1000, which is the maximum; untrack one of them first`,
		},
		{
			storekit.NotPaused(shard),
			ports.ErrNotPaused,
			`orders/3; pause the queue, even if it is shown as paused, ` +
				`and resume it when everything has been moved into it`,
		},
		{
			storekit.NotEmpty(shard),
			ports.ErrNotEmpty,
			`orders/3 holds jobs, dead letters, schedules or unreadable records; ` +
				`handle or delete jobs, revive or purge dead letters, remove schedules, discard unreadable records`,
		},
		{
			storekit.Full("disk full"),
			ports.ErrFull,
			`disk full; let servers work off the queue, or give the store more room`,
		},
		{
			jobsOf(ports.RetryingByCount+1, ports.Queue{}),
			ports.ErrInvalidRequest,
			`jobs can't be sorted by SortBy(5); use a constant of ports.SortBy`,
		},
		{
			jobsOf(ports.ByID, ports.Queue{Name: "orders"}),
			ports.ErrQueueMismatch,
			`"orders" was declared without an index of ids, which is permanent, so its jobs can't be listed by id; ` +
				`list its retrying jobs by id, or look up a single id`,
		},
		{jobsOf(ports.ByID, ports.Queue{IndexIDs: true}), nil, ""},
		{jobsOf(ports.RetryingByID, ports.Queue{}), nil, ""},
	}

	for _, tt := range tests {
		if tt.is == nil {
			if tt.err != nil {
				t.Errorf("%v, want no error", tt.err)
			}
			continue
		}

		if !errors.Is(tt.err, tt.is) || !strings.HasSuffix(tt.err.Error(), tt.text) {
			t.Errorf("%v, want a %q that ends with %q", tt.err, tt.is, tt.text)
		}
	}
}

// sentinels returns the names of the exported errors that a file declares.
func sentinels(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, decl := range parsed.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}

	slices.Sort(names)
	return names
}

// The lists here are those of the sources, so that a new sentinel can't be forgotten.
func TestSentinelsHaveAKnownOutcome(t *testing.T) {
	for file, known := range map[string]map[string]error{
		"../errors.go": {
			"ErrUnknownQueue":       ports.ErrUnknownQueue,
			"ErrUnknownNode":        ports.ErrUnknownNode,
			"ErrShardCountMismatch": ports.ErrShardCountMismatch,
			"ErrQueueMismatch":      ports.ErrQueueMismatch,
			"ErrLeaseHeld":          &ports.HeldError{},
			"ErrLeaseLost":          ports.ErrLeaseLost,
			"ErrStaleTurn":          ports.ErrStaleTurn,
			"ErrStaleAttempt":       ports.ErrStaleAttempt,
			"ErrInvalidRequest":     ports.ErrInvalidRequest,
			"ErrUnusable":           ports.ErrUnusable,
			"ErrNotEmpty":           ports.ErrNotEmpty,
			"ErrFull":               ports.ErrFull,
			"ErrNotBegun":           ports.ErrNotBegun,
			"ErrNotPaused":          ports.ErrNotPaused,
			"ErrTooManyTracked":     ports.ErrTooManyTracked,
			"ErrSettingsConflict":   ports.ErrSettingsConflict,
			"ErrReadOnly":           ports.ErrReadOnly,
		},
		"../../core/validate.go": {
			"ErrInvalidID":      core.ErrInvalidID,
			"ErrInvalidPayload": core.ErrInvalidPayload,
			"ErrInvalidScore":   core.ErrInvalidScore,
			"ErrInvalidTag":     core.ErrInvalidTag,
			"ErrInvalidTime":    core.ErrInvalidTime,
			"ErrInvalidRule":    core.ErrInvalidRule,
			"ErrInvalidOptions": core.ErrInvalidOptions,
			"ErrInvalidQueue":   core.ErrInvalidQueue,
		},
	} {
		for _, name := range sentinels(t, file) {
			if err := known[name]; err == nil || !storekit.HasKnownOutcome(fmt.Errorf("a store: %w", err)) {
				t.Errorf("%s of %s is missing here or in HasKnownOutcome", name, file)
			}
		}
	}

	for _, err := range []error{nil, errors.New("broken pipe"), context.Canceled} {
		if storekit.HasKnownOutcome(err) {
			t.Errorf("the outcome of %v is known", err)
		}
	}
}

// Only the end of the caller's own context interrupts a call. The timeouts of a driver, such as
// that of a connection, wrap the same errors.
func TestInterruptedMeansTheCallersContext(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, done := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer done()

	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want error
	}{
		{"cancelled", cancelled, fmt.Errorf("driver: %w", context.Canceled), context.Canceled},
		{"late", late, fmt.Errorf("driver: %w", context.DeadlineExceeded), context.DeadlineExceeded},
		{"a driver's own timeout", t.Context(), fmt.Errorf("dial 10.0.0.1: %w", context.DeadlineExceeded), nil},
		{"another error", cancelled, errors.New("broken pipe"), nil},
		{"none", cancelled, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := storekit.Interrupted(tt.ctx, tt.err)
			if !errors.Is(err, tt.want) || err != nil && err.Error() != "the call was interrupted: "+tt.want.Error() {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func jobsOf(by ports.SortBy, q ports.Queue) error {
	_, err := storekit.ShardsOfJobs(&ports.JobsRequest{SortBy: by}, q)
	return err
}

// A driver's error loses its type, but FailureOf still reports whether the server was reached.
func TestUnknownOutcomesHideTheirType(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	slow := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, tt := range []struct {
		err  error
		want ports.FailureKind
	}{
		{refused, ports.FailureUnreachable}, {io.EOF, ports.FailureUnreachable}, {slow, ports.FailureUnknown},
		{errors.New("boom"), ports.FailureUnknown}, {context.DeadlineExceeded, ports.FailureUnknown},
	} {
		err := storekit.UnknownOutcome("redis", tt.err)
		if got := ports.FailureOf(err); got != tt.want || err.Error() != "redis: "+tt.err.Error() ||
			errors.Is(err, tt.err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of %v: %v, a failure of the kind %v; want %v", tt.err, err, got, tt.want)
		}
	}
}

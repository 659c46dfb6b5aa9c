package skein

import (
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

// Errors that a caller can act on. Each is returned wrapped, with the details; test with
// [errors.Is]. [ErrLeaseLost], [ErrShutdown], [ErrCancelled] and [ErrTimeout] are also causes of a
// handler's context: [context.Cause] returns one of them when the context ends before the handler
// has returned.
var (
	// ErrInvalidQueue reports a queue with an invalid name or invalid options. Every push to such a
	// queue returns it, and so does Run.
	ErrInvalidQueue = core.ErrInvalidQueue
	// ErrInvalidOptions reports a server, client, handler or push with invalid options, such as a
	// nil function.
	ErrInvalidOptions = core.ErrInvalidOptions
	// ErrSplit reports a Splitter that can't assign these shards to these lanes. Run returns it.
	ErrSplit = core.ErrSplit
	// ErrInvalidID, ErrInvalidPayload, ErrInvalidScore, ErrInvalidTag and ErrInvalidTime report a
	// push outside the limits of docs/rules.md. Nothing of such a push is stored.
	ErrInvalidID      = core.ErrInvalidID
	ErrInvalidPayload = core.ErrInvalidPayload
	ErrInvalidScore   = core.ErrInvalidScore
	ErrInvalidTag     = core.ErrInvalidTag
	ErrInvalidTime    = core.ErrInvalidTime
	// ErrInvalidSchedule reports a schedule outside the limits of docs/rules.md, such as one whose
	// spec can't be read. Nothing is stored.
	ErrInvalidSchedule = core.ErrInvalidSchedule
	// ErrShardCountMismatch reports a queue that exists in the store with another shard count. The
	// count is permanent; docs/guide/resharding.md describes how to move to another one.
	ErrShardCountMismatch = ports.ErrShardCountMismatch
	// ErrQueueMismatch reports a queue that exists in the store with another IndexIDs or Merge.
	ErrQueueMismatch = ports.ErrQueueMismatch
	// ErrUnknownQueue reports a queue that no push and no server has declared in this store, or that
	// was forgotten. [Wait] returns it.
	ErrUnknownQueue = ports.ErrUnknownQueue
	// ErrFull reports a store without room. Nothing was stored. Handling jobs makes room on Redis;
	// a full disk of Postgres needs an operator.
	ErrFull = ports.ErrFull
	// ErrNotBegun reports a push whose context had ended before the push began. Nothing was stored.
	ErrNotBegun = ports.ErrNotBegun
	// ErrUnusable reports a store that answers but can't be used as it is configured. Waiting
	// doesn't help. Examples are a wrong password, missing rights, no schema, no such database, a
	// policy that evicts keys, and an invalid prefix. Run returns it if the store reports it while
	// the server starts.
	ErrUnusable = ports.ErrUnusable
	// ErrLeaseHeld reports a shard that another server has leased. RunDue returns it.
	ErrLeaseHeld = ports.ErrLeaseHeld
	// ErrNotCommitted is the failure of a job whose handler called SettleIn and returned nil
	// without committing the transaction.
	ErrNotCommitted = execution.ErrNotCommitted

	// ErrLeaseLost reports that another server may have taken the shard over. The handler's result
	// is discarded, and the jobs of its call run again. In a queue with MaxRunning it also reports
	// that the server has lost its permits. The result of such a handler counts as long as the
	// server still has the shard's lease.
	ErrLeaseLost = ports.ErrLeaseLost
	// ErrShutdown reports that the server's ShutdownTimeout is over. If the handler returns the
	// context's error, its job is requeued untouched.
	ErrShutdown = execution.ErrShutdown
	// ErrCancelled reports that an operator cancelled the job. The job ends as the operator chose,
	// whatever the handler returns.
	ErrCancelled = execution.ErrCancelled
	// ErrTimeout reports that the queue's Timeout is over.
	ErrTimeout = errors.New("handler timeout")
)

// PushError is the error of a push that stored only some of its entries, or whose outcome is
// unknown. Its Entries are the positions of the entries that are not known to be stored. Pushing
// those again is safe.
type PushError = ports.PushError

// PanicError is the failure of a handler that panicked. Its field Value, of type any, is what was
// passed to panic, and Stack, a []byte, is the trace as [runtime/debug.Stack] formats it. Unwrap
// returns Value if that is an error. The method Function returns the name of the function that
// panicked.
type PanicError = guard.PanicError

package skein

import (
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// The errors that a caller can act on. Each comes wrapped with what is wrong; test
// with [errors.Is]. The last four are causes of a handler's context, from
// [context.Cause], when it ends before the handler has returned.
var (
	// ErrInvalidQueue is a queue with an invalid name or invalid options, from every
	// push to it and from Run.
	ErrInvalidQueue = core.ErrInvalidQueue
	// ErrInvalidOptions is a server, a client, a handler or a push that is given
	// something it can't use, such as nil.
	ErrInvalidOptions = core.ErrInvalidOptions
	// ErrSplit is a Splitter that can't deal these shards to these lanes, from Run.
	ErrSplit = core.ErrSplit
	// ErrInvalidID, ErrInvalidPayload, ErrInvalidScore and ErrInvalidTime are
	// pushes that are outside the limits of docs/rules.md. Nothing of such a push is
	// stored.
	ErrInvalidID      = core.ErrInvalidID
	ErrInvalidPayload = core.ErrInvalidPayload
	ErrInvalidScore   = core.ErrInvalidScore
	ErrInvalidTime    = core.ErrInvalidTime
	// ErrShardCountMismatch is a queue that the store has with another shard
	// count, which is permanent. docs/guide.md says how to move to another one.
	ErrShardCountMismatch = ports.ErrShardCountMismatch
	// ErrQueueMismatch is a queue that the store has with another IndexIDs.
	ErrQueueMismatch = ports.ErrQueueMismatch
	// ErrFull is a store without room: nothing was stored, and handling makes
	// room.
	ErrFull = ports.ErrFull
	// ErrNotBegun is a push whose context had ended before it began: nothing is stored.
	ErrNotBegun = ports.ErrNotBegun
	// ErrUnusable is a store that answers but can't be used as it is set up, and
	// that no waiting cures: a wrong password, missing rights, no schema, no such
	// database, a policy that evicts keys, an invalid prefix. Run returns it if the
	// store says so when the server starts.
	ErrUnusable = ports.ErrUnusable
	// ErrLeaseHeld is a shard that another server works, from RunDue.
	ErrLeaseHeld = ports.ErrLeaseHeld
	// ErrNotCommitted is the failure of a job whose handler called SettleIn and
	// returned nil, but has not committed the transaction.
	ErrNotCommitted = engine.ErrNotCommitted

	// ErrLeaseLost says that another node may work this shard now. The handler's
	// result will not count, and its jobs run again.
	ErrLeaseLost = ports.ErrLeaseLost
	// ErrShutdown says that the server's ShutdownTimeout is over. A handler that
	// returns the context's error has its job put back untouched.
	ErrShutdown = engine.ErrShutdown
	// ErrCancelled says that an operator has cancelled the job. It ends as the
	// operator chose, whatever the handler returns.
	ErrCancelled = engine.ErrCancelled
	// ErrTimeout says that the queue's Timeout is over.
	ErrTimeout = errors.New("handler timeout")
)

// PushError is a push that stored only some of its entries, or whose outcome is
// unknown. Its Entries are the positions of those that are not known to be stored;
// pushing them again is safe.
type PushError = ports.PushError

// PanicError is the failure of a handler that panicked.
type PanicError = engine.PanicError

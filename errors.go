package skein

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// What a caller can act on. Each comes wrapped with what is wrong; test with
// errors.Is.
var (
	// ErrInvalidQueue is a queue with options that can't be, from every push to it
	// and from Run.
	ErrInvalidQueue = core.ErrInvalidQueue
	// ErrInvalidOptions is a server, a client, a handler, a push, a list or an action
	// that is given what can't be, such as nil.
	ErrInvalidOptions = core.ErrInvalidOptions
	// ErrInvalidID, ErrInvalidPayload, ErrInvalidScore and ErrInvalidTime are
	// pushes that RULES 1 refuses. Nothing of such a push is stored.
	ErrInvalidID      = core.ErrInvalidID
	ErrInvalidPayload = core.ErrInvalidPayload
	ErrInvalidScore   = core.ErrInvalidScore
	ErrInvalidTime    = core.ErrInvalidTime
	// ErrShardCountMismatch is a queue that the store has with another shard
	// count: it is permanent until the queue is resharded on purpose.
	ErrShardCountMismatch = ports.ErrShardCountMismatch
	// ErrQueueMismatch is a queue that the store has with another id index.
	ErrQueueMismatch = ports.ErrQueueMismatch
	// ErrFull is a store without room: nothing was stored, and handling makes
	// room.
	ErrFull = ports.ErrFull
	// ErrUnusable is a store that answers but can't be used as it is set up, and
	// that no waiting cures: a wrong password, missing rights, no schema, no such
	// database, a policy that evicts keys, an invalid prefix. Run returns it if the
	// store says so when the server starts.
	ErrUnusable = ports.ErrUnusable
)

// Causes of a handler's context, from context.Cause, when it ends before the
// handler has returned.
var (
	// ErrLeaseLost says that another node may work this shard now. The handler's
	// result will not count, and its jobs run again.
	ErrLeaseLost = ports.ErrLeaseLost
	// ErrShutdown says that the server's ShutdownTimeout is over. A handler that
	// returns the context's error has its job put back untouched.
	ErrShutdown = engine.ErrShutdown
	// ErrCancelled says that an operator has cancelled the job. It ends as he
	// chose, whatever the handler returns.
	ErrCancelled = engine.ErrCancelled
)

// PushError is a push that stored only some of its entries, or that does not
// know. Its Entries are the positions of those that are not known to be stored;
// pushing them again is safe.
type PushError = ports.PushError

// PanicError is the failure of a handler that panicked.
type PanicError = engine.PanicError

package skein

import (
	"context"

	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// ErrNotCommitted is the failure of a job whose handler settled it in a
// transaction and returned nil, but has not committed.
var ErrNotCommitted = engine.ErrNotCommitted

// Settle settles the job of a handler in a transaction on the store that the job
// came from, so that what the handler writes in it happens exactly once: both
// commit or neither does. The settler is the transaction, as the store's package
// makes one of it; a store that is a ports.Settler itself settles at once.
//
// The context is the handler's. The job ends as done, or with the outcome and the
// marks on payloads that it was given before: Job.Settle and the marks come before
// Settle. An outcome that the handler gives or returns later, such as Snooze, does not
// count once the transaction has committed, and a warning in the log says so. A
// BatchHandler, and middleware around one, settles all jobs of its batch. The caller
// commits, before the handler returns.
//
// What counts is what has committed, and the server finds out: a handler that
// returns nil after Settle although nothing has committed fails its job with
// ErrNotCommitted, and one that returns an error, such as that of a commit whose
// outcome is unknown, fails it by that error only if nothing has. Payloads that
// were marked as done are not done then. A handler may roll back and settle again
// in another transaction.
//
// Errors: ErrLeaseLost if another node has taken the job over or if the handler has
// settled it before, in this transaction or in one that has committed; the cause of a
// context that has ended, or the store's own. Roll back then, and return it.
func SettleIn(ctx context.Context, settler ports.Settler) error { return engine.SettleIn(ctx, settler) }

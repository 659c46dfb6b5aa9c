package ports

import (
	"context"

	"github.com/skeinq/skein/core"
)

// Notifier is a store that tells of new work. It is an extra: a store without it
// is polled.
type Notifier interface {
	// Wakeups gives shards of those asked for whose next job has become due
	// earlier than it was, by a push, an operator or a resume, that hold a
	// newly cancelled job, or whose lease was released. What the reader is slow to take may be merged or
	// dropped, and a wake-up may be spurious: it is a hint, and polling goes on.
	// The channel is closed when ctx ends or the store can't tell any more; call
	// again then.
	Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error)
}

// Settler is a store, or a caller's transaction on one, that settles outside a
// turn, so that a handler's effect commits together with its settlement.
type Settler interface {
	// Settle applies settlements of one shard, all or none, as part of the
	// transaction, or at once where there is none. The claimed jobs are the
	// fence: it takes no lease, and each (ID, Receipt) must be claimed. Given twice,
	// the second is not.
	//
	// Errors: ErrLeaseLost, with nothing changed, if one is not claimed.
	// Repeating it after success gives ErrLeaseLost.
	Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error
}

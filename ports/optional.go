package ports

import (
	"context"

	"github.com/skeinq/skein/core"
)

// Notifier is a store that notifies servers of new work. It is optional: a store
// without it is polled.
type Notifier interface {
	// Wakeups returns a channel of shards, of those asked for, whose next job has become
	// due earlier than it was, by a push, an operator or a resume, that hold a newly
	// cancelled job, or whose lease was released. Two more may be asked for like shards:
	// [PermitsOf] a queue is sent when Permit says so, and the zero Shard, which stands
	// for the list of nodes, when a node has announced itself that was not known, or with
	// other Queues, Lanes or Draining than before, when DrainNode has changed something
	// and when Retire has removed a node; not for another Status, nor when an
	// announcement is renewed or runs out. Wake-ups that the reader is slow to
	// receive may be merged or dropped, and some may be spurious: they are hints, and
	// polling goes on. It is an error only if no part of the store can be reached: a part
	// that can't, now or later, is listened to as soon as it can be, and its shards are then
	// sent once. The channel is closed when ctx ends or when the store can't
	// notify any more; call Wakeups again then.
	Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error)
}

// TurnLimiter is a store that does best if a node has few turns in flight at once, however
// many shards it holds. It is optional: a node makes as many as it likes on a store
// without it.
type TurnLimiter interface {
	// MaxTurns returns how many turns of one node the store wants in flight at once, 0 for
	// no bound. It is never negative, does not change, asks no server and is safe for
	// concurrent use. The store carries out more than that all the same.
	MaxTurns() int
}

// Pooled is a store whose connections come from a pool that handlers may use besides, such as for transactions of
// their own. It is optional.
type Pooled interface {
	// Connections returns how many connections the pool may have at once, 0 for no bound. It asks no server and is
	// safe for concurrent use.
	Connections() int
}

// Settler is a store, or a caller's transaction on one, that settles outside a
// turn, so that a handler's effect commits together with its settlement.
type Settler interface {
	// Settle applies settlements of one shard, all of them or none, as part of the
	// transaction, or at once on a store without one. The claimed jobs are the fence:
	// it takes no lease, and each (ID, Receipt) must be claimed. Of two settlements of
	// the same claim the second one is not.
	//
	// Errors: ErrLeaseLost, with nothing changed, if one is not claimed.
	// Repeating it after success returns ErrLeaseLost.
	Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error
}

package ports

import (
	"context"

	"github.com/skeinq/skein/core"
)

// Notifier is a store that notifies servers of new work. It is optional: servers poll a store
// without it.
type Notifier interface {
	// Wakeups returns a channel of shards, of those requested. A shard is sent when its next job
	// has become due earlier than before, by a push, an operator or a resume, when a job of it is
	// newly cancelled, and when its lease is released.
	//
	// Two special shards may be requested as well. [PermitsOf] a queue is sent when Permit demands
	// it. The zero Shard stands for the list of servers. It is sent when a server has announced
	// itself that was not known, or that has other Queues, Lanes or Draining than before, when
	// DrainNode has changed something, and when Retire has removed a server. It is not sent for
	// another Status, nor when an announcement is renewed or runs out.
	//
	// Wake-ups are hints, and servers still poll: wake-ups that the receiver is slow to take may be
	// merged or dropped, and some may be spurious. Wakeups returns an error only if no part of the
	// store can be reached. A part that can't be reached, now or later, is listened to as soon as
	// it can be, and its shards are then sent once. The channel is closed when ctx ends or when the
	// store can't notify any more; the caller then calls Wakeups again.
	Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error)
}

// TurnLimiter is a store that performs best if each server has few turns in flight at once, however
// many shards it holds. It is optional: on a store without it, the number of turns is not limited.
type TurnLimiter interface {
	// MaxTurns returns the number of turns that one server should have in flight at once; 0 means
	// no limit. It is never negative, does not change, asks no server and is safe for concurrent
	// use. The store still carries out more turns than that.
	MaxTurns() int
}

// Pooled is a store with a connection pool that handlers may use too, for example for transactions
// of their own. It is optional.
type Pooled interface {
	// Connections returns the maximum number of connections of the pool; 0 means no limit. It asks
	// no server and is safe for concurrent use.
	Connections() int
}

// Settler is a store, or a caller's transaction on one, that settles outside a
// turn, so that a handler's effect commits together with its settlement.
type Settler interface {
	// Settle applies settlements of one shard, all of them or none. It is part of the transaction,
	// or takes effect at once on a store without one. The claimed jobs are the fence: Settle needs
	// no lease, and each (ID, Receipt) must be claimed. If two settlements are of the same claim,
	// the second one counts as not claimed.
	//
	// Errors: ErrLeaseLost, with nothing changed, if a job is not claimed. Repeating the call after
	// success returns ErrLeaseLost.
	Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error

	// SettlePayload ends one payload of a claimed job of the shard as done, as
	// core.PayloadSettlement.Apply defines. It is part of the transaction, or takes effect at once
	// on a store without one. The claim keeps its other payloads, and from then on has the receipt
	// core.Receipt.NextPart. So everything that carries the earlier receipt finds it not claimed,
	// and everything that the store returns has the new one. No count changes.
	//
	// The claimed job is the fence, as for Settle. It must also not have been handed over to a
	// later lease, whose owner has seen it with this payload. While a caller's transaction that has
	// settled a payload is open, the job can't be reached. In this transaction too it counts as not
	// claimed, for SettlePayload and Settle, so the end of each payload is known before the next.
	//
	// Errors, with nothing changed: ErrLeaseLost if the job is not claimed with this receipt, or
	// was handed over; so a repeated call after success returns it. ErrInvalidRequest if the claim
	// has no payload at this position or no other one: the job's last payload ends by Settle.
	SettlePayload(ctx context.Context, shard core.Shard, s core.PayloadSettlement) error
}

package ports

import (
	"context"

	"github.com/skeinq/skein/core"
)

// Notifier is a store that notifies servers of new work. It is optional: servers poll a store
// without it.
type Notifier interface {
	// Wakeups returns a channel on which some of the requested shards are sent. A shard is sent
	// when its next job can be claimed earlier than before because of a push, an operator or a
	// resume, when a job of it is newly cancelled, and when its lease is released.
	//
	// Two special shards may be requested as well. [PermitsOf] a queue is sent when permits become
	// free, as Permit describes. The zero Shard stands for the list of servers. It is sent when a
	// server that was not known has announced itself, when a server has announced other Queues,
	// Lanes or Draining than before, when DrainNode has changed the list, and when Retire has
	// removed a server. It is not sent for another Status, nor when an announcement is renewed or
	// runs out.
	//
	// Wake-ups are hints, and servers still poll. If the receiver is slow, wake-ups may be merged
	// or dropped. Some wake-ups may be spurious. If a part of the store can't be reached, now or
	// later, the store listens to that part as soon as it can, and then sends its shards once. The
	// channel is closed when ctx ends or when the store can't notify any more; in the second case
	// the caller calls Wakeups again.
	//
	// Errors: ErrUnknownQueue; ErrInvalidRequest for a shard that the queue does not have; any
	// other error only if no part of the store can be reached, or if the store may not listen.
	Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error)
}

// TurnLimiter is a store that performs best if each server has only a few turns in flight at once,
// even if it holds many shards. It is optional: on other stores the number of turns is not limited.
type TurnLimiter interface {
	// MaxTurns returns the number of turns that one server should have in flight at once; 0 means
	// no limit. It is never negative and does not change. MaxTurns contacts no server and is safe
	// for concurrent use. If a server sends more turns than that, the store carries them out too.
	MaxTurns() int
}

// Pooled is a store with a connection pool that handlers may use too, for example for transactions
// of their own. It is optional.
type Pooled interface {
	// Connections returns the maximum number of connections of the pool; 0 means no limit. It
	// contacts no server and is safe for concurrent use.
	Connections() int
}

// Settler is a store, or a caller's transaction on one, that settles jobs outside a turn, so that a
// handler's effect commits together with the settlement of its job. It is optional.
type Settler interface {
	// Settle applies settlements of one shard, all of them or none. It is part of the caller's
	// transaction. Without a transaction it takes effect at once. The claimed jobs are the fence:
	// Settle checks no lease, but each (ID, Receipt) must be claimed. If two settlements are of the
	// same claim, the second one counts as not claimed. Each settlement with a Past records it, as a
	// turn does. Settle removes no record; the next turns do, by their Keep.
	//
	// Errors, with nothing changed: ErrLeaseLost if a job is not claimed, so a repeated call after
	// success returns it; ErrUnknownQueue; ErrInvalidRequest, as ValidateSettlements returns it, for
	// a shard that the queue does not have, or for a transaction that has ended or failed.
	Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error

	// SettlePayload ends one payload of a claimed job of the shard as done, as
	// core.PayloadSettlement.Apply defines. It is part of the caller's transaction. Without a
	// transaction it takes effect at once. The claim keeps its other payloads, and from then on has
	// the receipt core.Receipt.NextPart. So a settlement with the earlier receipt finds the job not
	// claimed, and all replies of the store have the new receipt. No count changes.
	//
	// The claimed job is the fence, as for Settle. It must also not have been handed over to a
	// later lease, since the owner of that lease has received it with this payload. While a
	// caller's transaction that has settled a payload is open, other calls can't reach the job. For
	// further calls of Settle and SettlePayload in the same transaction the job counts as not
	// claimed, so the end of each payload is known before the next one is settled.
	//
	// Errors, with nothing changed: those of Settle, with ErrLeaseLost also for a job that was
	// handed over; ErrInvalidRequest also if the claim has no payload at this position, or no other
	// payload. The last payload of a job is ended by Settle.
	SettlePayload(ctx context.Context, shard core.Shard, s core.PayloadSettlement) error
}

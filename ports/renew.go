package ports

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// RenewRequest asks to extend a lease.
type RenewRequest struct {
	Lease Lease
	// TTL is at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for a TTL below 1 ms.
func (r *RenewRequest) Validate() error { return validateTTL(r.TTL) }

// RenewReply is what Renew returns.
type RenewReply struct {
	// Now is the store's clock, and Remaining how long the lease lasts from it.
	Now       core.Instant
	Remaining time.Duration
	// Head and Paused are as in TurnReply, but Head may leave out what is still to be
	// handed over. A store that can't tell at the moment whether the queue is paused says
	// that it is not, and now.
	Head   core.Head
	Paused bool
}

// HeadsReply is what Heads returns.
type HeadsReply struct {
	// Now is the store's clock when it looked at a shard that was reached.
	Now core.Instant
	// Heads are in the order of the shards asked for.
	Heads []core.Head
	// Unreached are the shards asked for that the store can't reach now, in the order
	// asked. Their heads are zero, which says nothing; ask again later. Usually nil.
	Unreached []core.Shard
}

func validateTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("%w: TTL %v; at least 1ms", ErrInvalidRequest, ttl)
	}
	return nil
}

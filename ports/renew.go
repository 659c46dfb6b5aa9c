package ports

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// RenewRequest is a request to extend a lease.
type RenewRequest struct {
	Lease Lease
	// TTL is at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for a TTL below 1 ms.
func (r *RenewRequest) Validate() error { return validateTTL(r.TTL) }

// RenewReply is the result of Renew.
type RenewReply struct {
	// Now is the store's clock. Remaining is how long the lease lasts from Now.
	Now       core.Instant
	Remaining time.Duration
	// Head and Paused are as in TurnReply, except that Head may ignore jobs that are still to be
	// handed over. A store that can't determine at the moment whether the queue is paused returns
	// false as Paused and now as Head.
	Head   core.Head
	Paused bool
}

// HeadsReply is the result of Heads.
type HeadsReply struct {
	// Now is the store's clock when it read one of the shards that were reached.
	Now core.Instant
	// Heads are in the order of the requested shards.
	Heads []core.Head
	// Unreached are the requested shards that the store can't reach now, in the order of the
	// request. Their elements of Heads are zero and have no meaning; the caller requests them again
	// later. Unreached is usually nil.
	Unreached []core.Shard
}

func validateTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("%w: the TTL is %v; give at least 1ms", ErrInvalidRequest, ttl)
	}
	return nil
}

package ports

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// MaxPermits is the largest Limit, Hold and Want of a [PermitRequest].
const MaxPermits = 1 << 20

// Permitter bounds how many batches of a queue run at once over all nodes. A node runs one
// batch for each permit that it holds.
type Permitter interface {
	// Permit makes the owner hold as many permits of the queue as it asks for, as far as
	// the limit allows, until the TTL from now. What it holds already and asks for again it
	// keeps; it gets more only where the permits of all together stay within Limit. A call
	// with neither Hold nor Want gives all back and forgets the owner.
	//
	// It is atomic for the queue. Permits whose TTL is over count for nobody: the next call
	// for the queue removes them, also that of their owner, who then asks anew. TTLs count by
	// the store's clock; one that ends further away than it is long, because the clock stepped
	// back, ends its length from the next call. Repeating a call renews. A Forget of the queue
	// removes all its permits.
	//
	// If the owner then holds fewer than before, while another wants more than it holds,
	// those are woken that have asked a [Notifier] for [PermitsOf] the queue.
	//
	// Errors: ErrInvalidRequest, ErrUnknownQueue, and ErrStaleAttempt for an Attempt
	// below the last of an owner whose TTL lasts: the call comes late and changes nothing.
	Permit(ctx context.Context, r PermitRequest) (PermitReply, error)
}

// PermitsOf returns what to ask a [Notifier] for to be woken when permits of a queue become
// free: shard -1, which no queue has.
func PermitsOf(queue string) core.Shard { return core.Shard{Queue: queue, Index: -1} }

// PermitRequest asks for permits.
type PermitRequest struct {
	Queue string
	// Owner is the node's id, as of leases.
	Owner string
	// Attempt numbers the owner's calls for the queue, from 1: each new call has a larger
	// number, and a repeated one the same.
	Attempt int64
	// Limit is how many permits of the queue there are, 1 to MaxPermits. Each node goes by
	// its own: where they differ, a smaller one only keeps those who go by it from getting
	// more.
	Limit int
	// Hold is how many the owner is to hold, 0 to MaxPermits.
	Hold int
	// Want is how many the owner could use, Hold to MaxPermits. It is for the others to see.
	Want int
	// TTL is how long the owner holds them, at least 1 ms.
	TTL time.Duration
}

// Validate returns [core.ErrInvalidQueue] or [ErrInvalidRequest] for a request that no store
// may carry out.
func (r *PermitRequest) Validate() error {
	switch {
	case r.Owner == "":
		return errNoOwner
	case r.Attempt < 1:
		return fmt.Errorf("%w: attempt %d; they count from 1", ErrInvalidRequest, r.Attempt)
	case r.Limit < 1 || r.Limit > MaxPermits:
		return fmt.Errorf("%w: a limit of %d permits; 1 to %d", ErrInvalidRequest, r.Limit, MaxPermits)
	case r.Hold < 0 || r.Want < r.Hold || r.Want > MaxPermits:
		return fmt.Errorf("%w: to hold %d permits and want %d; 0 to %d, and want no fewer than hold",
			ErrInvalidRequest, r.Hold, r.Want, MaxPermits)
	}
	return cmp.Or(validateTexts("the owner", r.Owner), validateTTL(r.TTL))
}

// PermitReply is what Permit returns.
type PermitReply struct {
	// Now is the store's clock, and Remaining how long the owner's permits last from it.
	Now       core.Instant
	Remaining time.Duration
	// Held is how many the owner holds, at most Hold.
	Held int
	// Holders are all who hold permits or want some, this owner too unless it has given all
	// back, in order of Owner.
	Holders []core.PermitHolder
}

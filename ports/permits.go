package ports

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// MaxPermits is the largest value of Limit, Hold and Want in a [PermitRequest].
const MaxPermits = 1 << 20

// Permitter limits the number of batches of a queue that run at once over all servers. A server
// runs at most one batch for each permit that it holds.
type Permitter interface {
	// Permit makes the owner hold the requested number of permits of the queue, as far as the limit
	// allows, until the TTL from now. The owner keeps the permits that it already holds, up to
	// Hold. It gets more only if all owners together then hold at most Limit. A call whose Hold and
	// Want are 0 returns all permits and forgets the owner.
	//
	// Permit is atomic for the queue. Permits whose TTL is over don't count. The next call for the
	// queue removes them, even if they are the caller's own. Such a caller then gets permits only
	// as far as Limit allows. TTLs are measured by the store's clock. If the clock stepped back,
	// the end of permits can be further away than their own TTL. The next call for the queue then
	// makes them end that TTL from now. A repeated call renews the permits. A Forget of the queue
	// removes all its permits.
	//
	// If the owner holds fewer permits than before the call, while another owner wants more than it
	// holds, a Notifier sends [PermitsOf] the queue to the servers that requested it.
	//
	// Errors: ErrInvalidRequest, ErrUnknownQueue, and ErrStaleAttempt for an Attempt below the last
	// one of an owner whose TTL lasts: such a call is late and changes nothing.
	Permit(ctx context.Context, r PermitRequest) (PermitReply, error)
}

// PermitsOf returns the shard to request from a [Notifier] for wake-ups when permits of a queue
// become free. It is shard -1, which no queue has.
func PermitsOf(queue string) core.Shard { return core.Shard{Queue: queue, Index: -1} }

// PermitRequest is a request for permits.
type PermitRequest struct {
	Queue string
	// Owner is the server's id, the same as for leases.
	Owner string
	// Attempt numbers the owner's calls for the queue, from 1. Each new call has a larger number,
	// and a repeated call has the same.
	Attempt int64
	// Limit is the number of permits of the queue, 1 to MaxPermits. Each server uses its own Limit.
	// If the limits differ, a smaller Limit keeps only those servers from getting more permits that
	// use it.
	Limit int
	// Hold is the number of permits that the owner should hold, 0 to MaxPermits.
	Hold int
	// Want is the number of permits that the owner could use, Hold to MaxPermits. Other owners see
	// it in Holders.
	Want int
	// TTL is how long the owner holds the permits, at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for an owner that is empty or not a [core.Text], an Attempt
// below 1, a Limit, a Hold or a Want out of range, or a TTL below 1 ms. It does not check the name
// of the queue.
func (r *PermitRequest) Validate() error {
	switch {
	case r.Owner == "":
		return errNoOwner
	case r.Attempt < 1:
		return fmt.Errorf("%w: attempt %d; attempts count from 1", ErrInvalidRequest, r.Attempt)
	case r.Limit < 1 || r.Limit > MaxPermits:
		return fmt.Errorf("%w: the limit is %d permits; give 1 to %d", ErrInvalidRequest, r.Limit, MaxPermits)
	case r.Hold < 0 || r.Want < r.Hold || r.Want > MaxPermits:
		return fmt.Errorf("%w: Hold is %d permits and Want is %d; give 0 to %d, and a Want of at least Hold",
			ErrInvalidRequest, r.Hold, r.Want, MaxPermits)
	}
	return cmp.Or(validateTexts("the owner", r.Owner), validateTTL(r.TTL))
}

// PermitReply is the result of Permit.
type PermitReply struct {
	// Now is the store's clock. Remaining is how long the owner's permits last from Now. It has no
	// meaning if the owner has returned all permits.
	Now       core.Instant
	Remaining time.Duration
	// Held is the number of permits that the owner holds, at most Hold.
	Held int
	// Holders are all owners that hold or want permits, in order of Owner. They include this owner
	// unless it has returned all permits.
	Holders []core.PermitHolder
}

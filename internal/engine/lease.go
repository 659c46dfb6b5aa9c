package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// lease is the part of a shard that knows of its lease: whether this node holds it, and until when,
// and otherwise who does. The shard makes the calls, and its lock guards the lease.
type lease struct {
	ttl time.Duration

	tenure
	owner ownerInfo
	// lostAt is when it was last logged that a lease was lost.
	lostAt time.Time
}

// tenure is one lease that this node holds. The zero value is no lease.
type tenure struct {
	held  bool
	token int64
	// until is when this node acts as if the lease had ended. renewAt is when the renewal loop
	// renews it, unless a turn renews it earlier.
	until   time.Time
	renewAt time.Time
	// ctx is the context of the turns under the lease; cancelCalls ends it.
	ctx         context.Context
	cancelCalls context.CancelCauseFunc
}

// ownerInfo is the last known owner of a shard that this node has not leased.
type ownerInfo struct {
	// holder is the owner at the time of the last refused acquire; "" if unknown.
	holder string
	// since is when an acquire first failed without a known holder, or zero. err is the last such
	// failure, and logged is set once it has been logged.
	since  time.Time
	err    error
	logged bool
}

// acquired begins a lease by the reply to an acquire. calls is the parent of the contexts of its turns.
// It returns who was last known to hold the shard before, or "".
func (l *lease) acquired(calls context.Context, r *ports.AcquireReply, sent time.Time) (from string) {
	from = l.owner.holder
	l.owner = ownerInfo{}
	l.tenure = tenure{held: true, token: r.Token}
	l.resetContext(calls)
	l.extend(sent, r.Remaining)
	return from
}

// holds reports whether the lease with a token is held.
func (l *lease) holds(token int64) bool { return l.held && l.token == token }

// extend moves the lease's end to remaining after the call was sent, less a fifth of the TTL as a
// margin for clocks and schedulers.
func (l *lease) extend(sent time.Time, remaining time.Duration) {
	if until := sent.Add(remaining - l.ttl/5); until.After(l.until) {
		l.until = until
	}
	l.renewAt = sent.Add(l.ttl / 3)
}

// resetContext replaces the context of the lease's calls if it has ended.
func (l *lease) resetContext(calls context.Context) {
	if l.ctx == nil || l.ctx.Err() != nil {
		l.ctx, l.cancelCalls = context.WithCancelCause(calls)
	}
}

// errTurnHangs is the cause of the end of a turn's context when the turn is called off.
var errTurnHangs = errors.New("the turn takes too long and is repeated")

// callOff ends the context of the turn in flight, which hangs.
func (l *lease) callOff() { l.cancelCalls(errTurnHangs) }

// valid reports whether jobs may start under the lease at a time.
func (l *lease) valid(now time.Time) bool { return l.held && now.Before(l.until) }

// expired returns the error that ends a held lease that was not renewed in time, or nil.
func (l *lease) expired(now time.Time) error {
	if now.Before(l.until) {
		return nil
	}
	return fmt.Errorf("%w: the store did not answer for most of the lease's TTL of %v", ports.ErrLeaseLost, l.ttl)
}

// renewal reports whether the lease is to be renewed now. It is not again until the answer may be
// here.
func (l *lease) renewal(now time.Time) bool {
	if now.Before(l.renewAt) {
		return false
	}
	l.renewAt = now.Add(l.ttl / 15)
	return true
}

// nextCheck returns how long it takes until the lease has to be renewed or ends.
func (l *lease) nextCheck(now time.Time) time.Duration {
	return min(l.renewAt.Sub(now), l.until.Sub(now))
}

// end ends a held lease, and the calls of its turns.
func (l *lease) end(cause error) {
	l.cancelCalls(cause)
	l.tenure = tenure{}
}

// lost notes that a lease was lost. It reports whether to warn. A store that grants leases and breaks
// them causes one warning each report.Reminder.
func (l *lease) lost(now time.Time) (warn bool) {
	if now.Sub(l.lostAt) < report.Reminder {
		return false
	}
	l.lostAt = now
	return true
}

// heldElsewhere notes that another owner holds the shard.
func (l *lease) heldElsewhere(holder string) { l.owner = ownerInfo{holder: holder} }

// notAcquired notes that an acquire failed for another reason than that another owner holds the shard.
func (l *lease) notAcquired(err error, now time.Time) {
	if l.owner.since.IsZero() {
		l.owner = ownerInfo{since: now}
	}
	l.owner.err = err
}

// unassigned notes that the shard is another node's, so its owner is of no interest.
func (l *lease) unassigned() { l.owner = ownerInfo{} }

// unownedLimit is how long a shard may be without an owner before that is logged.
const unownedLimit = 30 * time.Second

// unowned returns, once, why the shard could not be acquired for long although no holder is known. It
// returns nil otherwise.
func (l *lease) unowned(now time.Time) error {
	if o := &l.owner; !o.since.IsZero() && !o.logged && now.Sub(o.since) >= unownedLimit {
		o.logged = true
		return o.err
	}
	return nil
}

package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Settled reports whether everything that was pushed for an id until since is settled: it is done
// or in the morgue. dead reports whether the id has a dead letter; then the caller decides whether
// to wait for an operator. An id for which nothing was ever pushed is settled; an unknown queue is
// [ErrUnknownQueue].
//
// since is by the store's clock, to the microsecond, so a job's own FirstPush or PerformAt is safe
// to use. The zero time includes every push until now. A payload that is pushed again while it
// waits, or that merges into a waiting job, makes settled false for longer, never true too early.
// So does a payload that a transaction pushed, if the Inspector may only read and thus can't merge
// it into its job.
// A payload that is revived from the morgue counts as pushed when it was revived. Settled looks at
// one queue: an id that was moved to another queue is settled in the one that it left.
//
// With skein.Await, a handler waits for other ids in this way. Settled reads no payload. Errors are
// those of [Inspector.Find]. It also returns an error if the store can't read a record of the id.
func (i *Inspector) Settled(ctx context.Context, queue, id string, since time.Time) (settled, dead bool, err error) {
	settled, dead, err = i.settledNow(ctx, queue, id, since)
	if settled && err == nil {
		// Postgres merges what transactions have left, and then reads. A transaction that puts the
		// job back in between hides it from the first call.
		settled, dead, err = i.settledNow(ctx, queue, id, since)
	}
	return settled, dead, err
}

// settledNow asks the store once.
func (i *Inspector) settledNow(ctx context.Context, queue, id string, since time.Time) (settled, dead bool, err error) {
	r := ports.FindRequest{Queue: queue, ID: id, MaxCount: -1}
	found, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
	if err != nil {
		return false, false, err
	}
	if len(found.Damaged) > 0 {
		return false, false, fmt.Errorf("whether id %q of queue %q is settled is unknown: the store can't read its record in %v; "+
			"the next turn sets it aside, then see Quarantined", id, queue, found.Damaged)
	}
	until := core.MaxInstant
	if !since.IsZero() {
		until = core.Instant(since.UnixMicro())
	}
	settled = !found.Standing.Unmerged // whatever their time, since it is unknown
	if q := found.Queued; q != nil && q.FirstPush <= until {
		settled = false
	}
	if c := found.Claim; c != nil && c.FirstPush <= until {
		settled = false
	}
	return settled, found.DeadLetter != nil, nil
}

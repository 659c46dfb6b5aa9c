package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Settled reports whether all payloads that were pushed for an id until since are settled: they are
// done, dropped or in the morgue. dead reports whether the id has a dead letter; the caller then
// decides whether to wait for an operator. An id for which nothing was ever pushed is settled. For
// an unknown queue Settled returns [ErrUnknownQueue].
//
// since is by the store's clock, to the microsecond, so a job's own FirstPush or PerformAt is safe
// to use. The zero time includes every push until now. If a payload is pushed again while it waits,
// or merges into a waiting job, settled stays false for longer, but it is never true too early. The
// same holds for a payload that a transaction has pushed, if the Inspector may only read and so the
// store can't merge it into its job. A payload that is revived from the morgue counts as pushed
// when it was revived. Settled reads one queue: an id that was moved to another queue is settled in
// the queue that it left.
//
// A handler can wait for other ids with Settled and skein.Await. Settled reads no payload. Errors
// are those of [Inspector.Find]. It also returns an error if the store can't read a record of the
// id.
func (i *Inspector) Settled(ctx context.Context, queue, id string, since time.Time) (settled, dead bool, err error) {
	settled, dead, err = i.settledNow(ctx, queue, id, since)
	if settled && err == nil {
		// Postgres merges what transactions have left, and then reads. A transaction that puts the
		// job back in between hides it from the first call.
		settled, dead, err = i.settledNow(ctx, queue, id, since)
	}
	return settled, dead, err
}

// settledNow is Settled with one call of the store.
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

package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Find returns everything that a queue holds for an id: the queued job, the claimed job and the
// dead letter, with the first of their payloads, together at most 1,000 payloads and 8 MiB, and the
// record of its last run that was done.
// PayloadCount is the number of payloads in each place, and [Inspector.Payloads] lists all of them.
// If the queue holds nothing for the id, Find returns no error. It returns [ErrInvalidID] if no job
// can have the id.
func (i *Inspector) Find(ctx context.Context, queue, id string) (Found, error) {
	return i.FindSome(ctx, queue, id, core.MaxTurnPayloads)
}

// FindSome is [Inspector.Find] with at most the given number of payloads of each place. 0 means no
// payload.
func (i *Inspector) FindSome(ctx context.Context, queue, id string, payloads int) (Found, error) {
	r := ports.FindRequest{Queue: queue, ID: id, Payloads: payloads}
	stored, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
	if err != nil {
		return Found{}, err
	}

	rules := i.ruler(queue)
	for _, place := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
		if _, err := rules.rule(ctx, payloadsIn(&stored, place)); err != nil {
			return Found{}, err
		}
	}
	return i.views.of(rules.merge).found(id, &stored), nil
}

// Found is everything that a queue holds for an id. A nil field means that this place has nothing
// of the id. An id can be in all three places, with different payloads.
type Found struct {
	ID    string     `json:"-" class:"id"`
	Shard core.Shard `json:"shard" class:"queue" doc:"the shard of the id"`

	Queued     *QueuedJob  `json:"queued,omitempty" class:"public" doc:"the queued job"`
	Claimed    *ClaimedJob `json:"claimed,omitempty" class:"public" doc:"the claimed job"`
	DeadLetter *DeadLetter `json:"dead,omitempty" class:"public" doc:"the dead letter of the id"`
	// Past is the record of the last run of the id that was done, with its Result. It is nil if the
	// queue keeps no records, or no longer this one.
	Past *Past `json:"past,omitempty" class:"public" doc:"the last run of the id that was done, if the queue keeps records of that"`
	// Mark is the highest score of its payloads that were done, as far as the queue has kept it; nil if
	// it is not known. A queue with skein.DropStale drops payloads up to that score.
	Mark *float64 `json:"mark,omitempty" class:"public" wide:"true" doc:"the highest score of its payloads that were done, if the queue keeps records of that"`
	// Damaged are the places ("queued", "claimed", "dead") where the store has a record of the id
	// that it can't read. The field of such a place is nil. The record will be set aside: see
	// [Inspector.Quarantined].
	Damaged []string `json:"damaged,omitempty" class:"public" wide:"true" doc:"places with a record of the id that can't be read: queued, claimed or dead"`
}

// found returns what the store has found for an id.
func (w viewer) found(id string, stored *ports.Found) Found {
	found := Found{ID: id, Shard: stored.Shard}
	for _, place := range stored.Damaged {
		found.Damaged = append(found.Damaged, place.String())
	}

	if q := stored.Queued; q != nil {
		job := w.queuedJob(q, ByTime)
		found.Queued = &job
	}
	if stored.Claim != nil {
		job := w.claimedJob(stored.Claim)
		found.Claimed = &job
	}
	if d := stored.DeadLetter; d != nil {
		view := w.deadLetter(d, ByTime)
		found.DeadLetter = &view
	}
	if p := stored.Past; p != nil {
		record := pastOf(&ports.PastView{Past: *p, ResultBytes: len(p.Result)})
		found.Past = &record
	}
	if m := stored.Mark; m.OK {
		found.Mark = &m.Score
	}
	return found
}

// Settled reports whether all payloads that were pushed for an id until since are settled: they are
// done, dropped or in the morgue. dead reports whether the id has a dead letter; the caller then
// decides whether to wait for an operator. An id for which nothing was ever pushed is settled. For
// an unknown queue Settled returns [ErrUnknownQueue].
//
// since is by the store's clock, to the microsecond; on a Redis Cluster each master has a clock of
// its own. The zero time includes every push until now. If a payload is pushed again while it
// waits, or merges into a waiting job, settled stays false for longer (docs/rules.md 15).
//
// After a call has returned dead, ask with the zero time. A payload that is revived from the morgue
// counts as pushed when it was revived. So for an earlier since the id is then settled and not
// dead, although its job waits again. Settled reads one queue: an id that was moved to another
// queue is settled in the queue that it left.
//
// A handler can wait for other ids with Settled and skein.Await; any other program waits with
// skein.Wait. Settled reads no payload. Errors are those of [Inspector.Find]. It also returns an
// error if the store can't read a record of the id.
func (i *Inspector) Settled(ctx context.Context, queue, id string, since time.Time) (settled, dead bool, err error) {
	r := ports.PendingRequest{Queue: queue, IDs: []string{id}}
	reply, err := ask(i, func(s Store) (ports.PendingReply, error) { return s.Pending(ctx, r) })
	if err != nil {
		return false, false, err
	}

	p := &reply.IDs[0]
	if p.Damaged {
		return false, false, fmt.Errorf(
			"whether id %q of queue %q is settled is unknown: the store can't read a record of it; "+
				"the next turn sets it aside, then see Quarantined", id, queue)
	}

	until := core.MaxInstant
	if !since.IsZero() {
		until = core.Instant(since.UnixMicro())
	}
	return p.Settled(until), p.Dead, nil
}

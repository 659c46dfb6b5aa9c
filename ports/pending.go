package ports

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// MaxPending is the maximum number of ids of a [PendingRequest].
const MaxPending = 1000

// PendingRequest asks what is not settled yet of some ids of a queue.
type PendingRequest struct {
	Queue string
	// IDs are 1 to [MaxPending] ids. An id may be named twice.
	IDs []string
}

// Validate returns [ErrInvalidRequest] for no ids and for too many, and [core.ErrInvalidID] for an
// id that no job can have.
func (r *PendingRequest) Validate() error {
	if len(r.IDs) < 1 || len(r.IDs) > MaxPending {
		return fmt.Errorf("%w: what is pending of %d ids; give 1 to %d", ErrInvalidRequest, len(r.IDs), MaxPending)
	}
	for _, id := range r.IDs {
		if err := core.ValidateID(id); err != nil {
			return err
		}
	}
	return nil
}

// PendingReply is the result of Pending.
type PendingReply struct {
	// IDs has what is pending of each id, in the order of the request.
	IDs []Pending
	// Unreached are the shards that can't be reached now, in order. Of their ids the reply has only
	// the Shard.
	Unreached []core.Shard
}

// Pending is what is not settled yet of one id, at one instant.
type Pending struct {
	// Shard is the shard of the id.
	Shard core.Shard
	// Now is the clock of the shard's server.
	Now core.Instant
	// Queued is true if the id has a queued job, and Claimed is true if it has a claimed one. Both
	// may be true. Payloads that a transaction has left and that are not merged yet count as queued.
	Queued, Claimed bool
	// FirstPush is that of these jobs, the smaller one. It is 0 if there is no job.
	FirstPush core.Instant
	// Held is true if the queued job is held: see core.State.Held.
	Held bool
	// Dead is true if the id has a dead letter, even if the store can't read it.
	Dead bool
	// Damaged is true if the store has a job or a claim of the id that it can't read. It is not
	// counted as Queued or Claimed.
	Damaged bool
}

// Any reports whether the id has a queued or a claimed job.
func (p *Pending) Any() bool { return p.Queued || p.Claimed }

// AddQueued adds a queued job of the id, with its FirstPush.
func (p *Pending) AddQueued(first core.Instant) { p.FirstPush, p.Queued = p.earlier(first), true }

// AddClaimed is AddQueued for a claimed job.
func (p *Pending) AddClaimed(first core.Instant) { p.FirstPush, p.Claimed = p.earlier(first), true }

// earlier returns the smaller one of a FirstPush and that of the jobs so far.
func (p *Pending) earlier(first core.Instant) core.Instant {
	if p.Any() {
		return min(p.FirstPush, first)
	}
	return first
}

// Settled reports whether all payloads that were pushed for the id up to an instant are settled:
// done, dropped or in the morgue (docs/rules.md 15). A payload that has merged into a job of an
// earlier FirstPush counts with that job. Nothing is settled of an id with a damaged record.
func (p *Pending) Settled(until core.Instant) bool {
	return !p.Damaged && (!p.Any() || p.FirstPush > until)
}

// Stopped reports whether nothing of the id runs until an operator acts: its job is held, and no
// job is claimed that may end the hold when it returns.
func (p *Pending) Stopped() bool { return p.Held && !p.Claimed }

// Pending returns what is pending of the id, as [Inspector].Pending would at the same instant.
func (f *Found) Pending() Pending {
	p := Pending{Shard: f.Shard, Now: f.Standing.Now, Dead: f.DeadLetter != nil}
	if q := f.Queued; q != nil {
		p.AddQueued(q.FirstPush)
		p.Held = q.Held()
	}
	if c := f.Claim; c != nil {
		p.AddClaimed(c.FirstPush)
	}

	for _, place := range f.Damaged {
		p.Dead, p.Damaged = p.Dead || place == PlaceDead, p.Damaged || place != PlaceDead
	}
	return p
}

package inspect

import "github.com/skeinq/skein/ports"

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
	return found
}

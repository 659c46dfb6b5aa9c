package skeintest

import (
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// twice is what a recorder keeps of first runs for Store.Twice.
type twice struct {
	// crashed is set when a turn was lost, until the next RunDue.
	crashed bool
	// lostEvents are the events of first runs, by their positions.
	lostEvents map[int]bool
	// again are the ids whose next run is the second one.
	again map[core.Shard]map[string]bool
}

// first reports whether a settlement ends the first run of a job. What a handler has settled in a
// transaction is settled, so it does not run again.
func (r *recorder) first(shard core.Shard, s *core.Settlement) bool {
	key := execution{shard, s.ID, s.Receipt.Whole()}
	if _, ran := r.unsettled[key]; !ran || r.again[shard][s.ID] {
		return false
	}
	_, transacted := r.store.transacted.Load(key)
	return !transacted
}

// loses reports whether a turn settles first runs, so that it is to be lost.
func (r *recorder) loses(turn *ports.TurnRequest) bool {
	return slices.ContainsFunc(turn.Settlements, func(s core.Settlement) bool { return r.first(turn.Lease.Shard, &s) })
}

// crash loses the settlements of first runs, and the lease with them. It carries out the others.
func (r *recorder) crash(ctx context.Context, turn *ports.TurnRequest) error {
	shard := turn.Lease.Shard
	if r.again[shard] == nil {
		r.again[shard] = make(map[string]bool)
	}

	kept := *turn
	kept.Settlements, kept.Begin, kept.Want = nil, nil, 0
	for i := range turn.Settlements {
		s := &turn.Settlements[i]
		if !r.first(shard, s) {
			kept.Settlements = append(kept.Settlements, *s)
			continue
		}

		key := execution{shard, s.ID, s.Receipt.Whole()}
		r.lostEvents[r.unsettled[key].event] = true
		r.again[shard][s.ID] = true
		delete(r.unsettled, key)
	}

	reply, err := r.store.inner.Turn(ctx, kept)
	if err != nil {
		return err
	}
	r.turned(&kept, &reply)

	if err := r.store.inner.Release(ctx, turn.Lease); err != nil {
		return err
	}
	r.crashed = true
	return fmt.Errorf("skeintest loses the results of the first runs: %w", ports.ErrLeaseLost)
}

// settledEvents returns the events without those of first runs.
func (r *recorder) settledEvents() Events {
	if len(r.lostEvents) == 0 {
		return r.events
	}

	var kept Events
	for i := range r.events {
		if !r.lostEvents[i] {
			kept = append(kept, r.events[i])
		}
	}
	return kept
}

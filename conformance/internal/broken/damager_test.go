package broken

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// quarantine has the damaged records. They are set aside at once.
type quarantine struct {
	mu      sync.Mutex
	damaged int
	shards  map[core.Shard][]ports.QuarantinedRecord
}

func (q *quarantine) add(shard core.Shard, r ports.QuarantinedRecord) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.damaged++
	r.Key = fmt.Sprintf("%06d", q.damaged)
	r.Reason, r.Stored, r.Size = "damaged", []byte("?"), 1
	q.shards[shard] = append(q.shards[shard], r)
}

// count returns the number of records in the shards for which of returns true.
func (q *quarantine) count(of func(core.Shard) bool) (n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for shard, records := range q.shards {
		if of(shard) {
			n += int64(len(records))
		}
	}
	return n
}

// Damage implements Damager.
func (s transacted) Damage(ctx context.Context, shard core.Shard, id string, place ports.Place) error {
	found, err := s.Find(ctx, ports.FindRequest{Queue: shard.Queue, ID: id, Payloads: 1000})
	if err != nil {
		return err
	}

	switch place {
	case ports.PlaceQueued:
		_, err = s.Delete(ctx, ports.JobStep{Shard: shard, IDs: []string{id}})
	case ports.PlaceClaimed:
		err = s.Store.Settle(ctx, shard, []core.Settlement{env.Dropped(found.Claim.Claim)})
	case ports.PlaceDead:
		_, err = s.Purge(ctx, ports.DeadLetterStep{Shard: shard, DeadLetters: []ports.DeadLetterRef{{ID: id}}})
	}

	s.set.add(shard, ports.QuarantinedRecord{ID: id, Place: place, Since: core.InstantOf(s.clock())})
	return err
}

// QuarantinedShards returns the shards with damaged records.
func (s transacted) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (reply ports.QuarantinedShards, err error) {
	reached, unreached, err := s.reached(ctx, r.Queue, r.Shards)
	if err != nil {
		return reply, err
	}

	stats, err := s.Store.Stats(ctx, ports.StatsRequest{Queues: []string{r.Queue}, Shards: reached})
	if err != nil {
		return reply, err
	}

	for _, shard := range stats[0].Shards {
		if s.set.count(func(of core.Shard) bool { return of == shard.Shard }) > 0 {
			reply.Shards = append(reply.Shards, shard.Shard)
		}
	}

	reply.Unreached = unreached
	return reply, nil
}

// Quarantined adds the damaged records.
func (s transacted) Quarantined(ctx context.Context, r ports.QuarantineRequest) (page ports.QuarantinePage, err error) {
	if page, err = s.Store.Quarantined(ctx, r); err != nil {
		return page, err
	}

	s.set.mu.Lock()
	defer s.set.mu.Unlock()

	for _, record := range s.set.shards[r.Shard] {
		if record.Key <= r.After {
			continue
		}
		if len(page.Records) == r.Size() {
			page.Next = page.Records[len(page.Records)-1].Key
			break
		}
		page.Records = append(page.Records, record)
	}

	return page, nil
}

// Discard removes damaged records.
func (s transacted) Discard(ctx context.Context, r ports.DiscardRequest) (int, error) {
	if _, err := s.Store.Discard(ctx, r); err != nil {
		return 0, err
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	records := s.set.shards[r.Shard]
	before := len(records)
	s.set.shards[r.Shard] = slices.DeleteFunc(records, func(q ports.QuarantinedRecord) bool {
		return slices.Contains(r.Keys, q.Key)
	})
	return before - len(s.set.shards[r.Shard]), nil
}

// Find reports the places of an id's damaged records.
func (s transacted) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	found, err := s.Store.Find(ctx, r)
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	for _, record := range s.set.shards[found.Shard] {
		if record.ID == r.ID {
			found.Damaged = append(found.Damaged, record.Place)
		}
	}
	return found, err
}

// noteDamage adds an id's damaged records to what is pending of it.
func (s transacted) noteDamage(id string, p *ports.Pending) {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	for _, record := range s.set.shards[p.Shard] {
		if record.ID == id {
			p.Dead, p.Damaged = p.Dead || record.Place == ports.PlaceDead, p.Damaged || record.Place != ports.PlaceDead
		}
	}
}

// Stats counts the damaged records.
func (s transacted) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	all, err := s.reachedStats(ctx, r)
	for i := range all {
		for k := range all[i].Shards {
			shard := &all[i].Shards[k]
			shard.Quarantined = s.set.count(func(of core.Shard) bool { return of == shard.Shard })
			all[i].Quarantined += shard.Quarantined
		}
	}
	return all, err
}

// Forget refuses a queue with damaged records.
func (s transacted) Forget(ctx context.Context, queue string) error {
	if s.set.count(func(of core.Shard) bool { return of.Queue == queue }) > 0 {
		return fmt.Errorf("%w: %s", ports.ErrNotEmpty, queue)
	}
	return s.Store.Forget(ctx, queue)
}

// stopsForDamage is a store whose turns fail while a record of the shard is damaged.
func stopsForDamage(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		if page, err := s.Quarantined(ctx, ports.QuarantineRequest{Shard: r.Lease.Shard}); err != nil ||
			len(page.Records) > 0 {
			return ports.TurnReply{}, cmp.Or(err, harness.ErrNoReply)
		}
		return s.Turn(ctx, r)
	})
}

// dropsDamage is a store that lists no set-aside record.
func dropsDamage(s full) full {
	return replace(s, "Quarantined", func(context.Context, ports.QuarantineRequest) (ports.QuarantinePage, error) {
		return ports.QuarantinePage{}, nil
	})
}

// hidesDamagedShards is a store that reports set-aside records for no shard.
func hidesDamagedShards(s full) full {
	return replace(s, "QuarantinedShards",
		func(ctx context.Context, r ports.QuarantinedShardsRequest) (ports.QuarantinedShards, error) {
			reply, err := s.QuarantinedShards(ctx, r)
			reply.Shards = nil
			return reply, err
		})
}

// suspectsAllShards is a store that reports set-aside records for all shards.
func suspectsAllShards(s full) full {
	return replace(s, "QuarantinedShards",
		func(ctx context.Context, r ports.QuarantinedShardsRequest) (ports.QuarantinedShards, error) {
			reply, err := s.QuarantinedShards(ctx, r)
			if err != nil {
				return reply, err
			}

			stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{r.Queue}, Shards: r.Shards})
			reply.Shards = nil
			for i := range stats {
				for _, shard := range stats[i].Shards {
					reply.Shards = append(reply.Shards, shard.Shard)
				}
			}

			return reply, err
		})
}

// hidesUnreachedQuarantines is a store that does not report shards that it can't reach.
func hidesUnreachedQuarantines(s full) full {
	return replace(s, "QuarantinedShards",
		func(ctx context.Context, r ports.QuarantinedShardsRequest) (ports.QuarantinedShards, error) {
			reply, err := s.QuarantinedShards(ctx, r)
			reply.Unreached = nil
			return reply, err
		})
}

// discardsAll is a store that discards all set-aside records of a shard.
func discardsAll(s full) full {
	return replace(s, "Discard", func(ctx context.Context, r ports.DiscardRequest) (int, error) {
		page, err := s.Quarantined(ctx, ports.QuarantineRequest{Shard: r.Shard})
		if err != nil {
			return 0, err
		}
		for _, record := range page.Records {
			r.Keys = append(r.Keys, record.Key)
		}
		return s.Discard(ctx, r)
	})
}

// hidesDamage is a store whose counts leave out set-aside records.
func hidesDamage(s full) full {
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for i := range all {
			all[i].Quarantined = 0
			for k := range all[i].Shards {
				all[i].Shards[k].Quarantined = 0
			}
		}
		return all, err
	})
}

// forgetsDamage is a store that forgets a queue with set-aside records.
func forgetsDamage(s full) full {
	return replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		shard := core.Shard{Queue: queue}
		page, err := s.Quarantined(ctx, ports.QuarantineRequest{Shard: shard})
		var keys []string
		for _, record := range page.Records {
			keys = append(keys, record.Key)
		}
		if err == nil {
			_, err = s.Discard(ctx, ports.DiscardRequest{Shard: shard, Keys: keys})
		}
		return cmp.Or(err, s.Forget(ctx, queue))
	})
}

// findsNoDamage is a store whose Find does not report damaged records.
func findsNoDamage(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		found.Damaged = nil
		return found, err
	})
}

// settlesDamaged is a store that does not report the settlement of a damaged claim as skipped.
func settlesDamaged(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		reply.Skipped = nil
		return reply, err
	})
}

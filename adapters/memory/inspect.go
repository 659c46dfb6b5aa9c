package memory

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Stats implements ports.Inspector.
func (s *Store) Stats(ctx context.Context, names []string) ([]ports.QueueStats, error) {
	stats := make([]ports.QueueStats, len(names))
	for i, name := range names {
		q, err := s.b.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		stats[i] = q.stats()
		stats[i].Now = s.b.now()
	}
	return stats, nil
}

func (q *queue) stats() ports.QueueStats {
	stats := ports.QueueStats{Queue: q.view(), Shards: make([]ports.ShardStats, len(q.shards))}
	for i, sh := range q.shards {
		stats.Shards[i] = sh.stats()
		stats.Counts = ports.SumCounts(stats.Counts, stats.Shards[i].Counts)
	}
	return stats
}

func (s *shard) stats() ports.ShardStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := ports.ShardStats{Shard: s.id, Counts: s.counts()}
	if s.lease.held {
		stats.Owner, stats.Token, stats.ExpiresAt = s.lease.owner, s.lease.token, s.lease.expires
	}
	return stats
}

// Find implements ports.Inspector.
func (s *Store) Find(ctx context.Context, name, id string) (ports.Found, error) {
	if err := core.ValidateID(id); err != nil {
		return ports.Found{}, err
	}
	q, err := s.b.queue(ctx, name)
	if err != nil {
		return ports.Found{}, err
	}
	sh := q.shards[core.ShardOf(id, len(q.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	found := ports.Found{Shard: sh.id}
	if e := sh.queued(id); e != nil {
		job := e.view(e.payloads.Len()).Job
		found.Queued = &job
	}
	if e := sh.ids[id]; e != nil && e.claim != nil {
		view := sh.claimView(e.claim, len(e.claim.Payloads), s.b.now())
		found.Claim = &view
	}
	if d := sh.morgue.entries[id]; d != nil {
		dead := deadView(d, len(d.Payloads)).DeadLetter
		found.DeadLetter = &dead
	}
	return found, nil
}

// view is the queued job with n of its payloads at most.
func (e *entity) view(n int) ports.JobView {
	list := e.payloads.List()
	return ports.JobView{
		Job:   core.Job{ID: e.id, Payloads: firstOf(list, n), State: e.State},
		Count: len(list),
	}
}

func (s *shard) claimView(c *claim, n int, now core.Instant) ports.ClaimView {
	view := ports.ClaimView{
		Claim:     c.Claim,
		Count:     len(c.Payloads),
		Shard:     s.id,
		Owner:     c.by.owner,
		Node:      c.by.node,
		Lane:      c.by.lane,
		Since:     c.by.since,
		LeaseOver: c.Receipt.Token != s.lease.token || !s.lease.lasts(now),
		Cancelled: c.cancelled,
	}
	view.Payloads = firstOf(c.Payloads, n)
	return view
}

func deadView(d *core.DeadLetter, n int) ports.DeadLetterView {
	view := ports.DeadLetterView{DeadLetter: *d, Count: len(d.Payloads)}
	view.Payloads = firstOf(d.Payloads, n)
	return view
}

// firstOf copies the first n payloads; nil for none.
func firstOf(list []core.Payload, n int) []core.Payload {
	if n <= 0 {
		return nil
	}
	return slices.Clone(list[:min(n, len(list))])
}

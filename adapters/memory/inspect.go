package memory

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Stats implements [ports.Inspector].
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

// Jobs implements [ports.Inspector].
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	if err := storekit.CheckSortBy(r.SortBy, q.record); err != nil {
		return ports.JobsPage{}, err
	}
	p := storekit.NewPager[ports.JobView](r.PageRequest, r.SortBy == ports.ByID || r.SortBy == ports.RetryingByID)
	for _, sh := range q.shards {
		sh.mu.Lock()
		for _, l := range sh.lists(r.SortBy) {
			gather(p, l, r.Descending, func(e *entity) ports.JobView { return e.view(r.Payloads) })
		}
		sh.mu.Unlock()
	}
	var page ports.JobsPage
	page.Jobs, page.Next = p.Page()
	return page, nil
}

// lists returns the lists that together have the jobs of an order.
func (s *shard) lists(by ports.SortBy) []*sorted[*entity] {
	switch by {
	case ports.ByID:
		return []*sorted[*entity]{&s.byID}
	case ports.RetryingByTime:
		return []*sorted[*entity]{&s.retrying.byTime}
	case ports.RetryingByID:
		return []*sorted[*entity]{&s.retrying.byID}
	case ports.RetryingByCount:
		return []*sorted[*entity]{&s.retrying.byCount}
	}
	return []*sorted[*entity]{&s.ready, &s.parked}
}

// gather adds to a page what it wants of a list.
func gather[T, V any](p *storekit.Pager[V], l *sorted[T], descending bool, view func(T) V) {
	for it := range l.Scan(place(p.After()), descending) {
		at := ports.Cursor(it.place)
		if !p.Wants(at) {
			return
		}
		p.Add(at, view(it.value))
	}
}

// Claimed implements [ports.Inspector]. Few jobs are claimed at once, so they are
// sorted only here.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.ClaimedPage{}, err
	}
	p := storekit.NewPager[ports.ClaimView](r, false)
	for _, sh := range q.shards {
		sh.mu.Lock()
		now := s.b.now()
		for c := sh.claimed.first; c != nil; c = c.next {
			if at := (ports.Cursor{Key: int64(c.by.since), ID: c.ID}); p.Wants(at) {
				p.Add(at, sh.claimView(c, r.Payloads, now))
			}
		}
		sh.mu.Unlock()
	}
	var page ports.ClaimedPage
	page.Claims, page.Next = p.Page()
	return page, nil
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.MorguePage{}, err
	}
	p := storekit.NewPager[ports.DeadLetterView](r.PageRequest, r.ByID)
	for _, sh := range q.shards {
		sh.mu.Lock()
		l := &sh.morgue.byTime
		if r.ByID {
			l = &sh.morgue.byID
		}
		gather(p, l, r.Descending, func(d *core.DeadLetter) ports.DeadLetterView { return deadLetterView(d, r.Payloads) })
		sh.mu.Unlock()
	}
	var page ports.MorguePage
	page.DeadLetters, page.Next = p.Page()
	return page, nil
}

// Find implements [ports.Inspector].
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
	found := ports.Found{Shard: sh.id, Standing: sh.standing(id, q.view().Paused, s.b.now())}
	if e := sh.queued(id); e != nil {
		job := e.view(e.payloads.Len()).Job
		found.Queued = &job
	}
	if e := sh.ids[id]; e != nil && e.claim != nil {
		view := sh.claimView(e.claim, len(e.claim.Payloads), s.b.now())
		found.Claim = &view
	}
	if d := sh.morgue.deadLetters[id]; d != nil {
		view := deadLetterView(d, len(d.Payloads))
		found.DeadLetter = &view.DeadLetter
	}
	return found, nil
}

// view returns the queued job with at most n of its payloads.
func (e *entity) view(n int) ports.JobView {
	list := e.payloads.List()
	return ports.JobView{
		Job:   core.Job{ID: e.id, Payloads: firstPayloads(list, n), State: e.State},
		Count: len(list),
	}
}

// claimView returns a claimed job with at most n of its payloads.
func (s *shard) claimView(c *claim, n int, now core.Instant) ports.ClaimView {
	view := ports.ClaimView{
		Claim:     c.Claim,
		Count:     len(c.Payloads),
		Shard:     s.id,
		Owner:     c.by.owner,
		Node:      c.by.node,
		Since:     c.by.since,
		LeaseOver: c.Receipt.Token != s.lease.token || !s.lease.excludes(now),
		Cancelled: c.cancelled,
	}
	view.Payloads = firstPayloads(c.Payloads, n)
	return view
}

// deadLetterView returns a dead letter with at most n of its payloads.
func deadLetterView(d *core.DeadLetter, n int) ports.DeadLetterView {
	view := ports.DeadLetterView{DeadLetter: *d, Count: len(d.Payloads)}
	view.Payloads = firstPayloads(d.Payloads, n)
	return view
}

// firstPayloads copies the first n payloads of a list; nil if n is 0 or less.
func firstPayloads(list []core.Payload, n int) []core.Payload {
	if n <= 0 {
		return nil
	}
	return slices.Clone(list[:min(n, len(list))])
}

package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Stats implements [ports.Inspector].
func (s *Store) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}

	stats := make([]ports.QueueStats, len(r.Queues))
	for i, name := range r.Queues {
		q, err := s.b.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		shards, err := storekit.ShardsOf(q.record, r.Shards)
		if err != nil {
			return nil, err
		}

		stats[i] = q.stats(shards)
		stats[i].Now = s.b.now()
	}
	return stats, nil
}

func (q *queue) stats(shards []core.Shard) ports.QueueStats {
	stats := ports.QueueStats{Queue: q.view(), Shards: make([]ports.ShardStats, len(shards))}
	for i, shard := range shards {
		stats.Shards[i] = q.shards[shard.Index].stats()
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

// Jobs implements [ports.Inspector]. If only fresh jobs are requested, it removes jobs with a
// failure from the page that it has found.
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	shards, err := storekit.ShardsOfJobs(&r, q.record)
	if err != nil {
		return ports.JobsPage{}, err
	}

	p := storekit.NewPager[ports.JobView](r.PageRequest, r.ByID())
	for _, shard := range shards {
		sh := q.shards[shard.Index]
		sh.mu.Lock()
		for _, l := range sh.lists(r.SortBy) {
			gather(p, l, func(e *entity) ports.JobView { return e.view(r.Payloads) })
		}
		sh.mu.Unlock()
	}

	var page ports.JobsPage
	page.Jobs, page.Next = p.Page()
	for i := range page.Jobs {
		shorten(&r.PageRequest, &page.Jobs[i].Count, &page.Jobs[i].Failures)
	}
	if r.Fresh {
		page.Jobs = storekit.FreshOf(page.Jobs)
	}
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

// gather adds the entries of a list that a page wants.
func gather[T, V any](p *storekit.Pager[V], l *sorted[T], view func(T) V) {
	for it := range l.Scan(p.Start(), p.Descending()) {
		at := ports.Cursor(it.place)
		if !p.Wants(at) {
			return
		}
		p.Add(at, view(it.value))
	}
}

// Claimed implements [ports.Inspector]. It sorts the claimed jobs at each call, because few jobs
// are claimed at once.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	q, shards, err := s.b.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ClaimedPage{}, err
	}

	p := storekit.NewPager[ports.ClaimView](r, false)
	for _, shard := range shards {
		sh := q.shards[shard.Index]
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
	for i := range page.Claims {
		shorten(&r, &page.Claims[i].Count, &page.Claims[i].Failures)
	}
	return page, nil
}

// shorten bounds the count and the failures of an entry by the limits of a page's request.
func shorten(r *ports.PageRequest, count *int, failures *core.Failures) {
	*count, *failures = r.Counted(*count), failures.Short(r.ErrorBytes)
}

// listed returns a queue and the shards that a list is about, unless the request is invalid.
func (b *backend) listed(ctx context.Context, name string, indexes []int, invalid error) (*queue, []core.Shard, error) {
	q, err := b.queue(ctx, name)
	if err = cmp.Or(err, invalid); err != nil {
		return nil, nil, err
	}
	shards, err := storekit.ShardsOf(q.record, indexes)
	return q, shards, err
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	q, shards, err := s.b.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.MorguePage{}, err
	}

	p := storekit.NewPager[ports.DeadLetterView](r.PageRequest, r.ByID)
	for _, shard := range shards {
		sh := q.shards[shard.Index]
		sh.mu.Lock()
		l := sh.morgue.listByTime(r.Group)
		if r.ByID {
			l = &sh.morgue.byID
		}
		gather(p, l, func(d *core.DeadLetter) ports.DeadLetterView { return deadLetterView(d, r.Payloads) })
		sh.mu.Unlock()
	}

	var page ports.MorguePage
	page.DeadLetters, page.Next = p.Page()
	for i := range page.DeadLetters {
		shorten(&r.PageRequest, &page.DeadLetters[i].Count, &page.DeadLetters[i].Failures)
	}
	return page, nil
}

// Find implements [ports.Inspector].
func (s *Store) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	if err := r.Validate(); err != nil {
		return ports.Found{}, err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.Found{}, err
	}

	sh := q.shards[core.ShardOf(r.ID, len(q.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()

	found := ports.Found{Shard: sh.id, Standing: sh.standing(r.ID, q.view().Paused, s.b.now())}
	var bound core.Bound
	some := func(p ports.Place, list []core.Payload) []core.Payload {
		remaining := list[behind(r.Start(p), list):]
		some := firstPayloads(remaining, bound.Take(remaining[:min(r.Most(p), len(remaining))]))
		found.AddNext(&r, p, some, len(some) < len(remaining))
		return some
	}

	if e := sh.queued(r.ID); e != nil {
		job := e.view(0)
		job.Count = r.Counted(job.Count)
		job.Payloads = some(ports.PlaceQueued, e.payloads.List())
		found.Queued = &job
	}

	if e := sh.ids[r.ID]; e != nil && e.claim != nil {
		view := sh.claimView(e.claim, 0, s.b.now())
		view.Count = r.Counted(view.Count)
		view.Payloads = some(ports.PlaceClaimed, e.claim.Payloads)
		found.Claim = &view
	}

	if d := sh.morgue.deadLetters[r.ID]; d != nil {
		view := deadLetterView(d, 0)
		view.Count = r.Counted(view.Count)
		view.Payloads = some(ports.PlaceDead, d.Payloads)
		found.DeadLetter = &view
	}

	if p := sh.past.byID[r.ID]; p != nil {
		record := *p
		record.Result = slices.Clone(p.Result)
		found.Past = &record
	}
	found.Mark = sh.past.mark(r.ID)
	return found, nil
}

// Pending implements [ports.Inspector].
func (s *Store) Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PendingReply{}, err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.PendingReply{}, err
	}

	reply := ports.PendingReply{IDs: make([]ports.Pending, len(r.IDs))}
	for i, id := range r.IDs {
		reply.IDs[i] = q.shards[core.ShardOf(id, len(q.shards))].pending(id, s.b.now())
	}
	return reply, nil
}

// pending returns what is not settled yet of an id.
func (s *shard) pending(id string, now core.Instant) ports.Pending {
	s.mu.Lock()
	defer s.mu.Unlock()

	p := ports.Pending{Shard: s.id, Now: now, Dead: s.morgue.deadLetters[id] != nil}
	if e := s.queued(id); e != nil {
		p.AddQueued(e.FirstPush)
		p.Held = e.Held()
	}
	if e := s.ids[id]; e != nil && e.claim != nil {
		p.AddClaimed(e.claim.FirstPush)
	}
	return p
}

// behind returns the number of payloads of an ordered list that are before a cursor.
func behind(c ports.PayloadCursor, list []core.Payload) int {
	if c.Skip == 0 {
		return 0
	}
	byScore := func(p core.Payload, score float64) int { return cmp.Compare(p.Score, score) }
	lower, _ := slices.BinarySearchFunc(list, c.Score, byScore)
	n := lower
	for n < len(list) && n-lower < c.Skip && list[n].Score == c.Score {
		n++
	}
	return n
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
		Drop:      c.drop,
	}

	if !view.LeaseOver {
		view.LeaseUntil = s.lease.expires
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

package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Stats implements ports.Inspector.
func (m *Store) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return nil, err
	}

	var all []ports.QueueStats
	for _, name := range r.Queues {
		q, err := m.queue(ctx, name)
		if err != nil {
			return nil, err
		}

		shards, err := q.chosen(r.Shards)
		if err != nil {
			return nil, err
		}

		stats := ports.QueueStats{Queue: q.view(), Now: m.Now()}
		for _, s := range shards {
			stats.Shards = append(stats.Shards, s.stats())
			stats.Counts = sum(stats.Counts, s.counts())
		}
		all = append(all, stats)
	}

	return all, nil
}

// chosen returns the shards with the given indexes, or all shards for nil.
func (q *queue) chosen(indexes []int) ([]*shard, error) {
	if indexes == nil {
		return q.shards, nil
	}

	var chosen []*shard
	for i, s := range q.shards {
		if slices.Contains(indexes, i) {
			chosen = append(chosen, s)
		}
	}

	for _, i := range indexes {
		if i < 0 || i >= len(q.shards) {
			return nil, fmt.Errorf("%w: shard %d", ports.ErrInvalidRequest, i)
		}
	}

	return chosen, nil
}

func (s *shard) stats() ports.ShardStats {
	stats := ports.ShardStats{Shard: s.at, Counts: s.counts()}
	if l := s.lease; l.owner != "" && !l.released {
		stats.Owner, stats.Token, stats.ExpiresAt = l.owner, l.token, l.expires
	}
	return stats
}

func (s *shard) counts() ports.Counts {
	c := ports.Counts{
		Claimed:   int64(len(s.claimed)),
		Dead:      int64(len(s.dead)),
		Processed: s.processed,
		Failed:    s.failed,

		Superseded: s.superseded,
		Stale:      s.stale,
		Repeated:   s.repeated,
	}

	for _, job := range s.queued {
		if job.Fresh() {
			c.Fresh++
		} else {
			c.Retrying++
		}
		if !job.Fresh() && job.PerformAt == core.MaxInstant {
			c.Held++
		}
		c.Oldest = earlier(c.Oldest, core.Head{Due: job.WaitsFrom(), OK: true})
	}
	return c
}

func sum(a, b ports.Counts) ports.Counts {
	return ports.Counts{
		Fresh:     a.Fresh + b.Fresh,
		Retrying:  a.Retrying + b.Retrying,
		Claimed:   a.Claimed + b.Claimed,
		Dead:      a.Dead + b.Dead,
		Processed: a.Processed + b.Processed,
		Failed:    a.Failed + b.Failed,
		Oldest:    earlier(a.Oldest, b.Oldest),

		Superseded: a.Superseded + b.Superseded,
		Stale:      a.Stale + b.Stale,
		Repeated:   a.Repeated + b.Repeated,
		Held:       a.Held + b.Held,
	}
}

func earlier(a, b core.Head) core.Head {
	if !a.OK || b.OK && b.Due < a.Due {
		return b
	}
	return a
}

// listed returns the queue and the shards of a list.
func (m *Store) listed(ctx context.Context, r *ports.PageRequest, invalid error) (*queue, []*shard, error) {
	q, err := m.queue(ctx, r.Queue)
	if err = cmp.Or(err, invalid); err != nil {
		return nil, nil, err
	}
	shards, err := q.chosen(r.Shards)
	return q, shards, err
}

// shorten bounds what a page shows of an entry.
func shorten(r *ports.PageRequest, payloads *[]core.Payload, failures *core.Failures, count *int) {
	*payloads, *failures, *count = first(*payloads, r.Payloads), failures.Short(r.ErrorBytes), r.Counted(*count)
}

// Jobs implements ports.Inspector.
func (m *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	q, shards, err := m.listed(ctx, &r.PageRequest, r.Validate())
	if err != nil {
		return ports.JobsPage{}, err
	}
	if r.SortBy == ports.ByID && !q.record.IndexIDs {
		return ports.JobsPage{}, fmt.Errorf("%w: %q keeps no index of ids", ports.ErrQueueMismatch, r.Queue)
	}

	var jobs []ports.JobView
	for _, s := range shards {
		for _, job := range s.queued {
			if r.SortBy == ports.ByTime || r.SortBy == ports.ByID || !job.Fresh() {
				jobs = append(jobs, ports.JobView{Job: job, Count: len(job.Payloads)})
			}
		}
	}

	if r.Fresh {
		jobs = slices.DeleteFunc(jobs, func(v ports.JobView) bool { return !v.Fresh() })
	}

	page, next := pageOf(jobs, r.PageRequest, r.ByID(), func(v ports.JobView) ports.Cursor {
		if r.SortBy == ports.RetryingByCount {
			return ports.Cursor{Key: int64(v.RetryCount), ID: v.ID}
		}
		return ports.Cursor{Key: int64(v.PerformAt), ID: v.ID}
	})

	for i := range page {
		shorten(&r.PageRequest, &page[i].Payloads, &page[i].Failures, &page[i].Count)
	}
	return ports.JobsPage{Jobs: page, Next: next}, nil
}

// Claimed implements ports.Inspector.
func (m *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, shards, err := m.listed(ctx, &r, r.Validate())
	if err != nil {
		return ports.ClaimedPage{}, err
	}

	var claims []ports.ClaimView
	for _, s := range shards {
		for _, c := range s.claimed {
			claims = append(claims, s.view(c, m.Now()))
		}
	}

	page, next := pageOf(claims, r, false, func(v ports.ClaimView) ports.Cursor {
		return ports.Cursor{Key: int64(v.Since), ID: v.ID}
	})

	for i := range page {
		shorten(&r, &page[i].Payloads, &page[i].Failures, &page[i].Count)
	}
	return ports.ClaimedPage{Claims: page, Next: next}, nil
}

// view returns a claim as Inspector shows it at an instant.
func (s *shard) view(c claimedJob, now core.Instant) ports.ClaimView {
	v := c.ClaimView
	v.Drop = c.drop
	if v.LeaseOver = c.Receipt.Token != s.lease.token || !s.lease.lasts(now); !v.LeaseOver {
		v.LeaseUntil = s.lease.expires
	}
	return v
}

// Morgue implements ports.Inspector.
func (m *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, shards, err := m.listed(ctx, &r.PageRequest, r.Validate())
	if err != nil {
		return ports.MorguePage{}, err
	}

	var dead []ports.DeadLetterView
	for _, s := range shards {
		for _, d := range s.dead {
			if r.Group == "" || d.Group == r.Group {
				dead = append(dead, ports.DeadLetterView{DeadLetter: d, Count: len(d.Payloads)})
			}
		}
	}

	page, next := pageOf(dead, r.PageRequest, r.ByID, func(v ports.DeadLetterView) ports.Cursor {
		return ports.Cursor{Key: int64(v.ChangedAt), ID: v.ID}
	})

	for i := range page {
		shorten(&r.PageRequest, &page[i].Payloads, &page[i].Failures, &page[i].Count)
	}
	return ports.MorguePage{DeadLetters: page, Next: next}, nil
}

// Find implements ports.Inspector.
func (m *Store) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.Found{}, err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.Found{}, err
	}

	s := q.shards[core.ShardOf(r.ID, len(q.shards))]
	found := ports.Found{Shard: s.at, Standing: s.standing(r.ID, q.record.Paused, m.Now())}

	// All places share one bound, so they are read in this order: queued, claimed, dead.
	var taken core.Bound
	some := func(p ports.Place, payloads []core.Payload) []core.Payload {
		var some []core.Payload
		at, more := ports.PayloadCursor{}, false
		for _, payload := range payloads {
			at = at.Next([]core.Payload{payload})
			if c := r.Start(p); c.Skip > 0 && (at.Score < c.Score || at.Score == c.Score && at.Skip <= c.Skip) {
				continue
			}
			if more = len(some) == r.Most(p) || taken.Take([]core.Payload{payload}) == 0; more {
				break
			}

			some = append(some, payload)
		}
		found.AddNext(&r, p, some, more)
		return some
	}

	if job, ok := s.queued[r.ID]; ok {
		count := len(job.Payloads)
		job.Payloads = some(ports.PlaceQueued, job.Payloads)
		found.Queued = &ports.JobView{Job: job, Count: r.Counted(count)}
	}

	if c, ok := s.claimed[r.ID]; ok {
		view := s.view(c, m.Now())
		view.Count = r.Counted(view.Count)
		view.Payloads = some(ports.PlaceClaimed, c.Payloads)
		found.Claim = &view
	}

	if dead, ok := s.dead[r.ID]; ok {
		count := len(dead.Payloads)
		dead.Payloads = some(ports.PlaceDead, dead.Payloads)
		found.DeadLetter = &ports.DeadLetterView{DeadLetter: dead, Count: r.Counted(count)}
	}

	if past, ok := s.past[r.ID]; ok {
		found.Past = &past
	}
	found.Mark = s.mark(r.ID)

	return found, nil
}

// pageOf returns one page of a list and the cursor where the next page begins. The entries are in
// order of their cursors, or only of the ids in the cursors.
func pageOf[V any](all []V, r ports.PageRequest, byID bool, cursor func(V) ports.Cursor) (page []V, next ports.Cursor) {
	order := func(a, b ports.Cursor) int {
		if r.Descending {
			a, b = b, a
		}
		if byID {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
	}

	slices.SortFunc(all, func(a, b V) int { return order(cursor(a), cursor(b)) })
	for _, v := range all {
		if before(cursor(v), r, byID, order) || !strings.HasPrefix(cursor(v).ID, r.Prefix) {
			continue
		}

		if len(page) == r.Size() {
			return page, cursor(page[len(page)-1])
		}
		page = append(page, v)
	}

	return page, ports.Cursor{}
}

// before reports whether a cursor is before the first entry of the page.
func before(at ports.Cursor, r ports.PageRequest, byID bool, order func(a, b ports.Cursor) int) bool {
	switch {
	case r.After != (ports.Cursor{}):
		return order(at, r.After) <= 0
	case r.From == nil:
		return false
	case byID:
		return order(at, *r.From) < 0
	}
	return at.Key != r.From.Key && (at.Key < r.From.Key) != r.Descending
}

// first returns a copy of the first n payloads.
func first(payloads []core.Payload, n int) []core.Payload {
	return slices.Clone(payloads[:max(0, min(n, len(payloads)))])
}

// Pending implements ports.Inspector.
func (m *Store) Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.PendingReply{}, err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.PendingReply{}, err
	}

	var reply ports.PendingReply
	for _, id := range r.IDs {
		s := q.shards[core.ShardOf(id, len(q.shards))]
		job, queued := s.queued[id]
		claim, claimed := s.claimed[id]
		_, dead := s.dead[id]

		p := ports.Pending{Shard: s.at, Now: m.Now(), Queued: queued, Claimed: claimed, Dead: dead}
		switch {
		case queued && claimed:
			p.FirstPush = min(job.FirstPush, claim.FirstPush)
		case queued:
			p.FirstPush = job.FirstPush
		case claimed:
			p.FirstPush = claim.FirstPush
		}
		p.Held = queued && job.Held()
		reply.IDs = append(reply.IDs, p)
	}
	return reply, nil
}

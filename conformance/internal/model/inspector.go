package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Stats implements ports.Inspector.
func (m *Store) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []ports.QueueStats
	for _, name := range queues {
		q, err := m.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		stats := ports.QueueStats{Queue: q.record, Now: m.Now()}
		for _, s := range q.shards {
			stats.Shards = append(stats.Shards, s.stats())
			stats.Counts = sum(stats.Counts, s.counts())
		}
		all = append(all, stats)
	}
	return all, nil
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
	}
	for _, job := range s.queued {
		if job.Fresh() {
			c.Fresh++
		} else {
			c.Retrying++
		}
		c.Oldest = earlier(c.Oldest, core.Head{Due: job.PerformAt, OK: true})
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
	}
}

func earlier(a, b core.Head) core.Head {
	if !a.OK || b.OK && b.Due < a.Due {
		return b
	}
	return a
}

// History implements ports.Inspector.
func (m *Store) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return nil, err
	}
	var minutes []ports.MinuteStats
	for at, stats := range q.minutes {
		if at >= r.From && (r.To == 0 || at < r.To) {
			minutes = append(minutes, ports.MinuteStats{At: at, Stats: *stats})
		}
	}
	slices.SortFunc(minutes, func(a, b ports.MinuteStats) int { return cmp.Compare(a.At, b.At) })
	return minutes, nil
}

// Jobs implements ports.Inspector.
func (m *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	if r.SortBy == ports.ByID && !q.record.IndexIDs {
		return ports.JobsPage{}, fmt.Errorf("%w: %q keeps no index of ids", ports.ErrQueueMismatch, r.Queue)
	}
	var jobs []ports.JobView
	for _, s := range q.shards {
		for _, job := range s.queued {
			if r.SortBy == ports.ByTime || r.SortBy == ports.ByID || !job.Fresh() {
				jobs = append(jobs, ports.JobView{Job: job, Count: len(job.Payloads)})
			}
		}
	}
	byID := r.SortBy == ports.ByID || r.SortBy == ports.RetryingByID
	page, next := pageOf(jobs, r.PageRequest, byID, func(v ports.JobView) ports.Cursor {
		if r.SortBy == ports.RetryingByCount {
			return ports.Cursor{Key: int64(v.RetryCount), ID: v.ID}
		}
		return ports.Cursor{Key: int64(v.PerformAt), ID: v.ID}
	})
	for i := range page {
		page[i].Payloads = first(page[i].Payloads, r.Payloads)
	}
	return ports.JobsPage{Jobs: page, Next: next}, nil
}

// Claimed implements ports.Inspector.
func (m *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.ClaimedPage{}, err
	}
	var claims []ports.ClaimView
	for _, s := range q.shards {
		for _, c := range s.claimed {
			claims = append(claims, s.view(c, m.Now()))
		}
	}
	page, next := pageOf(claims, r, false, func(v ports.ClaimView) ports.Cursor {
		return ports.Cursor{Key: int64(v.Since), ID: v.ID}
	})
	for i := range page {
		page[i].Payloads = first(page[i].Payloads, r.Payloads)
	}
	return ports.ClaimedPage{Claims: page, Next: next}, nil
}

// view returns a claim as Inspector shows it at an instant.
func (s *shard) view(c claimedJob, now core.Instant) ports.ClaimView {
	v := c.ClaimView
	v.LeaseOver = c.Receipt.Token != s.lease.token || !s.lease.lasts(now)
	return v
}

// Morgue implements ports.Inspector.
func (m *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.MorguePage{}, err
	}
	var dead []ports.DeadLetterView
	for _, s := range q.shards {
		for _, d := range s.dead {
			dead = append(dead, ports.DeadLetterView{DeadLetter: d, Count: len(d.Payloads)})
		}
	}
	page, next := pageOf(dead, r.PageRequest, r.ByID, func(v ports.DeadLetterView) ports.Cursor {
		return ports.Cursor{Key: int64(v.ChangedAt), ID: v.ID}
	})
	for i := range page {
		page[i].Payloads = first(page[i].Payloads, r.Payloads)
	}
	return ports.MorguePage{DeadLetters: page, Next: next}, nil
}

// Find implements ports.Inspector.
func (m *Store) Find(ctx context.Context, queue, id string) (ports.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := core.ValidateID(id); err != nil {
		return ports.Found{}, err
	}
	q, err := m.queue(ctx, queue)
	if err != nil {
		return ports.Found{}, err
	}
	s := q.shards[core.ShardOf(id, len(q.shards))]
	found := ports.Found{Shard: s.at, Standing: s.standing(id, q.record.Paused, m.Now())}
	if job, ok := s.queued[id]; ok {
		job.Payloads = slices.Clone(job.Payloads)
		found.Queued = &job
	}
	if c, ok := s.claimed[id]; ok {
		view := s.view(c, m.Now())
		view.Payloads = slices.Clone(c.Payloads)
		found.Claim = &view
	}
	if dead, ok := s.dead[id]; ok {
		dead.Payloads = slices.Clone(dead.Payloads)
		found.DeadLetter = &dead
	}
	return found, nil
}

// pageOf returns one page of a list and where the next begins. Entries are in order
// of their cursors, or of the ids in these alone.
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
		if r.After != (ports.Cursor{}) && order(cursor(v), r.After) <= 0 {
			continue
		}
		if len(page) == r.Size() {
			return page, cursor(page[len(page)-1])
		}
		page = append(page, v)
	}
	return page, ports.Cursor{}
}

// first returns a copy of the first n payloads.
func first(payloads []core.Payload, n int) []core.Payload {
	return slices.Clone(payloads[:max(0, min(n, len(payloads)))])
}

package memory

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// gather adds a list to a page.
func gather[T, V any](p *storekit.Pager[V], l *sorted[T], descending bool, view func(T) V) {
	for it := range l.Scan(place(p.After()), descending) {
		at := ports.Cursor(it.place)
		if !p.Wants(at) {
			return
		}
		p.Add(at, view(it.value))
	}
}

// Jobs implements ports.Inspector.
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

// lists are those that together have the jobs of an order.
func (s *shard) lists(o ports.SortBy) []*sorted[*entity] {
	switch o {
	case ports.ByID:
		return []*sorted[*entity]{&s.byID}
	case ports.RetryingByTime:
		return []*sorted[*entity]{&s.retries.byTime}
	case ports.RetryingByID:
		return []*sorted[*entity]{&s.retries.byID}
	case ports.RetryingByCount:
		return []*sorted[*entity]{&s.retries.byCount}
	}
	return []*sorted[*entity]{&s.ready, &s.parked}
}

// Claimed implements ports.Inspector. What is claimed at once is little, so it
// is put in order only here.
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

// Morgue implements ports.Inspector.
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
		gather(p, l, r.Descending, func(d *core.DeadLetter) ports.DeadLetterView { return deadView(d, r.Payloads) })
		sh.mu.Unlock()
	}
	var page ports.MorguePage
	page.DeadLetters, page.Next = p.Page()
	return page, nil
}

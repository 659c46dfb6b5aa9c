package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// pager gathers one page from several lists: the first entries after the cursor,
// and one more that tells whether another page follows.
type pager[V any] struct {
	after      place
	descending bool
	size       int
	rows       []item[V]
}

// newPager starts the page that a request asks for. Lists by id have no keys.
func newPager[V any](r ports.PageRequest, byID bool) *pager[V] {
	after := place{r.After.Key, r.After.ID}
	if byID {
		after.key = 0
	}
	return &pager[V]{after: after, descending: r.Descending, size: r.Size()}
}

func (p *pager[V]) compare(a, b place) int {
	if p.descending {
		return b.compare(a)
	}
	return a.compare(b)
}

// wants reports whether a place is behind the cursor.
func (p *pager[V]) wants(at place) bool {
	return p.after == place{} || p.compare(p.after, at) < 0
}

func (p *pager[V]) add(at place, v V) { p.rows = append(p.rows, item[V]{at, v}) }

// trim keeps no more rows than a page needs.
func (p *pager[V]) trim() {
	slices.SortFunc(p.rows, func(a, b item[V]) int { return p.compare(a.place, b.place) })
	if len(p.rows) > p.size+1 {
		clear(p.rows[p.size+1:])
		p.rows = p.rows[:p.size+1]
	}
}

// page is what was gathered, and the cursor of the next page.
func (p *pager[V]) page() (views []V, next ports.Cursor) {
	p.trim()
	if len(p.rows) > p.size {
		last := p.rows[p.size-1].place
		next = ports.Cursor{Key: last.key, ID: last.id}
		p.rows = p.rows[:p.size]
	}
	for _, row := range p.rows {
		views = append(views, row.value)
	}
	return views, next
}

// gather adds a list to a page.
func gather[T, V any](p *pager[V], l *sorted[T], view func(T) V) {
	left := p.size + 1
	for it := range l.Scan(p.after, p.descending) {
		if left == 0 {
			break
		}
		p.add(it.place, view(it.value))
		left--
	}
	p.trim()
}

// Jobs implements ports.Inspector.
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	if r.SortBy > ports.RetryingByCount {
		return ports.JobsPage{}, fmt.Errorf("%w: order %d of jobs is not known", ports.ErrInvalidRequest, r.SortBy)
	}
	if r.SortBy == ports.ByID && !q.record.IndexIDs {
		return ports.JobsPage{}, fmt.Errorf("%w: %q lists no jobs by id; declare it with IndexIDs",
			ports.ErrQueueMismatch, r.Queue)
	}
	p := newPager[ports.JobView](r.PageRequest, r.SortBy == ports.ByID || r.SortBy == ports.RetryingByID)
	for _, sh := range q.shards {
		sh.mu.Lock()
		for _, l := range sh.lists(r.SortBy) {
			gather(p, l, func(e *entity) ports.JobView { return e.view(r.Payloads) })
		}
		sh.mu.Unlock()
	}
	var page ports.JobsPage
	page.Jobs, page.Next = p.page()
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
	p := newPager[ports.ClaimView](r, false)
	for _, sh := range q.shards {
		sh.mu.Lock()
		now := s.b.now()
		for c := sh.claimed.first; c != nil; c = c.next {
			if at := (place{int64(c.by.since), c.ID}); p.wants(at) {
				p.add(at, sh.claimView(c, r.Payloads, now))
			}
		}
		sh.mu.Unlock()
		p.trim()
	}
	var page ports.ClaimedPage
	page.Claims, page.Next = p.page()
	return page, nil
}

// Morgue implements ports.Inspector.
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.MorguePage{}, err
	}
	p := newPager[ports.DeadLetterView](r.PageRequest, r.ByID)
	for _, sh := range q.shards {
		sh.mu.Lock()
		l := &sh.morgue.byTime
		if r.ByID {
			l = &sh.morgue.byID
		}
		gather(p, l, func(d *core.DeadLetter) ports.DeadLetterView { return deadView(d, r.Payloads) })
		sh.mu.Unlock()
	}
	var page ports.MorguePage
	page.DeadLetters, page.Next = p.page()
	return page, nil
}

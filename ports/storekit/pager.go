package storekit

import (
	"cmp"
	"slices"

	"github.com/skeinq/skein/ports"
)

// Pager merges the entries of a queue's shards into one page of a list. Add what each
// shard holds, in any order; it keeps no more than a page and one entry beyond, which
// shows that another page follows. V is the view of an entry, such as [ports.JobView].
//
// Make it with [NewPager]. It is for one goroutine.
type Pager[V any] struct {
	after      ports.Cursor
	byID       bool
	descending bool
	size       int
	// rows are at most size+1. Once there are so many they are a heap, the last of
	// the page's order first.
	rows []row[V]
}

type row[V any] struct {
	at    ports.Cursor
	value V
}

// NewPager returns a [Pager] for the page that r asks for. byID is for lists in order of
// id alone, which ignore keys.
func NewPager[V any](r ports.PageRequest, byID bool) *Pager[V] {
	p := &Pager[V]{byID: byID, descending: r.Descending, size: r.Size()}
	p.after = p.place(r.After)
	return p
}

// After returns the cursor behind which the page begins in every shard. The zero cursor
// is the start of the list, in both directions.
func (p *Pager[V]) After() ports.Cursor { return p.after }

// Need returns how many entries behind the cursor the page needs of one shard at most.
func (p *Pager[V]) Need() int { return p.size + 1 }

// Wants reports whether an entry at a place can be part of the page, given what was
// added so far: it is behind the cursor and, if the page is full, before its end. If a
// place behind the cursor isn't wanted, those that follow it in the list aren't
// either.
func (p *Pager[V]) Wants(at ports.Cursor) bool {
	at = p.place(at)
	if p.after != (ports.Cursor{}) && p.compare(p.after, at) >= 0 {
		return false
	}
	return len(p.rows) <= p.size || p.compare(at, p.rows[0].at) < 0
}

// Add adds an entry at its place, unless the page doesn't want it. Each place is added
// once.
func (p *Pager[V]) Add(at ports.Cursor, v V) {
	at = p.place(at)
	switch {
	case !p.Wants(at):
	case len(p.rows) <= p.size:
		p.rows = append(p.rows, row[V]{at, v})
		if len(p.rows) > p.size {
			slices.SortFunc(p.rows, func(a, b row[V]) int { return p.compare(b.at, a.at) })
		}
	default:
		p.rows[0] = row[V]{at, v}
		p.sink()
	}
}

// Page returns the page in order, nil if it is empty, and the cursor of the page that
// follows, zero if there is none. It ends the Pager.
func (p *Pager[V]) Page() (views []V, next ports.Cursor) {
	slices.SortFunc(p.rows, func(a, b row[V]) int { return p.compare(a.at, b.at) })
	if len(p.rows) > p.size {
		p.rows = p.rows[:p.size]
		next = p.rows[p.size-1].at
	}
	for i := range p.rows {
		views = append(views, p.rows[i].value)
	}
	return views, next
}

// place is where an entry is in this list.
func (p *Pager[V]) place(at ports.Cursor) ports.Cursor {
	if p.byID {
		at.Key = 0
	}
	return at
}

func (p *Pager[V]) compare(a, b ports.Cursor) int {
	if p.descending {
		a, b = b, a
	}
	if a.Key != b.Key {
		return cmp.Compare(a.Key, b.Key)
	}
	return cmp.Compare(a.ID, b.ID)
}

// sink restores the heap after its first row was replaced.
func (p *Pager[V]) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(p.rows) {
			return
		}
		if other := child + 1; other < len(p.rows) && p.compare(p.rows[other].at, p.rows[child].at) > 0 {
			child = other
		}
		if p.compare(p.rows[i].at, p.rows[child].at) >= 0 {
			return
		}
		p.rows[i], p.rows[child] = p.rows[child], p.rows[i]
		i = child
	}
}

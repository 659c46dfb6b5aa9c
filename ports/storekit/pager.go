package storekit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Pager merges the entries of a queue's shards into one page of a list. Add the entries of each
// shard, in any order. The Pager keeps only the entries of one page and one more, which shows that
// another page follows. V is the view of an entry, such as [ports.JobView], or any other value that
// identifies the entry.
//
// Make it with [NewPager]. It is for one goroutine.
type Pager[V any] struct {
	start      Start
	prefix     string
	byID       bool
	descending bool
	size       int
	// rows has at most size+1 rows. Once it has size+1 rows, it is a heap whose first row is the
	// last one in the order of the page.
	rows []row[V]
}

type row[V any] struct {
	at    ports.Cursor
	value V
}

// Start is where a page begins in each shard, in the list's direction. The zero value is the
// beginning of the list.
type Start struct {
	// Behind is true if the page begins behind At or, if Inclusive is true, at At. At need not be
	// the place of an entry. In lists by id the Key of At is 0.
	Behind    bool
	At        ports.Cursor
	Inclusive bool
}

// afterAllIDs sorts behind every id. If it is appended to a prefix, the result sorts behind every
// id with that prefix. It is longer than an id can be, and repeats the last character of Unicode.
var afterAllIDs = strings.Repeat("\U0010FFFF", core.MaxIDBytes/4+1)

// startOf returns where the page that r requests begins, without regard to a prefix.
func startOf(r ports.PageRequest, byID bool) Start {
	switch {
	case byID && r.After.ID != "":
		return Start{Behind: true, At: ports.Cursor{ID: r.After.ID}}
	case !byID && r.After != ports.Cursor{}:
		return Start{Behind: true, At: r.After}
	case r.From != nil && byID:
		return Start{Behind: true, At: ports.Cursor{ID: r.From.ID}, Inclusive: true}
	case r.From != nil && r.Descending:
		return Start{Behind: true, At: ports.Cursor{Key: r.From.Key, ID: afterAllIDs}}
	case r.From != nil:
		return Start{Behind: true, At: ports.Cursor{Key: r.From.Key}}
	}
	return Start{}
}

// NewPager returns a [Pager] for the page that r requests. byID is true for lists in order of id
// alone, which ignore keys. Other lists ignore Prefix.
func NewPager[V any](r ports.PageRequest, byID bool) *Pager[V] {
	p := &Pager[V]{start: startOf(r, byID), byID: byID, descending: r.Descending, size: r.Size()}
	if !byID || r.Prefix == "" {
		return p
	}
	p.prefix = r.Prefix
	first := Start{Behind: true, At: ports.Cursor{ID: r.Prefix}, Inclusive: true}
	if r.Descending {
		first = Start{Behind: true, At: ports.Cursor{ID: r.Prefix + afterAllIDs}}
	}
	if !p.start.Behind || p.compare(p.start.At, first.At) < 0 {
		p.start = first
	}
	return p
}

// Start returns where the page begins in each shard.
func (p *Pager[V]) Start() Start { return p.start }

// Prefix returns the prefix of the ids of the page. Empty means all ids.
func (p *Pager[V]) Prefix() string { return p.prefix }

// Descending reports whether the order of the list is reversed.
func (p *Pager[V]) Descending() bool { return p.descending }

// Need returns the maximum number of entries that the page needs of one shard, from its start on.
func (p *Pager[V]) Need() int { return p.size + 1 }

// Wants reports whether an entry at a place can be part of the page, given the entries that were
// added so far. That is the case if the place is not before the page's start, the id has the prefix
// and, if the page is full, the place is before the page's end. If Wants returns false for a place
// that is not before the start, it also returns false for all later places of the list, so the
// caller can stop.
func (p *Pager[V]) Wants(at ports.Cursor) bool {
	at = p.place(at)
	if !p.begins(at) || !strings.HasPrefix(at.ID, p.prefix) {
		return false
	}
	return len(p.rows) <= p.size || p.compare(at, p.rows[0].at) < 0
}

// Begins reports whether a place is not before the page's start.
func (p *Pager[V]) Begins(at ports.Cursor) bool { return p.begins(p.place(at)) }

func (p *Pager[V]) begins(at ports.Cursor) bool {
	if !p.start.Behind {
		return true
	}
	c := p.compare(p.start.At, at)
	return c < 0 || c == 0 && p.start.Inclusive
}

// Add adds an entry at its place, unless the page doesn't want it. Add each place once.
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

// Page returns the page in order, and the cursor of the next page. The page is nil if it is empty.
// The cursor is zero if no page follows. The Pager can't be used after that.
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

// place returns an entry's place in this list: lists by id ignore Key.
func (p *Pager[V]) place(at ports.Cursor) ports.Cursor {
	if p.byID {
		at.Key = 0
	}
	return at
}

// Compare compares two places in the list's direction. It returns a negative number if a comes
// first, and 0 if the places are equal.
func (p *Pager[V]) Compare(a, b ports.Cursor) int { return p.compare(p.place(a), p.place(b)) }

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

package inspect

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Sizes of a sweep's pages: entries, and payloads of each entry. Entries with more payloads are
// read one by one; most entries have only a few.
const (
	sweepPage     = ports.DefaultPage
	sweepPayloads = 16
)

// fate decides what a sweep does with an entry that it meets.
type fate uint8

const (
	// looked is an entry that the action handles, unless match refuses it.
	looked fate = iota
	// passed is an entry that the action skips, since it came or changed after the action began.
	passed
	// beyond is a passed entry behind which all entries are passed.
	beyond
)

// kind is a sweep's access to its entries. V is the store's view of an entry, and E is the view
// that match gets.
type kind[V, E any] interface {
	// count returns the maximum number of entries of a shard that the action can handle.
	count(*ports.Counts) int64
	// list returns a page.
	list(context.Context, ports.PageRequest) ([]V, ports.Cursor, error)
	place(*V) ports.Cursor
	fate(v *V, before, now core.Instant) fate
	// complete fetches the payloads that a page has left out. It reports whether the action may
	// still handle the entry.
	complete(ctx context.Context, v *V, before core.Instant) (bool, error)
	show(*V) E
	// sample keeps the first entries that a DryRun meets. act acts on the chosen entries of a
	// shard; stored are the same entries as the store has returned them.
	sample([]E)
	act(ctx context.Context, shard core.Shard, chosen []E, stored []V) error
}

// sweep is an action on the matching entries of a kind. It visits the entries that existed when it
// began, shard by shard and page by page, in the order of a list.
type sweep[V, E any] struct {
	*action
	kind  kind[V, E]
	queue string
	// page is the request for the first page of a shard.
	page ports.PageRequest
	// match chooses entries; nil chooses all.
	match func(E) bool
	stats ports.QueueStats
}

func (s *sweep[V, E]) run(ctx context.Context, i *Inspector) (Result, error) {
	if s.invalid != nil {
		return s.end(s.invalid)
	}
	if err := s.begin(ctx, i); err != nil {
		return s.end(err)
	}
	for at := range s.stats.Shards {
		sh := &s.stats.Shards[at]
		left := int(s.kind.count(&sh.Counts))
		if left == 0 || sh.Shard.Index < s.going.next {
			continue
		}
		limited, err := s.shard(ctx, sh.Shard, left)
		if err != nil {
			return s.end(err)
		}
		if limited {
			return s.limited()
		}
	}
	return s.end(partial(s.going.missed))
}

func (s *sweep[V, E]) begin(ctx context.Context, i *Inspector) (err error) {
	if s.stats, err = i.queueStats(ctx, s.queue); err != nil {
		return err
	}
	if err := s.going.begin(&s.stats); err != nil {
		return err
	}
	for at := range s.stats.Shards {
		if !s.going.continued() {
			s.progress.Total += int(s.kind.count(&s.stats.Shards[at].Counts))
		}
	}
	return s.going.note(s.action, s.going.next, s.going.from)
}

// shard sweeps one shard, in which at most left entries are considered. A page may be short: the
// sweep continues while there is a next page. limited reports whether Limit or Stop has ended the
// action.
func (s *sweep[V, E]) shard(ctx context.Context, shard core.Shard, left int) (limited bool, err error) {
	r := s.page
	r.Queue, r.Shards = s.queue, []int{shard.Index}
	if s.going.continued() && shard.Index == s.going.next {
		r.After = s.going.from
	}
	for more := true; more; {
		room := s.going.room(sweepPage)
		if room == 0 {
			return true, nil
		}
		page, next, err := s.kind.list(ctx, r)
		if err != nil {
			return false, fmt.Errorf("shard %v: %w", shard, err)
		}
		c, err := s.choose(ctx, page, room, left)
		if err != nil {
			return false, err
		}
		if err := s.act(ctx, shard, &c); err != nil {
			return false, err
		}
		left -= c.looked
		if r.After = next; c.seen < len(page) && !c.last {
			r.After = s.kind.place(&page[c.seen-1]) // room is above 0
		}
		more = !c.last && r.After != ports.Cursor{} && left > 0
		place, from := shard.Index, r.After
		if !more {
			place, from = shard.Index+1, ports.Cursor{}
		}
		if err := s.going.step(ctx, s.action, len(c.entries), place, from); err != nil {
			return false, err
		}
	}
	s.pass(left, 0) // gone meanwhile
	return false, nil
}

func (s *sweep[V, E]) act(ctx context.Context, shard core.Shard, c *choice[V, E]) error {
	if n := len(c.entries); s.going.o.DryRun {
		s.kind.sample(c.entries)
		s.met += n
		s.pass(n, n)
		return nil
	}
	if err := s.kind.act(ctx, shard, c.entries, c.stored); err != nil {
		return fmt.Errorf("shard %v: %w", shard, err)
	}
	return nil
}

// choice is the choice of a sweep from a page.
type choice[V, E any] struct {
	// entries are the chosen entries as match has seen them, and stored are the same entries as the
	// store has returned them.
	entries []E
	stored  []V
	// seen is the number of visited entries of the page, and looked is the number of those that
	// were considered.
	seen, looked int
	// last is true if no entry that the action may handle follows.
	last bool
}

// choose chooses the matching entries of a page. It chooses at most room entries, and considers at
// most left. It counts the entries that don't match as dealt with.
func (s *sweep[V, E]) choose(ctx context.Context, page []V, room, left int) (c choice[V, E], err error) {
	before, now := s.going.at.Before, s.stats.Now
	for ; c.seen < len(page) && len(c.entries) < room && c.looked < left; c.seen++ {
		v := &page[c.seen]
		f := s.kind.fate(v, before, now)
		if c.last = f == beyond; c.last {
			break
		}
		if f == passed {
			continue
		}
		c.looked++
		there, err := s.kind.complete(ctx, v, before)
		if err != nil {
			return c, err
		}
		if there {
			if e := s.kind.show(v); s.match == nil || s.match(e) {
				c.entries, c.stored = append(c.entries, e), append(c.stored, *v)
			} else {
				s.met++
			}
		}
	}
	s.pass(c.looked-len(c.entries), 0)
	return c, nil
}

package bulk

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Fate decides what a visit does with an entry that it meets.
type Fate uint8

const (
	// Looked is an entry that the action handles, unless Match refuses it.
	Looked Fate = iota
	// Passed is an entry that the action skips, since it came or changed after the action began.
	Passed
	// Beyond is a passed entry behind which all entries are passed.
	Beyond
)

// Kind is the access of a visit to its entries. V is the store's view of an entry.
type Kind[V any] interface {
	// Count returns the maximum number of entries of a shard that the action can handle.
	Count(*ports.Counts) int64
	// List returns a page, and Place the position of an entry in it.
	List(context.Context, ports.PageRequest) ([]V, ports.Cursor, error)
	Place(*V) ports.Cursor
	Fate(v *V, before, now core.Instant) Fate
	// Complete fetches the payloads that a page has left out. It reports whether the action may
	// still handle the entry.
	Complete(ctx context.Context, v *V, before core.Instant) (bool, error)
	// Match reports whether the caller has chosen the entry.
	Match(*V) bool
	// Act acts on the chosen entries of a shard. Sample keeps the first entries that a DryRun
	// meets.
	Act(ctx context.Context, shard core.Shard, chosen []V) error
	Sample(chosen []V)
}

// Visit carries out a run on the matching entries of a kind. It visits the entries that existed
// when it began, page by page, in the order of a list. first is the request for the first page of a
// shard.
func Visit[V any](ctx context.Context, r *Run, stats *ports.QueueStats, first ports.PageRequest, kind Kind[V]) error {
	v := &visit[V]{Run: r, kind: kind, first: first, now: stats.Now}
	return r.shards(stats, kind.Count, func(shard core.Shard, left int, after ports.Cursor) error {
		return v.shard(ctx, shard, left, after)
	})
}

type visit[V any] struct {
	*Run
	kind  Kind[V]
	first ports.PageRequest
	now   core.Instant
}

// shard visits one shard from a position on. It considers at most left entries. A page may be
// short: the visit continues while there is a next page.
func (v *visit[V]) shard(ctx context.Context, shard core.Shard, left int, after ports.Cursor) error {
	p := v.first
	p.Queue, p.Shards, p.After = shard.Queue, []int{shard.Index}, after

	for more := true; more; {
		room := v.room(ports.DefaultPage)
		if room == 0 {
			return nil
		}

		page, next, err := v.kind.List(ctx, p)
		if err != nil {
			return fmt.Errorf("shard %v: %w", shard, err)
		}

		c, err := v.choose(ctx, page, room, left)
		if err != nil {
			return err
		}
		if err := v.act(ctx, shard, c.chosen); err != nil {
			return fmt.Errorf("shard %v: %w", shard, err)
		}

		left -= c.looked
		if p.After = next; c.seen < len(page) && !c.last {
			p.After = v.kind.Place(&page[c.seen-1]) // room is above 0
		}
		more = !c.last && p.After != ports.Cursor{} && left > 0

		place, from := shard.Index, p.After
		if !more {
			place, from = shard.Index+1, ports.Cursor{}
		}
		if err := v.step(ctx, len(c.chosen), place, from); err != nil {
			return err
		}
	}

	v.Pass(left, 0) // gone meanwhile
	return nil
}

func (v *visit[V]) act(ctx context.Context, shard core.Shard, chosen []V) error {
	if n := len(chosen); v.o.DryRun {
		v.kind.Sample(chosen)
		v.Met += n
		v.Pass(n, n)
		return nil
	}
	return v.kind.Act(ctx, shard, chosen)
}

// choice is the choice of a visit from a page.
type choice[V any] struct {
	chosen []V
	// seen is the number of visited entries of the page, and looked is the number of those that
	// were considered.
	seen, looked int
	// last is true if no entry that the action may handle follows.
	last bool
}

// choose chooses the matching entries of a page. It chooses at most room entries, and considers at
// most left. It counts the entries that don't match as dealt with.
func (v *visit[V]) choose(ctx context.Context, page []V, room, left int) (c choice[V], err error) {
	before := v.At.Before

	for ; c.seen < len(page) && len(c.chosen) < room && c.looked < left; c.seen++ {
		e := &page[c.seen]
		f := v.kind.Fate(e, before, v.now)
		if c.last = f == Beyond; c.last {
			break
		}
		if f == Passed {
			continue
		}

		c.looked++
		there, err := v.kind.Complete(ctx, e, before)
		if err != nil {
			return c, err
		}

		switch {
		case !there:
		case v.kind.Match(e):
			c.chosen = append(c.chosen, *e)
		default:
			v.Met++
		}
	}
	v.Pass(c.looked-len(c.chosen), 0)
	return c, nil
}

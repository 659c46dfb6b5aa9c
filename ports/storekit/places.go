package storekit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Listed is an entry of a list: its shard and its place.
type Listed struct {
	Shard core.Shard
	At    ports.Cursor
}

// Ask is a query of [FindPlaces] to one shard: for the first Most places of the list in that shard,
// from the page's [Start] on.
type Ask struct {
	Shard core.Shard
	Most  int
}

// Answer is a shard's reply to an [Ask].
type Answer struct {
	// Places are in the list's direction and not before the start. They have no gap: between the
	// start and the last of them the shard has no other place.
	Places []ports.Cursor
	// More is true if other places may follow.
	More bool
	// Err is the reason why there is no answer. An error of unknown outcome means that the shard
	// can't be reached now.
	Err error
}

// FindPlaces finds the places of a page's entries and adds them to p. It requests no more places of
// each shard than the page needs, and reads no stored entry. First it calls look for a few places
// of each shard. Then it calls look again, for the shards whose last place is still within the
// page, for twice as many places, from the start again. look must return an answer for each Ask, in
// their order.
//
// FindPlaces adds the shards that can't be reached to lost. It returns the error for which
// [Lost.Add] ends the whole call.
func FindPlaces(
	ctx context.Context,
	p *Pager[Listed],
	shards []core.Shard,
	lost *Lost,
	look func(context.Context, []Ask) []Answer,
) error {
	var asks []Ask
	for _, shard := range shards {
		asks = append(asks, Ask{Shard: shard, Most: firstMost(p.Need(), len(shards))})
	}

	last := make(map[core.Shard]ports.Cursor)
	for len(asks) > 0 {
		var next []Ask
		for i, answer := range look(ctx, asks) {
			ask := asks[i]
			if answer.Err != nil {
				if err := lost.Add(ctx, ask.Shard, answer.Err); err != nil {
					return err
				}
				continue
			}

			addPlaces(p, ask.Shard, answer.Places, last)
			if answer.More && ask.Most < p.Need() {
				next = append(next, Ask{Shard: ask.Shard, Most: min(2*ask.Most, p.Need())})
			}
		}

		asks = slices.DeleteFunc(next, func(a Ask) bool {
			end, any := last[a.Shard]
			return any && !p.Wants(end)
		})
	}

	return nil
}

// firstMost returns how many places to request first of each of the given number of shards, for a
// page that needs the given number of entries. It is somewhat more than a shard's share, so that
// most shards are queried once.
func firstMost(need, shards int) int {
	share := need / shards
	return min(need, share+share/4+2)
}

// addPlaces adds a shard's places to a page. It skips the places that it has added before, up to
// last.
func addPlaces(p *Pager[Listed], shard core.Shard, places []ports.Cursor, last map[core.Shard]ports.Cursor) {
	for _, at := range places {
		if end, any := last[shard]; any && p.compare(end, p.place(at)) >= 0 {
			continue
		}
		p.Add(at, Listed{Shard: shard, At: at})
		last[shard] = p.place(at)
	}
}

// Lost collects the shards that a call could not reach. The zero value is ready. It is for one
// goroutine.
type Lost struct {
	shards map[core.Shard]bool
	err    error
}

// Add adds a shard whose part of the call failed with err. If err ends the whole call, Add returns
// err and adds nothing. That is the case if the outcome of err is known, if err wraps
// [context.Canceled], or if ctx has ended.
func (l *Lost) Add(ctx context.Context, shard core.Shard, err error) error {
	if HasKnownOutcome(err) || ended(ctx) || errors.Is(err, context.Canceled) {
		return err
	}
	if l.shards == nil {
		l.shards = make(map[core.Shard]bool)
	}
	l.shards[shard] = true
	if l.err == nil {
		l.err = err
	}
	return nil
}

// Has reports whether a shard was added.
func (l *Lost) Has(shard core.Shard) bool { return l.shards[shard] }

// Shards returns the added shards, in order of queue and index. of is the number of shards of the
// call. If all of them were added, Shards returns the first error instead.
func (l *Lost) Shards(of int) ([]core.Shard, error) {
	if len(l.shards) == 0 {
		return nil, nil
	}
	if len(l.shards) >= of {
		return nil, l.err
	}
	return slices.SortedFunc(maps.Keys(l.shards), func(a, b core.Shard) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Index, b.Index))
	}), nil
}

// ShardsOf returns the shards of a queue with the given indexes, in order of index, each once. If
// indexes is nil, it returns all shards. It returns [ports.ErrInvalidRequest] for a shard that the
// queue doesn't have.
func ShardsOf(q ports.Queue, indexes []int) ([]core.Shard, error) {
	if indexes == nil {
		return core.Shards(q.Name, q.Shards), nil
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(indexes)))
	shards := make([]core.Shard, len(sorted))
	for i, index := range sorted {
		shards[i] = core.Shard{Queue: q.Name, Index: index}
		if index < 0 || index >= q.Shards {
			return nil, NoSuchShard(shards[i])
		}
	}
	return shards, nil
}

// ShardsOfJobs checks a request for queued jobs and returns the requested shards of the queue. It
// returns the error of Validate, [ports.ErrInvalidRequest] for a shard that the queue doesn't have,
// or [ports.ErrQueueMismatch] for [ports.ByID] if the queue was declared without IndexIDs.
func ShardsOfJobs(r *ports.JobsRequest, q ports.Queue) ([]core.Shard, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.SortBy == ports.ByID && !q.IndexIDs {
		return nil, fmt.Errorf("%w: %q was declared without an index of ids, which is permanent, "+
			"so its jobs can't be listed by id; list its retrying jobs by id, or look up a single id",
			ports.ErrQueueMismatch, q.Name)
	}
	return ShardsOf(q, r.Shards)
}

// FreshOf returns the jobs of a page that have no failure, for [ports.JobsRequest.Fresh], and
// reuses the slice. The Next of the page stays the same.
func FreshOf(page []ports.JobView) []ports.JobView {
	return slices.DeleteFunc(page, func(v ports.JobView) bool { return !v.Fresh() })
}

package redis

import (
	"context"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// The maximum number of scripts in one exchange of a page, and of entries with their payloads in
// all these scripts. The limits let the server answer other clients in between.
const (
	pageScripts = 16
	pageEntries = 500
)

// page is a page of a list.
type page[T any] struct {
	rows      []row[T]
	next      ports.Cursor
	unreached []core.Shard
}

// row is a job or a dead letter with some of its payloads, and how many it has.
type row[T any] struct {
	entry T
	count int
}

// readPage finds the entries of a page, and then reads only these.
func readPage[T any](
	ctx context.Context,
	s *Store,
	l *list[T],
	r ports.PageRequest,
	shards []core.Shard,
) (page[T], error) {
	look := &looker{store: s, order: l.order, pager: storekit.NewPager[storekit.Listed](r, l.byID)}
	var lost storekit.Lost
	if err := storekit.FindPlaces(ctx, look.pager, shards, &lost, look.look); err != nil {
		return page[T]{}, err
	}

	places, next := look.pager.Page()
	rows, err := readRows(ctx, s, l, r, places, &lost)
	if err != nil {
		return page[T]{}, err
	}
	unreached, err := lost.Shards(len(shards))
	return page[T]{rows: rows, next: next, unreached: unreached}, err
}

// wanted are ids of a shard that are still to be read.
type wanted struct {
	shard core.Shard
	ids   []any // texts
}

// readRows reads the entries at some places, and returns those that still exist, in that order. An
// entry that has moved meanwhile is left out, since the next page begins behind its old place.
func readRows[T any](
	ctx context.Context,
	s *Store,
	l *list[T],
	r ports.PageRequest,
	places []storekit.Listed,
	lost *storekit.Lost,
) ([]row[T], error) {
	var open []wanted
	at := make(map[core.Shard]int)
	for _, p := range places {
		i, known := at[p.Shard]
		if !known {
			i = len(open)
			at[p.Shard], open = i, append(open, wanted{shard: p.Shard})
		}
		open[i].ids = append(open[i].ids, p.At.ID)
	}

	found := make(map[string]row[T], len(places))
	for len(open) > 0 {
		some := open[:scriptsOfExchange(open, r.Payloads)]
		open = open[len(some):]

		calls, shards := make([]exchange.Call, len(some)), make([]core.Shard, len(some))
		for i, w := range some {
			args := append([]any{boolArg(l.kind.dead), max(0, r.Payloads), r.ErrorBytes}, w.ids...)
			calls[i] = exchange.Call{Script: rowsScript, Keys: s.firstKeys(w.shard, jobKeys), Args: args}
			shards[i] = w.shard
		}

		err := s.eachReached(ctx, scriptApart, shards, calls, lost, func(i int, o *exchange.Outcome) error {
			reached, missing, err := addRows(o, l.kind, found)
			if missing > 0 {
				err = s.torn(ctx, calls[i].Keys[0].(string))
			}
			if err != nil {
				return err
			}
			if left := some[i].ids[reached:]; len(left) > 0 {
				open = append(open, wanted{some[i].shard, left})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	var rows []row[T]
	for _, p := range places {
		if v, ok := found[p.At.ID]; ok && l.stands(&v.entry, p.At) {
			rows = append(rows, v)
		}
	}
	return rows, nil
}

// scriptsOfExchange returns how many of the next scripts go in one exchange, at least one.
func scriptsOfExchange(open []wanted, payloads int) int {
	n, entries := 0, 0
	for n < min(len(open), pageScripts) {
		entries += len(open[n].ids) * (1 + max(0, payloads))
		if n > 0 && entries > pageEntries {
			break
		}
		n++
	}
	return n
}

// addRows adds the entries that the rows script has found, by id. It returns how many of the ids
// the script has read, at least one, and how many of them miss a part.
func addRows[T any](o *exchange.Outcome, k kind[T], found map[string]row[T]) (reached, missing int, err error) {
	r := record.ReplyOf(o.Value)
	_ = r.Text()
	reached, missing = int(r.Int()), int(r.Int())

	for r.More() {
		id, at, count, text := r.Text(), r.Parsed(), r.Int(), r.Text()
		if err := r.Err(); err != nil {
			return 0, 0, err
		}
		entry, err := k.parse(id, text, core.Instant(at))
		if err != nil {
			return 0, 0, err
		}
		found[id] = row[T]{entry, int(count)}
	}
	return max(1, reached), missing, r.Err()
}

// Jobs implements [ports.Inspector]. If only fresh jobs are requested, it removes jobs with a
// failure from the page that it has found.
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.knownQueue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	shards, err := storekit.ShardsOfJobs(&r, q.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}

	p, err := readPage(ctx, s, &jobLists[r.SortBy], r.PageRequest, shards)
	page := ports.JobsPage{Next: p.next, Unreached: p.unreached}
	for i := range p.rows {
		page.Jobs = append(page.Jobs, ports.JobView{Job: p.rows[i].entry, Count: r.Counted(p.rows[i].count)})
	}
	if r.Fresh {
		page.Jobs = storekit.FreshOf(page.Jobs)
	}
	return page, err
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	_, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.MorguePage{}, err
	}

	letters := deadByTime
	if r.ByID {
		letters = deadByID
	}
	letters.group = r.Group

	p, err := readPage(ctx, s, &letters, r.PageRequest, shards)
	page := ports.MorguePage{Next: p.next, Unreached: p.unreached}
	for i := range p.rows {
		page.DeadLetters = append(page.DeadLetters, ports.DeadLetterView{
			DeadLetter: p.rows[i].entry,
			Count:      r.Counted(p.rows[i].count),
		})
	}
	return page, err
}

// listed returns a queue's record and the shards that a list is about, unless the request is
// invalid.
func (s *Store) listed(
	ctx context.Context,
	name string,
	indexes []int,
	invalid error,
) (queueRecord, []core.Shard, error) {
	q, err := s.knownQueue(ctx, name)
	if err == nil {
		err = invalid
	}
	if err != nil {
		return queueRecord{}, nil, err
	}

	shards, err := storekit.ShardsOf(q.Queue, indexes)
	return q, shards, err
}

package random

import (
	"context"
	"errors"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// checkAll compares all that can be seen.
func (d *driver) checkAll() {
	d.checkNodes()
	compare(d, "Queues", "", func(s ports.ShardStore, ctx context.Context, _ string) ([]ports.Queue, error) {
		return s.Queues(ctx)
	})
	for _, q := range d.queues {
		d.checkQueue(q)
	}
}

// checkCounts compares what nearly every call changes.
func (d *driver) checkCounts() {
	for _, q := range d.queues {
		compare(d, "Stats", []string{q.Name}, stats)
		compare(d, "Heads", core.Shards(q.Name, q.Shards), ports.ShardStore.Heads)
	}
}

func (d *driver) checkNodes() {
	compare(d, "Nodes", "", func(s ports.ShardStore, ctx context.Context, _ string) (ports.NodesReply, error) {
		return s.Nodes(ctx)
	})
}

func (d *driver) checkQueue(q ports.Queue) {
	minute := d.model().Now().Minute()
	compare(d, "History", ports.HistoryRequest{
		Queue: q.Name,
		From:  pick(d, "from", 0, 0, minute, minute+1),
		To:    pick(d, "to", 0, 0, minute, minute+1),
	}, ports.ShardStore.History)
	for _, id := range randomIDs() {
		compare(d, "Find", id, func(s ports.ShardStore, ctx context.Context, id string) (ports.Found, error) {
			found, err := s.Find(ctx, q.Name, id)
			if err == nil && hasNegativeZero(found) {
				err = errors.New("-0 is kept as a score")
			}
			return found, err
		})
	}
	r := ports.PageRequest{
		Queue:      q.Name,
		Limit:      pick(d, "page", 0, 1, 2, 3),
		Descending: rapid.Bool().Draw(d.t, "descending"),
		Payloads:   pick(d, "payloads", 0, 1, 2, 9, 1<<20),
	}
	d.checkLists(r)
}

// hasNegativeZero reports a score of -0, which Go holds equal to 0 but other
// languages print.
func hasNegativeZero(found ports.Found) bool {
	return found.Queued != nil && slices.ContainsFunc(found.Queued.Payloads, func(p core.Payload) bool {
		return p.Score == 0 && math.Signbit(p.Score)
	})
}

// stats is Stats without the token and expiry of shards that nobody has leased.
func stats(s ports.ShardStore, ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	all, err := s.Stats(ctx, queues)
	for _, q := range all {
		for i := range q.Shards {
			if shard := &q.Shards[i]; shard.Owner == "" {
				shard.Token, shard.ExpiresAt = 0, 0
			}
		}
	}
	return all, err
}

// checkLists reads every list of a queue page by page.
func (d *driver) checkLists(r ports.PageRequest) {
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		byID := order == ports.ByID || order == ports.RetryingByID
		eachPage(d, r, func(r ports.PageRequest) ports.Cursor {
			page, _ := compare(d, "Jobs", ports.JobsRequest{PageRequest: r, SortBy: order},
				func(s ports.ShardStore, ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
					page, err := s.Jobs(ctx, r)
					page.Next = place(page.Next, byID)
					return page, err
				})
			return page.Next
		})
	}
	eachPage(d, r, func(r ports.PageRequest) ports.Cursor {
		page, _ := compare(d, "Claimed", r, ports.ShardStore.Claimed)
		return page.Next
	})
	for _, byID := range []bool{false, true} {
		eachPage(d, r, func(r ports.PageRequest) ports.Cursor {
			page, _ := compare(d, "Morgue", ports.MorgueRequest{PageRequest: r, ByID: byID},
				func(s ports.ShardStore, ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
					page, err := s.Morgue(ctx, r)
					page.Next = place(page.Next, byID)
					return page, err
				})
			return page.Next
		})
	}
}

// place returns a cursor without the key, which lists by id ignore.
func place(c ports.Cursor, byID bool) ports.Cursor {
	if byID {
		c.Key = 0
	}
	return c
}

// eachPage reads page after page until there is no next.
func eachPage(d *driver, r ports.PageRequest, read func(ports.PageRequest) ports.Cursor) {
	for {
		r.After = read(r)
		if r.After == (ports.Cursor{}) {
			return
		}
	}
}

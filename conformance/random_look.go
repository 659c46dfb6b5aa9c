package conformance

import (
	"context"
	"errors"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// look compares all that can be seen.
func (d *duel) look() {
	d.lookAtNodes()
	ask(d, "Queues", "", func(s ports.ShardStore, ctx context.Context, _ string) ([]ports.Queue, error) {
		return s.Queues(ctx)
	})
	for _, q := range d.queues {
		d.lookAt(q)
	}
}

// glance compares what changes with nearly everything.
func (d *duel) glance() {
	for _, q := range d.queues {
		ask(d, "Stats", []string{q.Name}, stats)
		ask(d, "Heads", core.Shards(q.Name, q.Shards), ports.ShardStore.Heads)
	}
}

func (d *duel) lookAtNodes() {
	ask(d, "Nodes", "", func(s ports.ShardStore, ctx context.Context, _ string) ([]ports.Node, error) {
		return s.Nodes(ctx)
	})
}

func (d *duel) lookAt(q ports.Queue) {
	minute := d.model().now().Minute()
	ask(d, "History", ports.HistoryRequest{
		Queue: q.Name,
		From:  pick(d, "from", 0, 0, minute, minute+1),
		To:    pick(d, "to", 0, 0, minute, minute+1),
	}, ports.ShardStore.History)
	for _, id := range randomIDs() {
		ask(d, "Find", id, func(s ports.ShardStore, ctx context.Context, id string) (ports.Found, error) {
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
		Payloads:   pick(d, "payloads", 0, 1, 2, 9, allPayloads),
	}
	d.lists(r)
}

// hasNegativeZero reports a score that Go holds equal to 0, but other
// languages print.
func hasNegativeZero(found ports.Found) bool {
	return found.Queued != nil && slices.ContainsFunc(found.Queued.Payloads, func(p core.Payload) bool {
		return p.Score == 0 && math.Signbit(p.Score)
	})
}

// stats leaves out what a shard without a lease says of it.
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

// lists reads every list of a queue page by page.
func (d *duel) lists(r ports.PageRequest) {
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		byID := order == ports.ByID || order == ports.RetryingByID
		pages(d, r, func(r ports.PageRequest) ports.Cursor {
			page, _ := ask(d, "Jobs", ports.JobsRequest{PageRequest: r, SortBy: order},
				func(s ports.ShardStore, ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
					page, err := s.Jobs(ctx, r)
					page.Next = place(page.Next, byID)
					return page, err
				})
			return page.Next
		})
	}
	pages(d, r, func(r ports.PageRequest) ports.Cursor {
		page, _ := ask(d, "Claimed", r, ports.ShardStore.Claimed)
		return page.Next
	})
	for _, byID := range []bool{false, true} {
		pages(d, r, func(r ports.PageRequest) ports.Cursor {
			page, _ := ask(d, "Morgue", ports.MorgueRequest{PageRequest: r, ByID: byID},
				func(s ports.ShardStore, ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
					page, err := s.Morgue(ctx, r)
					page.Next = place(page.Next, byID)
					return page, err
				})
			return page.Next
		})
	}
}

// place is a cursor without the key that lists by id ignore.
func place(c ports.Cursor, byID bool) ports.Cursor {
	if byID {
		c.Key = 0
	}
	return c
}

// pages reads to the end; without entries that move, every page but the last is
// followed by another.
func pages(d *duel, r ports.PageRequest, read func(ports.PageRequest) ports.Cursor) {
	for {
		r.After = read(r)
		if r.After == (ports.Cursor{}) {
			return
		}
	}
}

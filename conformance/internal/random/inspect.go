package random

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// checkAll compares the replies of all methods that read.
func (d *driver) checkAll() {
	d.checkNodes()
	compare(d, "Actions", ports.ActionsRequest{}, ports.ShardStore.Actions)
	compare(d, "Queues", "", func(s ports.ShardStore, ctx context.Context, _ string) ([]ports.Queue, error) {
		return s.Queues(ctx)
	})
	for _, q := range d.queues {
		d.checkQueue(q)
	}
}

// checkCounts compares the values that nearly every call changes.
func (d *driver) checkCounts() {
	for _, q := range d.queues {
		compare(d, "Stats", ports.StatsRequest{Queues: []string{q.Name}}, stats)
		compare(d, "Heads", core.Shards(q.Name, q.Shards), ports.ShardStore.Heads)
	}
}

func (d *driver) checkNodes() {
	compare(d, "Nodes", "", func(s ports.ShardStore, ctx context.Context, _ string) (ports.NodesReply, error) {
		return s.Nodes(ctx)
	})
}

func (d *driver) checkQueue(q ports.Queue) {
	compare(d, "Tracked", q.Name, ports.ShardStore.Tracked)
	d.checkLimits(q)
	d.checkCalendar(q)

	minute := d.model().Now().Minute()
	compare(d, "History", ports.HistoryRequest{
		Queue: q.Name,
		From:  pick(d, "from", 0, 0, minute, minute+1),
		To:    pick(d, "to", 0, 0, minute, minute+1),
		Step:  pick(d, "step", 0, time.Minute, 7*time.Minute, ports.HistoryKept),
	}, ports.ShardStore.History)

	compare(d, "Pending", ports.PendingRequest{Queue: q.Name, IDs: randomIDs()}, ports.ShardStore.Pending)
	for _, id := range randomIDs() {
		d.checkFind(ports.FindRequest{Queue: q.Name, ID: id, Payloads: pick(d, "payloads found", 1000, 1000, 0, 1, 2)})
	}

	r := ports.PageRequest{
		Queue:      q.Name,
		Limit:      pick(d, "page", 0, 1, 2, 3),
		Descending: rapid.Bool().Draw(d.t, "descending"),
		Payloads:   pick(d, "payloads", 0, 1, 2, 9, 1<<20),
		ErrorBytes: pick(d, "error bytes", 0, 0, -1, 1, 3),
		MaxCount:   pick(d, "most counted", 0, 0, -1, 1, 2),
	}

	d.checkLists(r, q.Shards)
	d.checkGroups(q.Name, q.Shards)
}

// checkFind compares Find of an id, and follows the cursors of its payloads.
func (d *driver) checkFind(r ports.FindRequest) {
	found, _ := compare(d, "Find", r,
		func(s ports.ShardStore, ctx context.Context, r ports.FindRequest) (ports.Found, error) {
			found, err := s.Find(ctx, r)
			if err == nil && hasNegativeZero(found) {
				err = errors.New("the store has kept -0 as a score, want 0")
			}
			return found, err
		})

	if r.Payloads == 0 {
		r.Payloads = 1
	}

	for i := range found.Next {
		r.After = &found.Next[i]
		d.checkFind(r)
	}
}

// hasNegativeZero reports whether a queued payload has the score -0. In Go it equals 0, so Diff
// does not find it, but other languages print it as -0.
func hasNegativeZero(found ports.Found) bool {
	return found.Queued != nil && slices.ContainsFunc(found.Queued.Payloads, func(p core.Payload) bool {
		return p.Score == 0 && math.Signbit(p.Score)
	})
}

// stats returns Stats without the token and expiry of shards that have no owner.
func stats(s ports.ShardStore, ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	all, err := s.Stats(ctx, r)
	for _, q := range all {
		for i := range q.Shards {
			if shard := &q.Shards[i]; shard.Owner == "" {
				shard.Token, shard.ExpiresAt = 0, 0
			}
		}
	}
	return all, err
}

// checkGroups compares the groups of a queue, or of a shard of it.
func (d *driver) checkGroups(queue string, shards int) {
	r := ports.GroupsRequest{Queue: queue, Limit: pick(d, "groups", 0, 0, 1, 2)}
	if rarely(d, "some") {
		r.Shards = []int{rapid.IntRange(0, shards-1).Draw(d.t, "shard")}
	}
	compare(d, "Groups", r, ports.ShardStore.Groups)
}

// checkLists reads every list of a queue page by page, and compares whole lists, since pages may be
// short.
func (d *driver) checkLists(r ports.PageRequest, shards int) {
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		jr := ports.JobsRequest{
			PageRequest: d.from(r, shards, order == ports.ByID || order == ports.RetryingByID),
			SortBy:      order,
		}
		jr.Fresh = (order == ports.ByTime || order == ports.ByID) && rapid.Bool().Draw(d.t, "fresh")
		compare(d, "Jobs", jr,
			func(s ports.ShardStore, ctx context.Context, r ports.JobsRequest) ([]ports.JobView, error) {
				return allPages(r.PageRequest, func(p ports.PageRequest) ([]ports.JobView, ports.Cursor, error) {
					page, err := s.Jobs(ctx, ports.JobsRequest{PageRequest: p, SortBy: r.SortBy, Fresh: r.Fresh})
					return page.Jobs, page.Next, err
				})
			})
	}

	compare(d, "Claimed", d.from(r, shards, false),
		func(s ports.ShardStore, ctx context.Context, r ports.PageRequest) ([]ports.ClaimView, error) {
			return allPages(r, func(p ports.PageRequest) ([]ports.ClaimView, ports.Cursor, error) {
				page, err := s.Claimed(ctx, p)
				return page.Claims, page.Next, err
			})
		})

	past := d.from(r, shards, false)
	past.Marks = rapid.Bool().Draw(d.t, "marks")
	compare(d, "Past", past,
		func(s ports.ShardStore, ctx context.Context, r ports.PageRequest) ([]ports.PastView, error) {
			return allPages(r, func(p ports.PageRequest) ([]ports.PastView, ports.Cursor, error) {
				page, err := s.Past(ctx, p)
				return page.Past, page.Next, err
			})
		})

	for _, byID := range []bool{false, true} {
		mr := ports.MorgueRequest{PageRequest: d.from(r, shards, byID), ByID: byID}
		if !byID {
			mr.Group = d.storedGroup()
		}
		compare(d, "Morgue", mr,
			func(s ports.ShardStore, ctx context.Context, r ports.MorgueRequest) ([]ports.DeadLetterView, error) {
				return allPages(r.PageRequest, func(p ports.PageRequest) ([]ports.DeadLetterView, ports.Cursor, error) {
					page, err := s.Morgue(ctx, ports.MorgueRequest{PageRequest: p, ByID: r.ByID, Group: r.Group})
					return page.DeadLetters, page.Next, err
				})
			})
	}
}

// from sometimes adds a value to begin at, a shard or a prefix to a request.
func (d *driver) from(r ports.PageRequest, shards int, byID bool) ports.PageRequest {
	switch pick(d, "part", 0, 0, 1, 2, 3) {
	case 1:
		key := pick(d, "key", -1, 0, 1, int64(d.model().Now()), int64(d.model().Now())+1)
		r.From = &ports.Cursor{Key: key, ID: pick(d, "from id", randomIDs()...)}
	case 2:
		r.Shards = []int{rapid.IntRange(0, shards-1).Draw(d.t, "shard")}
	case 3:
		if id := pick(d, "prefix", randomIDs()...); byID {
			r.Prefix = string([]rune(id)[:1])
		}
	}
	return r
}

// allPages reads all pages of a list.
func allPages[V any](
	r ports.PageRequest,
	read func(ports.PageRequest) ([]V, ports.Cursor, error),
) (all []V, err error) {
	for {
		page, next, err := read(r)
		if err != nil {
			return nil, err
		}

		if len(page) > r.Size() {
			return nil, fmt.Errorf("%d entries on a page, want at most %d", len(page), r.Size())
		}

		all = append(all, page...)
		if r.After = next; next == (ports.Cursor{}) {
			return all, nil
		}
	}
}

package redis

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// listLimit is the most entries that one script lists, so that it ends
// soon.
const listLimit = 250

// shardCursor is how far a shard has been listed.
type shardCursor struct {
	shard core.Shard
	after ports.Cursor
}

// list returns a page of an order that the list script knows: it lists some entries of
// each shard, and more of those that may have more for this page.
func (s *Store) list(ctx context.Context, q queueRecord, r ports.PageRequest, order string, byID bool) ([]ports.JobView, ports.Cursor, error) {
	p := storekit.NewPager[ports.JobView](r, byID)
	var open []shardCursor
	for _, shard := range core.Shards(q.Name, q.Shards) {
		open = append(open, shardCursor{shard, p.After()})
	}
	most := min(p.Need(), listLimit)
	for len(open) > 0 {
		some := open[:min(len(open), shardsPerExchange)]
		open = open[len(some):]
		calls := make([]call, len(some))
		for i, l := range some {
			args := []any{order, boolArg(r.Descending), l.after.Key, l.after.ID, most, max(0, r.Payloads)}
			calls[i] = call{script: listScript, keys: s.firstKeys(l.shard, allKeys), args: args}
		}
		for i, o := range s.runAll(ctx, calls) {
			rows, err := o.rows(r, most)
			if err != nil {
				return nil, ports.Cursor{}, err
			}
			for _, row := range rows {
				p.Add(row.at, row.view)
			}
			if len(rows) == most {
				open = append(open, shardCursor{some[i].shard, rows[most-1].at})
			}
		}
		open = slices.DeleteFunc(open, func(l shardCursor) bool { return l.after != p.After() && !p.Wants(l.after) })
	}
	jobs, next := p.Page()
	return jobs, next, nil
}

// row is a listed job, and its place in the list.
type row struct {
	at   ports.Cursor
	view ports.JobView
}

// rows returns the entries that the list script found, in order, at most as many as it
// was asked for. Where a list is kept in two parts it may find more, but then not all that
// belong in between.
func (o *outcome) rows(r ports.PageRequest, most int) ([]row, error) {
	if o.err != nil {
		return nil, o.err
	}
	rows, err := parseRows(o.value, r.Payloads)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b row) int {
		if r.Descending {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.at.Key, b.at.Key), strings.Compare(a.at.ID, b.at.ID))
	})
	return rows[:min(len(rows), most)], nil
}

// parseRows reads the reply of the list script.
func parseRows(value any, payloads int) ([]row, error) {
	var rows []row
	r := replyOf(value)
	_ = r.text()
	for r.more() {
		id, key, at, count := r.text(), r.parsed(), r.parsed(), r.int()
		s := decoder{rest: r.text()}
		if err := r.err(); err != nil {
			return nil, err
		}
		job, err := s.job(id, core.Instant(at))
		if err != nil {
			return nil, err
		}
		if payloads <= 0 {
			job.Payloads = nil
		}
		rows = append(rows, row{ports.Cursor{Key: key, ID: id}, ports.JobView{Job: job, Count: int(count)}})
	}
	return rows, r.err()
}

// orders are the names of the lists of jobs.
var orders = [...]string{
	ports.ByTime:          "time",
	ports.ByID:            "id",
	ports.RetryingByTime:  "retries-time",
	ports.RetryingByID:    "retries-id",
	ports.RetryingByCount: "retries-count",
}

// Jobs implements [ports.Inspector].
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	if err := storekit.CheckSortBy(r.SortBy, q.Queue); err != nil {
		return ports.JobsPage{}, err
	}
	byID := r.SortBy == ports.ByID || r.SortBy == ports.RetryingByID
	jobs, next, err := s.list(ctx, q, r.PageRequest, orders[r.SortBy], byID)
	return ports.JobsPage{Jobs: jobs, Next: next}, err
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.MorguePage{}, err
	}
	order := "dead-time"
	if r.ByID {
		order = "dead-id"
	}
	jobs, next, err := s.list(ctx, q, r.PageRequest, order, r.ByID)
	page := ports.MorguePage{Next: next}
	for i := range jobs {
		page.DeadLetters = append(page.DeadLetters, ports.DeadLetterView{DeadLetter: *deadLetterOf(&jobs[i].Job), Count: jobs[i].Count})
	}
	return page, err
}

// Claimed implements [ports.Inspector]. Little is claimed at once, so Redis
// keeps it in no order.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.ClaimedPage{}, err
	}
	p := storekit.NewPager[ports.ClaimView](r, false)
	for _, shard := range core.Shards(q.Name, q.Shards) {
		if err := s.addClaims(ctx, p, shard, r.Payloads); err != nil {
			return ports.ClaimedPage{}, err
		}
	}
	var page ports.ClaimedPage
	page.Claims, page.Next = p.Page()
	return page, nil
}

// addClaims adds a shard's claims to a page. HSCAN may return one twice.
func (s *Store) addClaims(ctx context.Context, p *storekit.Pager[ports.ClaimView], shard core.Shard, payloads int) error {
	seen := make(map[string]bool)
	for cursor := "0"; ; {
		value, err := s.run(ctx, call{script: claimedScript, keys: s.someKeys(shard, keyClaims, keyCancels, keyLease), args: []any{s.now(), cursor}})
		if err != nil {
			return err
		}
		r := replyOf(value)
		cursor = r.text()
		claims, cancels, token := r.list(), r.list(), r.int()
		cancelled := make(map[string]bool)
		for cancels.more() {
			cancelled[cancels.text()] = true
			_ = cancels.text()
		}
		for claims.more() {
			v, err := parseClaim(claims.text(), claims.text())
			if err != nil {
				return err
			}
			if at := (ports.Cursor{Key: int64(v.Since), ID: v.ID}); !seen[v.ID] && p.Wants(at) {
				v.Shard, v.Cancelled, v.LeaseOver = shard, cancelled[v.ID], v.Receipt.Token != token
				v.Payloads = v.Payloads[:max(0, min(payloads, len(v.Payloads)))]
				p.Add(at, v)
			}
			seen[v.ID] = true
		}
		if r.bad || claims.bad || cancels.bad {
			return errReply
		}
		if cursor == "0" {
			return nil
		}
	}
}

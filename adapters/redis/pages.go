package redis

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// listLimit is the most entries that one script lists, so that it ends
// soon.
const listLimit = 250

// How much one exchange of a page may ask for, so that the server answers others in
// between: scripts, and entries with their payloads over all of them.
const (
	pageScripts = 16
	pageEntries = 2 * listLimit
)

// shardCursor is how far a shard has been listed, and how many entries it is asked for next.
type shardCursor struct {
	shard core.Shard
	after ports.Cursor
	most  int
}

// list returns a page of an order that the list script knows: it lists a share of the page
// of each shard, and then more of those that may have more for this page.
func (s *Store) list(ctx context.Context, q queueRecord, r ports.PageRequest, order string, byID bool) ([]ports.JobView, ports.Cursor, error) {
	p := storekit.NewPager[ports.JobView](r, byID)
	var open []shardCursor
	share := min((p.Need()+q.Shards-1)/q.Shards, listLimit)
	for _, shard := range core.Shards(q.Name, q.Shards) {
		open = append(open, shardCursor{shard, p.After(), share})
	}
	for len(open) > 0 {
		some := open[:scriptsOfExchange(open, r.Payloads)]
		open = open[len(some):]
		calls := make([]call, len(some))
		for i, l := range some {
			args := []any{order, boolArg(r.Descending), l.after.Key, l.after.ID, l.most, max(0, r.Payloads)}
			calls[i] = call{script: listScript, keys: s.firstKeys(l.shard, allKeys), args: args}
		}
		for i, o := range s.runAll(ctx, calls) {
			rows, more, err := o.rows()
			if err != nil {
				return nil, ports.Cursor{}, err
			}
			for _, row := range rows {
				p.Add(row.at, row.view)
			}
			if more && len(rows) > 0 {
				next := min(2*some[i].most, p.Need(), listLimit)
				open = append(open, shardCursor{some[i].shard, rows[len(rows)-1].at, next})
			}
		}
		open = slices.DeleteFunc(open, func(l shardCursor) bool { return l.after != p.After() && !p.Wants(l.after) })
	}
	jobs, next := p.Page()
	return jobs, next, nil
}

// scriptsOfExchange returns how many of the next scripts go in one exchange, at least one.
func scriptsOfExchange(open []shardCursor, payloads int) int {
	n, entries := 0, 0
	for n < min(len(open), pageScripts) {
		entries += open[n].most * (1 + max(0, payloads))
		if n > 0 && entries > pageEntries {
			break
		}
		n++
	}
	return n
}

// row is a listed job, and its place in the list.
type row struct {
	at   ports.Cursor
	view ports.JobView
}

// rows returns the entries that the list script found, in order, and whether the shard has
// more.
func (o *outcome) rows() (rows []row, more bool, err error) {
	if o.err != nil {
		return nil, false, o.err
	}
	r := replyOf(o.value)
	_ = r.text()
	more = r.int() == 1
	for r.more() {
		id, key, at, count := r.text(), r.parsed(), r.parsed(), r.int()
		s := decoder{rest: r.text()}
		if err := r.err(); err != nil {
			return nil, false, err
		}
		job, err := s.job(id, core.Instant(at))
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, row{ports.Cursor{Key: key, ID: id}, ports.JobView{Job: job, Count: int(count)}})
	}
	return rows, more, r.err()
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

// Claimed implements [ports.Inspector]. Redis keeps what is claimed in no order, so each page
// reads all of it.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.ClaimedPage{}, err
	}
	p := storekit.NewPager[ports.ClaimView](r, false)
	var open []shardCursor
	for _, shard := range core.Shards(q.Name, q.Shards) {
		open = append(open, shardCursor{shard: shard})
	}
	for len(open) > 0 {
		some := open[:min(len(open), pageScripts)]
		open = open[len(some):]
		calls := make([]call, len(some))
		for i, l := range some {
			keys := s.someKeys(l.shard, keyMeta, keyClaims, keyCancels, keyLease)
			calls[i] = call{script: claimedScript, keys: keys, args: []any{s.now(), l.after.ID, max(0, r.Payloads)}}
		}
		for i, o := range s.runAll(ctx, calls) {
			last, more, err := o.addClaims(p, some[i].shard)
			if err != nil {
				return ports.ClaimedPage{}, err
			}
			if more {
				open = append(open, shardCursor{shard: some[i].shard, after: ports.Cursor{ID: last}})
			}
		}
	}
	var page ports.ClaimedPage
	page.Claims, page.Next = p.Page()
	return page, nil
}

// addClaims adds those of a shard's claims to a page that a script has listed. It returns the
// last id, and whether there are more.
func (o *outcome) addClaims(p *storekit.Pager[ports.ClaimView], shard core.Shard) (last string, more bool, err error) {
	if o.err != nil {
		return "", false, o.err
	}
	r := replyOf(o.value)
	more = r.int() == 1
	claims, cancels, token := r.list(), r.list(), r.int()
	cancelled := make(map[string]bool)
	for cancels.more() {
		cancelled[cancels.text()] = true
		_ = cancels.text()
	}
	for claims.more() {
		id, count := claims.text(), claims.int()
		v, err := parseClaim(id, claims.text())
		if err != nil {
			return "", false, err
		}
		last, v.Count = id, int(count)
		if at := (ports.Cursor{Key: int64(v.Since), ID: id}); p.Wants(at) {
			v.Shard, v.Cancelled, v.LeaseOver = shard, cancelled[id], v.Receipt.Token != token
			p.Add(at, v)
		}
	}
	r.bad = r.bad || claims.bad || cancels.bad
	return last, more && last != "", r.err()
}

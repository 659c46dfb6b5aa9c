package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// row is an entry of a list, at its place.
type row[V any] struct {
	key   int64
	id    string
	value V
}

// pager merges the rows of the shards into one page.
type pager[V any] struct {
	r    ports.PageRequest
	rows []row[V]
}

func (p *pager[V]) compare(a, b row[V]) int {
	if p.r.Descending {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.key, b.key), strings.Compare(a.id, b.id))
}

// wants reports whether a place is behind the cursor.
func (p *pager[V]) wants(key int64, id string) bool {
	after := row[V]{key: p.r.After.Key, id: p.r.After.ID}
	return p.r.After == ports.Cursor{} || p.compare(after, row[V]{key: key, id: id}) < 0
}

// trim keeps no more rows than a page needs, and one that tells whether another
// follows.
func (p *pager[V]) trim() {
	slices.SortFunc(p.rows, p.compare)
	if most := p.r.Size() + 1; len(p.rows) > most {
		clear(p.rows[most:])
		p.rows = p.rows[:most]
	}
}

// page is what was gathered, and the cursor of the next page.
func (p *pager[V]) page() (views []V, next ports.Cursor) {
	p.trim()
	if size := p.r.Size(); len(p.rows) > size {
		last := p.rows[size-1]
		next = ports.Cursor{Key: last.key, ID: last.id}
		p.rows = p.rows[:size]
	}
	for _, row := range p.rows {
		views = append(views, row.value)
	}
	return views, next
}

// listed is the most entries of an order that one script lists, so that it ends
// soon.
const listed = 250

// listing is a shard on its way through a list.
type listing struct {
	shard core.Shard
	after ports.Cursor
}

// list gathers a page of an order that the list script knows: some entries of each
// shard, and more of those that may have more for this page.
func (s *Store) list(ctx context.Context, q record, r ports.PageRequest, order string, byID bool) ([]ports.JobView, ports.Cursor, error) {
	p := &pager[ports.JobView]{r: r}
	if byID {
		p.r.After.Key = 0
	}
	var open []listing
	for _, shard := range core.Shards(q.Name, q.Shards) {
		open = append(open, listing{shard, p.r.After})
	}
	most := min(r.Size()+1, listed)
	for len(open) > 0 {
		some := open[:min(len(open), together)]
		open = open[len(some):]
		calls := make([]call, len(some))
		for i, l := range some {
			args := []any{order, flag(r.Descending), l.after.Key, l.after.ID, most, max(0, r.Payloads)}
			calls[i] = call{script: listScript, keys: s.firstKeys(l.shard, allKeys), args: args}
		}
		for i, o := range s.runAll(ctx, calls) {
			last, err := add(p, &o, most, byID)
			if err != nil {
				return nil, ports.Cursor{}, err
			}
			if last != nil {
				open = append(open, listing{some[i].shard, ports.Cursor{Key: last.key, ID: last.id}})
			}
		}
		p.trim()
		open = slices.DeleteFunc(open, p.beyond)
	}
	jobs, next := p.page()
	return jobs, next, nil
}

// beyond reports whether a shard has nothing more for the page, which is full.
func (p *pager[V]) beyond(l listing) bool {
	n := len(p.rows)
	return n > p.r.Size() && l.after != p.r.After && p.compare(row[V]{key: l.after.Key, id: l.after.ID}, p.rows[n-1]) >= 0
}

// add takes what the list script found in a shard, and gives the last of it if
// more may follow. The script may find more than it was asked for where a list is
// kept in two parts, but then not all of that place.
func add(p *pager[ports.JobView], o *outcome, most int, byID bool) (last *row[ports.JobView], err error) {
	if o.err != nil {
		return nil, o.err
	}
	rows, err := parseRows(o.value, p.r.Payloads, byID)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, p.compare)
	if len(rows) >= most {
		rows = rows[:most]
		last = &rows[most-1]
	}
	p.rows = append(p.rows, rows...)
	return last, nil
}

// parseRows reads the reply of the list script.
func parseRows(value any, payloads int, byID bool) ([]row[ports.JobView], error) {
	var rows []row[ports.JobView]
	r := replyOf(value)
	_ = r.text()
	for r.more() {
		id, key, at, count := r.text(), r.parsed(), r.parsed(), r.int()
		s := source{rest: r.text()}
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
		if byID {
			key = 0
		}
		rows = append(rows, row[ports.JobView]{key, id, ports.JobView{Job: job, Count: int(count)}})
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

// Jobs implements ports.Inspector.
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	if int(r.SortBy) >= len(orders) {
		return ports.JobsPage{}, fmt.Errorf("%w: order %d of jobs is not known", ports.ErrInvalidRequest, r.SortBy)
	}
	if r.SortBy == ports.ByID && !q.IndexIDs {
		return ports.JobsPage{}, fmt.Errorf("%w: %q lists no jobs by id; declare it with IndexIDs", ports.ErrQueueMismatch, r.Queue)
	}
	byID := r.SortBy == ports.ByID || r.SortBy == ports.RetryingByID
	jobs, next, err := s.list(ctx, q, r.PageRequest, orders[r.SortBy], byID)
	return ports.JobsPage{Jobs: jobs, Next: next}, err
}

// Morgue implements ports.Inspector.
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
		page.DeadLetters = append(page.DeadLetters, ports.DeadLetterView{DeadLetter: *deadOf(&jobs[i].Job), Count: jobs[i].Count})
	}
	return page, err
}

// Claimed implements ports.Inspector. What is claimed at once is little, so it
// is put in order only here.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.ClaimedPage{}, err
	}
	p := &pager[ports.ClaimView]{r: r}
	for _, shard := range core.Shards(q.Name, q.Shards) {
		if err := s.addClaims(ctx, p, shard); err != nil {
			return ports.ClaimedPage{}, err
		}
	}
	var page ports.ClaimedPage
	page.Claims, page.Next = p.page()
	return page, nil
}

// addClaims goes through a shard's claims, some at a time. One may come twice.
func (s *Store) addClaims(ctx context.Context, p *pager[ports.ClaimView], shard core.Shard) error {
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
			if !seen[v.ID] && p.wants(int64(v.Since), v.ID) {
				v.Shard, v.Cancelled, v.LeaseOver = shard, cancelled[v.ID], v.Receipt.Token != token
				v.Payloads = v.Payloads[:max(0, min(p.r.Payloads, len(v.Payloads)))]
				p.rows = append(p.rows, row[ports.ClaimView]{int64(v.Since), v.ID, v})
			}
			seen[v.ID] = true
		}
		p.trim()
		if r.bad || claims.bad || cancels.bad {
			return errReply
		}
		if cursor == "0" {
			return nil
		}
	}
}

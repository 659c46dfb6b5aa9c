package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// list is an order in which the rows of a table are listed.
type list struct {
	table   string
	columns string
	joins   string
	// key is the column that orders before the id; empty in lists by id.
	key string
	// filter is what the list's partial index holds.
	filter string
	// rows replaces shardRows.
	rows string
}

// jobLists are the lists of jobs.
var jobLists = [...]list{
	ports.ByTime:          {columns: jobColumns, joins: jobPayloads, key: "perform_at", rows: rowsByTime},
	ports.ByID:            {table: "jobs", columns: jobColumns, joins: jobPayloads},
	ports.RetryingByTime:  {table: "jobs", columns: jobColumns, joins: jobPayloads, key: "perform_at", filter: retrying},
	ports.RetryingByID:    {table: "jobs", columns: jobColumns, joins: jobPayloads, filter: retrying},
	ports.RetryingByCount: {table: "jobs", columns: jobColumns, joins: jobPayloads, key: "retry_count", filter: retrying},
}

const retrying = "AND retry_count >= 0"

// shardRows takes rows of one shard by an index of the list's order.
const shardRows = `SELECT * FROM {schema}.{table} WHERE shard = s.id {filter} AND {after}
    ORDER BY {order} LIMIT $3`

// rowsByTime is shardRows for queued jobs by time, which are in two parts of their index.
const rowsByTime = `SELECT * FROM {schema}.jobs_by_time(s.id, $5, $4, $3, {descending})`

// pageSQL takes from each shard of a queue as many rows as a page may need, and merges them.
//
//	$1 the most payloads, $2 the queue, $3 the most rows, $4 the cursor's id, $5 its key,
//	$6 now where claims are listed
const pageSQL = `
SELECT {columns}
FROM (
  SELECT e.*
  FROM {schema}.shards s
  CROSS JOIN LATERAL (
    {rows}
  ) e
  WHERE s.queue = $2
  ORDER BY {order} LIMIT $3
) e {joins}
ORDER BY {order}`

// sql returns the statement for a page of the list.
func (l list) sql(descending bool) string {
	sign, direction := ">", ""
	if descending {
		sign, direction = "<", " DESC"
	}
	after, order := "id "+sign+" $4", "id"+direction
	if l.key != "" {
		after = fmt.Sprintf("(%s, id) %s ($5::bigint, $4)", l.key, sign)
		order = l.key + direction + ", " + order
	}
	page := strings.ReplaceAll(pageSQL, "{rows}", cmp.Or(l.rows, shardRows))
	return strings.NewReplacer("{columns}", l.columns, "{joins}", l.joins, "{table}", l.table, "{filter}", l.filter,
		"{after}", after, "{order}", order, "{descending}", strconv.FormatBool(descending)).Replace(page)
}

// afterAllIDs sorts behind every id: it is longer than an id can be, of the last character
// there is.
var afterAllIDs = strings.Repeat("\U0010FFFF", core.MaxIDBytes/4+1)

// start returns the place behind which a page begins.
func (l list) start(r ports.PageRequest) (key int64, id string) {
	key, id = r.After.Key, r.After.ID
	if l.key == "" {
		if id == "" && r.Descending {
			id = afterAllIDs
		}
		return 0, id
	}
	if r.After == (ports.Cursor{}) && r.Descending {
		key = math.MaxInt64
	}
	return key, id
}

// page returns a page of a list, and the cursor of the next. The caller has checked that
// the queue exists.
func (s *Store) page(ctx context.Context, l list, r ports.PageRequest, key func(*entry) int64) ([]entry, ports.Cursor, error) {
	if err := s.mergeInboxes(ctx, r.Queue); err != nil {
		return nil, ports.Cursor{}, err
	}
	after, id := l.start(r)
	args := []any{min(max(0, r.Payloads), math.MaxInt32), r.Queue, r.Size() + 1, id}
	if l.key != "" {
		args = append(args, after)
	}
	if l.joins == claimLease {
		args = append(args, s.now())
	}
	var entries []entry
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		entries = nil
		return eachRow(rows, func() error {
			e, err := readEntry(rows, r.Queue)
			entries = append(entries, e)
			return err
		})
	}, l.sql(r.Descending), args...)
	if err != nil || len(entries) <= r.Size() {
		return entries, ports.Cursor{}, err
	}
	entries = entries[:r.Size()]
	end := &entries[len(entries)-1]
	next := ports.Cursor{ID: end.ID}
	if l.key != "" {
		next.Key = key(end)
	}
	return entries, next, nil
}

func timeOf(e *entry) int64  { return int64(e.PerformAt) }
func countOf(e *entry) int64 { return int64(e.RetryCount) }
func sinceOf(e *entry) int64 { return int64(e.Since) }

// Jobs implements [ports.Inspector].
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	if err := storekit.CheckSortBy(r.SortBy, q); err != nil {
		return ports.JobsPage{}, err
	}
	key := timeOf
	if r.SortBy == ports.RetryingByCount {
		key = countOf
	}
	entries, next, err := s.page(ctx, jobLists[r.SortBy], r.PageRequest, key)
	page := ports.JobsPage{Next: next}
	for i := range entries {
		page.Jobs = append(page.Jobs, ports.JobView{Job: entries[i].Job, Count: entries[i].Count})
	}
	return page, err
}

// Claimed implements [ports.Inspector]. There is no index for its order, since a
// shard has few claimed jobs at once.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	if _, err := s.queue(ctx, r.Queue); err != nil {
		return ports.ClaimedPage{}, err
	}
	claimed := list{table: "claimed", columns: claimColumns + "$6" + claimPayloads, joins: claimLease, key: "since"}
	entries, next, err := s.page(ctx, claimed, r, sinceOf)
	page := ports.ClaimedPage{Next: next}
	for i := range entries {
		page.Claims = append(page.Claims, entries[i].ClaimView)
	}
	return page, err
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	if _, err := s.queue(ctx, r.Queue); err != nil {
		return ports.MorguePage{}, err
	}
	letters := list{table: "dead_letters", columns: deadColumns, joins: deadPayloads, key: "changed_at"}
	if r.ByID {
		letters.key = ""
	}
	entries, next, err := s.page(ctx, letters, r.PageRequest, timeOf)
	page := ports.MorguePage{Next: next}
	for i := range entries {
		page.DeadLetters = append(page.DeadLetters, ports.DeadLetterView{DeadLetter: entries[i].deadLetter(), Count: entries[i].Count})
	}
	return page, err
}

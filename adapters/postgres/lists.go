package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	// key is the sort column before the id, and keyOf its value for an entry. Both are empty in lists
	// by id.
	key   string
	keyOf func(*entry) int64
	// filter is the condition of the list's partial index. group, if it is not empty, is the listed
	// group.
	filter string
	group  string
	// rows replaces shardRows.
	rows string
}

// jobLists are the lists of jobs.
var jobLists = [...]list{
	ports.ByTime: {
		table:   "jobs",
		columns: jobColumns,
		joins:   jobPayloads,
		key:     "perform_at",
		keyOf:   timeOf,
		rows:    rowsByTime,
	},
	ports.ByID: {
		table:   "jobs",
		columns: jobColumns,
		joins:   jobPayloads,
	},
	ports.RetryingByTime: {
		table:   "jobs",
		columns: jobColumns,
		joins:   jobPayloads,
		key:     "perform_at",
		keyOf:   timeOf,
		filter:  retrying,
	},
	ports.RetryingByID: {
		table:   "jobs",
		columns: jobColumns,
		joins:   jobPayloads,
		filter:  retrying,
	},
	ports.RetryingByCount: {
		table:   "jobs",
		columns: jobColumns,
		joins:   jobPayloads,
		key:     "retry_count",
		keyOf:   countOf,
		filter:  retrying,
	},
}

const retrying = "AND retry_count >= 0"

// listPlacesSQL runs placesSQL by a plan that needs no statistics.
const listPlacesSQL = `SELECT * FROM {schema}.list_places($1, $2, $3, $4, $5, $6, $7, $8)`

// placesSQL returns the first places of shards in a list, shard by shard.
//
//	$1 the queue, $2 the indexes of the shards, $3 the most places of each, $4 the id that they begin
//	behind, $5 its key, $6 in lists by id the id that they end before or at, $7 the group of lists of one
const placesSQL = `
SELECT e.index, e.key, e.id::text
FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $1) q
CROSS JOIN LATERAL (
  {rows}
) e
ORDER BY e.index, {order}`

// shardRows takes places of each shard by an index of the list's order.
const shardRows = `SELECT s.index, {key} AS key, e.id
  FROM unnest($2) s (index) CROSS JOIN LATERAL (
    SELECT * FROM {schema}.{table} WHERE shard = q.first + s.index {filter} AND {after} ORDER BY {columnOrder} LIMIT $3
  ) e`

// rowsByTime is shardRows for queued jobs by time, which are in two parts of their index.
const rowsByTime = `SELECT s.index, {key} AS key, e.id
  FROM unnest($2) s (index) CROSS JOIN LATERAL (
    SELECT j.* FROM (VALUES (false), (true)) p (parked), LATERAL (
      SELECT perform_at, id FROM {schema}.{table} t
      WHERE shard = q.first + s.index AND t.parked = p.parked AND {after} ORDER BY {columnOrder} LIMIT $3
    ) j ORDER BY {columnOrder} LIMIT $3
  ) e`

// pageSQL returns entries of a page, in the requested order; those that no longer exist are
// missing.
//
//	$1 the most payloads, $2 the queue, $3 the indexes of their shards, $4 their ids, $5 the most characters
//	of each error, $6 the number of payloads to count to, approximately, $7 now if claims are listed
const pageSQL = `
SELECT {columns}
FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $2) q
CROSS JOIN unnest($3::int[], $4::text[]) WITH ORDINALITY w (index, id, place)
CROSS JOIN LATERAL (
  SELECT * FROM {schema}.{table} WHERE shard = q.first + w.index AND id = w.id COLLATE "C" OFFSET 0
) e {joins}
ORDER BY w.place`

// placesSQL returns the statement for the places of the list that a page begins at.
func (l list) placesSQL(start storekit.Start, descending bool) string {
	sign, end, direction := ">", "<", ""
	if descending {
		sign, end, direction = "<", ">=", " DESC"
	}
	if start.Inclusive {
		sign += "="
	}

	key, after, order := "0::bigint", "id "+sign+" $4 AND id "+end+" $6", `e.id COLLATE "C"`+direction
	columnOrder := "id" + direction
	if l.key != "" {
		key = l.key + "::bigint"
		after = fmt.Sprintf("(%s, id) %s ($5, $4)", l.key, sign)
		order = "e.key" + direction + ", " + order
		columnOrder = l.key + direction + ", " + columnOrder
	}

	text := strings.ReplaceAll(placesSQL, "{rows}", cmp.Or(l.rows, shardRows))
	return strings.NewReplacer("{key}", key, "{table}", l.table, "{filter}", l.filter, "{after}", after,
		"{columnOrder}", columnOrder, "{order}", order).Replace(text)
}

// pageSQL returns the statement for entries of the list.
func (l list) pageSQL() string {
	columns := strings.NewReplacer(
		"e.error", "left(e.error, $5 + length(e.error) - length({schema}.error_text(e.error)))",
		"{counted}", "$6::bigint",
	).Replace(l.columns)
	return strings.NewReplacer("{columns}", columns, "{joins}", l.joins, "{table}", l.table).Replace(pageSQL)
}

// afterAllIDs sorts behind every id: it is longer than an id can be, and consists of the last
// character.
var afterAllIDs = strings.Repeat("\U0010FFFF", core.MaxIDBytes/4+1)

// bounds returns the id that a page begins behind, its key in lists by a key, and in lists by id
// the id that the page ends before or at.
func (l list) bounds(p *storekit.Pager[storekit.Listed]) (id string, key int64, end string) {
	start, descending := p.Start(), p.Descending()
	id, key = start.At.ID, start.At.Key

	switch {
	case l.key == "" && descending:
		if !start.Behind {
			id = afterAllIDs
		}
		return id, 0, p.Prefix()
	case l.key == "":
		return id, 0, p.Prefix() + afterAllIDs
	case !start.Behind && descending:
		key = math.MaxInt64
	case !start.Behind:
		key = math.MinInt64
	}
	return id, key, ""
}

// page returns a page of a list, and the cursor of the next. It finds the places of the entries
// first, and then reads only these entries. The caller has checked that the queue exists.
func (s *Store) page(
	ctx context.Context,
	l list,
	r ports.PageRequest,
	shards []core.Shard,
) ([]entry, ports.Cursor, error) {
	if err := s.mergeForLook(ctx, r.Queue, shards); err != nil {
		return nil, ports.Cursor{}, err
	}

	p := storekit.NewPager[storekit.Listed](r, l.key == "")
	var lost storekit.Lost
	err := storekit.FindPlaces(ctx, p, shards, &lost, func(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
		return s.places(ctx, l, p, asks)
	})
	if err != nil {
		return nil, ports.Cursor{}, err
	}
	if _, err := lost.Shards(1); err != nil { // one server has all shards
		return nil, ports.Cursor{}, err
	}

	places, next := p.Page()
	entries, err := s.entries(ctx, l, r, places)
	return entries, next, err
}

// places finds the first places of shards, the same number for each.
func (s *Store) places(
	ctx context.Context,
	l list,
	p *storekit.Pager[storekit.Listed],
	asks []storekit.Ask,
) []storekit.Answer {
	id, key, end := l.bounds(p)
	query := s.sql(l.placesSQL(p.Start(), p.Descending()))
	return s.answers(ctx, asks, func(at ports.Cursor) ports.Cursor { return at }, query, id, key, end, l.group)
}

// answers asks shards of a queue for the places that a query lists, the same number of each.
// placeOf returns the place that a row stands for.
//
//	id, key, end and group are the parameters of placesSQL from $4 on
func (s *Store) answers(
	ctx context.Context,
	asks []storekit.Ask,
	placeOf func(ports.Cursor) ports.Cursor,
	query, id string,
	key int64,
	end, group string,
) []storekit.Answer {
	answers := make([]storekit.Answer, len(asks))
	indexes, at := make([]int32, len(asks)), make(map[int]int, len(asks))
	for i, ask := range asks {
		indexes[i], at[ask.Shard.Index] = int32(ask.Shard.Index), i
	}

	most := asks[0].Most
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		clear(answers)
		return eachRow(rows, func() error {
			var index int
			var row ports.Cursor
			err := rows.Scan(&index, &row.Key, &row.ID)
			answer := &answers[at[index]]
			answer.Places = append(answer.Places, placeOf(row))
			answer.More = len(answer.Places) >= most
			return err
		})
	}, listPlacesSQL, query, asks[0].Shard.Queue, indexes, most, id, key, end, group)

	if err != nil {
		for i := range answers {
			answers[i] = storekit.Answer{Err: err}
		}
	}
	return answers
}

// entries reads the entries at some places, and returns those that still exist. An entry that has
// moved meanwhile is left out, since the next page begins behind its old place.
func (s *Store) entries(ctx context.Context, l list, r ports.PageRequest, places []storekit.Listed) ([]entry, error) {
	if len(places) == 0 {
		return nil, nil
	}

	indexes, ids := make([]int32, len(places)), make([]string, len(places))
	at := make(map[string]int64, len(places))
	for i, p := range places {
		indexes[i], ids[i], at[p.At.ID] = int32(p.Shard.Index), p.At.ID, p.At.Key
	}

	errorChars := math.MaxInt32 / 2 // the tags are added to it
	if r.ErrorBytes != 0 {
		errorChars = min(max(0, r.ErrorBytes), errorChars)
	}
	args := []any{min(max(0, r.Payloads), math.MaxInt32), r.Queue, indexes, ids, errorChars, countLimit(r.MaxCount)}
	if l.joins == claimLease {
		args = append(args, s.now())
	}

	var entries []entry
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		entries = nil
		return eachRow(rows, func() error {
			e, err := readEntry(rows, r.Queue)
			e.Error = core.CutText(e.Error, r.ErrorBytes)
			if (l.keyOf == nil || l.keyOf(&e) == at[e.ID]) && (l.group == "" || l.group == e.Owner) {
				entries = append(entries, e)
			}
			return err
		})
	}, l.pageSQL(), args...)
	return entries, err
}

// countLimit returns {counted} for a request's MaxCount.
func countLimit(most int) *int {
	if most == 0 {
		return nil
	}
	most = max(0, most)
	return &most
}

func timeOf(e *entry) int64  { return int64(e.PerformAt) }
func countOf(e *entry) int64 { return int64(e.RetryCount) }
func sinceOf(e *entry) int64 { return int64(e.Since) }

// Jobs implements [ports.Inspector]. If only fresh jobs are requested, it removes jobs with a
// failure from the page that it has found.
func (s *Store) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return ports.JobsPage{}, err
	}
	shards, err := storekit.ShardsOfJobs(&r, q)
	if err != nil {
		return ports.JobsPage{}, err
	}

	entries, next, err := s.page(ctx, jobLists[r.SortBy], r.PageRequest, shards)
	page := ports.JobsPage{Next: next}
	for i := range entries {
		page.Jobs = append(page.Jobs, ports.JobView{Job: entries[i].Job, Count: r.Counted(entries[i].Count)})
	}
	if r.Fresh {
		page.Jobs = storekit.FreshOf(page.Jobs)
	}
	return page, err
}

// listed returns the shards of a queue that a list is about, unless the request is invalid.
func (s *Store) listed(ctx context.Context, name string, indexes []int, invalid error) ([]core.Shard, error) {
	q, err := s.queue(ctx, name)
	if err = cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	return storekit.ShardsOf(q, indexes)
}

// Claimed implements [ports.Inspector]. There is no index for its order, since a
// shard has few claimed jobs at once.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ClaimedPage{}, err
	}

	claimed := list{
		table:   "claimed",
		columns: claimColumns + "$7" + claimPayloads,
		joins:   claimLease,
		key:     "since",
		keyOf:   sinceOf,
	}

	entries, next, err := s.page(ctx, claimed, r, shards)
	page := ports.ClaimedPage{Next: next}
	for i := range entries {
		entries[i].Count = r.Counted(entries[i].Count)
		page.Claims = append(page.Claims, entries[i].ClaimView)
	}
	return page, err
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.MorguePage{}, err
	}

	letters := list{
		table:   "dead_letters",
		columns: deadColumns,
		joins:   deadPayloads,
		key:     "changed_at",
		keyOf:   timeOf,
	}
	switch {
	case r.ByID:
		letters.key, letters.keyOf = "", nil
	case r.Group != "":
		letters.filter, letters.group = "AND grp = $7", r.Group
	}

	entries, next, err := s.page(ctx, letters, r.PageRequest, shards)
	page := ports.MorguePage{Next: next}
	for i := range entries {
		page.DeadLetters = append(page.DeadLetters, ports.DeadLetterView{
			DeadLetter: entries[i].deadLetter(),
			Count:      r.Counted(entries[i].Count),
		})
	}
	return page, err
}

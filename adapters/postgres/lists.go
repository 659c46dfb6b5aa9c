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

// list is an order in which the records R of a table are listed. P is *R.
type list[R any, P listed[R]] struct {
	table string
	joins string
	// key is the sort column before the id, and keyOf its value for a record. Both are empty in lists
	// by id.
	key   string
	keyOf func(P) int64
	// filter is the condition of the list's partial index. group, if it is not empty, is the listed
	// group, and groupOf that of a record.
	filter  string
	group   string
	groupOf func(P) string
	// clock is set if the columns need the clock.
	clock bool
	// rows replaces shardRows.
	rows string
}

type listed[R any] interface {
	*R
	record
}

type jobList = list[queuedJob, *queuedJob]

// jobLists are the lists of jobs.
var jobLists = [...]jobList{
	ports.ByTime: {
		table: "jobs",
		joins: queuedPayloads,
		key:   "perform_at",
		keyOf: timeOf,
		rows:  rowsByTime,
	},
	ports.ByID: {
		table: "jobs",
		joins: queuedPayloads,
	},
	ports.RetryingByTime: {
		table:  "jobs",
		joins:  queuedPayloads,
		key:    "perform_at",
		keyOf:  timeOf,
		filter: retrying,
	},
	ports.RetryingByID: {
		table:  "jobs",
		joins:  queuedPayloads,
		filter: retrying,
	},
	ports.RetryingByCount: {
		table:  "jobs",
		joins:  queuedPayloads,
		key:    "retry_count",
		keyOf:  countOf,
		filter: retrying,
	},
}

func timeOf(q *queuedJob) int64  { return int64(q.PerformAt) }
func countOf(q *queuedJob) int64 { return int64(q.RetryCount) }

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
//	of each error or NULL, $6 the number of payloads to count to, approximately, $7 now if claims are listed
const pageSQL = `
SELECT {columns}
FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $2) q
CROSS JOIN unnest($3::int[], $4::text[]) WITH ORDINALITY w (index, id, place)
CROSS JOIN LATERAL (
  SELECT * FROM {schema}.{table} WHERE shard = q.first + w.index AND id = w.id COLLATE "C" OFFSET 0
) e {joins}
ORDER BY w.place`

// placesSQL returns the statement for the places of the list that a page begins at.
func (l list[R, P]) placesSQL(start storekit.Start, descending bool) string {
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

// pageSQL returns the statement for records of the list.
func (l list[R, P]) pageSQL() string {
	columns := selectList("", P(new(R)).columns())
	text := strings.NewReplacer("{columns}", columns, "{joins}", l.joins, "{table}", l.table).Replace(pageSQL)
	return strings.NewReplacer(
		"{failures}", shortFailures("$5::int"),
		"{counted}", "$6::bigint",
		"{now}", "$7",
	).Replace(text)
}

// afterAllIDs sorts behind every id: it is longer than an id can be, and consists of the last
// character.
var afterAllIDs = strings.Repeat("\U0010FFFF", core.MaxIDBytes/4+1)

// bounds returns the id that a page begins behind, its key in lists by a key, and in lists by id
// the id that the page ends before or at.
func (l list[R, P]) bounds(p *storekit.Pager[storekit.Listed]) (id string, key int64, end string) {
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

// page returns a page of a list, and the cursor of the next. It finds the places of the records
// first, and then reads only these records. The caller has checked that the queue exists.
func (l list[R, P]) page(
	ctx context.Context,
	s *Store,
	r ports.PageRequest,
	shards []core.Shard,
) ([]R, ports.Cursor, error) {
	if err := s.mergeForLook(ctx, r.Queue, shards); err != nil {
		return nil, ports.Cursor{}, err
	}

	p := storekit.NewPager[storekit.Listed](r, l.key == "")
	var lost storekit.Lost
	err := storekit.FindPlaces(ctx, p, shards, &lost, func(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
		return l.places(ctx, s, p, asks)
	})
	if err != nil {
		return nil, ports.Cursor{}, err
	}
	if _, err := lost.Shards(1); err != nil { // one server has all shards
		return nil, ports.Cursor{}, err
	}

	places, next := p.Page()
	records, err := l.records(ctx, s, r, places)
	return records, next, err
}

// places finds the first places of shards, the same number for each.
func (l list[R, P]) places(
	ctx context.Context,
	s *Store,
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

// records reads the records at some places, and returns those that still exist. A record that has
// moved meanwhile is left out, since the next page begins behind its old place.
func (l list[R, P]) records(
	ctx context.Context,
	s *Store,
	r ports.PageRequest,
	places []storekit.Listed,
) (records []R, err error) {
	if len(places) == 0 {
		return nil, nil
	}

	indexes, ids, keys := splitPlaces(places)
	args := []any{
		min(max(0, r.Payloads), math.MaxInt32),
		r.Queue,
		indexes,
		ids,
		limitOf(min(r.ErrorBytes, math.MaxInt32)),
		limitOf(r.MaxCount),
	}
	if l.clock {
		args = append(args, s.now())
	}

	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		records = nil
		row := P(new(R))
		into := destinations(rows, "", row.columns())
		return eachRow(rows, func() error {
			*row = *new(R)
			if err := rows.Scan(into...); err != nil {
				return err
			}
			if l.has(row, keys[row.id()]) {
				records = append(records, *row)
			}
			return nil
		})
	}, l.pageSQL(), args...)
	if err != nil {
		return nil, err
	}

	for i := range records {
		if err := P(&records[i]).finish(r.Queue, r.ErrorBytes); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// splitPlaces returns the indexes of the shards and the ids of places, and their keys by id.
func splitPlaces(places []storekit.Listed) (indexes []int32, ids []string, keys map[string]int64) {
	indexes, ids = make([]int32, len(places)), make([]string, len(places))
	keys = make(map[string]int64, len(places))
	for i, p := range places {
		indexes[i], ids[i], keys[p.At.ID] = int32(p.Shard.Index), p.At.ID, p.At.Key
	}
	return indexes, ids, keys
}

// has reports whether the list has a record at a key.
func (l list[R, P]) has(row P, key int64) bool {
	return (l.keyOf == nil || l.keyOf(row) == key) && (l.group == "" || l.groupOf(row) == l.group)
}

// limitOf returns the parameter for a bound of a request, where 0 means no bound and below 0 means 0.
func limitOf(most int) *int {
	if most == 0 {
		return nil
	}
	most = max(0, most)
	return &most
}

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

	jobs, next, err := jobLists[r.SortBy].page(ctx, s, r.PageRequest, shards)
	page := ports.JobsPage{Next: next}
	for i := range jobs {
		page.Jobs = append(page.Jobs, ports.JobView{Job: jobs[i].Job, Count: r.Counted(jobs[i].count)})
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

	claimed := list[claimedJob, *claimedJob]{
		table: "claimed",
		joins: claimLease,
		key:   "since",
		keyOf: func(c *claimedJob) int64 { return int64(c.Since) },
		clock: true,
	}

	claims, next, err := claimed.page(ctx, s, r, shards)
	page := ports.ClaimedPage{Next: next}
	for i := range claims {
		claims[i].Count = r.Counted(claims[i].Count)
		page.Claims = append(page.Claims, claims[i].ClaimView)
	}
	return page, err
}

// Morgue implements [ports.Inspector].
func (s *Store) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.MorguePage{}, err
	}

	morgue := list[deadLetter, *deadLetter]{
		table:   "dead_letters",
		joins:   deadPayloads,
		key:     "changed_at",
		keyOf:   func(d *deadLetter) int64 { return int64(d.ChangedAt) },
		groupOf: func(d *deadLetter) string { return d.Group },
	}
	switch {
	case r.ByID:
		morgue.key, morgue.keyOf = "", nil
	case r.Group != "":
		morgue.filter, morgue.group = "AND grp = $7", r.Group
	}

	letters, next, err := morgue.page(ctx, s, r.PageRequest, shards)
	page := ports.MorguePage{Next: next}
	for i := range letters {
		page.DeadLetters = append(page.DeadLetters, ports.DeadLetterView{
			DeadLetter: letters[i].DeadLetter,
			Count:      r.Counted(letters[i].count),
		})
	}
	return page, err
}

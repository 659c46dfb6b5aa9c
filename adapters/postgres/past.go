package postgres

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// pastRow is a record of a done job as JSON, with the names of the columns of past that a settlement
// sets.
type pastRow struct {
	Started  core.Instant `json:"started"`
	Took     int64        `json:"took"`
	Score    float64      `json:"score"`
	Raises   bool         `json:"raises,omitempty"`
	Payloads int          `json:"payloads"`
	Attempt  int          `json:"attempt"`
	Node     string       `json:"node"`
	Result   *string      `json:"result"`
}

func newPastRow(p core.Past) *pastRow {
	row := &pastRow{
		Started:  p.Started,
		Took:     p.Took.Microseconds(),
		Score:    p.Score,
		Raises:   p.Raises,
		Payloads: p.Payloads,
		Attempt:  p.Attempt,
		Node:     p.Node,
	}
	if len(p.Result) > 0 {
		text := `\x` + hex.EncodeToString(p.Result)
		row.Result = &text
	}
	return row
}

// importedPast is an imported record, or a mark, as JSON.
type importedPast struct {
	ID     string       `json:"id"`
	DoneAt core.Instant `json:"done_at"`
	Mark   bool         `json:"mark"`
	Raises bool         `json:"raises"`
	*pastRow
}

func newImportedPast(p core.Past, mark bool) importedPast {
	return importedPast{ID: p.ID, DoneAt: p.DoneAt, Mark: mark, Raises: p.Raises, pastRow: newPastRow(p)}
}

// keepArgs returns what is kept of records as parameters: NULL for no limit, and only NULL if no
// record is kept.
func keepArgs(k core.KeepPast) []any {
	args := []any{nil, nil, nil}
	for i, limit := range []int64{k.Age.Microseconds(), k.Count, k.Bytes} {
		if limit > 0 {
			args[i] = limit
		}
	}
	return args
}

// pastRecord is a row of the table past as it is read.
type pastRecord struct {
	core.Past
	took        int64
	resultBytes int
}

// columns are those of a list, which has no results.
func (p *pastRecord) columns() []column {
	return []column{
		{"id", "e.id", &p.ID},
		{"done_at", "e.done_at", &p.DoneAt},
		{"started", "e.started", &p.Started},
		{"took", "e.took", &p.took},
		{"score", "e.score", &p.Score},
		{"raises", "e.raises", &p.Raises},
		{"payloads", "e.payloads", &p.Payloads},
		{"attempt", "e.attempt", &p.Attempt},
		{"node", "e.node", &p.Node},
		{"result_bytes", "coalesce(octet_length(e.result), 0)", &p.resultBytes},
	}
}

// found are the columns of a record with its result. They may be NULL.
func (p *pastRecord) found() []column {
	return append(p.columns(), column{"result", "e.result", &p.Result})
}

func (p *pastRecord) id() string { return p.ID }

func (p *pastRecord) finish(string, int) error { return nil }

func (p *pastRecord) view() ports.PastView {
	p.Took = time.Duration(p.took) * time.Microsecond
	return ports.PastView{Past: p.Past, ResultBytes: p.resultBytes}
}

// pastSQL reads the records, or the marks, of a page that exist, in the requested order.
//
//	$1 the queue, $2 the indexes of their shards, $3 their ids, $4 whether they are marks
var pastSQL = `
SELECT ` + selectList("", new(pastRecord).columns()) + `
FROM (SELECT {schema}.first_shard(q.id) AS first FROM {schema}.queues q WHERE q.name = $1) q
CROSS JOIN unnest($2::int[], $3::text[]) WITH ORDINALITY w (index, id, place)
CROSS JOIN LATERAL (
  SELECT * FROM {schema}.past WHERE shard = q.first + w.index AND id = w.id COLLATE "C" AND mark = $4 OFFSET 0
) e
ORDER BY w.place`

// Past implements [ports.Inspector]. It finds the places of the records first, and then reads only
// these.
func (s *Store) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.PastPage{}, err
	}

	l := list[pastRecord, *pastRecord]{table: "past", key: "done_at", filter: "AND NOT mark"}
	if r.Marks {
		l.filter = "AND mark"
	}
	p := storekit.NewPager[storekit.Listed](r, false)
	var lost storekit.Lost
	err = storekit.FindPlaces(ctx, p, shards, &lost, func(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
		return l.places(ctx, s, p, asks)
	})
	if err != nil {
		return ports.PastPage{}, err
	}
	if _, err := lost.Shards(1); err != nil { // one server has all shards
		return ports.PastPage{}, err
	}

	var page ports.PastPage
	var places []storekit.Listed
	places, page.Next = p.Page()
	page.Past, err = s.readPast(ctx, r.Queue, places, r.Marks)
	return page, err
}

// readPast reads the records, or the marks, at some places. It leaves out those that have moved meanwhile, since the
// next page begins behind their old places.
func (s *Store) readPast(
	ctx context.Context, queue string, places []storekit.Listed, marks bool,
) (past []ports.PastView, err error) {
	if len(places) == 0 {
		return nil, nil
	}

	indexes, ids, keys := splitPlaces(places)
	err = s.query(ctx, idempotent, func(rows pgx.Rows) error {
		past = nil
		var row pastRecord
		into := destinations(rows, "", row.columns())
		return eachRow(rows, func() error {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			if int64(row.DoneAt) == keys[row.ID] {
				past = append(past, row.view())
			}
			return nil
		})
	}, pastSQL, queue, indexes, ids, marks)
	return past, err
}

// markArg returns a mark as a parameter, NULL for none.
func markArg(m core.Mark) *float64 {
	if !m.OK {
		return nil
	}
	return &m.Score
}

// marksSQL reads the marks of ids, of those that have one, with their places from 1.
//
//	$1 the queue, $2 the shard's index, $3 the ids
const marksSQL = `SELECT place, score FROM {schema}.marks({schema}.find_shard($1, $2), $3)`

// readMarks sets the marks of claims. No other call changes them while the jobs are claimed.
func (s *Store) readMarks(ctx context.Context, shard core.Shard, claims []core.Claim) error {
	if len(claims) == 0 {
		return nil
	}
	ids := make([]string, len(claims))
	for i := range claims {
		ids[i] = claims[i].ID
	}

	return s.query(ctx, idempotent, func(rows pgx.Rows) error {
		var place int32
		var score float64
		return eachRow(rows, func() error {
			if err := rows.Scan(&place, &score); err != nil {
				return err
			}
			claims[place-1].Mark = core.MarkAt(score)
			return nil
		})
	}, marksSQL, shard.Queue, index(shard), ids)
}

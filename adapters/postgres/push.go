package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// maxStatement is how many entries one statement pushes, unless a single shard
// must have more at once.
const maxStatement = 2000

// Push implements ports.Producer. Entries of several shards share a statement, as
// far as its bound allows; what it stores, it stores whole.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	var reply ports.PushReply
	rest := byShard(r.Entries, r.Shards)
	for first := true; first || len(rest) > 0; first = false {
		now, err := s.pushSome(ctx, &r, rest[:statementSize(rest)])
		if err != nil {
			return ports.PushReply{}, &ports.PushError{Entries: positions(rest), Err: err}
		}
		reply.Now = now
		rest = rest[statementSize(rest):]
	}
	return reply, nil
}

// routed is an entry's shard and its position in the request.
type routed struct{ shard, entry int }

// byShard groups entries by shard, each group in the order of the request.
func byShard(entries []core.Entry, shards int) []routed {
	list := make([]routed, len(entries))
	for i := range entries {
		list[i] = routed{core.ShardOf(entries[i].ID, shards), i}
	}
	slices.SortStableFunc(list, func(a, b routed) int { return a.shard - b.shard })
	return list
}

// statementSize is how many of the entries go into the next statement: whole
// shards, but for one that is too large by itself.
func statementSize(list []routed) int {
	size := 0
	for size < len(list) {
		end := size
		for end < len(list) && list[end].shard == list[size].shard {
			end++
		}
		if end > maxStatement && size > 0 {
			return size
		}
		if end > maxStatement {
			return maxStatement
		}
		size = end
	}
	return size
}

// positions are the entries' places in the request, ascending.
func positions(list []routed) []int {
	places := make([]int, len(list))
	for i := range list {
		places[i] = list[i].entry
	}
	slices.Sort(places)
	return places
}

const pushCall = `SELECT status, now, coalesce(index, -1), coalesce(due, 0) FROM {schema}.push($1, $2, $3, $4, $5::smallint, $6,
  $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

// pushSome pushes entries in one exchange and one transaction.
func (s *Store) pushSome(ctx context.Context, r *ports.PushRequest, list []routed) (core.Instant, error) {
	statements := pushStatements(r, list)
	push := s.pushAll
	if len(statements) == 1 && len(statements[0].ids) == 1 && len(statements[0].more.ids) == 0 {
		push = s.pushOne
	}
	began := time.Now()
	now, moved, err := push(ctx, r, statements)
	if err != nil {
		return 0, err
	}
	if time.Since(began) > timely {
		s.note(ctx, r.Queue, moved)
	}
	for _, d := range moved {
		s.pushed(core.Shard{Queue: r.Queue, Index: d.index}, d.at, now)
	}
	return now, nil
}

// timely is how long a push may take and be seen for certain: turns don't look again
// where they looked more than a second after a PerformAt.
const timely = 900 * time.Millisecond

// noteSQL has the next turns look from certain jobs on.
//
//	$1 the queue, $2 the shards' indexes, $3 the earliest PerformAt in each
const noteSQL = `
INSERT INTO {schema}.inbox (shard, kind, perform_at)
SELECT s.id, 'e', u.due FROM unnest($2::int[], $3::bigint[]) u (index, due) JOIN {schema}.shards s ON s.queue = $1 AND s.index = u.index`

// note tells of jobs that a push was slow to store. If it fails they are found when
// turns or renewals look for such.
func (s *Store) note(ctx context.Context, queue string, moved []due) {
	indexes, dues := make([]int32, len(moved)), make([]int64, len(moved))
	for i, d := range moved {
		indexes[i], dues[i] = int32(d.index), int64(d.at)
	}
	_ = s.query(ctx, ifRefused, noRows, noteSQL, queue, indexes, dues)
}

// pushAll makes the statements' calls.
func (s *Store) pushAll(ctx context.Context, r *ports.PushRequest, statements []*pushStatement) (now core.Instant, moved []due, err error) {
	read := func(rows pgx.Rows) (err error) {
		now, moved, err = readPush(rows, r.Queue, moved)
		return err
	}
	err = s.call(ctx, ifRefused, func(ctx context.Context) error {
		moved = moved[:0]
		if len(statements) == 1 {
			rows, err := s.pool.Query(ctx, s.sql(pushCall), statements[0].args(s, r)...)
			if err != nil {
				return err
			}
			return read(rows)
		}
		// Without a BEGIN, a batch is a transaction.
		var batch pgx.Batch
		for _, st := range statements {
			batch.Queue(s.sql(pushCall), st.args(s, r)...).Query(read)
		}
		return s.pool.SendBatch(ctx, &batch).Close()
	})
	return now, moved, err
}

// due is the earliest job of a shard that a push made or moved.
type due struct {
	index int
	at    core.Instant
}

func readPush(rows pgx.Rows, queue string, moved []due) (core.Instant, []due, error) {
	defer rows.Close()
	var now core.Instant
	for rows.Next() {
		var (
			st status
			d  due
		)
		if err := rows.Scan(&st, &now, &d.index, &d.at); err != nil {
			return 0, moved, err
		}
		if st != accepted {
			rows.Close()
			return 0, moved, errors.Join(st.err(core.Shard{Queue: queue}), rows.Err())
		}
		if d.index >= 0 {
			moved = append(moved, d)
		}
	}
	return now, moved, rows.Err()
}

// pushStatement is one call of the function push: an entry for each id, in order
// of shard and id, and further payloads for some.
type pushStatement struct {
	columns
	at, delay []int64 // nil if all are now
	more      columns
}

// columns are payloads with where they belong.
type columns struct {
	index  []int32
	ids    []string
	scores []float64
	data   [][]byte
	meta   [][]byte
}

func (c *columns) add(shard int, id string, p core.Payload) {
	if p.Data == nil {
		p.Data = []byte{}
	}
	c.index = append(c.index, int32(shard))
	c.ids = append(c.ids, id)
	c.scores = append(c.scores, core.NormalScore(p.Score))
	c.data = append(c.data, p.Data)
	c.meta = append(c.meta, p.Meta)
}

// args are the parameters of pushCall.
func (st *pushStatement) args(s *Store, r *ports.PushRequest) []any {
	return []any{
		r.Queue, int32(r.Shards), r.Generation, s.now(), int16(r.Rule.Kind), r.Rule.MaxDelay().Microseconds(),
		st.index, st.ids, st.at, st.delay, st.scores, st.data, st.meta,
		st.more.index, st.more.ids, st.more.scores, st.more.data, st.more.meta,
	}
}

// pushStatements are what pushes the entries, in order. Where the rule keeps the
// time, what comes again for an id only adds its payload.
func pushStatements(r *ports.PushRequest, list []routed) []*pushStatement {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b routed) int {
		if a.shard != b.shard {
			return a.shard - b.shard
		}
		if c := strings.Compare(r.Entries[a.entry].ID, r.Entries[b.entry].ID); c != 0 {
			return c
		}
		return a.entry - b.entry
	})
	statements := []*pushStatement{{}}
	for len(list) > 0 {
		n := 1
		for n < len(list) && r.Entries[list[n].entry].ID == r.Entries[list[0].entry].ID {
			n++
		}
		same := list[:n]
		list = list[n:]
		if r.Rule.Kind == core.Keep {
			statements[0].addOnce(r, same)
			continue
		}
		for i, at := range same {
			if i == len(statements) {
				statements = append(statements, &pushStatement{})
			}
			statements[i].addOnce(r, []routed{at})
		}
	}
	return statements
}

// addOnce adds entries of one id: the first of their payloads as a job at the
// first entry's time, the rest as further payloads.
func (st *pushStatement) addOnce(r *ports.PushRequest, same []routed) {
	first := &r.Entries[same[0].entry]
	st.time(first.When)
	if len(same) == 1 {
		st.add(same[0].shard, first.ID, first.Payload)
		return
	}
	payloads := make([]core.Payload, len(same))
	for i, at := range same {
		payloads[i] = r.Entries[at.entry].Payload
		payloads[i].Score = core.NormalScore(payloads[i].Score)
	}
	set := core.NewPayloadSet(payloads)
	for i, p := range set.List() {
		if i == 0 {
			st.add(same[0].shard, first.ID, p)
		} else {
			st.more.add(same[0].shard, first.ID, p)
		}
	}
}

// time adds when the next job may run.
func (st *pushStatement) time(w core.When) {
	if w == (core.When{}) && st.at == nil {
		return
	}
	for len(st.at) < len(st.ids) {
		st.at, st.delay = append(st.at, notFixed), append(st.delay, 0)
	}
	at, fixed := w.Fixed()
	if !fixed {
		at = notFixed
	}
	st.at, st.delay = append(st.at, int64(at)), append(st.delay, w.Delay().Microseconds())
}

// notFixed is the PerformAt of an entry that has a delay.
const notFixed = -1

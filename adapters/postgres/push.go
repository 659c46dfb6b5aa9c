package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// maxStatement is how many entries one statement pushes, unless a single shard
// must have more at once.
const maxStatement = 2000

// Push implements [ports.Producer]. Entries of several shards share a statement, as
// far as its bound allows; what it stores, it stores whole.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	var reply ports.PushReply
	rest := storekit.Route(nil, r.Entries, r.Shards)
	for first := true; first || len(rest) > 0; first = false {
		now, err := s.pushSome(ctx, &r, rest[:statementSize(rest)])
		if err != nil {
			return ports.PushReply{}, storekit.NotStored(rest, err)
		}
		reply.Now = now
		rest = rest[statementSize(rest):]
	}
	return reply, nil
}

// statementSize returns how many of the entries go into the next statement: whole
// shards, but for one that is too large by itself.
func statementSize(list []storekit.Routed) int {
	size := 0
	for rest := list; len(rest) > 0; {
		var shard []storekit.Routed
		shard, rest = storekit.CutShard(rest)
		if size+len(shard) > maxStatement {
			if size == 0 {
				return maxStatement
			}
			return size
		}
		size += len(shard)
	}
	return size
}

// pushSome pushes entries in one exchange and one transaction.
func (s *Store) pushSome(ctx context.Context, r *ports.PushRequest, list []storekit.Routed) (core.Instant, error) {
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
	if time.Since(began) > slowPush {
		s.noteEarly(ctx, r.Queue, moved)
	}
	for _, d := range moved {
		s.wakeAfterPush(core.Shard{Queue: r.Queue, Index: d.index}, d.at, now)
	}
	return now, nil
}

const pushSQL = `SELECT status, now, coalesce(index, -1), coalesce(earliest, 0)
FROM {schema}.push(p_queue => $1, p_shards => $2, p_generation => $3, p_now => $4, p_rule => $5::smallint, p_limit => $6,
  p_index => $7, p_ids => $8, p_at => $9, p_delay => $10, p_scores => $11, p_data => $12, p_meta => $13,
  p_more_index => $14, p_more_ids => $15, p_more_scores => $16, p_more_data => $17, p_more_meta => $18)`

// pushAll pushes by the function push, called once per statement.
func (s *Store) pushAll(ctx context.Context, r *ports.PushRequest, statements []*pushStatement) (now core.Instant, moved []due, err error) {
	read := func(rows pgx.Rows) (err error) {
		now, moved, err = readPush(rows, r, moved)
		return err
	}
	err = s.call(ctx, ifRolledBack, func(ctx context.Context) error {
		moved = moved[:0]
		if len(statements) == 1 {
			rows, err := s.pool.Query(ctx, s.sql(pushSQL), statements[0].args(s, r)...)
			if err != nil {
				return err
			}
			return read(rows)
		}
		// Without a BEGIN, a batch is a transaction.
		var batch pgx.Batch
		for _, st := range statements {
			batch.Queue(s.sql(pushSQL), st.args(s, r)...).Query(read)
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

func readPush(rows pgx.Rows, r *ports.PushRequest, moved []due) (core.Instant, []due, error) {
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
		if st != statusOK {
			rows.Close()
			return 0, moved, errors.Join(st.layoutErr(core.Shard{Queue: r.Queue}, layoutOf(r)), rows.Err())
		}
		if d.index >= 0 {
			moved = append(moved, d)
		}
	}
	return now, moved, rows.Err()
}

// layoutOf returns the layout that a push asks for.
func layoutOf(r *ports.PushRequest) storekit.Layout {
	return storekit.Layout{Shards: r.Shards, Generation: r.Generation}
}

// slowPush is how long a push may take and be seen for certain: turns don't look again
// where they looked more than a second after a PerformAt.
const slowPush = 900 * time.Millisecond

// noteEarlySQL has the next turns look for due jobs from certain instants on.
//
//	$1 the queue, $2 the shards' indexes, $3 the earliest PerformAt in each
const noteEarlySQL = `
INSERT INTO {schema}.inbox (shard, kind, perform_at)
SELECT s.id, 'early', u.due FROM unnest($2::int[], $3::bigint[]) u (index, due)
JOIN {schema}.shards s ON s.queue = $1 AND s.index = u.index`

// noteEarly notes jobs that a push was slow to store. If it fails, the turns or renewals
// that look below the floor find them.
func (s *Store) noteEarly(ctx context.Context, queue string, moved []due) {
	indexes, dues := make([]int32, len(moved)), make([]int64, len(moved))
	for i, d := range moved {
		indexes[i], dues[i] = int32(d.index), int64(d.at)
	}
	_ = s.query(ctx, ifRolledBack, noRows, noteEarlySQL, queue, indexes, dues)
}

package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// maxStatement is the maximum number of entries that one statement pushes.
const maxStatement = 2000

// Push implements [ports.Producer]. Entries of several shards share a statement, within its bounds.
// A statement stores all of its entries or none.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}

	if s.isSmall(&r) {
		reply, err := s.pushSmall(ctx, &r)
		if err != nil {
			return ports.PushReply{}, storekit.NothingStored(1, err)
		}
		return reply, nil
	}

	var reply ports.PushReply
	remaining := storekit.Route(nil, r.Entries, r.Shards)
	for first := true; first || len(remaining) > 0; first = false {
		some := remaining[:statementSize(remaining)]
		met, err := s.pushSome(ctx, &r, some)
		if err != nil {
			return ports.PushReply{}, storekit.NotStored(remaining, err)
		}

		met.Duplicate = len(some) - met.New - met.Merged - met.Superseded - met.Stale - met.Repeated
		reply.Add(met)
		remaining = remaining[len(some):]
	}
	return reply, nil
}

// statementSize returns the number of entries for the next statement: those of whole shards or, if
// the first shard alone has too many, its first maxStatement entries.
func statementSize(list []storekit.Routed) int {
	size := 0
	for remaining := list; len(remaining) > 0; {
		var shard []storekit.Routed
		shard, remaining = storekit.CutShard(remaining)
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

// pushSome pushes entries in one exchange and one transaction. Those that it counts nowhere are
// duplicates.
func (s *Store) pushSome(ctx context.Context, r *ports.PushRequest, list []storekit.Routed) (ports.PushReply, error) {
	began := time.Now()
	p, err := s.pushByTheRule(ctx, r, list)
	if err != nil {
		return ports.PushReply{}, err
	}

	s.announcePush(ctx, r.Queue, began, p.met.Now, p.moved)
	return p.met, nil
}

// announcePush has turns find the jobs of a push that began at a time and was stored at now.
func (s *Store) announcePush(ctx context.Context, queue string, began time.Time, now core.Instant, moved []due) {
	if time.Since(began) > slowPush || s.clockWentOn(now) {
		s.noteEarly(ctx, queue, moved)
	}
	for _, d := range moved {
		s.wakeAfterPush(core.Shard{Queue: queue, Index: d.index}, d.at, now)
	}
}

// pushResult is the result of a push.
type pushResult struct {
	met   ports.PushReply
	moved []due
	// byRule is set if nothing was stored because the queue has another merge rule than union, and
	// the called function supports only union.
	byRule bool
}

// due is the earliest job of a shard that a push made or moved.
type due struct {
	index int
	at    core.Instant
}

// pushByTheRule pushes entries as the queue's merge rule requires. The store learns from the first
// push to a queue that the queue has another merge rule than union.
func (s *Store) pushByTheRule(ctx context.Context, r *ports.PushRequest, list []storekit.Routed) (pushResult, error) {
	// The functions of other pushes drop nothing and have no tags.
	if _, known := s.byRule.Load(r.Queue); known || r.DropStale || hasOnce(r, list) || hasTags(r, list) {
		return s.pushEach(ctx, r, list)
	}

	if urgent := countUrgent(r, list); urgent == len(list) && urgent > 0 {
		all := *r
		all.Rule = core.PushRule{Kind: core.Earliest}
		r = &all
	} else if urgent > 0 { // the functions of other pushes have one rule for all entries
		return s.pushEach(ctx, r, list)
	}

	p, err := s.pushAll(ctx, r, pushStatements(r, list))
	if err == nil && p.byRule {
		s.byRule.Store(r.Queue, true)
		return s.pushEach(ctx, r, list)
	}
	return p, err
}

// countUrgent returns how many of the entries are urgent.
func countUrgent(r *ports.PushRequest, list []storekit.Routed) (n int) {
	for _, at := range list {
		if r.Entries[at.Position].When.Urgent() {
			n++
		}
	}
	return n
}

// hasTags reports whether one of the entries has tags.
func hasTags(r *ports.PushRequest, list []storekit.Routed) bool {
	return slices.ContainsFunc(list, func(at storekit.Routed) bool { return r.Entries[at.Position].Tags != "" })
}

// hasOnce reports whether one of the entries is accepted once within a time.
func hasOnce(r *ports.PushRequest, list []storekit.Routed) bool {
	return slices.ContainsFunc(list, func(at storekit.Routed) bool { return r.Entries[at.Position].OnceIn > 0 })
}

const pushByRuleSQL = `SELECT status, now, coalesce(index, -1), coalesce(earliest, 0),
  coalesce(new, 0), coalesce(merged, 0), coalesce(superseded, 0), coalesce(stale, 0), coalesce(repeated, 0)
FROM {schema}.push_by_rule(p_queue => $1, p_shards => $2, p_generation => $3, p_now => $4,
  p_rule => $5::smallint, p_limit => $6, p_index => $7, p_ids => $8,
  p_at => $9, p_delay => $10, p_scores => $11, p_data => $12, p_meta => $13,
  p_urgent => $14, p_tags => $15, p_fresh => $16, p_keys => $17, p_once => $18)`

// pushEach pushes by the function push_by_rule, which merges one entry after another by any rule.
func (s *Store) pushEach(ctx context.Context, r *ports.PushRequest, list []storekit.Routed) (p pushResult, err error) {
	var st pushStatement
	var urgent []bool
	var tags []string // nil if no entry has tags
	if hasTags(r, list) {
		tags = make([]string, 0, len(list))
	}
	var keys [][]byte
	var once []*int64 // nil if no entry is accepted once
	if hasOnce(r, list) {
		once = make([]*int64, 0, len(list))
	}

	for _, at := range inOrderOfIDs(r, list) {
		en := &r.Entries[at.Position]
		urgent = append(urgent, en.When.Urgent())
		st.time(en.When)
		st.add(at.Shard, en.ID, en.Payload)
		if tags != nil {
			tags = append(tags, string(en.Tags))
		}
		if once != nil {
			key, micros := onceArgs(en, r.Stamped)
			keys, once = append(keys, key), append(once, micros)
		}
	}

	err = s.call(ctx, ifRolledBack, func(ctx context.Context) error {
		p = pushResult{}
		read := func(rows pgx.Rows) error { return p.read(rows, r) }
		args := append(st.args(s, r)[:pushArgs], urgent, tags, r.DropStale, keys, once)
		return s.send(ctx, read, pushByRuleSQL, args...)
	})
	return p, err
}

// onceArgs returns the key and the time of an entry in microseconds, nil for one that is always
// accepted.
func onceArgs(e *core.Entry, stamped bool) (key []byte, once *int64) {
	if e.OnceIn == 0 {
		return nil, nil
	}
	hash, micros := e.OnceKey(stamped), e.OnceIn.Microseconds()
	return hash[:], &micros
}

const pushSQL = `SELECT status, now, coalesce(index, -1), coalesce(earliest, 0),
  coalesce(new, 0), coalesce(merged, 0), 0::bigint, 0::bigint, 0::bigint
FROM {schema}.push(p_queue => $1, p_shards => $2, p_generation => $3, p_now => $4,
  p_rule => $5::smallint, p_limit => $6, p_index => $7, p_ids => $8,
  p_at => $9, p_delay => $10, p_scores => $11, p_data => $12, p_meta => $13,
  p_more_index => $14, p_more_ids => $15, p_more_scores => $16, p_more_data => $17, p_more_meta => $18)`

// pushAll pushes by the function push, called once per statement.
func (s *Store) pushAll(
	ctx context.Context,
	r *ports.PushRequest,
	statements []*pushStatement,
) (p pushResult, err error) {
	read := func(rows pgx.Rows) error { return p.read(rows, r) }
	err = s.call(ctx, ifRolledBack, func(ctx context.Context) error {
		p = pushResult{}
		if len(statements) == 1 {
			return s.send(ctx, read, pushSQL, statements[0].args(s, r)...)
		}

		// Without a BEGIN, a batch is a transaction.
		var batch pgx.Batch
		for _, st := range statements {
			batch.Queue(s.sql(pushSQL), st.args(s, r)...).Query(read)
		}

		conn, err := s.current().Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		err = conn.SendBatch(ctx, &batch).Close()
		s.release(ctx, conn.Conn().PgConn(), err)
		return err
	})
	return p, err
}

// read reads the result of a statement and adds it: what the entries met, and the shards whose
// head has moved.
func (p *pushResult) read(rows pgx.Rows, r *ports.PushRequest) error {
	defer rows.Close()
	for rows.Next() {
		var (
			st   status
			d    due
			part ports.PushReply
		)

		err := rows.Scan(
			&st, &part.Now, &d.index, &d.at, &part.New, &part.Merged, &part.Superseded, &part.Stale, &part.Repeated)
		if err != nil {
			return err
		}

		if st == statusByRule {
			p.byRule = true
			continue
		}
		if st != statusOK {
			rows.Close()
			return errors.Join(st.layoutErr(core.Shard{Queue: r.Queue}, pushLayout(r)), rows.Err())
		}

		p.met.Add(part)
		if d.index >= 0 {
			p.moved = append(p.moved, d)
		}
	}
	return rows.Err()
}

// pushLayout returns the layout that a push asks for.
func pushLayout(r *ports.PushRequest) storekit.Layout {
	return storekit.Layout{Shards: r.Shards, Generation: r.Generation}
}

// slowPush is the longest duration of a push whose jobs turns are certain to find. A turn looks for
// due jobs from a floor on, which may be as late as a second ago.
const slowPush = 900 * time.Millisecond

// clockWentOn reports whether Options.Clock, if it is set, has advanced by more than slowPush. It
// may advance faster than real time, as in tests.
func (s *Store) clockWentOn(since core.Instant) bool {
	return s.options.Clock != nil && s.options.Clock().Sub(since.Time()) > slowPush
}

// noteEarlySQL makes the next turns look for due jobs from certain instants on.
//
//	$1 the queue, $2 the shards' indexes, $3 the earliest PerformAt in each
const noteEarlySQL = `
INSERT INTO {schema}.inbox (shard, kind, perform_at)
SELECT s.id, 'early', u.due FROM unnest($2::int[], $3::bigint[]) u (index, due)
JOIN {schema}.shards s ON s.queue = $1 AND s.index = u.index`

// noteEarly notes jobs that a slow push has stored, so that the next turns look below the floor. If
// it fails, turns or renewals find the jobs when they next look below the floor.
func (s *Store) noteEarly(ctx context.Context, queue string, moved []due) {
	indexes, dues := make([]int32, len(moved)), make([]int64, len(moved))
	for i, d := range moved {
		indexes[i], dues[i] = int32(d.index), int64(d.at)
	}
	_ = s.query(ctx, ifRolledBack, noRows, noteEarlySQL, queue, indexes, dues)
}

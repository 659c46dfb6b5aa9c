package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Limits of the exchanges of small pushes to a queue. A commit waits for the disk, while others are
// prepared. Pushes that wait behind a lock or a slow disk are sent by other connections.
const (
	pushesUnderWay = 1
	pushPatience   = 5 * time.Millisecond
	pushesTogether = 64
	bytesTogether  = 256 << 10
	// smallPush bounds the bytes of a push that goes with others.
	smallPush = 16 << 10
	// mergingPushes is how many pushes to a queue go alone once most of an exchange had queued ids: an
	// attempt in vain costs them a third of their rate.
	mergingPushes = 1000
)

// queueLayout is a queue with the layout that pushes name.
type queueLayout struct {
	queue string
	storekit.Layout
}

// smallPushes are the exchanges of small pushes.
type smallPushes = storekit.SharedExchanges[queueLayout, *ports.PushRequest, ports.PushReply]

func (s *Store) newSmallPushes() *smallPushes {
	return &smallPushes{
		Alone:    s.pushAlone,
		Together: s.pushTogether,
		UnderWay: pushesUnderWay,
		AtMost:   max(pushesUnderWay, s.Connections()),
		Patience: pushPatience,
		Most:     pushesTogether,
		Bytes:    bytesTogether,
	}
}

// isSmall reports whether a push may go with others: one entry without tags that is never dropped, to a
// queue whose merge rule is not known to be another one than union.
func (s *Store) isSmall(r *ports.PushRequest) bool {
	if len(r.Entries) != 1 || r.DropStale || sizeOf(r) >= smallPush {
		return false
	}
	if one := &r.Entries[0]; one.Tags != "" || one.When.Urgent() || one.OnceIn > 0 {
		return false
	}
	if _, known := s.byRule.Load(r.Queue); known {
		return false
	}
	alone, found := s.merging.Load(r.Queue)
	return !found || alone.(*atomic.Int64).Add(-1) < 0
}

// noteMerging has the next pushes to a queue go alone, since most of those that went together merge.
func (s *Store) noteMerging(queue string) {
	alone, _ := s.merging.LoadOrStore(queue, new(atomic.Int64))
	alone.(*atomic.Int64).Store(mergingPushes)
}

// sizeOf returns the bytes of a push of one entry.
func sizeOf(r *ports.PushRequest) int {
	e := &r.Entries[0]
	return len(e.ID) + len(e.Data) + len(e.Meta)
}

// pushSmall pushes a small push, together with others that wait at the same time.
func (s *Store) pushSmall(ctx context.Context, r *ports.PushRequest) (ports.PushReply, error) {
	began := time.Now()
	reply, err := s.small.Do(ctx, queueLayout{r.Queue, pushLayout(r)}, sizeOf(r), r)
	if err != nil && err == ctx.Err() { // it ended while the push waited
		s.note(ctx, began, err)
		err = translate(ctx, err)
	}
	return reply, err
}

// pushAlone pushes one entry.
func (s *Store) pushAlone(ctx context.Context, r *ports.PushRequest) (ports.PushReply, error) {
	met, err := s.pushSome(ctx, r, storekit.Route(nil, r.Entries, r.Shards))
	if err == nil {
		met.Duplicate = 1 - met.New - met.Merged - met.Superseded
	}
	return met, err
}

const pushTogetherSQL = `SELECT status, now, coalesce(index, -1), coalesce(earliest, 0), queued
FROM {schema}.push_together(p_queue => $1, p_shards => $2, p_generation => $3, p_now => $4,
  p_index => $5, p_ids => $6, p_at => $7, p_delay => $8, p_scores => $9, p_data => $10, p_meta => $11)`

// pushTogether pushes the entries of several callers by one statement. It refuses those whose ids
// are queued, and the second of an id: they merge, and go alone.
func (s *Store) pushTogether(
	ctx context.Context,
	key queueLayout,
	requests []*ports.PushRequest,
) []storekit.SharedOutcome[ports.PushReply] {
	outcomes := make([]storekit.SharedOutcome[ports.PushReply], len(requests))
	for i := range outcomes {
		outcomes[i].Refused = true
	}
	if s.ready(ctx) != nil {
		return outcomes // which each of them finds out too
	}

	st, order := joinedStatement(key.Shards, requests)
	began, p := time.Now(), joinedResult{}
	read := func(rows pgx.Rows) error { return p.read(rows) }
	err := s.send(ctx, read, pushTogetherSQL, textOrNone(key.queue), int32(key.Shards), key.Generation, s.now(),
		st.index, st.ids, st.at, st.delay, st.scores, st.data, st.meta)
	s.note(ctx, began, err)

	switch {
	case err != nil && isRefusal(ctx, err), err == nil && p.status != statusOK:
		return outcomes
	case err != nil:
		err = translate(context.WithoutCancel(ctx), err) // no caller may take it for the end of its own context
		for i := range outcomes {
			outcomes[i] = storekit.SharedOutcome[ports.PushReply]{Err: err}
		}
		return outcomes
	}

	for place, at := range order {
		if !slices.Contains(p.queued, int32(place+1)) {
			outcomes[at] = storekit.SharedOutcome[ports.PushReply]{Reply: ports.PushReply{Now: p.now, New: 1}}
		}
	}
	if stored := len(order) - len(p.queued); 2*stored < len(requests) {
		s.noteMerging(key.queue)
	}
	s.announcePush(ctx, key.queue, began, p.now, p.moved)
	return outcomes
}

// joinedStatement returns a statement of the requests' entries, for distinct ids in order of shard
// and id, and the position of each entry's request. Of several entries of an id it has the first.
func joinedStatement(shards int, requests []*ports.PushRequest) (st pushStatement, order []int) {
	list := make([]storekit.Routed, len(requests))
	for i, r := range requests {
		list[i] = storekit.Routed{Shard: core.ShardOf(r.Entries[0].ID, shards), Position: i}
	}
	slices.SortFunc(list, func(a, b storekit.Routed) int {
		return cmp.Or(
			a.Shard-b.Shard,
			strings.Compare(requests[a.Position].Entries[0].ID, requests[b.Position].Entries[0].ID),
			a.Position-b.Position,
		)
	})

	for _, at := range list {
		e := &requests[at.Position].Entries[0]
		if n := len(st.ids); n > 0 && st.ids[n-1] == e.ID {
			continue
		}
		st.time(e.When)
		st.add(at.Shard, e.ID, e.Payload)
		order = append(order, at.Position)
	}
	return st, order
}

// isRefusal reports whether an error means that nothing was committed.
func isRefusal(ctx context.Context, err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && class(pg) != "08" {
		return true
	}
	return repeatable(ctx, err, ifRolledBack)
}

// joinedResult is the result of pushes that went together.
type joinedResult struct {
	status status
	now    core.Instant
	moved  []due
	// queued are the places of entries that were not stored, from 1.
	queued []int32
}

func (p *joinedResult) read(rows pgx.Rows) error {
	for rows.Next() {
		var d due
		var queued []int32
		if err := rows.Scan(&p.status, &p.now, &d.index, &d.at, &queued); err != nil {
			return err
		}
		if d.index >= 0 {
			p.moved = append(p.moved, d)
		} else {
			p.queued = queued
		}
	}
	return rows.Err()
}

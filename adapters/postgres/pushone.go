package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// pushOneSQL pushes a single entry by a function of its own, which costs the server less than push.
const pushOneSQL = `SELECT status, now, perform_at, fresh, added
FROM {schema}.push_one(p_queue => $1, p_shards => $2, p_generation => $3, p_now => $4, p_rule => $5::smallint, p_limit => $6,
  p_index => $7, p_id => $8, p_at => $9, p_delay => $10, p_score => $11, p_data => $12, p_meta => $13)`

// pushOne pushes a single entry.
func (s *Store) pushOne(ctx context.Context, r *ports.PushRequest, statements []*pushStatement) (p pushResult, err error) {
	st := statements[0]
	fixed, delay := int64(notFixed), int64(0)
	if st.at != nil {
		fixed, delay = st.at[0], st.delay[0]
	}
	var (
		refused      status
		now, at      *core.Instant // NULL if it is refused
		fresh, added *bool
	)
	err = s.query(ctx, ifRolledBack, func(rows pgx.Rows) error { return readOne(rows, &refused, &now, &at, &fresh, &added) }, pushOneSQL,
		textOrNone(r.Queue), int32(r.Shards), r.Generation, s.now(), int16(r.Rule.Kind), r.Rule.MaxDelay().Microseconds(),
		st.index[0], st.ids[0], fixed, delay, st.scores[0], st.data[0], st.meta[0])
	if err == nil && refused == statusByRule {
		return pushResult{byRule: true}, nil
	}
	if err == nil {
		err = refused.layoutErr(core.Shard{Queue: r.Queue}, layoutOf(r))
	}
	if err != nil {
		return pushResult{}, err
	}
	p.met.Now = *now
	switch {
	case *fresh:
		p.met.New = 1
	case *added:
		p.met.Merged = 1
	}
	if *at >= 0 {
		p.moved = []due{{index: int(st.index[0]), at: *at}}
	}
	return p, nil
}

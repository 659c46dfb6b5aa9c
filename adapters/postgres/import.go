package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Import implements [ports.Operator].
func (s *Store) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	var (
		st    status
		reply = ports.StepReply{Reached: len(r.DeadLetters)}
	)
	args := append([]any{textOrNone(r.Shard.Queue), r.Shard.Index, s.now(), r.Shards, r.Generation}, importArgs(r.DeadLetters)...)
	err := s.query(ctx, ifRolledBack|operated, func(rows pgx.Rows) error {
		return readOne(rows, &st, &reply.Now, &reply.Handled)
	}, `SELECT status, coalesce(now, 0), handled FROM {schema}.step_import($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`, args...)
	if err == nil {
		err = st.layoutErr(r.Shard, storekit.Layout{Shards: r.Shards, Generation: r.Generation})
	}
	if err != nil {
		return ports.StepReply{}, err
	}
	return reply, nil
}

// importArgs returns the dead letters as parameters of step_import: their ids, times, errors and
// groups, and for each payload the place of its dead letter, from 1, with score, bytes and Meta.
func importArgs(letters []core.DeadLetter) []any {
	var (
		ids, errs, groups = []string{}, []string{}, []string{}
		times             = []int64{}
		places            = []int32{}
		scores            = []float64{}
		data, metas       = [][]byte{}, [][]byte{}
	)
	for i := range letters {
		d := &letters[i]
		ids, times, errs, groups = append(ids, d.ID), append(times, int64(d.ChangedAt)), append(errs, d.Error), append(groups, d.Group)
		for _, p := range d.Payloads {
			places, scores, data = append(places, int32(i+1)), append(scores, core.NormalScore(p.Score)), append(data, notNull(p.Data))
			if len(p.Meta) == 0 {
				p.Meta = nil
			}
			metas = append(metas, p.Meta)
		}
	}
	return []any{ids, times, errs, groups, places, scores, data, metas}
}

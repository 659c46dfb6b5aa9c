package postgres

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// Revive implements ports.Operator.
func (s *Store) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.exhume(ctx, &r, true)
}

// Purge implements ports.Operator.
func (s *Store) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.exhume(ctx, &r, false)
}

func (s *Store) exhume(ctx context.Context, r *ports.DeadLetterStep, revive bool) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	var whole, ids []string
	var data [][]byte
	if r.DeadLetters != nil {
		whole = []string{}
	}
	for _, ref := range r.DeadLetters {
		if ref.Payloads == nil {
			whole = append(whole, ref.ID)
		}
		for _, d := range ref.Payloads {
			ids, data = append(ids, ref.ID), append(data, notNull(d))
		}
	}
	return s.step(ctx, r.Shard, `step_exhume($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		whole, ids, data, int64(r.Before), r.Size(), revive)
}

// Edit implements ports.Operator.
func (s *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.step(ctx, r.Shard, `step_edit($1, $2, $3, $4, $5, $6)`, r.ID, notNull(r.Old), notNull(r.New))
}

// notNull is data as SQL sees it: nil would be NULL.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// step calls one of the functions for operators, whose first arguments are the
// shard and the clock, and wakes who listens for what it made due. A repeat after
// an unknown outcome would count what the first has done as not done.
func (s *Store) step(ctx context.Context, shard core.Shard, call string, args ...any) (ports.StepReply, error) {
	if err := s.look(ctx, shard.Queue); err != nil { // so that the step has little to merge
		return ports.StepReply{}, err
	}
	var done status
	var reply ports.StepReply
	var earliest *core.Instant
	err := s.query(ctx, ifRefused, func(rows pgx.Rows) error {
		return readOne(rows, &done, &reply.Now, &reply.Handled, &reply.More, &earliest)
	}, `SELECT status, coalesce(now, 0), handled, more, earliest FROM {schema}.`+call,
		append([]any{shard.Queue, shard.Index, s.now()}, args...)...)
	if err == nil {
		err = done.err(shard)
	}
	if err != nil {
		return ports.StepReply{}, err
	}
	if earliest != nil {
		s.wake(shard, *earliest)
	}
	return reply, nil
}

// Expedite implements ports.Operator.
func (s *Store) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.step(ctx, r.Shard, `step_expedite($1, $2, $3, $4, $5)`, r.IDs, r.Size())
}

// Bury implements ports.Operator.
func (s *Store) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	byHand := core.BuriedByHand
	return s.remove(ctx, &r, &byHand)
}

// Delete implements ports.Operator.
func (s *Store) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.remove(ctx, &r, nil)
}

// remove buries jobs, with the given error where they have none, or deletes them.
func (s *Store) remove(ctx context.Context, r *ports.JobStep, bury *string) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.step(ctx, r.Shard, `step_remove($1, $2, $3, $4, $5, $6)`, r.IDs, r.Size(), bury)
}

// Cancel implements ports.Operator.
func (s *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	reply, err := s.step(ctx, r.Shard, `step_cancel($1, $2, $3, $4, $5)`, r.IDs, r.Drop)
	if reply.Handled > 0 {
		s.wake(r.Shard, regardless)
	}
	return reply, err
}

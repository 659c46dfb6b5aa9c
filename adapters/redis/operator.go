package redis

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// step runs an operator's script on a shard. A repeat by the client would count
// what the first has done as not done.
func (s *Store) step(ctx context.Context, shard core.Shard, c call) (ports.StepReply, error) {
	c.once = true
	value, err := s.run(ctx, c)
	if err != nil {
		return ports.StepReply{}, err
	}
	r := replyOf(value)
	switch r.text() {
	case "ok":
		reply := ports.StepReply{Now: core.Instant(r.int()), Handled: int(r.int()), More: r.int() == 1}
		return reply, r.err()
	case "unknown":
		return ports.StepReply{}, s.absent(ctx, shard)
	}
	return ports.StepReply{}, errReply
}

// jobStep runs a script whose first arguments are those of every step on jobs.
func (s *Store) jobStep(ctx context.Context, r *ports.JobStep, c *script, keys int, more ...any) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	args := append([]any{s.now(), r.Size(), flag(r.IDs != nil)}, more...)
	for _, id := range r.IDs {
		args = append(args, id)
	}
	return s.step(ctx, r.Shard, call{script: c, keys: s.firstKeys(r.Shard, keys), args: args})
}

// Expedite implements ports.Operator.
func (s *Store) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.jobStep(ctx, &r, expediteScript, queueKeys)
}

// Bury implements ports.Operator.
func (s *Store) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.jobStep(ctx, &r, buryScript, deadKeys, core.BuriedByHand)
}

// Delete implements ports.Operator.
func (s *Store) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.jobStep(ctx, &r, deleteScript, queueKeys)
}

// Cancel implements ports.Operator.
func (s *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	args := []any{s.now(), flag(r.Drop), s.channel(r.Shard)}
	for _, id := range r.IDs {
		args = append(args, id)
	}
	return s.step(ctx, r.Shard, call{script: cancelScript, keys: s.someKeys(r.Shard, keyMeta, keyClaims, keyCancels), args: args})
}

// Revive implements ports.Operator.
func (s *Store) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.deadStep(ctx, &r, reviveScript, true)
}

// Purge implements ports.Operator.
func (s *Store) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.deadStep(ctx, &r, purgeScript, false)
}

func (s *Store) deadStep(ctx context.Context, r *ports.DeadLetterStep, c *script, revive bool) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	args := []any{s.now(), flag(revive), r.Size(), int64(r.Before), flag(r.DeadLetters != nil)}
	for _, ref := range r.DeadLetters {
		if ref.Payloads == nil {
			args = append(args, ref.ID, -1)
			continue
		}
		args = append(args, ref.ID, len(ref.Payloads))
		for _, data := range ref.Payloads {
			args = append(args, data)
		}
	}
	return s.step(ctx, r.Shard, call{script: c, keys: s.firstKeys(r.Shard, deadKeys), args: args})
}

// Edit implements ports.Operator.
func (s *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.step(ctx, r.Shard, call{
		script: editScript,
		keys:   s.firstKeys(r.Shard, deadKeys),
		args:   []any{s.now(), r.ID, r.Old, r.New},
	})
}

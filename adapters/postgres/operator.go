package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// mergedStep merges the rows of the inbox for some ids, and then calls a step function for these
// ids.
func (s *Store) mergedStep(
	ctx context.Context,
	shard core.Shard,
	ids []string,
	call string,
	args ...any,
) (ports.StepReply, error) {
	if err := s.mergeIDs(ctx, shard, ids...); err != nil {
		return ports.StepReply{}, err
	}
	return s.step(ctx, shard, len(ids), call, args...)
}

// step calls one of the step functions, whose first arguments are the shard and the clock, for the
// given number of named entries, and sends a wake-up for jobs that it made due. It is not repeated
// after an unknown outcome: the repeat would not count what the first call has done.
func (s *Store) step(
	ctx context.Context,
	shard core.Shard,
	named int,
	call string,
	args ...any,
) (ports.StepReply, error) {
	var (
		st       status
		reply    = ports.StepReply{Reached: named}
		reached  *int
		earliest *core.Instant
	)

	err := s.queryOne(ctx, ifRolledBack|operated,
		[]any{&st, &reply.Now, &reply.Handled, &reached, &reply.More, &earliest, &reply.Stale},
		`SELECT status, coalesce(now, 0), handled, reached, more, earliest, coalesce(stale, 0) FROM {schema}.`+call,
		append([]any{textOrNone(shard.Queue), shard.Index, s.now()}, args...)...)
	if err == nil {
		err = st.err(shard)
	}
	if err != nil {
		return ports.StepReply{}, err
	}

	if reached != nil {
		reply.Reached = *reached
	}
	if earliest != nil {
		s.wake(shard, *earliest)
	}
	return reply, nil
}

// Expedite implements [ports.Operator].
func (s *Store) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if err := r.ValidateWhole(); err != nil {
		return ports.StepReply{}, err
	}
	return s.mergedStep(ctx, r.Shard, r.IDs, `step_expedite($1, $2, $3, $4, $5, $6, $7)`,
		possible(r.IDs), int64(r.Before), r.Failed, r.Held)
}

// Bury implements [ports.Operator].
func (s *Store) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	byHand := core.BuriedByHand
	return s.buryOrDelete(ctx, &r, &byHand)
}

// Delete implements [ports.Operator].
func (s *Store) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if r.Payloads != nil {
		return s.deletePayloads(ctx, &r)
	}
	return s.buryOrDelete(ctx, &r, nil)
}

// deletePayloads is Delete of payloads.
func (s *Store) deletePayloads(ctx context.Context, r *ports.JobStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}

	counts, scores, data := make([]int32, len(r.IDs)), []float64{}, [][]byte{}
	for i, payloads := range r.Payloads {
		counts[i] = int32(len(payloads))
		for _, p := range payloads {
			scores, data = append(scores, core.NormalScore(p.Score)), append(data, notNull(p.Data))
		}
	}

	return s.mergedStep(ctx, r.Shard, r.IDs, `step_delete_payloads($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		possible(r.IDs), int64(r.Before), r.Failed, r.Held, counts, scores, data)
}

// buryOrDelete buries jobs in a group, or deletes them. The group's name is also the error of jobs
// without an error.
func (s *Store) buryOrDelete(ctx context.Context, r *ports.JobStep, group *string) (ports.StepReply, error) {
	if err := r.ValidateBury(); err != nil {
		return ports.StepReply{}, err
	}

	var first [][]byte
	for _, data := range r.First {
		first = append(first, notNull(data))
	}
	if r.First != nil && first == nil {
		first = [][]byte{}
	}

	return s.mergedStep(ctx, r.Shard, r.IDs, `step_bury_or_delete($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		possible(r.IDs), int64(r.Before), r.Failed, r.Held, group, first)
}

// Cancel implements [ports.Operator]. It does not merge the inbox, which has no claimed jobs.
func (s *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	reply, err := s.step(ctx, r.Shard, len(r.IDs), `step_cancel($1, $2, $3, $4, $5)`, possible(r.IDs), r.Drop)
	if reply.Handled > 0 {
		s.wake(r.Shard, wakeAlways)
	}
	return reply, err
}

// Revive implements [ports.Operator].
func (s *Store) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.reviveOrPurge(ctx, &r, true)
}

// Purge implements [ports.Operator].
func (s *Store) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.reviveOrPurge(ctx, &r, false)
}

func (s *Store) reviveOrPurge(ctx context.Context, r *ports.DeadLetterStep, revive bool) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}

	var (
		ids    []string
		counts []int32
		data   [][]byte
	)

	if r.DeadLetters != nil {
		ids = []string{}
	}
	for _, ref := range r.DeadLetters {
		ids = append(ids, orNone(ref.ID))
		if ref.Payloads == nil {
			counts = append(counts, -1)
			continue
		}
		counts = append(counts, int32(len(ref.Payloads)))
		for _, d := range ref.Payloads {
			data = append(data, notNull(d))
		}
	}

	merge := func() error { return s.mergeIDs(ctx, r.Shard, ids...) }
	if ids == nil { // by time or group: any row of the inbox may belong to it
		merge = func() error { return s.mergeInboxes(ctx, r.Shard.Queue, []core.Shard{r.Shard}) }
	}
	if err := merge(); err != nil {
		return ports.StepReply{}, err
	}

	return s.step(ctx, r.Shard, len(ids), `step_revive_or_purge($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		ids, counts, data, int64(r.Before), r.Size(), revive, orNull(r.Group), r.Keep,
		r.Fresh, r.Unmark)
}

// Edit implements [ports.Operator].
func (s *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	if err := s.mergeIDs(ctx, r.Shard, r.ID); err != nil {
		return ports.StepReply{}, err
	}
	edit := `step_edit($1, $2, $3, $4, $5, $6)`
	if r.Queued {
		edit = `step_edit_queued($1, $2, $3, $4, $5, $6)`
	}
	return s.step(ctx, r.Shard, 0, edit, orNone(r.ID), notNull(r.Old), notNull(r.New))
}

// notNull returns data, or an empty slice for nil, which SQL would see as NULL.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// orNull returns a text, or nil for an empty one.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// possible returns ids, in the same places. Ids that Postgres can't read are replaced by one that
// no job has. The result is never nil, which SQL would see as NULL.
func possible(ids []string) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = orNone(id)
	}
	return list
}

// textOrNone returns the name of a queue or an owner. If Postgres can't read the name as a text,
// it returns "", which no queue, lease or node has.
func textOrNone(name string) string {
	if core.Text(name) != name {
		return ""
	}
	return name
}

// orNone returns an id, or "", which no job has, for an id that can't exist.
func orNone(id string) string {
	if core.ValidateID(id) != nil {
		return ""
	}
	return id
}

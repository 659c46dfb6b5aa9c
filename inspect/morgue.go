package inspect

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// Revive requeues the selected dead letters or payloads. They are due now, as if they had never
// failed, and their payloads merge into queued jobs of their ids. A held job stays held.
//
// In a queue with skein.DropStale a dead letter stays in the morgue if a payload to revive is stale: a
// server would drop it. Result.Stale counts these dead letters. [DeadLetterSelection.Force] revives
// them.
func (i *Inspector) Revive(ctx context.Context, queue string, dead DeadLetterSelection) (Result, error) {
	stale := 0
	step := func(s Store, ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
		r.Fresh, r.Unmark = !dead.force, dead.force
		reply, err := s.Revive(ctx, r)
		stale += reply.Stale
		return reply, err
	}

	dead.named = true
	result, err := i.onDead(ctx, queue, dead, verbs{ids: "revive", part: "revive payloads", all: "revive all"}, step)
	result.Stale = stale
	return result, err
}

// Purge removes the selected dead letters or payloads permanently.
func (i *Inspector) Purge(ctx context.Context, queue string, dead DeadLetterSelection) (Result, error) {
	return i.onDead(ctx, queue, dead, verbs{ids: "purge", part: "purge payloads", all: "purge all"}, Store.Purge)
}

// EditFunc edits one payload of a dead letter or of a queued job. It returns the new Data of the
// payload and true, or false to keep the payload. An error ends the action. The Data of payload is
// a copy that an EditFunc may overwrite; Score and Meta stay. If data is nil and replace is true,
// the payload becomes empty.
type EditFunc func(id string, payload core.Payload) (data []byte, replace bool, err error)

// Edit replaces payloads of the selected dead letters, or selected payloads. If a dead letter
// already has the new bytes, the two payloads merge. Result.Handled counts the replaced payloads,
// and Done and Total count the dead letters. If edit is nil, Edit returns [ErrInvalidOptions].
//
// An edit is a change of the dead letter: ChangedAt becomes now. Payloads are edited one after
// another, each atomically. Payloads that are added meanwhile are not edited. Edit checks neither
// the size of the new bytes nor whether the queue's codec can decode them.
func (i *Inspector) Edit(ctx context.Context, queue string, dead DeadLetterSelection, edit EditFunc) (Result, error) {
	verb, err := verbs{ids: "edit", part: "edit payloads", all: "edit all"}.of(dead.by, allJobs, deadSelections)
	if err != nil {
		return i.refuse(ctx, verb, queue, err)
	}
	if dead.by == byMatch {
		return i.editAll(ctx, verb, queue, &dead, edit)
	}
	refs, err := dead.refs()
	return i.editRefs(ctx, newAction(verb, nil), queue, refs, err, edit)
}

// EditJob replaces payloads of the queued job of an id: those with the given Data, or all of them for
// nil. The job's time, its retries, its failure and its tags stay. If the job already has the new
// bytes, the two payloads merge by the queue's rule. A claimed job is not edited, and an id without
// a queued job is ignored. Result.Handled counts the replaced payloads. If edit is nil, EditJob
// returns [ErrInvalidOptions].
//
// Payloads are edited one after another, each atomically. Payloads that are pushed meanwhile are not
// edited. EditJob checks neither the size of the new bytes nor whether the queue's codec can decode
// them.
func (i *Inspector) EditJob(
	ctx context.Context, queue, id string, payloads [][]byte, edit EditFunc,
) (r Result, err error) {
	a := newAction("edit job", nil)
	defer a.log(ctx, i, queue, []string{id})(&err)
	if err := validateIDs([]string{id}); err != nil {
		return a.end(err)
	}
	if edit == nil {
		return a.end(errNoEdit)
	}
	record, err := i.record(ctx, queue)
	if err != nil {
		return a.end(err)
	}

	a.merge, a.Total = record.Merge, 1
	found, _, err := i.whole(ctx, queue, id, ports.PlaceQueued)
	if err != nil {
		return a.end(err)
	}
	if found.Queued != nil {
		chosen := withData(a.merge, found.Queued.Payloads, payloads)
		at := ports.EditRequest{Shard: found.Shard, ID: id, Queued: true}
		if _, err := a.edit(ctx, at, chosen, edit); err != nil {
			return a.end(err)
		}
	}
	a.Pass(1, 0)
	return a.end(nil)
}

func (i *Inspector) editAll(
	ctx context.Context, verb, queue string, dead *DeadLetterSelection, edit EditFunc,
) (r Result, err error) {
	o := &dead.options
	a := o.action(verb, queue, dead.match != nil, false)
	defer a.log(ctx, i, queue, nil)(&err)

	switch {
	case edit == nil:
		return a.end(errNoEdit)
	case o.Payloads != 0:
		return a.end(fmt.Errorf("%w: Payloads is %d; leave it 0, since an edit gets all payloads",
			ErrInvalidOptions, o.Payloads))
	}

	k := &deadKind{action: a, match: dead.match}
	k.do = func(ctx context.Context, shard core.Shard, chosen []ports.DeadLetterView) error {
		for at := range chosen {
			d := &chosen[at]
			changed, err := a.edit(ctx, ports.EditRequest{Shard: shard, ID: d.ID}, d.Payloads, edit)
			if err != nil {
				return err
			}
			k.noteEdit(d.ID, changed)
			a.Met++
			a.Pass(1, 0)
		}
		return nil
	}
	return visitDeadLetters(ctx, k)
}

func (i *Inspector) onRefs(
	ctx context.Context, a *action, queue string, refs []ports.DeadLetterRef, invalid error, step deadLetterStep,
) (r Result, err error) {
	defer a.log(ctx, i, queue, idsOf(refs))(&err)
	if invalid != nil {
		return a.end(invalid)
	}
	a.Total = len(refs)
	return a.end(a.stepRefs(ctx, refs, step))
}

func (i *Inspector) onAllDeadLetters(
	ctx context.Context, a *action, queue string, dead *DeadLetterSelection, step deadLetterStep,
) (r Result, err error) {
	defer a.log(ctx, i, queue, nil)(&err)
	defer func() { a.sayLater(ctx, &r, err) }()

	at := &a.run.At
	if dead.match == nil && !dead.named && !a.all.DryRun && a.all.Prefix == "" {
		return a.onAll(ctx, func(stats *ports.QueueStats) error {
			return bulk.Repeat(ctx, a.run, stats, func(shard core.Shard, limit int) (ports.StepReply, error) {
				return persist(ctx, i, func(s Store) (ports.StepReply, error) {
					return step(s, ctx, ports.DeadLetterStep{
						Shard:  shard,
						Before: at.Before,
						Limit:  limit,
						Group:  at.Group,
					})
				})
			})
		})
	}

	k := &deadKind{action: a, match: dead.match, whole: dead.match == nil && !a.all.DryRun}
	k.do = func(ctx context.Context, shard core.Shard, chosen []ports.DeadLetterView) error {
		for chunk := range bulk.Refs(convert(chosen, k.refOf)) {
			if err := onChunk(ctx, a, chunk, stepOn(ctx, shard, step, at.Before)); err != nil {
				return err
			}
		}
		return nil
	}
	return visitDeadLetters(ctx, k)
}

var errNoEdit = fmt.Errorf("%w: no EditFunc; pass one that returns the new bytes", ErrInvalidOptions)

func (i *Inspector) editRefs(
	ctx context.Context, a *action, queue string, refs []ports.DeadLetterRef, invalid error, edit EditFunc,
) (r Result, err error) {
	defer a.log(ctx, i, queue, idsOf(refs))(&err)
	if invalid == nil && edit == nil {
		invalid = errNoEdit
	}
	if invalid != nil {
		return a.end(invalid)
	}
	record, err := i.record(ctx, queue)
	if err != nil {
		return a.end(err)
	}

	a.merge = record.Merge

	a.Total = len(refs)
	whole := make(map[string]bool)
	for _, ref := range refs {
		if whole[ref.ID] { // named twice
			a.Pass(1, 0)
			continue
		}
		whole[ref.ID] = ref.Payloads == nil

		found, err := i.wholeLetter(ctx, queue, ref.ID)
		if err != nil {
			return a.end(err)
		}
		if found.DeadLetter != nil {
			chosen := withData(a.merge, found.DeadLetter.Payloads, ref.Payloads)
			at := ports.EditRequest{Shard: found.Shard, ID: ref.ID}
			if _, err := a.edit(ctx, at, chosen, edit); err != nil {
				return a.end(err)
			}
		}
		a.Pass(1, 0)
	}
	return a.end(nil)
}

// withData returns the stored payloads of a queue that were pushed with the listed Data, or all of
// them for nil.
func withData(merge core.MergeRule, payloads []core.Payload, data [][]byte) []core.Payload {
	if data == nil {
		return payloads
	}
	listed := make(map[string]bool, len(data))
	for _, d := range data {
		listed[string(d)] = true
	}
	return slices.DeleteFunc(payloads, func(p core.Payload) bool { return !listed[string(merge.Pushed(p).Data)] })
}

// edit edits stored payloads of the dead letter or the job that a request names. It returns when it
// last changed a payload, or 0 if it changed no payload.
func (a *action) edit(
	ctx context.Context, r ports.EditRequest, payloads []core.Payload, edit EditFunc,
) (changed core.Instant, err error) {
	id := r.ID
	for _, p := range payloads {
		pushed := a.merge.Pushed(p)
		pushed.Data = bytes.Clone(pushed.Data)
		data, replace, err := edit(id, pushed)
		if err != nil {
			return changed, fmt.Errorf("payload of %q: %w", id, err)
		}

		edited := p
		edited.Data = data
		edited = a.merge.Stored(edited)
		if !replace || bytes.Equal(p.Data, edited.Data) {
			continue
		}

		r.Old, r.New = p.Data, edited.Data
		reply, err := persist(ctx, a.inspector, func(s Store) (ports.StepReply, error) { return s.Edit(ctx, r) })
		if err != nil {
			return changed, fmt.Errorf("payload of %q: %w", id, err)
		}

		a.Pass(0, reply.Handled)
		changed = reply.Now
	}
	return changed, nil
}

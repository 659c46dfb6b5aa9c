package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Export lists the dead letters of a queue in the form that [Inspector.Import] takes: with all
// payloads, and with errors as they are stored, without Options.DecodeError. Exported dead letters
// stay in the morgue. By default the list is [ByID], so a dead letter that stays during the export
// is listed exactly once. o.Payloads and o.ErrorBytes are ignored.
//
// Export keeps one whole dead letter in memory at a time, beside a page of small ones. Errors are
// those of [Inspector.Morgue].
func (i *Inspector) Export(ctx context.Context, queue string, o ListOptions) iter.Seq2[core.DeadLetter, error] {
	if o.SortBy == ByTime && o.Group == "" && o.FromTime.IsZero() && o.After == (Cursor{}) {
		o.SortBy = ByID
	}

	o.Payloads, o.ErrorBytes = pagePayloads, 0
	err := o.check("the morgue", morgueOrders...)
	list := pages(o, err, func(r ports.PageRequest) (listPage[ports.DeadLetterView], error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.MorguePage, error) {
			return s.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: o.SortBy == ByID, Group: o.Group})
		})
		return listPage[ports.DeadLetterView]{page.DeadLetters, page.Next, page.Unreached}, err
	})

	return func(yield func(core.DeadLetter, error) bool) {
		rules := i.ruler(queue)
		for v, err := range list {
			there := true
			if err == nil {
				there, err = i.complete(ctx, queue, &v)
			}
			if err == nil {
				var merge core.MergeRule
				merge, err = rules.rule(ctx, v.Payloads)
				v.Payloads = merge.PushedAll(v.Payloads)
			}
			if (there || err != nil) && !yield(v.DeadLetter, err) || err != nil {
				return
			}
		}
	}
}

// complete fetches the payloads that a page has left out. It returns false if the dead letter no
// longer exists.
func (i *Inspector) complete(ctx context.Context, queue string, v *ports.DeadLetterView) (bool, error) {
	if len(v.Payloads) == v.Count {
		return true, nil
	}
	found, err := i.wholeLetter(ctx, queue, v.ID)
	if err != nil || found.DeadLetter == nil {
		return false, err
	}
	*v = *found.DeadLetter
	v.Count = len(v.Payloads)
	return true, nil
}

// Import adds dead letters to the morgue of a queue, such as those of [Inspector.Export] or
// [ReadDeadLetters], unchanged: with Score, Meta, ChangedAt, Failures, Group and Tags. The queue
// must have been declared. Imported payloads don't run until they are revived.
//
// If the morgue already has the id, the two dead letters are united: tags unite, and ChangedAt,
// Failures and Group are those of the one that changed later. So importing the same list again from
// its beginning changes nothing, except that payloads that were revived or purged meanwhile come
// back. That is how to continue an interrupted import. A ChangedAt in the future is kept. Until
// then actions on all entries skip that dead letter; actions by its id handle it.
//
// Payloads may be in any order. Those of a dead letter with equal bytes unite by the queue's rule.
// The dead letters of one id may come in parts. Result.Handled counts the dead letters that are new
// or were changed; a dead letter with more than 1,000 payloads or 8 MiB counts once for each part.
// An error of letters ends the import after the elements before it. Dead letters of shards that
// can't be reached are skipped, and the error is then a *[PartialError]: import the same list again
// when the shards are back.
//
// progress is called after each step, from the caller's goroutine; its Total is the number of dead
// letters read so far. nil means no call.
func (i *Inspector) Import(
	ctx context.Context,
	queue string,
	letters iter.Seq2[core.DeadLetter, error],
	progress func(Progress),
) (r Result, err error) {
	a := newAction("import", progress)
	defer a.log(ctx, i, queue, nil)(&err)

	record, err := i.record(ctx, queue)
	if err != nil {
		return a.end(err)
	}

	b := importBatch{action: a, record: record}
	for d, err := range letters {
		if err == nil {
			err = b.add(ctx, d)
		}
		if err != nil {
			return a.end(errors.Join(err, b.end(ctx)))
		}
	}
	return a.end(b.end(ctx))
}

// importBatch has the dead letters that an import has read and not sent.
type importBatch struct {
	action   *action
	record   ports.Queue
	read     int
	letters  []core.DeadLetter
	payloads int
	bytes    int
}

// end sends the rest, and returns which shards could not be reached.
func (b *importBatch) end(ctx context.Context) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	return partial(b.action.skipped)
}

// add takes one dead letter, in parts if it is more than a step moves, and sends the batch once it
// is large enough.
func (b *importBatch) add(ctx context.Context, d core.DeadLetter) error {
	b.read++
	d = d.Stored()

	for rest := b.record.Merge.Imported(d.Payloads); ; {
		var bound core.Bound
		part := d
		part.Payloads = rest[:bound.Take(rest)]
		rest = rest[len(part.Payloads):]

		if err := b.check(&part); err != nil {
			return fmt.Errorf("dead letter %d: %w", b.read, err)
		}

		b.letters = append(b.letters, part)
		b.payloads += len(part.Payloads)
		for k := range part.Payloads {
			b.bytes += len(part.Payloads[k].Data) + len(part.Payloads[k].Meta)
		}

		if b.payloads >= core.MaxTurnPayloads || b.bytes >= core.MaxStepBytes {
			if err := b.flush(ctx); err != nil {
				return err
			}
		}

		if len(rest) == 0 {
			return nil
		}
	}
}

// check refuses a dead letter that no store takes, before it is sent with others.
func (b *importBatch) check(d *core.DeadLetter) error {
	if err := core.ValidateID(d.ID); err != nil {
		return err
	}
	r := b.request(core.Shard{Queue: b.record.Name, Index: core.ShardOf(d.ID, b.record.Shards)}, []core.DeadLetter{*d})
	if err := r.Validate(); errors.Is(err, ports.ErrInvalidRequest) {
		return fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	} else if err != nil {
		return err
	}
	return nil
}

func (b *importBatch) request(shard core.Shard, letters []core.DeadLetter) ports.ImportRequest {
	return ports.ImportRequest{
		Shard:       shard,
		Shards:      b.record.Shards,
		Generation:  b.record.Generation,
		DeadLetters: letters,
	}
}

// flush sends the batch.
func (b *importBatch) flush(ctx context.Context) error {
	letters := b.letters
	b.letters, b.payloads, b.bytes = nil, 0, 0
	if len(letters) == 0 {
		return nil
	}

	b.action.Total += len(letters)
	return onReached(ctx, b.action, letters, letterCargo.id, letterCargo.steps,
		func(s Store, shard core.Shard, some []core.DeadLetter) (ports.StepReply, error) {
			return s.Import(ctx, b.request(shard, some))
		})
}

package skein

import (
	"context"
	"iter"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// DeadLetterPayloads names payloads of one dead letter.
type DeadLetterPayloads struct {
	ID string
	// Payloads are the Data of those meant. What is not there is ignored; none
	// means none.
	Payloads [][]byte
}

// Revive puts the dead letters of these ids back into the queue, due now, as if
// they had never failed. Their payloads merge with what is queued.
func (i *Inspector) Revive(ctx context.Context, queue string, ids []string, o BulkOptions) (Result, error) {
	refs, err := wholeLetters(ids)
	return i.onRefs(ctx, o.action("revive"), queue, refs, err, i.store.Revive)
}

// RevivePayloads is Revive for some of the payloads. A letter that keeps others
// stays in the morgue.
func (i *Inspector) RevivePayloads(
	ctx context.Context, queue string, payloads []DeadLetterPayloads, o BulkOptions,
) (Result, error) {
	refs, err := someOfLetters(payloads)
	return i.onRefs(ctx, o.action("revive payloads"), queue, refs, err, i.store.Revive)
}

// ReviveAll is Revive for all dead letters that match, or simply all of them if
// match is nil. It handles those that last changed before it began: what is
// buried meanwhile stays.
//
// match is given each of them once with all payloads, from the goroutine that
// called. Payloads that come in after match has looked stay, too.
func (i *Inspector) ReviveAll(
	ctx context.Context, queue string, match func(DeadLetter) bool, o BulkOptions,
) (Result, error) {
	return i.onAllLetters(ctx, o.action("revive all"), queue, match, i.store.Revive)
}

// Purge removes the dead letters of these ids for good.
func (i *Inspector) Purge(ctx context.Context, queue string, ids []string, o BulkOptions) (Result, error) {
	refs, err := wholeLetters(ids)
	return i.onRefs(ctx, o.action("purge"), queue, refs, err, i.store.Purge)
}

// PurgePayloads is Purge for some of the payloads. A letter that keeps others
// stays in the morgue.
func (i *Inspector) PurgePayloads(
	ctx context.Context, queue string, payloads []DeadLetterPayloads, o BulkOptions,
) (Result, error) {
	refs, err := someOfLetters(payloads)
	return i.onRefs(ctx, o.action("purge payloads"), queue, refs, err, i.store.Purge)
}

// PurgeAll is Purge for all dead letters that match, or simply all of them if
// match is nil; see ReviveAll.
func (i *Inspector) PurgeAll(
	ctx context.Context, queue string, match func(DeadLetter) bool, o BulkOptions,
) (Result, error) {
	return i.onAllLetters(ctx, o.action("purge all"), queue, match, i.store.Purge)
}

// letterStep is a method of a store.
type letterStep func(context.Context, ports.DeadLetterStep) (ports.StepReply, error)

// wholeLetters refers to the letters of ids with all their payloads.
func wholeLetters(ids []string) ([]ports.DeadLetterRef, error) {
	refs := make([]ports.DeadLetterRef, len(ids))
	for at, id := range ids {
		refs[at].ID = id
	}
	return refs, validateIDs(ids)
}

// someOfLetters refers to payloads. One that names none is left out, since to a
// store that is all.
func someOfLetters(payloads []DeadLetterPayloads) ([]ports.DeadLetterRef, error) {
	var refs []ports.DeadLetterRef
	ids := make([]string, len(payloads))
	for at, p := range payloads {
		ids[at] = p.ID
		if len(p.Payloads) > 0 {
			refs = append(refs, ports.DeadLetterRef(p))
		}
	}
	return refs, validateIDs(ids)
}

func (i *Inspector) onRefs(
	ctx context.Context, a *action, queue string, refs []ports.DeadLetterRef, invalid error, step letterStep,
) (Result, error) {
	if invalid != nil {
		return a.end(invalid)
	}
	a.progress.Total = len(refs)
	return a.end(i.stepRefs(ctx, a, queue, refs, step))
}

func (i *Inspector) onAllLetters(
	ctx context.Context, a *action, queue string, match func(DeadLetter) bool, step letterStep,
) (Result, error) {
	if match != nil {
		s := &sweep{inspector: i, action: a, queue: queue, match: match}
		return s.run(ctx, func(letters []DeadLetter) error {
			return i.stepRefs(ctx, a, queue, convert(letters, seen), step)
		})
	}
	d := &drain{store: i.store, action: a, held: dead}
	d.step = func(ctx context.Context, s core.Shard, limit int, began core.Instant) (ports.StepReply, error) {
		return step(ctx, ports.DeadLetterStep{Shard: s, Before: endOf(began), Limit: limit})
	}
	return d.run(ctx, queue)
}

func dead(c *ports.Counts) int64 { return c.Dead }

// endOf is the end of the microsecond in which an action began: what was buried
// within it, before the action, belongs to it.
func endOf(began core.Instant) core.Instant { return began + 1 }

// seen names the payloads that a letter has shown, so that those that came since
// are left alone.
func seen(letter *DeadLetter) ports.DeadLetterRef {
	return ports.DeadLetterRef{
		ID:       letter.ID,
		Payloads: convert(letter.Payloads, func(p *core.Payload) []byte { return p.Data }),
	}
}

func (i *Inspector) stepRefs(
	ctx context.Context, a *action, queue string, refs []ports.DeadLetterRef, step letterStep,
) error {
	id := func(r ports.DeadLetterRef) string { return r.ID }
	onShard := func(s core.Shard, refs []ports.DeadLetterRef) (ports.StepReply, error) {
		return step(ctx, ports.DeadLetterStep{Shard: s, DeadLetters: refs})
	}
	return onEntries(ctx, i, a, queue, refs, id, refChunks, onShard)
}

// maxStepBytes is about how many bytes of payload a step names.
const maxStepBytes = 1 << 20

// refChunks parts references into steps by number and by size.
func refChunks(refs []ports.DeadLetterRef) iter.Seq[[]ports.DeadLetterRef] {
	return func(yield func([]ports.DeadLetterRef) bool) {
		start, size := 0, 0
		for at, r := range refs {
			named := 0
			for _, data := range r.Payloads {
				named += len(data)
			}
			if at > start && (at-start == ports.MaxStep || size+named > maxStepBytes) {
				if !yield(refs[start:at]) {
					return
				}
				start, size = at, 0
			}
			size += named
		}
		if start < len(refs) {
			yield(refs[start:])
		}
	}
}

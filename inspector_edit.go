package skein

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// EditFunc decides about one payload of a dead letter: it returns the bytes to
// replace its Data with and true, or false to keep it. An error ends the edit.
// Data is a copy that it may write to; Score and Meta stay with the payload.
type EditFunc func(id string, payload core.Payload) (data []byte, replace bool, err error)

// Edit replaces payloads in the dead letters of these ids. Bytes that the letter
// has already merge with them. Result counts the payloads that were replaced, and
// Progress the letters.
//
// A letter that was edited has changed now. Its payloads are edited one after
// another, each atomically, and what comes in meanwhile is left alone. Neither the
// size of the new bytes is checked nor whether the queue's codec can decode them.
func (i *Inspector) Edit(
	ctx context.Context, queue string, ids []string, edit EditFunc, o BulkOptions,
) (Result, error) {
	refs, err := wholeLetters(ids)
	return i.editRefs(ctx, o.action("edit"), queue, refs, err, edit)
}

// EditPayloads is Edit for some of the payloads.
func (i *Inspector) EditPayloads(
	ctx context.Context, queue string, payloads []DeadLetterPayloads, edit EditFunc, o BulkOptions,
) (Result, error) {
	refs, err := someOfLetters(payloads)
	return i.editRefs(ctx, o.action("edit payloads"), queue, refs, err, edit)
}

// EditAll is Edit for all dead letters that match, or all of them if match is
// nil; see ReviveAll.
func (i *Inspector) EditAll(
	ctx context.Context, queue string, match func(DeadLetter) bool, edit EditFunc, o BulkOptions,
) (Result, error) {
	a := o.action("edit all")
	s := &sweep{inspector: i, action: a, queue: queue, match: match}
	return s.run(ctx, func(letters []DeadLetter) error {
		for at := range letters {
			l := &letters[at]
			shard := core.Shard{Queue: queue, Index: core.ShardOf(l.ID, len(s.left))}
			changed, err := i.editLetter(ctx, a, shard, l.ID, l.Payloads, edit)
			if err != nil {
				return err
			}
			s.moved(l.ID, changed)
			a.pass(1, 0)
		}
		return nil
	})
}

func (i *Inspector) editRefs(
	ctx context.Context, a *action, queue string, refs []ports.DeadLetterRef, invalid error, edit EditFunc,
) (Result, error) {
	if invalid != nil {
		return a.end(invalid)
	}
	a.progress.Total = len(refs)
	for _, ref := range refs {
		found, err := persist(ctx, func() (ports.Found, error) { return i.store.Find(ctx, queue, ref.ID) })
		if err != nil {
			return a.end(err)
		}
		if found.DeadLetter != nil {
			chosen := named(found.DeadLetter.Payloads, ref.Payloads)
			if _, err := i.editLetter(ctx, a, found.Shard, ref.ID, chosen, edit); err != nil {
				return a.end(err)
			}
		}
		a.pass(1, 0)
	}
	return a.end(nil)
}

// named is those of the payloads whose Data are named; nil names all.
func named(payloads []core.Payload, data [][]byte) []core.Payload {
	if data == nil {
		return payloads
	}
	names := make(map[string]bool, len(data))
	for _, d := range data {
		names[string(d)] = true
	}
	return slices.DeleteFunc(payloads, func(p core.Payload) bool { return !names[string(p.Data)] })
}

// editLetter edits payloads of a letter, and tells when it last changed it; 0 if
// it did not.
func (i *Inspector) editLetter(
	ctx context.Context, a *action, shard core.Shard, id string, payloads []core.Payload, edit EditFunc,
) (changed core.Instant, err error) {
	for _, p := range payloads {
		old := p.Data
		p.Data = bytes.Clone(old)
		data, replace, err := edit(id, p)
		if err != nil {
			return changed, fmt.Errorf("payload of %q: %w", id, err)
		}
		if !replace || bytes.Equal(old, data) {
			continue
		}
		r := ports.EditRequest{Shard: shard, ID: id, Old: old, New: data}
		reply, err := persist(ctx, func() (ports.StepReply, error) { return i.store.Edit(ctx, r) })
		if err != nil {
			return changed, fmt.Errorf("payload of %q: %w", id, err)
		}
		a.pass(0, reply.Handled)
		changed = reply.Now
	}
	return changed, nil
}

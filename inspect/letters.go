package inspect

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// deadKind is the dead letters of a sweep.
type deadKind struct {
	inspector *Inspector
	*action
	sortBy SortBy
	// matches is true if the action has a match.
	matches bool
	// do acts on the chosen dead letters of a shard.
	do func(context.Context, core.Shard, []ports.DeadLetterView) error
	// move is set if the action moves the dead letters.
	move *mover
	// edited has the ids of the dead letters that the sweep has changed and may meet again.
	edited map[string]bool
}

// sweepDeadLetters acts on the matching dead letters. In each shard it begins with the one that has
// been unchanged for longest. With a Prefix it acts in order of id.
func (i *Inspector) sweepDeadLetters(ctx context.Context, k *deadKind, queue string, match func(DeadLetter) bool) (Result, error) {
	k.inspector, k.sortBy, k.matches = i, ByTime, match != nil
	prefix := k.going.o.Prefix
	if prefix != "" {
		k.sortBy = ByID
	}
	r := ports.PageRequest{Prefix: prefix}
	r.Limit, r.Payloads = k.going.o.page()
	s := &sweep[ports.DeadLetterView, DeadLetter]{action: k.action, kind: k, queue: queue, page: r, match: match}
	return s.run(ctx, i)
}

func (k *deadKind) count(c *ports.Counts) int64 { return c.Dead }

func (k *deadKind) list(ctx context.Context, r ports.PageRequest) ([]ports.DeadLetterView, ports.Cursor, error) {
	page, err := persist(ctx, k.inspector, func(s Store) (ports.MorguePage, error) {
		return s.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: k.sortBy == ByID, Group: k.going.at.Group})
	})
	return page.DeadLetters, page.Next, err
}

func (k *deadKind) place(v *ports.DeadLetterView) ports.Cursor { return k.show(v).Cursor.port() }

func (k *deadKind) fate(v *ports.DeadLetterView, before, _ core.Instant) fate {
	switch {
	case v.ChangedAt >= before && k.sortBy == ByTime:
		return beyond
	case v.ChangedAt >= before, k.edited[v.ID]:
		return passed
	}
	return looked
}

func (k *deadKind) complete(ctx context.Context, v *ports.DeadLetterView, before core.Instant) (bool, error) {
	if k.going.o.Payloads != 0 || (k.going.o.DryRun || k.move != nil) && !k.matches {
		return true, nil
	}
	there, err := k.inspector.complete(ctx, k.going.at.Queue, v)
	return there && v.ChangedAt < before, err
}

func (k *deadKind) show(v *ports.DeadLetterView) DeadLetter {
	return k.inspector.views.deadLetter(v, k.sortBy)
}

func (k *deadKind) sample(chosen []DeadLetter) {
	k.going.samples = append(k.going.samples, chosen[:min(len(chosen), maxSamples-len(k.going.samples))]...)
}

func (k *deadKind) act(ctx context.Context, shard core.Shard, _ []DeadLetter, stored []ports.DeadLetterView) error {
	if k.move != nil {
		return k.move.letters(ctx, shard, stored, k.going.at.Before)
	}
	return k.do(ctx, shard, stored)
}

// noteEdit remembers that an edit has changed a dead letter. If the clock stands still or steps
// back, the sweep may meet the dead letter again.
func (k *deadKind) noteEdit(id string, changed core.Instant) {
	if changed == 0 || changed >= k.going.at.Before && k.sortBy == ByTime {
		return
	}
	if k.edited == nil {
		k.edited = make(map[string]bool)
	}
	k.edited[id] = true
}

// sayLater adds to the result of an action on all dead letters the number of those that it has
// skipped because they changed after it began, whether they match or not. It reads only the newest
// dead letters, and only if there were more dead letters than the action has handled. If they can't
// be read, it adds nothing.
func (i *Inspector) sayLater(ctx context.Context, a *action, r *Result, failed error) {
	if failed != nil || r.Handled >= r.Total || r.Checkpoint != "" {
		return
	}
	at := &a.going.at
	page, err := ask(i, func(s Store) (ports.MorguePage, error) {
		newest := ports.PageRequest{Queue: at.Queue, Descending: true, ErrorBytes: -1, MaxCount: -1}
		return s.Morgue(ctx, ports.MorgueRequest{PageRequest: newest, Group: at.Group})
	})
	if err != nil {
		return
	}
	for n := range page.DeadLetters {
		if d := &page.DeadLetters[n]; d.ChangedAt >= at.Before && strings.HasPrefix(d.ID, at.Prefix) {
			r.Later++
		}
	}
}

// deadLetterStep is a method of a store.
type deadLetterStep func(Store, context.Context, ports.DeadLetterStep) (ports.StepReply, error)

// wholeRefs returns references to the dead letters of ids with all their payloads. The error is
// that of the first invalid id.
func wholeRefs(ids []string) ([]ports.DeadLetterRef, error) {
	refs := make([]ports.DeadLetterRef, len(ids))
	for at, id := range ids {
		refs[at].ID = id
	}
	return refs, validateIDs(ids)
}

// payloadRefs returns references to payloads. It leaves out elements that name no payload, since
// nil would mean all payloads to a store. The error is that of the first invalid id.
func payloadRefs(payloads []DeadLetterPayloads) ([]ports.DeadLetterRef, error) {
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

// storedRefs returns references to payloads as they are stored, from references to payloads as they
// were pushed. Where these differ, it reads the dead letters, and leaves out those of shards that
// can't be reached, which it notes in away. A reference names at most as many payloads as a step
// handles: further ones of the same dead letter are in later rounds.
func (i *Inspector) storedRefs(ctx context.Context, away *absent, refs []ports.DeadLetterRef) (rounds [][]ports.DeadLetterRef, err error) {
	named := func(r ports.DeadLetterRef) bool { return r.Payloads != nil }
	if !slices.ContainsFunc(refs, named) {
		return [][]ports.DeadLetterRef{refs}, nil
	}
	record, err := i.record(ctx, away.queue)
	if err != nil || record.Merge.Same != core.SamePush {
		return [][]ports.DeadLetterRef{refs}, err
	}
	add := func(round int, ref ports.DeadLetterRef) {
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], ref)
	}
	for _, ref := range refs {
		if !named(ref) {
			add(0, ref)
			continue
		}
		shard := core.Shard{Queue: away.queue, Index: core.ShardOf(ref.ID, record.Shards)}
		if away.has(shard) {
			continue
		}
		found, err := i.wholeLetter(ctx, away.queue, ref.ID)
		switch {
		case err != nil && away.are(ctx, shard, err):
			continue
		case err != nil:
			return nil, err
		}
		copies := [][]byte{} // nil would mean all payloads
		if found.DeadLetter != nil {
			copies = append(copies, dataOf(withData(found.DeadLetter.Payloads, ref.Payloads))...)
		}
		for round, more := 0, true; more; round, more = round+1, len(copies) > 0 {
			n := min(len(copies), core.MaxTurnPayloads)
			add(round, ports.DeadLetterRef{ID: ref.ID, Payloads: copies[:n:n]})
			copies = copies[n:]
		}
	}
	return rounds, nil
}

func dataOf(payloads []core.Payload) [][]byte {
	return convert(payloads, func(p *core.Payload) []byte { return p.Data })
}

// idsOf returns the ids of references.
func idsOf(refs []ports.DeadLetterRef) []string {
	return convert(refs, func(r *ports.DeadLetterRef) string { return r.ID })
}

// refOf returns a reference to the payloads with which a dead letter was shown to match, so that
// newer payloads are not handled. If it was shown without some payloads, or has more payloads than
// a step handles, the reference names the whole dead letter: each step would name all payloads
// again. Even then newer payloads are not handled, unless the clock stands still or steps back.
func refOf(d *ports.DeadLetterView) ports.DeadLetterRef {
	if n := len(d.Payloads); n > core.MaxTurnPayloads || n < d.Count {
		return ports.DeadLetterRef{ID: d.ID}
	}
	return ports.DeadLetterRef{
		ID:       d.ID,
		Payloads: dataOf(d.Payloads),
	}
}

// stepRefs makes steps on named dead letters, or on payloads of them as they were pushed.
func (i *Inspector) stepRefs(
	ctx context.Context, a *action, queue string, refs []ports.DeadLetterRef, step deadLetterStep,
) error {
	id := func(r ports.DeadLetterRef) string { return r.ID }
	onShard := func(s Store, shard core.Shard, refs []ports.DeadLetterRef) (ports.StepReply, error) {
		return stepOn(ctx, shard, step, 0)(s, refs)
	}
	away := &absent{inspector: i, queue: queue}
	rounds, err := i.storedRefs(ctx, away, refs)
	if err != nil {
		return err
	}
	for _, refs := range rounds {
		if err := onReached(ctx, i, a, away, refs, id, refChunks, onShard); err != nil {
			return err
		}
		a = newAction(a.verb, nil) // counts nothing: the first round has counted each dead letter
	}
	return partial(away.met)
}

// stepOn returns a function that makes a step on named dead letters of a shard which last changed
// before an instant. 0 means no limit.
func stepOn(ctx context.Context, shard core.Shard, step deadLetterStep, before core.Instant) func(Store, []ports.DeadLetterRef) (ports.StepReply, error) {
	return func(s Store, refs []ports.DeadLetterRef) (ports.StepReply, error) {
		return step(s, ctx, ports.DeadLetterStep{Shard: shard, DeadLetters: refs, Before: before})
	}
}

// maxStepBytes is the approximate maximum of the bytes of payload that a step names.
const maxStepBytes = 1 << 20

// refChunks divides references into steps by number and by size.
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

package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// deadKind is a visit's access to dead letters.
type deadKind struct {
	*action
	sortBy SortBy
	// match chooses dead letters; nil chooses all.
	match func(DeadLetter) bool
	// do acts on the chosen dead letters of a shard.
	do func(context.Context, core.Shard, []ports.DeadLetterView) error
	// moves is true if the action moves the dead letters. whole is true if it names each of them
	// without its payloads, which are then not listed.
	moves, whole bool
	// edited has the ids of the dead letters that the visit has changed and may meet again.
	edited map[string]bool
}

// visitDeadLetters acts on the matching dead letters. In each shard it begins with the one that has
// been unchanged for longest. With a Prefix it acts in order of id.
func visitDeadLetters(ctx context.Context, k *deadKind) (Result, error) {
	k.sortBy = ByTime
	page := ports.PageRequest{Prefix: k.all.Prefix}
	if page.Prefix != "" {
		k.sortBy = ByID
	}
	if page.Limit, page.Payloads = k.all.page(); k.whole {
		page = ports.PageRequest{Prefix: page.Prefix, ErrorBytes: -1, MaxCount: -1}
	}
	return k.onAll(ctx, func(stats *ports.QueueStats) error { return bulk.Visit(ctx, k.run, stats, page, k) })
}

func (k *deadKind) Count(c *ports.Counts) int64 { return c.Dead }

func (k *deadKind) List(ctx context.Context, r ports.PageRequest) ([]ports.DeadLetterView, ports.Cursor, error) {
	page, err := persist(ctx, k.inspector, func(s Store) (ports.MorguePage, error) {
		return s.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: k.sortBy == ByID, Group: k.run.At.Group})
	})
	return page.DeadLetters, page.Next, err
}

func (k *deadKind) Place(v *ports.DeadLetterView) ports.Cursor { return k.show(v).Cursor.port() }

func (k *deadKind) Fate(v *ports.DeadLetterView, before, _ core.Instant) bulk.Fate {
	switch {
	case v.ChangedAt >= before && k.sortBy == ByTime:
		return bulk.Beyond
	case v.ChangedAt >= before, k.edited[v.ID]:
		return bulk.Passed
	}
	return bulk.Looked
}

func (k *deadKind) Complete(ctx context.Context, v *ports.DeadLetterView, before core.Instant) (bool, error) {
	if k.all.Payloads != 0 || k.whole || (k.all.DryRun || k.moves) && k.match == nil {
		return true, nil
	}
	there, err := k.inspector.complete(ctx, k.queue, v)
	return there && v.ChangedAt < before, err
}

func (k *deadKind) show(v *ports.DeadLetterView) DeadLetter {
	return k.views().deadLetter(v, k.sortBy)
}

func (k *deadKind) Match(v *ports.DeadLetterView) bool { return k.match == nil || k.match(k.show(v)) }

func (k *deadKind) Sample(chosen []ports.DeadLetterView) {
	k.samples = sampled(k.samples, chosen, k.show)
}

func (k *deadKind) Act(ctx context.Context, shard core.Shard, chosen []ports.DeadLetterView) error {
	return k.do(ctx, shard, chosen)
}

// noteEdit remembers that an edit has changed a dead letter. If the clock stands still or steps
// back, the visit may meet the dead letter again.
func (k *deadKind) noteEdit(id string, changed core.Instant) {
	if changed == 0 || changed >= k.run.At.Before && k.sortBy == ByTime {
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
func (a *action) sayLater(ctx context.Context, r *Result, failed error) {
	if failed != nil || r.Handled >= r.Total || r.Checkpoint != "" {
		return
	}

	at := &a.run.At
	page, err := ask(a.inspector, func(s Store) (ports.MorguePage, error) {
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
// can't be reached. A reference names at most as many payloads as a step handles: further ones of
// the same dead letter are in later rounds.
func (a *action) storedRefs(
	ctx context.Context,
	refs []ports.DeadLetterRef,
) (rounds [][]ports.DeadLetterRef, err error) {
	named := func(r ports.DeadLetterRef) bool { return r.Payloads != nil }
	if !slices.ContainsFunc(refs, named) {
		return [][]ports.DeadLetterRef{refs}, nil
	}

	record, err := a.inspector.record(ctx, a.queue)
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

		shard := core.Shard{Queue: a.queue, Index: core.ShardOf(ref.ID, record.Shards)}
		err := a.try(ctx, shard, func() error {
			found, err := a.inspector.wholeLetter(ctx, a.queue, ref.ID)
			if err != nil {
				return err
			}
			copies := [][]byte{} // nil would mean all payloads
			if found.DeadLetter != nil {
				copies = append(copies, dataOf(withData(record.Merge, found.DeadLetter.Payloads, ref.Payloads))...)
			}

			for round, more := 0, true; more; round, more = round+1, len(copies) > 0 {
				n := min(len(copies), core.MaxTurnPayloads)
				add(round, ports.DeadLetterRef{ID: ref.ID, Payloads: copies[:n:n]})
				copies = copies[n:]
			}
			return nil
		})
		if err != nil {
			return nil, err
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
// newer payloads are not handled. If all match, or if it was shown without some payloads, or has
// more payloads than a step handles, the reference names the whole dead letter: each step would
// name all payloads again. Even then newer payloads are not handled, unless the clock stands still
// or steps back.
func (k *deadKind) refOf(d *ports.DeadLetterView) ports.DeadLetterRef {
	if n := len(d.Payloads); k.whole || n > core.MaxTurnPayloads || n < d.Count {
		return ports.DeadLetterRef{ID: d.ID}
	}
	return payloadsOf(&d.DeadLetter)
}

// payloadsOf returns a reference to the payloads of a dead letter.
func payloadsOf(d *core.DeadLetter) ports.DeadLetterRef {
	return ports.DeadLetterRef{ID: d.ID, Payloads: dataOf(d.Payloads)}
}

// stepRefs makes steps on named dead letters, or on payloads of them as they were pushed.
func (a *action) stepRefs(ctx context.Context, refs []ports.DeadLetterRef, step deadLetterStep) error {
	rounds, err := a.storedRefs(ctx, refs)
	if err != nil {
		return err
	}

	id := func(r *ports.DeadLetterRef) string { return r.ID }
	counts := a.Tally
	defer func() { a.Tally = counts }()
	for _, refs := range rounds {
		err := onReached(ctx, a, refs, id, bulk.Refs, func(
			s Store,
			shard core.Shard,
			refs []ports.DeadLetterRef,
		) (ports.StepReply, error) {
			return stepOn(ctx, shard, step, 0)(s, refs)
		})
		if err != nil {
			return err
		}
		a.Tally = new(bulk.Tally) // counts nothing: the first round has counted each dead letter
	}
	return nil
}

// stepOn returns a function that makes a step on named dead letters of a shard which last changed
// before an instant. 0 means no limit.
func stepOn(
	ctx context.Context,
	shard core.Shard,
	step deadLetterStep,
	before core.Instant,
) func(Store, []ports.DeadLetterRef) (ports.StepReply, error) {
	return func(s Store, refs []ports.DeadLetterRef) (ports.StepReply, error) {
		return step(s, ctx, ports.DeadLetterStep{Shard: shard, DeadLetters: refs, Before: before})
	}
}

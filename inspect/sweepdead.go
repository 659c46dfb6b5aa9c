package inspect

import (
	"context"

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

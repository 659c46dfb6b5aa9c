package broken

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func brokenMarks() []brokenStore {
	return []brokenStore{
		{"has no mark of a done job", "mark/is the score of the record", wrapped(showsMark(
			func(f *ports.Found) {
				if f.Past != nil && f.Past.Score == f.Mark.Score {
					f.Mark = core.Mark{}
				}
			}))},
		{"raises no mark of a failed job", "mark/rises with a job that fails", wrapped(raisesWhere(
			func(_ int, x *core.Settlement) { x.Mark = core.Mark{} }))},
		{"raises the mark of the first settlement only", "mark/rises with a job that fails", wrapped(raisesWhere(
			func(i int, x *core.Settlement) { x.Mark.OK = x.Mark.OK && i == 0 }))},
		{"raises no mark with a part", "mark/rises with a part", wrapped(raisesNoPart)},
		{"raises marks with skipped settlements", "mark/is not raised by what is skipped", wrapped(raisesSkipped)},
		{"raises marks with skipped parts", "mark/is not raised by what is skipped", wrapped(raisesSkippedParts)},
		{"lowers marks", "mark/is not lowered", wrapped(lowersMarks)},
		{"rounds marks", "mark/has any score", wrapped(showsMark(
			func(f *ports.Found) { f.Mark.Score = math.Round(f.Mark.Score) }))},
		{"takes any mark", "mark/is refused if it is invalid", wrapped(takesAnyMark)},
		{"always keeps marks", "mark/is not kept by a turn that keeps none", wrapped(keepsMore(
			func(k *core.KeepPast) { k.Age = max(k.Age, time.Hour) }))},
		{"claims without marks", "mark/comes with each claim", wrapped(claimsMarked(
			func(c *core.Claim, _ bool) { c.Mark = core.Mark{} }))},
		{"claims the marks before the turn", "mark/comes with each claim", wrapped(claimsMarksBefore)},
		{"claims with the marks of records only", "mark/comes with each claim", wrapped(claimsRecords)},
		{"always claims with marks", "mark/comes with each claim", wrapped(alwaysMarks)},
		{"repeats claims without marks", "mark/comes with the claims of a repeat", wrapped(claimsMarked(
			func(c *core.Claim, again bool) {
				if again {
					c.Mark = core.Mark{}
				}
			}))},
		{"lists marks", "mark/is no record", wrapped(listsMarks)},
		{"finds marks as records", "mark/is no record", wrapped(showsMark(func(f *ports.Found) {
			if f.Past == nil && f.Mark.OK {
				f.Past = &core.Past{Score: f.Mark.Score}
			}
		}))},
		{"ends a list at a mark", "mark/is no record", wrapped(endsAtEmptyPage)},
		{"keeps marks too long", "mark/goes by age", wrapped(keepsMore(func(k *core.KeepPast) { k.Age += time.Second }))},
		{"counts no marks", "mark/goes by count", wrapped(keepsMore(func(k *core.KeepPast) { k.Count *= 2 }))},
		{"keeps the marks of a forgotten queue", "mark/is forgotten with its queue", wrapped(keepsForgottenMarks)},
		{"drops no stale entry", "mark/drops stale entries of a push", wrapped(pushesWhere(
			func(r *ports.PushRequest) { r.DropStale = false }))},
		{"drops only older entries", "mark/drops stale entries of a push", wrapped(pushesWhere(func(r *ports.PushRequest) {
			for i := range r.Entries {
				r.Entries[i].Score += 0.1
			}
		}))},
		{"always drops stale entries", "mark/drops no entry of another push", wrapped(pushesWhere(
			func(r *ports.PushRequest) { r.DropStale = true }))},
		{"drops stale entries of a part of a push", "mark/drops stale entries of a large push", wrapped(dropsInPart)},
		{"revives stale dead letters", "mark/keeps stale dead letters in the morgue", wrapped(revivesWhere(
			func(r *ports.DeadLetterStep) { r.Fresh = false }))},
		{"revives no stale dead letter", "mark/keeps stale dead letters in the morgue", wrapped(revivesWhere(
			func(r *ports.DeadLetterStep) { r.Fresh = r.DeadLetters != nil && !r.Unmark }))},
		{"revives and keeps the mark", "mark/is removed by a revive of what is stale", wrapped(revivesWhere(
			func(r *ports.DeadLetterStep) { r.Unmark = false }))},
		{"always removes marks", "mark/is not removed by another revive", wrapped(revivesWhere(
			func(r *ports.DeadLetterStep) { r.Unmark = r.DeadLetters != nil && !r.Fresh }))},
		{"counts no stale payload", "mark/counts what settlements have dropped", wrapped(func(s full) full {
			return withCounts(s, func(c *ports.Counts) { c.Stale = 0 })
		})},
		{"counts stale payloads of skipped settlements", "mark/counts what settlements have dropped",
			wrapped(countsSkippedStale)},
		{"drops the whole job with its stale payloads", "mark/drops only the first payloads of a claim", wrapped(raisesWhere(
			func(_ int, x *core.Settlement) {
				if x.Stale > 0 {
					x.Rest = core.Discard
				}
			}))},
		{"raises no mark outside of turns", "settler/raises marks", wrapped(settlesUnmarked)},
		{"raises marks before the commit", "transaction/raises marks", wrapped(
			func(s full) full { return marksAtOnce{showsRecords(s, map[string]core.Past{})} })},
	}
}

// showsMark changes what Find shows.
func showsMark(change func(*ports.Found)) func(full) full {
	return func(s full) full {
		return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
			found, err := s.Find(ctx, r)
			change(&found)
			return found, err
		})
	}
}

// raisesWhere changes the settlements of turns, by their positions.
func raisesWhere(change func(i int, x *core.Settlement)) func(full) full {
	return func(s full) full {
		return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
			r.Settlements = slices.Clone(r.Settlements)
			for i := range r.Settlements {
				change(i, &r.Settlements[i])
			}
		})
	}
}

func raisesNoPart(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		r.Parts = slices.Clone(r.Parts)
		for i := range r.Parts {
			r.Parts[i].Mark = core.Mark{}
		}
	})
}

// showsRaised shows other marks, by id, besides those of the store.
func showsRaised(s full, marks map[string]core.Mark) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		found.Mark = found.Mark.Raised(marks[r.ID])
		return found, err
	})
}

func raisesSkipped(s full) full {
	marks := map[string]core.Mark{}
	return afterTurn(showsRaised(s, marks), func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		for _, i := range reply.Skipped {
			marks[r.Settlements[i].ID] = r.Settlements[i].Mark
		}
	})
}

func raisesSkippedParts(s full) full {
	marks := map[string]core.Mark{}
	return afterTurn(showsRaised(s, marks), func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		for _, i := range reply.SkippedParts {
			marks[r.Parts[i].ID] = r.Parts[i].Mark
		}
	})
}

// lowersMarks shows the last mark of each id.
func lowersMarks(s full) full {
	marks := map[string]core.Mark{}
	h := replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if m, ok := marks[r.ID]; ok && m.OK {
			found.Mark = m
		}
		return found, err
	})
	return afterTurn(h, func(r ports.TurnRequest, _ *ports.TurnReply, _ bool) {
		for _, x := range r.Settlements {
			marks[x.ID] = x.Mark
		}
	})
}

func takesAnyMark(s full) full {
	return raisesWhere(func(_ int, x *core.Settlement) {
		if math.IsNaN(x.Mark.Score) || math.IsInf(x.Mark.Score, 0) {
			x.Mark = core.Mark{}
		}
	})(s)
}

// claimsMarked changes the claims of turns, and of their repeats.
func claimsMarked(change func(c *core.Claim, again bool)) func(full) full {
	return func(s full) full {
		return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, again bool) {
			for i := range reply.Claims {
				change(&reply.Claims[i], again)
			}
		})
	}
}

// claimsMarksBefore claims with the marks that are there before the settlements.
func claimsMarksBefore(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		before := map[string]core.Mark{}
		for _, x := range r.Settlements {
			if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID}); err == nil {
				before[x.ID] = found.Mark
			}
		}
		reply, err := s.Turn(ctx, r)
		for i := range reply.Claims {
			if m, ok := before[reply.Claims[i].ID]; ok && r.Marks {
				reply.Claims[i].Mark = m
			}
		}
		return reply, err
	})
}

func claimsRecords(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		for i := range reply.Claims {
			c := &reply.Claims[i]
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: c.ID})
			if err == nil && found.Past == nil {
				c.Mark = core.Mark{}
			}
		}
		return reply, err
	})
}

func alwaysMarks(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { r.Marks = true })
}

// listsMarks lists the marks of ids without a record.
func listsMarks(s full) full {
	marked := map[string]core.Past{}
	shown := showsRecords(s, marked)
	h := replace(shown, "Find", s.Find)
	return afterTurn(h, func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		for _, x := range r.Settlements {
			if x.Mark.OK {
				marked[x.ID] = core.Past{ID: x.ID, DoneAt: reply.Now, Score: x.Mark.Score}
			}
		}
	})
}

// endsAtEmptyPage ends a list at a page without a record.
func endsAtEmptyPage(s full) full {
	return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		if r.Limit == 1 && r.After != (ports.Cursor{}) {
			page = ports.PastPage{}
		}
		return page, err
	})
}

func keepsForgottenMarks(s full) full {
	var ids []string
	marks := map[string]core.Mark{}
	h := afterTurn(showsRaised(s, marks), func(r ports.TurnRequest, _ *ports.TurnReply, _ bool) {
		for _, x := range r.Settlements {
			ids = append(ids, x.ID)
		}
	})
	return replaceErr(h, "Forget", func(ctx context.Context, queue string) error {
		for _, id := range ids {
			if found, err := s.Find(ctx, ports.FindRequest{Queue: queue, ID: id}); err == nil {
				marks[id] = found.Mark
			}
		}
		return s.Forget(ctx, queue)
	})
}

// pushesWhere changes the requests of pushes.
func pushesWhere(change func(*ports.PushRequest)) func(full) full {
	return func(s full) full {
		return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
			r.Entries = slices.Clone(r.Entries)
			change(&r)
			return s.Push(ctx, r)
		})
	}
}

// revivesWhere changes the requests of revives.
func revivesWhere(change func(*ports.DeadLetterStep)) func(full) full {
	return func(s full) full {
		return replace(s, "Revive", func(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
			change(&r)
			return s.Revive(ctx, r)
		})
	}
}

// dropsInPart drops no stale entry of a push behind the first hundred.
func dropsInPart(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		const most = 100
		if len(r.Entries) <= most {
			return s.Push(ctx, r)
		}
		first, rest := r, r
		first.Entries, rest.Entries, rest.DropStale = r.Entries[:most], r.Entries[most:], false
		reply, err := s.Push(ctx, first)
		if err != nil {
			return reply, err
		}
		part, err := s.Push(ctx, rest)
		reply.Add(part)
		return reply, err
	})
}

func countsSkippedStale(s full) full {
	var onTop int64
	h := afterTurn(s, func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		for _, i := range reply.Skipped {
			onTop += int64(r.Settlements[i].Stale)
		}
	})
	return withCounts(h, func(c *ports.Counts) { c.Stale += onTop })
}

func settlesUnmarked(s full) full {
	return replaceErr(s, "Settle", func(ctx context.Context, r storekit.SettleRequest) error {
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			r.Settlements[i].Mark = core.Mark{}
		}
		return s.Settle(ctx, r.Shard, r.Settlements)
	})
}

// marksAtOnce shows what a transaction raises before it commits.
type marksAtOnce struct{ shownRecords }

func (s marksAtOnce) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	found, err := s.full.Find(ctx, r)
	if p, shown := s.records[r.ID]; shown {
		found.Mark, found.Past = core.MarkAt(p.Score), nil
	}
	return found, err
}

func (s marksAtOnce) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return markingAtOnce{tx, s.shownRecords}, err
}

type markingAtOnce struct {
	env.Transaction
	store shownRecords
}

func (tx markingAtOnce) Settle(ctx context.Context, at core.Shard, settle []core.Settlement) error {
	for _, x := range settle {
		if x.Mark.OK {
			tx.store.records[x.ID] = core.Past{ID: x.ID, Score: x.Mark.Score}
		}
	}
	return tx.Transaction.Settle(ctx, at, settle)
}

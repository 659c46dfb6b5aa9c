package broken

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func ignoresParts(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { r.Parts = nil })
}

// endsWithoutBeginning settles payloads as a transaction does, which marks no job as begun.
func endsWithoutBeginning(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		for _, p := range r.Parts {
			_ = s.SettlePayload(ctx, r.Lease.Shard, p)
		}
		r.Parts = nil
	})
}

func keepsRecoveries(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		r.Parts = slices.Clone(r.Parts)
		for i := range r.Parts {
			r.Parts[i].Recoveries = core.AloneRecoveries + 1
		}
	})
}

func reportsAllParts(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) { reply.SkippedParts = nil })
}

// endsAnother takes a part that was applied before for one of the next payload.
func endsAnother(s full) full {
	applied := map[core.ClaimRef]bool{}
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		r.Parts = slices.Clone(r.Parts)
		for i := range r.Parts {
			p := &r.Parts[i]
			ref := core.ClaimRef{ID: p.ID, Receipt: p.Receipt}
			if applied[ref] {
				p.Receipt = p.Receipt.NextPart()
			}
			applied[ref] = true
		}
	})
}

func refusesPartsAgain(s full) full {
	applied := map[core.ClaimRef]bool{}
	return afterTurn(s, func(r ports.TurnRequest, reply *ports.TurnReply, again bool) {
		for i := range r.Parts {
			ref := core.ClaimRef{ID: r.Parts[i].ID, Receipt: r.Parts[i].Receipt}
			if applied[ref] && !again && !slices.Contains(reply.SkippedParts, i) {
				reply.SkippedParts = append(reply.SkippedParts, i)
			}
			applied[ref] = true
		}
	})
}

// endsPartsFirst carries out the parts of a turn before its settlements, whose claims have another
// receipt then.
func endsPartsFirst(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		if len(r.Settlements) == 0 {
			return
		}
		for _, p := range r.Parts {
			_ = s.SettlePayload(ctx, r.Lease.Shard, p)
		}
	})
}

func countsNoParts(s full) full {
	ahead := map[ports.Lease]int64{}
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		sent := r
		sent.Number += ahead[r.Lease]
		reply, err := s.Turn(ctx, sent)
		if err == nil && len(r.Parts) > 0 && len(r.Settlements)+len(r.Begin)+len(reply.Claims) == 0 {
			ahead[r.Lease]++
		}
		reply.Last -= ahead[r.Lease]
		return reply, err
	})
}

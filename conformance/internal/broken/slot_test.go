package broken

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenSlots() []brokenStore {
	return []brokenStore{
		{"forgets the slot of a put-back", "slot/is with the job in every place", wrapped(changesSlots(
			func(string) string { return "" }))},
		{"truncates slots", "slot/is any text of a key", wrapped(changesSlots(
			func(slot string) string { return slot[:min(len(slot), 255)] }))},
		{"takes any slot", "slot/is refused if it is not the key of a limiter", wrapped(changesSlots(
			func(slot string) string {
				if core.Text(slot) != slot || len(slot) > ports.MaxLimiterKey {
					return ""
				}
				return slot
			}))},
		{"keeps a slot through run-now", "slot/is gone when the job is run now", wrapped(keepsExpeditedSlots)},
		{"moves a job with a slot at a push", "slot/keeps the time at a push", wrapped(movesSlots)},
		{"moves a job with a slot at an import", "slot/of a queued job stays at an import", wrapped(movesSlots)},
		{"leaves the slot to the rest of a claim", "slot/is not left to the rest of a claim", wrapped(leavesSlots)},
		{"imports slots", "slot/is not imported", wrapped(importsSlots)},
		{"keeps the slot of a recovered job", "slot/is gone after a recovery", wrapped(recoversSlots)},
		{"forgets slots in repeated turns", "slot/is there once when a turn is repeated", wrapped(repeatsNoSlots)},
	}
}

// changesSlots changes the slot of each put-back.
func changesSlots(change func(string) string) func(s full) full {
	return func(s full) full {
		return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
			for i := range r.Settlements {
				back := &r.Settlements[i].PutBack
				back.Slot = change(back.Slot)
			}
		})
	}
}

// findsSlots changes what Find returns.
func findsSlots(s full, see func(*ports.Found)) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		see(&found)
		return found, err
	})
}

// keepsExpeditedSlots shows the last slot of each job that was expedited.
func keepsExpeditedSlots(s full) full {
	slots := map[string]string{}
	h := replace(s, "Expedite", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
		for _, id := range step.IDs {
			if found, err := s.Find(ctx, ports.FindRequest{Queue: step.Shard.Queue, ID: id}); err == nil && found.Queued != nil {
				slots[id] = found.Queued.Slot
			}
		}
		return s.Expedite(ctx, step)
	})
	return findsSlotsOf(h, slots)
}

// findsSlotsOf shows these slots of queued jobs.
func findsSlotsOf(s full, slots map[string]string) full {
	return findsSlots(s, func(found *ports.Found) {
		if found.Queued != nil && slots[found.Queued.ID] != "" {
			found.Queued.Slot = slots[found.Queued.ID]
		}
	})
}

// movesSlots has the slots beside the jobs, so that pushes and imports don't see them.
func movesSlots(s full) full {
	slots := map[string]string{}
	h := beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			x := &r.Settlements[i]
			slots[x.ID], x.PutBack.Slot = x.PutBack.Slot, ""
		}
	})
	return findsSlotsOf(h, slots)
}

// leavesSlots shows the slot of a claim with the rest of its job too.
func leavesSlots(s full) full {
	return findsSlots(s, func(found *ports.Found) {
		if found.Queued != nil && found.Claim != nil && found.Queued.FirstPush == found.Claim.FirstPush {
			found.Queued.Slot = found.Claim.Slot
		}
	})
}

func importsSlots(s full) full {
	slots := map[string]string{}
	h := replace(s, "Import", func(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
		for i := range r.Jobs {
			slots[r.Jobs[i].ID] = r.Jobs[i].Slot
		}
		return s.Import(ctx, r)
	})
	return findsSlotsOf(h, slots)
}

// recoversSlots puts each recovered job back with the slot of its claim.
func recoversSlots(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			x := &r.Settlements[i]
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID})
			if err == nil && found.Claim != nil && x.PutBack.Recoveries > found.Claim.Recoveries {
				x.PutBack.Slot = found.Claim.Slot
			}
		}
	})
}

func repeatsNoSlots(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, again bool) {
		for i := range reply.Claims {
			if again {
				reply.Claims[i].Slot = ""
			}
		}
	})
}

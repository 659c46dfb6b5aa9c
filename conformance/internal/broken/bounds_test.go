package broken

import (
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// handsOverAll hands over all orphans with the acquire.
func handsOverAll(s full) full {
	all := replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		if err != nil {
			return reply, err
		}

		page, err := s.Claimed(ctx, ports.PageRequest{
			Queue:    r.Shard.Queue,
			Limit:    ports.MaxPage,
			Payloads: core.MaxTurnPayloads,
		})

		reply.Claims = nil
		for i := range page.Claims {
			if c := page.Claims[i].Claim; c.Receipt.Token != reply.Token {
				reply.Claims = append(reply.Claims, c)
			}
		}

		slices.SortFunc(reply.Claims, func(a, b core.Claim) int { return strings.Compare(a.ID, b.ID) })
		return reply, err
	})

	return losesOrphans(all)
}

// losesOrphans hands over only the claims that fit an acquire.
func losesOrphans(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		reply.Orphans = nil
		return reply, err
	})
}

func forgetsResentOrphans(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if r.Resent {
			reply.Orphans = nil
		}
		return reply, err
	})
}

// handsOverTwice hands over the orphans of the turn before again with each turn.
func handsOverTwice(s full) full {
	var before []core.Claim
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if err == nil && !reply.Repeat {
			before, reply.Orphans = reply.Orphans, slices.Concat(before, reply.Orphans)
		}
		return reply, err
	})
}

// forgetsOrphansOnRepeat hands over nothing with a repeated turn.
func forgetsOrphansOnRepeat(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if reply.Repeat {
			reply.Orphans = nil
		}
		return reply, err
	})
}

// countsNoHandOver does not number a turn that only hands over.
func countsNoHandOver(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if err == nil && !reply.Repeat && len(r.Settlements)+len(r.Begin)+len(reply.Claims) == 0 && !r.Resent {
			reply.Last = r.Number - 1
		}
		return reply, err
	})
}

// claimsBesideOrphans makes two turns of a turn that hands over orphans, so it exceeds the bounds.
func claimsBesideOrphans(s full) full {
	ahead := map[ports.Lease]int64{}
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		outer := r.Number
		r.Number += ahead[r.Lease]
		reply, err := s.Turn(ctx, r)
		if err != nil || len(reply.Orphans) == 0 || r.Want == 0 {
			reply.Last -= r.Number - outer
			return reply, err
		}

		r.Settlements, r.Begin, r.Number = nil, nil, r.Number+1
		more, err := s.Turn(ctx, r)
		reply.Claims, reply.Orphans, reply.Last = append(reply.Claims, more.Claims...),
			append(reply.Orphans, more.Orphans...), outer

		ahead[r.Lease] = more.Last - outer
		return reply, err
	})
}

// hidesTheRest does not report with an acquire that orphans are still to be handed over.
func hidesTheRest(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		reply.Head = core.Head{}
		return reply, err
	})
}

// settlesAll settles everything in one turn, beyond the bounds.
func settlesAll(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		var rest []core.Settlement
		for _, i := range reply.Deferred {
			rest = append(rest, r.Settlements[i])
		}
		if err == nil && len(rest) > 0 {
			err = s.Settle(ctx, r.Lease.Shard, rest)
		}
		reply.Deferred = nil
		return reply, err
	})
}

// losesDeferred does not report deferred settlements.
func losesDeferred(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		reply.Deferred = nil
		return reply, err
	})
}

// defersSkipped defers each settlement after the first deferred one that it should skip.
func defersSkipped(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		reply.Skipped = slices.DeleteFunc(reply.Skipped, func(i int) bool {
			late := len(reply.Deferred) > 0 && i > reply.Deferred[0]
			if late {
				reply.Deferred = append(reply.Deferred, i)
			}
			return late
		})
		return reply, err
	})
}

// pushesAPart stores only the first entries of a push, whose jobs together fit a step.
func pushesAPart(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		met := 0

		for i := range r.Entries {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.Entries[i].ID, Payloads: 1000})
			if err == nil && found.Queued != nil {
				_, size := env.SizeOf(found.Queued.Payloads)
				met += size
			}

			if met > core.MaxStepBytes {
				r.Entries = r.Entries[:i]
				break
			}
		}

		return s.Push(ctx, r)
	})
}

// reachesTooFar reports that each step has reached everything that it names.
func reachesTooFar(s full) full {
	return replace(s, "Revive", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		reply, err := s.Revive(ctx, step)
		reply.Reached = len(step.DeadLetters)
		return reply, err
	})
}

// buriesAll buries everything that a step names, beyond the bounds.
func buriesAll(s full) full {
	return replace(s, "Bury", func(ctx context.Context, step ports.JobStep) (ports.StepReply, error) {
		reply, err := s.Bury(ctx, step)
		for err == nil && reply.Reached < len(step.IDs) {
			var more ports.StepReply
			more, err = s.Bury(ctx, ports.JobStep{Shard: step.Shard, IDs: step.IDs[reply.Reached:]})
			reply.Reached, reply.Handled = reply.Reached+more.Reached, reply.Handled+more.Handled
		}
		return reply, err
	})
}

// hidesParts reports that nothing is left after a step that has finished no entry.
func hidesParts(s full) full {
	return replace(s, "Purge", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		reply, err := s.Purge(ctx, step)
		reply.More = reply.More && reply.Handled > 0
		return reply, err
	})
}

// countsParts counts an entry with each of its parts.
func countsParts(s full) full {
	return replace(s, "Purge", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		reply, err := s.Purge(ctx, step)
		if step.DeadLetters == nil && reply.More {
			reply.Handled++
		}
		return reply, err
	})
}

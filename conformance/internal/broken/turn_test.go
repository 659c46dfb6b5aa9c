package broken

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// afterTurn changes the reply of a turn. again is true if the turn was a repeat.
func afterTurn(s full, change func(r ports.TurnRequest, reply *ports.TurnReply, again bool)) full {
	last := map[ports.Lease]int64{}
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		if err == nil {
			again := last[r.Lease] == r.Number
			last[r.Lease] = reply.Last
			change(r, &reply, again)
		}
		return reply, err
	})
}

// beforeTurn changes the request of a turn.
func beforeTurn(s full, change func(ctx context.Context, r *ports.TurnRequest)) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		change(ctx, &r)
		return s.Turn(ctx, r)
	})
}

// addProcessed adds onTop to each queue's count of processed jobs.
func addProcessed(s full, onTop *int64) full {
	return replace(s, "Stats", func(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
		all, err := s.Stats(ctx, r)
		for i := range all {
			all[i].Processed += *onTop
		}
		return all, err
	})
}

func countsRepeats(s full) full {
	var onTop int64
	h := afterTurn(s, func(r ports.TurnRequest, _ *ports.TurnReply, again bool) {
		if again {
			onTop += int64(len(r.Settlements))
		}
	})
	return addProcessed(h, &onTop)
}

func countsSkipped(s full) full {
	var onTop int64
	h := afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		onTop += int64(len(reply.Skipped))
	})
	return addProcessed(h, &onTop)
}

// claimsOnRepeat carries out a repeated turn as the next turn.
func claimsOnRepeat(s full) full {
	ahead, last := int64(0), int64(0)
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		if r.Number == last {
			ahead++
		}
		r.Number += ahead
		reply, err := s.Turn(ctx, r)
		reply.Last -= ahead
		last = reply.Last
		return reply, err
	})
}

func strandsClaims(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, again bool) {
		if again {
			reply.Claims = nil
		}
	})
}

// ignoresReceipts settles the claim of an id, whatever its receipt is.
func ignoresReceipts(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		for i, settled := range r.Settlements {
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: settled.ID, Payloads: 1000})
			if err == nil && found.Claim != nil {
				r.Settlements[i].Receipt = found.Claim.Receipt
			}
		}
	})
}

// sleepsPastPushes requeues an awaiting job like a snoozed one.
func sleepsPastPushes(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			r.Settlements[i].PutBack.Awaits = false
		}
	})
}

// endsWaitsByAnyJob takes every queued job for one that was pushed since the claim.
func endsWaitsByAnyJob(s full) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			back := &r.Settlements[i].PutBack
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: r.Settlements[i].ID})
			if err == nil && back.Awaits && found.Queued != nil {
				back.Delay = min(back.Delay, max(0, found.Queued.PerformAt.Sub(found.Standing.Now)))
			}
		}
	})
}

func claimsByID(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		slices.SortFunc(reply.Claims, func(a, b core.Claim) int { return cmp.Compare(a.ID, b.ID) })
	})
}

// claimsClaimed returns the queued job of a claimed id beside the claims.
func claimsClaimed(s full) full {
	return afterTurn(s, func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		queue := r.Lease.Shard.Queue
		page, err := s.Jobs(context.Background(), ports.JobsRequest{PageRequest: env.WholePage(queue)})
		if err != nil {
			return
		}
		for _, j := range page.Jobs {
			found, err := s.Find(context.Background(), ports.FindRequest{Queue: queue, ID: j.ID, Payloads: 1000})
			if err == nil && found.Claim != nil && len(reply.Claims) < r.Want {
				reply.Claims = append(reply.Claims, core.Claim{Job: j.Job, Receipt: found.Claim.Receipt})
			}
		}
	})
}

func ignoresBytes(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { r.Bytes = 1 << 40 })
}

// forgetsRecoveries requeues recovered jobs without their Recoveries.
func forgetsRecoveries(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			r.Settlements[i].PutBack.Recoveries = 0
		}
	})
}

func cancelsOnce(s full) full {
	told := map[core.Receipt]bool{}
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		reply.Cancellations = slices.DeleteFunc(reply.Cancellations, func(c ports.Cancellation) bool {
			before := told[c.Receipt]
			told[c.Receipt] = true
			return before
		})
	})
}

func dropsSecond(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		var once []core.Settlement
		seen := map[string]bool{}
		for _, x := range r.Settlements {
			if !seen[x.ID] {
				once = append(once, x)
			}
			seen[x.ID] = true
		}
		r.Settlements = once
		return s.Turn(ctx, r)
	})
}

func losesMetaOfLarge(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		reply, err := s.Turn(ctx, r)
		for _, c := range reply.Claims {
			for i := range c.Payloads {
				if len(c.Payloads) >= env.LargeJob {
					c.Payloads[i].Meta = nil
				}
			}
		}
		return reply, err
	})
}

func hidesRepeats(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) { reply.Repeat = false })
}

func ignoresResent(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { r.Resent = false })
}

// forgetsBegun does not report to the next owner which jobs had begun.
func forgetsBegun(s full) full {
	return replace(s, "Acquire", func(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
		reply, err := s.Acquire(ctx, r)
		for i := range reply.Claims {
			reply.Claims[i].Begun = false
		}
		return reply, err
	})
}

func reportsAllBegun(s full) full {
	return afterTurn(s, func(_ ports.TurnRequest, reply *ports.TurnReply, _ bool) { reply.NotBegun = nil })
}

// isolatesAtOnce isolates jobs after their first recovery.
func isolatesAtOnce(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			if b := &r.Settlements[i].PutBack; b.Recoveries == 1 {
				b.Recoveries = core.AloneRecoveries
			}
		}
	})
}

func forgetsWhatCancelsDo(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			page.Claims[i].Drop = false
		}
		return page, err
	})
}

// keepsLeaseEnds reports the end of a lease that is over.
func keepsLeaseEnds(s full) full {
	ends := make(map[core.Receipt]core.Instant)
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			c := &page.Claims[i]
			ends[c.Receipt] = max(ends[c.Receipt], c.LeaseUntil)
			c.LeaseUntil = ends[c.Receipt]
		}
		return page, err
	})
}

func hidesLeaseOver(s full) full {
	return replace(s, "Claimed", func(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
		page, err := s.Claimed(ctx, r)
		for i := range page.Claims {
			page.Claims[i].LeaseOver = false
		}
		return page, err
	})
}

// pausesLate lets turns of a paused queue claim once a turn has claimed a job.
func pausesLate(s full) full {
	busy := false
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		queue := r.Lease.Shard.Queue
		queues, err := s.Queues(ctx)
		at := slices.IndexFunc(queues, func(q ports.Queue) bool { return q.Name == queue })
		if err == nil && busy && queues[at].Paused {
			_ = s.Resume(ctx, queue)
			defer func() { _ = s.Pause(ctx, queue) }()
		}
		reply, err := s.Turn(ctx, r)
		busy = busy || len(reply.Claims) > 0
		return reply, err
	})
}

// losesOldPutBacks delays jobs that are put back with their time by a day, like a store that
// searches only for jobs that are due later than the last claimed one.
func losesOldPutBacks(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		for i := range r.Settlements {
			if r.Settlements[i].PutBack.SameTime {
				r.Settlements[i].PutBack.SameTime, r.Settlements[i].PutBack.Delay = false, 24*time.Hour
			}
		}
	})
}

// appliesTheFirst skips each settlement of an id after the first one, also if it skips the first.
func appliesTheFirst(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		seen := map[string]bool{}
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			if id := r.Settlements[i].ID; seen[id] {
				r.Settlements[i].Receipt.Number = -1
			} else {
				seen[id] = true
			}
		}
		return s.Turn(ctx, r)
	})
}

package engine

import (
	"errors"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ends are the executions of a shard whose settlements the store has not answered yet. They are
// kept for the observer, in the order in which they ended; without an observer nothing is kept.
// That is nearly always the order of the settlements too, so most ends are found without a map.
type ends []awaitedEnd

// awaitedEnd is how an execution ends once the store has carried its settlement out. If the
// handler has settled it in a transaction, it ends so once that has committed.
type awaitedEnd struct {
	receipt                     core.Receipt
	bySettlement, byTransaction ports.EndedJob
	transacted                  bool
	// resent is set if an earlier call of its turn carried out a settlement that is now skipped.
	resent bool
	// group is set if the handler settled payloads of the job by themselves. It has the end.
	group *partGroup
	// taken is set once it is passed to the observer.
	taken bool
}

func (e *awaitedEnd) ref() core.ClaimRef {
	return core.ClaimRef{ID: e.bySettlement.ID, Receipt: e.receipt}
}

// end returns the end of an execution, given whether the store skipped its settlement.
func (e *awaitedEnd) end(skipped bool) ports.EndedJob {
	switch {
	case e.group != nil:
		if ended, ok := e.group.end(); ok {
			return ended
		}
	case !skipped, e.resent && !e.transacted:
		return e.bySettlement
	case e.transacted:
		return e.byTransaction
	}
	return e.lost()
}

func (e *awaitedEnd) lost() ports.EndedJob {
	return ports.EndedJob{ID: e.bySettlement.ID, End: ports.EndLost, Attempt: e.bySettlement.Attempt}
}

// awaitEnds keeps the ends of the jobs of a batch that has run. The caller holds the lock.
func (s *shard) awaitEnds(b *Batch, settled []core.Settlement) {
	if s.node.cfg.Observer == nil {
		return
	}
	for i := range b.Claims {
		if b.notBegun(i) {
			continue
		}
		e := awaitedEnd{receipt: b.Claims[i].Receipt, bySettlement: b.end(i, &b.outcomes[i], &settled[i])}
		if e.group = b.groups[i]; e.group != nil {
			s.ends = append(s.ends, e)
			continue
		}
		if t, transacted := b.transacted[i]; transacted {
			e.transacted, e.byTransaction = true, b.end(i, &t.outcome, &t.settlement)
		}
		s.ends = append(s.ends, e)
	}
}

// end returns how job i ends with an outcome and its settlement.
func (b *Batch) end(i int, o *core.Outcome, settled *core.Settlement) ports.EndedJob {
	c := &b.Claims[i]
	ended := ports.EndedJob{ID: c.ID, Attempt: b.attempt(i, o), Buried: buriedPayloads(settled, len(c.Payloads))}
	_, cancelled := b.dropped[i]
	switch {
	case cancelled:
		ended.End = ports.EndCancelled
	case o.Kind == core.Done:
		ended.End = ports.EndDone
	case o.Kind == core.Snoozed:
		ended.End = ports.EndSnoozed
	case o.Kind == core.Awaiting:
		ended.End = ports.EndAwaiting
	case o.Kind == core.Buried, exhausts(b.shard.queue.Policy, c, o):
		ended.End = ports.EndBuried
	case b.shard.queue.Policy.Holds(c, o):
		ended.End = ports.EndHeld
	case o.Kind == core.Failed:
		ended.End = ports.EndFailed
	default:
		ended.End = ports.EndPutBack
	}
	return ended
}

// attempt returns the number of the execution in which job i ended with outcome o, from 1. A
// failure is counted with the failures of the payload that is first after it.
func (b *Batch) attempt(i int, o *core.Outcome) int {
	c := &b.Claims[i]
	if o.Kind == core.Failed && len(o.Payloads) < len(c.Payloads) {
		return b.shard.queue.Policy.Retry(c, o) + 1
	}
	return c.RetryCount + 2
}

// buriedPayloads returns how many of a job's payloads a settlement buries.
func buriedPayloads(settled *core.Settlement, payloads int) (n int) {
	for _, own := range settled.Except {
		if own.Disposition == core.Bury {
			n++
		}
	}
	if settled.Rest == core.Bury {
		n += payloads - len(settled.Except)
	}
	return n
}

// takeEnds returns the ends that the reply of a turn confirms, in a slice that is valid until the
// next turn. The caller holds the lock.
func (s *shard) takeEnds(settled []core.Settlement, r *ports.TurnReply) []ports.EndedJob {
	s.ended = s.ended[:0]
	if len(s.ends) == 0 {
		return nil
	}
	find := s.ends.finder()
	for i := range settled {
		e := find(core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt.Whole()})
		switch {
		case e == nil, e.taken, slices.Contains(r.Deferred, i):
		case r.Repeat: // it is sent again, and that reply shows how it ended
			e.resent = true
		case e.group != nil && !e.group.over:
		default:
			s.ended = append(s.ended, e.end(slices.Contains(r.Skipped, i)))
			e.taken = true
		}
	}
	s.ends = slices.DeleteFunc(s.ends, func(e awaitedEnd) bool { return e.taken })
	return s.ended
}

// finder returns a function that finds the end of a claim, or nil. An end that follows the one
// found before is found at once, others by a map, which is made when it is first needed.
func (all ends) finder() func(core.ClaimRef) *awaitedEnd {
	next := 0
	var places map[core.ClaimRef]int
	return func(c core.ClaimRef) *awaitedEnd {
		at, known := next, next < len(all) && all[next].ref() == c
		if !known && places == nil {
			places = make(map[core.ClaimRef]int, len(all))
			for i := range all {
				places[all[i].ref()] = i
			}
		}
		if !known {
			if at, known = places[c]; !known {
				return nil
			}
		}
		next = at + 1
		return &all[at]
	}
}

// loseEnds returns the ends that the store will no longer answer, since the lease ends. The caller
// holds the lock.
func (s *shard) loseEnds() (lost []ports.EndedJob) {
	for i := range s.ends {
		lost = append(lost, s.ends[i].lost())
	}
	s.ends = nil
	return lost
}

// lostJobs returns the jobs of a batch whose lease ended while it ran. Without an observer it
// returns no jobs.
func (b *Batch) lostJobs() (lost []ports.EndedJob) {
	for i := 0; i < len(b.Claims) && b.shard.node.cfg.Observer != nil; i++ {
		if !b.notBegun(i) {
			lost = append(lost, ports.EndedJob{ID: b.Claims[i].ID, End: ports.EndLost, Attempt: b.Claims[i].RetryCount + 2})
		}
	}
	return lost
}

// jobsEnded notifies the observer.
func (s *shardInfo) jobsEnded(jobs []ports.EndedJob) {
	if len(jobs) > 0 {
		s.node.observer.JobsEnded(ports.EndEvent{Shard: s.id, Jobs: jobs})
	}
}

// overran notifies the observer of a handler that runs long after its context has ended.
func (s *shardInfo) overran(event ports.OverrunEvent, cause error) {
	event.Shard = s.id
	switch {
	case errors.Is(cause, ports.ErrLeaseLost):
		event.Cause = ports.OverrunLease
	case errors.Is(cause, ErrCancelled):
		event.Cause = ports.OverrunCancel
	case errors.Is(cause, ErrShutdown):
		event.Cause = ports.OverrunShutdown
	}
	s.node.observer.HandlerOverran(event)
}

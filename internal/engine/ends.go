package engine

import (
	"errors"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// ends are the executions of a shard whose settlements the store has not answered yet, in the order
// in which they ended: all of them if there is an observer, else those with a result that only the
// store's answer confirms. That is nearly always the order of the settlements too, so most ends are
// found without a map.
type ends []awaitedEnd

// awaitedEnd is how an execution ends once the store has carried its settlement out.
type awaitedEnd struct {
	claim core.ClaimRef
	// bySettlement is the result if the settlement was carried out. A settlement that is resent after
	// a repeated turn, and then skipped, was carried out by that turn's first call.
	bySettlement jobResult
	resent       bool
	// byTransaction is set if the handler settled the job in a transaction. If that has committed, the
	// settlement is skipped and byTransaction is the result.
	byTransaction *jobResult
	// group is set if the handler settled payloads of the job by themselves. It has the result.
	group *partGroup
	// observed is set if the observer is notified, uncounted if the statistics don't include the end
	// yet, and taken once the store has answered.
	observed, uncounted, taken bool
}

// result returns how the execution ended, given whether the store skipped its settlement.
func (e *awaitedEnd) result(skipped bool) jobResult {
	switch {
	case e.group != nil:
		if r, ok := e.group.result(); ok {
			return r
		}
	case !skipped, e.resent && e.byTransaction == nil:
		return e.bySettlement
	case e.byTransaction != nil:
		return *e.byTransaction
	}
	return jobResult{ended: e.lost()}
}

func (e *awaitedEnd) lost() ports.EndedJob {
	return ports.EndedJob{ID: e.claim.ID, End: ports.EndLost, Attempt: e.bySettlement.ended.Attempt}
}

// awaitEnds keeps the ends of a batch that has run, unless its lease is lost. It returns the events
// of failures, to be logged at once, except for jobs whose end only the store knows. The caller
// holds the lock.
func (s *shard) awaitEnds(b *Batch, settled []core.Settlement, held bool) (now []report.Event) {
	observes := s.node.cfg.Observer != nil
	for i := range b.Claims {
		t, transacted := b.transacted[i]
		e := awaitedEnd{group: b.groups[i], observed: observes && !b.notBegun(i), uncounted: transacted || b.groups[i] != nil}
		switch {
		case e.group != nil:
			e.bySettlement.ended = b.end(i, &b.outcomes[i], &settled[i])
		case e.observed, transacted, settled[i].Failed:
			e.bySettlement = b.result(i, &b.outcomes[i], &settled[i])
		default:
			continue
		}
		if !e.uncounted {
			now = append(now, e.bySettlement.events...)
			e.bySettlement.events = nil
		} else if e.group == nil {
			r := b.result(i, &t.outcome, &t.settlement)
			r.lines = b.ignoredOutcome(i, &t.outcome)
			e.byTransaction = &r
		}
		if held && (e.observed || e.uncounted || len(e.bySettlement.buried) > 0) {
			e.claim = b.Claims[i].Ref()
			s.ends = append(s.ends, e)
		}
	}
	return now
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

// takeEnds removes the ends that the reply of a turn confirms, and adds to the statistics those
// that are not counted yet. It returns the results to report. s.ended gets the ends for the
// observer, until the next turn. The caller holds the lock.
func (s *shard) takeEnds(settled []core.Settlement, r *ports.TurnReply) (results []jobResult) {
	s.ended = s.ended[:0]
	if len(s.ends) == 0 {
		return nil
	}
	find := s.ends.finder()
	for i := range settled {
		e := find(core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt.Whole()})
		switch {
		case e == nil, e.taken, slices.Contains(r.Deferred, i):
			continue
		case r.Repeat: // it is sent again, and that reply shows how it ended
			e.resent = true
			continue
		case e.group != nil && !e.group.over:
			continue
		}
		e.taken = true
		end := e.result(slices.Contains(r.Skipped, i))
		if e.uncounted {
			s.node.tallies.count(s.id.Queue, s.node.clock, end.processed, end.failed)
		}
		if e.observed {
			s.ended = append(s.ended, end.ended)
		}
		if len(end.buried)+len(end.events)+len(end.lines) > 0 {
			results = append(results, end)
		}
	}
	s.ends = slices.DeleteFunc(s.ends, func(e awaitedEnd) bool { return e.taken })
	return results
}

// finder returns a function that finds the end of a claim, or nil. An end that follows the one
// found before is found at once, others by a map, which is made when it is first needed.
func (all ends) finder() func(core.ClaimRef) *awaitedEnd {
	next := 0
	var places map[core.ClaimRef]int
	return func(c core.ClaimRef) *awaitedEnd {
		at, known := next, next < len(all) && all[next].claim == c
		if !known && places == nil {
			places = make(map[core.ClaimRef]int, len(all))
			for i := range all {
				places[all[i].claim] = i
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
		if s.ends[i].observed {
			lost = append(lost, s.ends[i].lost())
		}
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

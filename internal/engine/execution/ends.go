package execution

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// Ends are the executions of a shard whose settlements the store has not answered yet. The zero
// value is empty. The shard's lock guards it.
type Ends struct {
	// list has them in the order in which they ended: all of them if the server has an observer, else
	// those with a result that only the store's answer confirms. That is nearly always the order of
	// the settlements too, so most ends are found without a map.
	list []awaitedEnd
	// groups are the jobs with payloads that handlers have settled by themselves.
	groups map[core.ClaimRef]*partGroup
	// ended is reused from reply to reply.
	ended []ports.EndedJob
}

// Answer is how executions have ended, by the reply of a turn.
type Answer struct {
	Results []Result
	// Ended is for the observer. It is valid until the next reply.
	Ended []ports.EndedJob
	// Again are settlements that have to be sent again.
	Again []core.Settlement
}

// Result is how a job has ended.
type Result struct {
	Processed, Failed bool
	// Uncounted is set if the statistics don't include the end yet.
	Uncounted bool
	// Buried is for the hook. Events and Lines are for the log.
	Buried []report.Buried
	Events []report.Event
	Lines  []func()

	ended ports.EndedJob // for the observer
}

// awaitedEnd is how an execution ends once the store has carried its settlement out.
type awaitedEnd struct {
	claim core.ClaimRef
	// bySettlement is the result if the settlement was carried out. A settlement that is resent after
	// a repeated turn, and then skipped, was carried out by that turn's first call.
	bySettlement Result
	resent       bool
	// byTransaction is set if the handler settled the job in a transaction. If that has committed, the
	// settlement is skipped and byTransaction is the result.
	byTransaction *Result
	// group is set if the handler settled payloads of the job by themselves. It has the result.
	group *partGroup
	// observed is set if the observer is notified, uncounted if the statistics don't include the end
	// yet, and taken once the store has answered.
	observed, uncounted, taken bool
}

// result returns how the execution ended, given whether the store skipped its settlement.
func (e *awaitedEnd) result(skipped bool) Result {
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
	return Result{ended: e.lost()}
}

func (e *awaitedEnd) lost() ports.EndedJob {
	return ports.EndedJob{ID: e.claim.ID, End: ports.EndLost, Attempt: e.bySettlement.ended.Attempt}
}

// Await keeps the ends of a batch that has run, unless its lease is lost. It returns the events of
// failures, to be logged at once, except for jobs whose end only the store knows.
func (e *Ends) Await(b *Batch, settled []core.Settlement, held bool) (now []report.Event) {
	observes := b.shard.Server.Observed
	for i := range b.Claims {
		t, transacted := b.transacted[i]
		one := awaitedEnd{
			group:     b.groups[i],
			observed:  observes && !b.notBegun(i),
			uncounted: transacted || b.groups[i] != nil,
		}
		switch {
		case one.group != nil:
			one.bySettlement.ended = b.end(i, &b.outcomes[i], &settled[i])
		case one.observed, transacted, settled[i].Failed:
			one.bySettlement = b.result(i, &b.outcomes[i], &settled[i])
		default:
			continue
		}

		if !one.uncounted {
			now = append(now, one.bySettlement.Events...)
			one.bySettlement.Events = nil
		} else if one.group == nil {
			r := b.result(i, &t.outcome, &t.settlement)
			r.Lines = b.ignoredOutcome(i, &t.outcome)
			one.byTransaction = &r
		}

		if held && (one.observed || one.uncounted || len(one.bySettlement.Buried) > 0) {
			one.claim = b.Claims[i].Ref()
			e.list = append(e.list, one)
		}
	}

	for i, g := range b.groups {
		if held {
			put(&e.groups, b.Claims[i].Ref(), g)
		}
	}

	return now
}

// AwaitRecovered keeps the end of a job that has lost its owner too often.
func (e *Ends) AwaitRecovered(s *Shard, c *core.Claim, settled *core.Settlement) {
	e.list = append(e.list, awaitedEnd{
		claim:        core.ClaimRef{ID: c.ID, Receipt: c.Receipt.Whole()},
		bySettlement: s.recoveryResult(c, settled),
		observed:     s.Server.Observed,
		uncounted:    true,
	})
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
	case o.Kind == core.Buried, exhausts(b.shard.Queue.Policy, c, o):
		ended.End = ports.EndBuried
	case b.shard.Queue.Policy.Holds(c, o):
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
		return b.shard.Queue.Policy.Retry(c, o) + 1
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

// Answer removes the ends that the reply of a turn confirms.
func (e *Ends) Answer(settled []core.Settlement, r *ports.TurnReply) (a Answer) {
	a.Again = e.answerParts(settled, r)
	if len(e.list) == 0 {
		return a
	}

	e.ended = e.ended[:0]
	find := e.finder()
	for i := range settled {
		one := find(core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt.Whole()})
		switch {
		case one == nil, one.taken, slices.Contains(r.Deferred, i):
			continue
		case r.Repeat: // it is sent again, and that reply shows how it ended
			one.resent = true
			continue
		case one.group != nil && !one.group.over:
			continue
		}

		one.taken = true
		end := one.result(slices.Contains(r.Skipped, i))
		if one.observed {
			e.ended = append(e.ended, end.ended)
		}
		end.Uncounted = one.uncounted
		if end.Uncounted || len(end.Buried)+len(end.Events)+len(end.Lines) > 0 {
			a.Results = append(a.Results, end)
		}
	}

	e.list = slices.DeleteFunc(e.list, func(one awaitedEnd) bool { return one.taken })
	a.Ended = e.ended
	return a
}

// finder returns a function that finds the end of a claim, or nil. An end that follows the one
// found before is found at once, others by a map, which is made when it is first needed.
func (e *Ends) finder() func(core.ClaimRef) *awaitedEnd {
	next := 0
	var places map[core.ClaimRef]int
	return func(c core.ClaimRef) *awaitedEnd {
		at, known := next, next < len(e.list) && e.list[next].claim == c
		if !known && places == nil {
			places = make(map[core.ClaimRef]int, len(e.list))
			for i := range e.list {
				places[e.list[i].claim] = i
			}
		}

		if !known {
			if at, known = places[c]; !known {
				return nil
			}
		}

		next = at + 1
		return &e.list[at]
	}
}

// Lose removes all ends, since the lease ends and the store will no longer answer. It returns them
// for the observer.
func (e *Ends) Lose() (lost []ports.EndedJob) {
	for i := range e.list {
		if one := &e.list[i]; one.observed {
			lost = append(lost, one.lost())
		}
	}
	e.list, e.groups = nil, nil
	return lost
}

// LostJobs returns the jobs of a batch whose lease ended while it ran. Without an observer it
// returns no jobs.
func (b *Batch) LostJobs() (lost []ports.EndedJob) {
	for i := 0; i < len(b.Claims) && b.shard.Server.Observed; i++ {
		if !b.notBegun(i) {
			lost = append(lost, ports.EndedJob{
				ID:      b.Claims[i].ID,
				End:     ports.EndLost,
				Attempt: b.Claims[i].RetryCount + 2,
			})
		}
	}
	return lost
}

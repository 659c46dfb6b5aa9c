package engine

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// outbox is what a shard has to tell the store: settlements, and the ends of payloads that handlers
// wait for. It keeps them until the store has answered. It is a part of turns.
type outbox struct {
	shard *execution.Shard

	// finished are the settlements that wait for the next turn, and sending those in flight.
	finished, sending []core.Settlement
	// deferred are settlements that the store could not carry out yet. They wait for the next
	// tick.
	deferred []core.Settlement
	// deferrals has how long the settlements of claims have been deferred.
	deferrals map[core.ClaimRef]deferral
	// parts are the ends of payloads that handlers wait for the store to receive, in order.
	parts []*awaitedPart
	// ends are the executions whose settlements the store has not answered.
	ends execution.Ends
}

// deferral is for how long a settlement of one claim has been deferred because a caller's
// transaction settles the same job.
type deferral struct {
	since    time.Time
	reported bool
}

// longDeferral is a job whose settlement has been deferred for longer than a TTL.
type longDeferral struct {
	id    string
	lasts time.Duration
}

// awaitedPart is the end of a payload of a recovered job. The next payload of the job starts once a
// turn has stored that end (docs/rules.md 4).
type awaitedPart struct {
	batch      *runningBatch
	settlement core.PayloadSettlement
	// turn is the number of the turn that carries it, or 0.
	turn int64
	// stored receives whether the store has it. It has room for that.
	stored chan bool
}

// next returns the claim of the job's next payload.
func (p *awaitedPart) next() core.ClaimRef {
	return core.ClaimRef{ID: p.settlement.ID, Receipt: p.settlement.Receipt.NextPart()}
}

// answeredPart is a part that the store has or has skipped.
type answeredPart struct {
	*awaitedPart
	ok bool
}

// hasFinished reports whether settlements wait for the next turn.
func (o *outbox) hasFinished() bool { return len(o.finished) > 0 }

// finish takes the settlements of a batch that has run, with those that its handler has made besides.
// It returns the events that are to be logged. If the lease is no longer held, nothing is sent.
func (o *outbox) finish(b *execution.Batch, settled []core.Settlement, held bool) []report.Event {
	events := o.ends.Await(b, settled, held)
	if held {
		o.finished = b.OtherSettlements(append(o.finished, settled...))
	}
	return events
}

// settleUnstarted settles claims that have not started, all with the same kind of outcome. It returns
// the settlements.
func (o *outbox) settleUnstarted(claims []core.Claim, kind core.OutcomeKind) []core.Settlement {
	for i := range claims {
		o.finished = append(o.finished, o.shard.Queue.Policy.Settlement(&claims[i], &core.Outcome{Kind: kind}, 0))
	}
	return o.finished[len(o.finished)-len(claims):]
}

// putOff sends the settlements of claims that have to wait for their rates, or that have stale payloads.
func (o *outbox) putOff(settled []core.Settlement) { o.finished = append(o.finished, settled...) }

// settleRecovered sends the settlement of a job that does not run. A burial is a result, and so is
// a job that is held.
func (o *outbox) settleRecovered(c *core.Claim, settled core.Settlement) {
	if settled.Failed {
		o.ends.AwaitRecovered(o.shard, c, &settled)
	}
	o.finished = append(o.finished, settled)
}

// settleOrphan settles a job that an earlier lease left claimed.
func (o *outbox) settleOrphan(c *core.Claim, cancels []ports.Cancellation, now core.Instant) {
	o.settleRecovered(c, orphanSettlement(o.shard.Queue.Policy, c, cancels, now))
}

// buryRecovered settles the claimed jobs that were recovered too often, and returns the others.
// Such jobs were recovered by a node that does not know the queue's bound (orphanKeeper), or while
// the bound was higher.
func (o *outbox) buryRecovered(claims []core.Claim, now core.Instant) []core.Claim {
	policy := &o.shard.Queue.Policy
	first := 0
	for first < len(claims) && !policy.RecoveredTooOften(&claims[first]) {
		first++
	}

	if first == len(claims) {
		return claims
	}

	others := slices.Clone(claims[:first])
	for i := first; i < len(claims); i++ {
		if c := &claims[i]; policy.RecoveredTooOften(c) {
			o.settleRecovered(c, policy.Recover(c, now))
		} else {
			others = append(others, *c)
		}
	}

	return others
}

// nextSettlements moves finished settlements to the turn, as far as they fit.
func (o *outbox) nextSettlements() []core.Settlement {
	n := min(len(o.finished), core.MaxTurnJobs)
	spare := o.sending[:0]
	o.sending = o.finished[:n]
	o.finished = append(spare, o.finished[n:]...)
	return o.sending
}

// answered takes the answers to the settlements of a turn. It returns those that have been deferred
// for longer than the TTL. It keeps deferred settlements to send them again. Those that may only not
// have fitted are sent at once and before others, so that they make progress. The reply of a repeated
// turn does not show which are deferred, so all are kept: those that were settled are skipped when
// they come again.
func (o *outbox) answered(
	settled []core.Settlement, r *ports.TurnReply, ttl time.Duration, now time.Time,
) (answer execution.Answer, overdue []longDeferral) {
	answer = o.ends.Answer(settled, r)
	o.deferred = append(o.deferred, answer.Again...)
	if r.Repeat {
		o.deferred = append(o.deferred, settled...)
		return answer, nil
	}

	unfit, waiting := splitDeferred(settled, r)
	overdue = o.overdueDeferrals(settled, r.Deferred, waiting, ttl, now)
	o.deferred = append(o.deferred, settlementsAt(settled, waiting)...)
	if len(unfit) > 0 {
		o.finished = append(settlementsAt(settled, unfit), o.finished...)
	}

	return answer, overdue
}

// splitDeferred splits the positions of a turn's deferred settlements into those that may only
// have exceeded its bounds, as ports.TurnReply.Deferred describes, and those that have to wait.
func splitDeferred(settled []core.Settlement, r *ports.TurnReply) (unfit, waiting []int) {
	if len(r.Deferred) == 0 {
		return nil, nil
	}

	applied := func(i int) bool { return !slices.Contains(r.Deferred, i) && !slices.Contains(r.Skipped, i) }
	first := 0
	for first < len(settled) && !applied(first) {
		first++
	}

	for _, i := range r.Deferred {
		if i > first {
			unfit = append(unfit, i)
		} else {
			waiting = append(waiting, i)
		}
	}
	return unfit, waiting
}

// settlementsAt returns the settlements at some positions.
func settlementsAt(settled []core.Settlement, positions []int) []core.Settlement {
	chosen := make([]core.Settlement, len(positions))
	for k, at := range positions {
		chosen[k] = settled[at]
	}
	return chosen
}

// overdueDeferrals notes since when settlements of a turn have had to wait. It returns, once each,
// those that have waited for longer than a TTL. A settlement that is deferred behind others that were
// applied keeps waiting.
func (o *outbox) overdueDeferrals(
	settled []core.Settlement, deferred, waiting []int, ttl time.Duration, now time.Time,
) (overdue []longDeferral) {
	if len(waiting) == 0 && len(o.deferrals) == 0 {
		return nil
	}

	for i := range settled {
		c := core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt}
		if !slices.Contains(waiting, i) {
			if !slices.Contains(deferred, i) {
				delete(o.deferrals, c)
			}
			continue
		}

		d, known := o.deferrals[c]
		if !known {
			d.since = now
		}
		if lasts := now.Sub(d.since); lasts > ttl && !d.reported {
			d.reported = true
			overdue = append(overdue, longDeferral{c.ID, lasts})
		}

		if o.deferrals == nil {
			o.deferrals = make(map[core.ClaimRef]deferral)
		}
		o.deferrals[c] = d
	}
	return overdue
}

// resendDeferred lets the next turn carry the deferred settlements.
func (o *outbox) resendDeferred() {
	o.finished, o.deferred = append(o.finished, o.deferred...), nil
}

// addPart lets the next turn carry a part.
func (o *outbox) addPart(part *awaitedPart) { o.parts = append(o.parts, part) }

// needsPart reports whether a part waits for the next turn.
func (o *outbox) needsPart() bool {
	return slices.ContainsFunc(o.parts, func(p *awaitedPart) bool { return p.turn == 0 })
}

// nextParts returns the parts that a turn carries, as far as they fit.
func (o *outbox) nextParts(turn int64) (parts []core.PayloadSettlement) {
	for _, p := range o.parts {
		if p.turn == 0 && len(parts) < core.MaxTurnJobs {
			p.turn = turn
			parts = append(parts, p.settlement)
		}
	}
	return parts
}

// answeredParts returns the answers to the parts of a turn. The reply to a repeated turn does not
// show which parts were skipped, so they are sent again: the store applies each once.
func (o *outbox) answeredParts(request *ports.TurnRequest, r *ports.TurnReply) (answered []answeredPart) {
	waiting := o.parts
	o.parts = nil

	for _, p := range waiting {
		switch {
		case p.turn != request.Number:
			o.parts = append(o.parts, p)
		case r.Repeat:
			p.turn = 0
			o.parts = append(o.parts, p)
		default:
			at := slices.Index(request.Parts, p.settlement)
			answered = append(answered, answeredPart{p, !slices.Contains(r.SkippedParts, at)})
		}
	}
	return answered
}

// giveUpParts removes and returns all parts, whose handlers no longer wait. The turn in flight may
// still store theirs, and mark the next payloads as begun, which do not start.
func (o *outbox) giveUpParts() []*awaitedPart {
	parts := o.parts
	o.parts = nil
	return parts
}

// reset forgets everything, since the lease has ended. It returns the jobs whose ends the store will
// not confirm, and the parts whose handlers no longer wait.
func (o *outbox) reset() (lost []ports.EndedJob, parts []*awaitedPart) {
	lost, parts = o.ends.Lose(), o.giveUpParts()
	o.finished, o.sending, o.deferred, o.deferrals = nil, nil, nil, nil
	return lost, parts
}

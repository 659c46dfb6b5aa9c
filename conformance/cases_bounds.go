package conformance

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleBounds   = "Consumer: what a call hands over, claims or moves is at most core.MaxTurnPayloads payloads and core.MaxStepBytes; the first payload always passes, except in an acquire, which has core.AcquireBytes"
	ruleRest     = "Acquire: the rest are TurnReply.Orphans of later turns; each is handed over once, except by repeats"
	rulePartwise = "Operator: an entry with more payloads than a step moves is moved in parts, lowest scores first; the step that finishes it counts it"
	ruleReached  = "StepReply: Reached is the number of the step's IDs or DeadLetters that it has handled, from the first"
)

// boundCases are about more payloads than one call may carry or move.
func boundCases() []namedCase {
	return append(volumeCases(overPayloads()),
		namedCase{"skips jobs that were settled meanwhile", "Turn: a job settled meanwhile is skipped", boundSettledMeanwhile},
		namedCase{"hands over while the queue is paused", "Turn: a turn, also of a paused shard, returns the next jobs that earlier leases left", boundPaused},
		namedCase{"defers settlements, but never the first", "Turn: the first settlement that is applied always fits", boundFirstSettles},
		namedCase{"skips settled jobs instead of deferring them", "TurnReply: Skipped are the positions in Settlements whose jobs were not claimed", boundSkipsSettled},
		namedCase{"bury and delete take a large job in parts", rulePartwise, boundJobParts},
		namedCase{"revive and purge take a large dead letter in parts", rulePartwise, boundDeadParts},
		namedCase{"reports that more is left of an entry that goes in parts", "StepReply: More reports whether a step over all dead letters left some, or a part of one", boundMore},
		namedCase{"serves a hot id", ruleBounds, boundHot},
	)
}

// byteCases are about more bytes than one call may carry or move.
func byteCases() []namedCase {
	return append(volumeCases(overBytes()),
		namedCase{"moves the first payload whatever its size", ruleBounds, boundFirst},
		namedCase{"accepts a push for a job larger than a step", "Push stores entries: each makes a new job for its id or merges into the queued one", boundPushed})
}

// volumeCases are about a volume of payloads that no call may carry or move at once.
func volumeCases(v volume) []namedCase {
	with := func(check func(*env, volume)) func(*env) { return func(e *env) { check(e, v) } }
	return []namedCase{
		{"hands over orphans in parts", ruleRest, with(boundHandsOver)},
		{"hands over the same orphans when it is repeated", "Acquire: a repeat hands over nothing new; Turn: a repeat returns the same orphans", with(boundRepeats)},
		{"claims less when it hands over orphans", "Turn: a turn that hands over orphans may claim less, since the limits apply to both together", with(boundClaimsBeside)},
		{"claims in parts", ruleBounds, with(boundClaims)},
		{"puts back in parts", ruleBounds, with(boundPutsBack)},
		{"buries in parts", ruleBounds, with(boundBuries)},
		{"bury, delete, revive and purge reach ids in order", ruleReached, with(boundReaches)},
	}
}

// leaveVolume lets the server n1 claim a volume and crash.
func leaveVolume(e *env, v volume) []core.Claim {
	e.tb.Helper()
	e.pushVolume(v)
	h := e.acquire("n1")
	left := h.claimAll()
	e.clock.Advance(2 * ttl)
	return left
}

// handedOver makes turns until the given number of jobs have been handed over.
func (h *holder) handedOver(left int) {
	h.e.tb.Helper()
	for range left + 1 {
		if len(h.inherited) >= left {
			return
		}
		r := h.request(0)
		r.Bytes = 3 << 20
		reply := h.send(r)
		h.e.inBounds("what a turn hands over", payloadsOf(reply.Orphans...)...)
		if _, bytes := sizeOf(slices.Concat(payloadsOf(reply.Orphans...)...)); len(reply.Orphans) > 1 && bytes > r.Bytes {
			h.e.errorf("a turn of at most %d bytes handed over %d jobs of %d bytes", r.Bytes, len(reply.Orphans), bytes)
		}
	}
}

func boundHandsOver(e *env, v volume) {
	left := leaveVolume(e, v)
	h := e.acquire("n2")
	e.inAcquireBounds("what an acquire hands over", h.reply.Claims)
	if len(h.reply.Claims) < len(left) && (!h.reply.Head.OK || h.reply.Head.Due > h.reply.Now) {
		e.errorf("Acquire left jobs to hand over, and its Head is %+v at %d, want now", h.reply.Head, h.reply.Now)
	}
	h.handedOver(len(left))
	e.same("the jobs handed over", briefly(h.inherited), briefly(left))
	e.same("the orphans after them", h.turn(0).Orphans, nil)
	h.settleInParts(h.inherited, dropped)
	e.same("what is claimed", e.counts().Claimed, int64(0))
	h.release()
}

func boundRepeats(e *env, v volume) {
	left := leaveVolume(e, v)
	h := e.acquire("n2")
	handed := slices.Clone(h.inherited)
	again := h.reacquire()
	e.inAcquireBounds("what a repeated acquire hands over", again.Claims)
	e.same("the repeated acquire's claims", briefly(again.Claims), briefly(left[:len(again.Claims)]))
	for range len(left) {
		r := h.request(0)
		first := h.send(r)
		e.reported("whether a first turn is a repeat", first.Repeat, false)
		if first.Last < r.Number {
			e.same("the orphans of a turn that did not count", first.Orphans, nil)
			break
		}
		second := h.send(r)
		e.same("the repeated turn's orphans", briefly(second.Orphans), briefly(first.Orphans))
		handed = append(handed, first.Orphans...)
		late := h.reacquire()
		e.inAcquireBounds("what a late acquire hands over", late.Claims)
		e.same("the late acquire's claims", briefly(late.Claims), briefly(left[:len(late.Claims)]))
		if len(late.Claims) > len(handed) {
			e.errorf("a repeated acquire handed over %d jobs, but only %d were handed over before it", len(late.Claims), len(handed))
		}
	}
	h.inherited = nil
	e.clock.Advance(2 * ttl)
	h = e.acquire("n3")
	h.handedOver(len(left))
	e.same("the jobs handed over to the next", briefly(h.inherited), briefly(left))
	h.settleInParts(left, dropped)
	h.release()
}

func boundSettledMeanwhile(e *env) {
	left := leaveVolume(e, overPayloads())
	h := e.acquire("n2")
	last := left[len(left)-1]
	h.settle(done(last))
	h.handedOver(len(left) - 1)
	h.turn(0)
	e.same("the others", slices.DeleteFunc(ids(h.inherited), func(id string) bool { return id == last.ID }), ids(left[:len(left)-1]))
}

func boundPaused(e *env) {
	left := leaveVolume(e, overPayloads())
	e.pause(orders)
	h := e.acquire("n2")
	e.same("the head while it is paused", h.reply.Head.OK, false)
	h.handedOver(len(left))
	e.same("the jobs handed over", briefly(h.inherited), briefly(left))
}

func boundClaims(e *env, v volume) {
	e.pushVolume(v)
	h := e.acquire("n1")
	claims := h.claimAll()
	e.same("the claims", ids(claims), v.ids())
	for _, c := range claims {
		e.same("its payloads", brief(c.Payloads), brief(v.list()))
	}
	h.settleInParts(claims, done)
	h.release()
}

// boundClaimsBeside claims jobs while orphans are still to be handed over.
func boundClaimsBeside(e *env, v volume) {
	left := leaveVolume(e, v)
	others := volume{v.jobs, v.payloads - 1, v.size}
	e.pushVolume(others)
	h := e.acquire("n2")
	var claims []core.Claim
	for range len(left) {
		r := h.request(core.MaxTurnJobs)
		r.Bytes = core.MaxStepBytes
		reply := h.send(r)
		e.inBounds("what a turn hands over and claims", payloadsOf(slices.Concat(reply.Orphans, reply.Claims)...)...)
		claims = append(claims, reply.Claims...)
	}
	e.same("the jobs handed over", briefly(h.inherited), briefly(left))
	e.reported("whether some were claimed beside", len(claims) > 0, true)
	h.settleInParts(slices.Concat(left, claims), dropped)
	h.release()
}

// boundPutsBack puts back jobs onto a queued payload of their id, so that no store can move them
// whole.
func boundPutsBack(e *env, v volume) {
	e.pushVolume(v)
	h := e.acquire("n1")
	claims := h.claimAll()
	more := pay("pushed meanwhile", -1)
	for _, id := range v.ids() {
		e.push(core.Entry{ID: id, Payload: more})
	}
	turns := h.settleInParts(claims, func(c core.Claim) core.Settlement { return failed(c, "boom", 0) })
	e.reported(v.String()+" were put back in several turns", turns > 1, true)
	for _, id := range v.ids() {
		e.same("the job "+id, brief(e.queued(id).Payloads), brief(append([]core.Payload{more}, v.list()...)))
	}
	e.reported("failed", e.counts().Failed >= int64(v.jobs), true)
	h.settleInParts(h.claimAll(), dropped)
	h.release()
}

// boundBuries buries jobs whose ids have a dead letter.
func boundBuries(e *env, v volume) {
	before := pay("buried before", -1)
	for _, id := range v.ids() {
		e.push(core.Entry{ID: id, Payload: before})
	}
	e.byIDs(e.store.Bury, v.ids()...)
	e.pushVolume(v)
	h := e.acquire("n1")
	claims := h.claimAll()
	e.same("the claims", ids(claims), v.ids())
	turns := h.settleInParts(claims, func(c core.Claim) core.Settlement { return buried(c, "boom") })
	e.reported(v.String()+" were buried in several turns", turns > 1, true)
	for _, id := range v.ids() {
		e.same("the dead letter "+id, brief(e.deadLetter(id).Payloads), brief(append([]core.Payload{before}, v.list()...)))
	}
	h.release()
}

// claimAndPush claims jobs with more payloads than a turn moves, and pushes for each of them.
func claimAndPush(e *env) (volume, *holder, []core.Claim) {
	v := overPayloads()
	e.pushVolume(v)
	h := e.acquire("n1")
	claims := h.claimAll()
	for _, id := range v.ids() {
		e.push(core.Entry{ID: id, Payload: pay("pushed meanwhile", -1)})
	}
	return v, h, claims
}

func boundFirstSettles(e *env) {
	v, h, claims := claimAndPush(e)
	settle := settleAll(claims, untouched)
	for sent := len(settle); len(settle) > 0; sent-- {
		reply := h.settle(settle...)
		e.reported("whether the turn is a repeat, which does not report deferred settlements", reply.Repeat, false)
		if sent == v.jobs && len(reply.Deferred) == 0 || slices.Contains(reply.Deferred, 0) || sent == 0 {
			e.errorf("the turn deferred the settlements %v of %d, want some in the first turn, and never settlement 0", reply.Deferred, len(settle))
			return
		}
		if len(reply.Deferred) == 0 {
			break
		}
		settle = settle[reply.Deferred[0]:]
	}
	e.same("what is claimed", e.counts().Claimed, int64(0))
}

func boundSkipsSettled(e *env) {
	v, h, claims := claimAndPush(e)
	reply := h.settle(append(settleAll(claims, untouched), buried(claims[0], "second"), done(claims[0]))...)
	e.reported("the skipped", reply.Skipped, []int{v.jobs, v.jobs + 1})
	e.reported("whether some were deferred", len(reply.Deferred) > 0, true)
	e.same("the dead letter", e.deadLetter(claims[0].ID), core.DeadLetter{})
}

// boundPushed pushes to jobs that together have more bytes than one call may move.
func boundPushed(e *env) {
	var large, small []core.Entry
	for i := range 20 {
		id := fmt.Sprintf("%02d", i)
		large = append(large, core.Entry{ID: id, Payload: sized(core.MaxStepBytes/16, 1)})
		small = append(small, entry(id, "small", 2), entry(id, "smaller", 3))
	}
	e.push(large...)
	e.push(small...)
	for i := range large {
		id := large[i].ID
		want := []core.Payload{large[i].Payload, small[2*i].Payload, small[2*i+1].Payload}
		e.same("the payloads of "+id, brief(e.queued(id).Payloads), brief(want))
	}
}

func boundFirst(e *env) {
	large := sized(core.MaxStepBytes+1, 1)
	e.push(core.Entry{ID: "large", Payload: large})
	h := e.acquire("n1")
	c := h.one()
	e.same("the claim", len(c.Payloads), 1)
	e.clock.Advance(2 * ttl)
	h = e.acquire("n2")
	h.handedOver(1)
	e.same("the job handed over", ids(h.inherited), []string{"large"})
	e.push(entry("large", "small", 0))
	e.same("the deferred", h.settle(untouched(c)).Deferred, nil)
	all := []core.Payload{pay("small", 0), large}
	for _, do := range []func(context []string) (ports.StepReply, error){
		func(ids []string) (ports.StepReply, error) {
			return e.store.Bury(e.ctx, ports.JobStep{Shard: e.shard, IDs: ids})
		},
		func(ids []string) (ports.StepReply, error) {
			return e.store.Revive(e.ctx, ports.DeadLetterStep{Shard: e.shard, DeadLetters: wholes(ids)})
		},
	} {
		e.stepIDs([]string{"large"}, do, func(int, bool) {})
	}
	e.same("the payloads", brief(e.queued("large").Payloads), brief(all))
}

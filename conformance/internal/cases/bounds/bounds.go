package bounds

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleBounds = "Consumer: what a call hands over, claims or moves is at most core.MaxTurnPayloads payloads " +
		"and core.MaxStepBytes; the first payload always passes, except in an acquire, which has core.AcquireBytes"
	ruleRest     = "Acquire: the rest are TurnReply.Orphans of later turns; each is handed over once, except by repeats"
	rulePartwise = "Operator: an entry with more payloads than a step moves is moved in parts, lowest scores first; " +
		"the step that finishes it counts it"
	ruleReached = "StepReply: Reached is the number of the step's IDs or DeadLetters that it has handled, " +
		"from the first"
)

// boundCases are about more payloads than one call may carry or move.
func boundCases() []env.Case {
	return append(volumeCases(overPayloads()),
		env.Case{
			Name:  "skips jobs that were settled meanwhile",
			Rule:  "Turn: a job settled meanwhile is skipped",
			Check: boundSettledMeanwhile,
		},
		env.Case{
			Name:  "hands over while the queue is paused",
			Rule:  "Turn: a turn, also of a paused shard, returns the next jobs that earlier leases left",
			Check: boundPaused,
		},
		env.Case{
			Name:  "defers settlements, but never the first",
			Rule:  "Turn: the first settlement that is applied always fits",
			Check: boundFirstSettles,
		},
		env.Case{
			Name:  "skips settled jobs instead of deferring them",
			Rule:  "TurnReply: Skipped are the positions in Settlements whose jobs were not claimed",
			Check: boundSkipsSettled,
		},
		env.Case{Name: "bury and delete take a large job in parts", Rule: rulePartwise, Check: boundJobParts},
		env.Case{Name: "revive and purge take a large dead letter in parts", Rule: rulePartwise, Check: boundDeadParts},
		env.Case{
			Name:  "reports that more is left of an entry that goes in parts",
			Rule:  "StepReply: More reports whether a step over all dead letters left some, or a part of one",
			Check: boundMore,
		},
		env.Case{Name: "serves a hot id", Rule: ruleBounds, Check: boundHot},
	)
}

// byteCases are about more bytes than one call may carry or move.
func byteCases() []env.Case {
	return append(volumeCases(overBytes()),
		env.Case{Name: "moves the first payload whatever its size", Rule: ruleBounds, Check: boundFirst},
		env.Case{
			Name:  "accepts a push for a job larger than a step",
			Rule:  "Push stores entries: each makes a new job for its id or merges into the queued one",
			Check: boundPushed,
		})
}

// volumeCases are about a volume of payloads that no call may carry or move at once.
func volumeCases(v env.Volume) []env.Case {
	with := func(check func(*env.Env, env.Volume)) func(*env.Env) { return func(e *env.Env) { check(e, v) } }

	return []env.Case{
		{Name: "hands over orphans in parts", Rule: ruleRest, Check: with(boundHandsOver)},
		{
			Name:  "hands over the same orphans when it is repeated",
			Rule:  "Acquire: a repeat hands over nothing new; Turn: a repeat returns the same orphans",
			Check: with(boundRepeats),
		},
		{
			Name:  "claims less when it hands over orphans",
			Rule:  "Turn: a turn that hands over orphans may claim less, since the limits apply to both together",
			Check: with(boundClaimsBeside),
		},
		{Name: "claims in parts", Rule: ruleBounds, Check: with(boundClaims)},
		{Name: "puts back in parts", Rule: ruleBounds, Check: with(boundPutsBack)},
		{Name: "buries in parts", Rule: ruleBounds, Check: with(boundBuries)},
		{Name: "bury, delete, revive and purge reach ids in order", Rule: ruleReached, Check: with(boundReaches)},
	}
}

func boundHandsOver(e *env.Env, v env.Volume) {
	left := e.LeaveVolume(v)
	h := e.Acquire("n2")
	inAcquireBounds(e, "what an acquire hands over", h.Reply.Claims)
	if len(h.Reply.Claims) < len(left) && (!h.Reply.Head.OK || h.Reply.Head.Due > h.Reply.Now) {
		e.Errorf("Acquire left jobs to hand over, and its Head is %+v at %d, want now", h.Reply.Head, h.Reply.Now)
	}

	h.HandedOver(len(left))
	e.Same("the jobs handed over", env.Briefly(h.Inherited), env.Briefly(left))
	e.Same("the orphans after them", h.Turn(0).Orphans, nil)

	settleInParts(h, h.Inherited, env.Dropped)
	e.Same("what is claimed", e.Counts().Claimed, int64(0))
	h.Release()
}

func boundRepeats(e *env.Env, v env.Volume) {
	left := e.LeaveVolume(v)
	h := e.Acquire("n2")

	handed := slices.Clone(h.Inherited)
	again := h.Reacquire()
	inAcquireBounds(e, "what a repeated acquire hands over", again.Claims)
	e.Same("the repeated acquire's claims", env.Briefly(again.Claims), env.Briefly(left[:len(again.Claims)]))

	for range len(left) {
		r := h.Request(0)
		first := h.Send(r)
		e.Reported("whether a first turn is a repeat", first.Repeat, false)
		if first.Last < r.Number {
			e.Same("the orphans of a turn that did not count", first.Orphans, nil)
			break
		}

		second := h.Send(r)
		e.Same("the repeated turn's orphans", env.Briefly(second.Orphans), env.Briefly(first.Orphans))

		r.Resent = true
		third := h.Send(r)
		e.Same("the orphans of the turn that is resent", env.Briefly(third.Orphans), env.Briefly(first.Orphans))
		handed = append(handed, first.Orphans...)

		late := h.Reacquire()
		inAcquireBounds(e, "what a late acquire hands over", late.Claims)
		e.Same("the late acquire's claims", env.Briefly(late.Claims), env.Briefly(left[:len(late.Claims)]))
		if len(late.Claims) > len(handed) {
			e.Errorf("a repeated acquire handed over %d jobs, but only %d were handed over before it",
				len(late.Claims), len(handed))
		}
	}

	h.Inherited = nil
	e.Clock.Advance(2 * env.TTL)
	h = e.Acquire("n3")
	h.HandedOver(len(left))
	e.Same("the jobs handed over to the next", env.Briefly(h.Inherited), env.Briefly(left))
	settleInParts(h, left, env.Dropped)
	h.Release()
}

func boundSettledMeanwhile(e *env.Env) {
	left := e.LeaveVolume(overPayloads())
	h := e.Acquire("n2")
	last := left[len(left)-1]
	h.Settle(env.Done(last))
	h.HandedOver(len(left) - 1)
	h.Turn(0)
	e.Same("the others", slices.DeleteFunc(env.IDs(h.Inherited), func(id string) bool { return id == last.ID }),
		env.IDs(left[:len(left)-1]))
}

func boundPaused(e *env.Env) {
	left := e.LeaveVolume(overPayloads())
	e.Pause(env.Orders)
	h := e.Acquire("n2")
	e.Same("the head while it is paused", h.Reply.Head.OK, false)
	h.HandedOver(len(left))
	e.Same("the jobs handed over", env.Briefly(h.Inherited), env.Briefly(left))
}

func boundClaims(e *env.Env, v env.Volume) {
	e.PushVolume(v)
	h := e.Acquire("n1")
	claims := h.ClaimAll()
	e.Same("the claims", env.IDs(claims), v.IDs())
	for _, c := range claims {
		e.Same("its payloads", env.Brief(c.Payloads), env.Brief(v.List()))
	}
	settleInParts(h, claims, env.Done)
	h.Release()
}

// boundClaimsBeside claims jobs while orphans are still to be handed over.
func boundClaimsBeside(e *env.Env, v env.Volume) {
	left := e.LeaveVolume(v)
	others := env.Volume{Jobs: v.Jobs, Payloads: v.Payloads - 1, Size: v.Size}
	e.PushVolume(others)

	h := e.Acquire("n2")
	var claims []core.Claim

	for range len(left) {
		r := h.Request(core.MaxTurnJobs)
		r.Bytes = core.MaxStepBytes
		reply := h.Send(r)
		e.InBounds("what a turn hands over and claims",
			env.PayloadsOf(slices.Concat(reply.Orphans, reply.Claims)...)...)
		claims = append(claims, reply.Claims...)
	}

	e.Same("the jobs handed over", env.Briefly(h.Inherited), env.Briefly(left))
	e.Reported("whether some were claimed beside", len(claims) > 0, true)

	settleInParts(h, slices.Concat(left, claims), env.Dropped)
	h.Release()
}

// boundPutsBack puts back jobs onto a queued payload of their id, so that no store can move them
// whole.
func boundPutsBack(e *env.Env, v env.Volume) {
	e.PushVolume(v)
	h := e.Acquire("n1")
	claims := h.ClaimAll()

	more := env.Pay("pushed meanwhile", -1)
	for _, id := range v.IDs() {
		e.Push(core.Entry{ID: id, Payload: more})
	}

	turns := settleInParts(h, claims, func(c core.Claim) core.Settlement { return env.Failed(c, "boom", 0) })
	e.Reported(v.String()+" were put back in several turns", turns > 1, true)
	for _, id := range v.IDs() {
		e.Same("the job "+id, env.Brief(e.Queued(id).Payloads), env.Brief(append([]core.Payload{more}, v.List()...)))
	}

	e.Reported("failed", e.Counts().Failed >= int64(v.Jobs), true)
	settleInParts(h, h.ClaimAll(), env.Dropped)
	h.Release()
}

// boundBuries buries jobs whose ids have a dead letter.
func boundBuries(e *env.Env, v env.Volume) {
	before := env.Pay("buried before", -1)
	for _, id := range v.IDs() {
		e.Push(core.Entry{ID: id, Payload: before})
	}
	e.ByIDs(e.Store.Bury, v.IDs()...)

	e.PushVolume(v)
	h := e.Acquire("n1")
	claims := h.ClaimAll()
	e.Same("the claims", env.IDs(claims), v.IDs())

	turns := settleInParts(h, claims, func(c core.Claim) core.Settlement { return env.Buried(c, "boom") })
	e.Reported(v.String()+" were buried in several turns", turns > 1, true)
	for _, id := range v.IDs() {
		e.Same("the dead letter "+id,
			env.Brief(e.DeadLetter(id).Payloads), env.Brief(append([]core.Payload{before}, v.List()...)))
	}

	h.Release()
}

// claimAndPush claims jobs with more payloads than a turn moves, and pushes for each of them.
func claimAndPush(e *env.Env) (env.Volume, *env.Holder, []core.Claim) {
	v := overPayloads()
	e.PushVolume(v)
	h := e.Acquire("n1")
	claims := h.ClaimAll()
	for _, id := range v.IDs() {
		e.Push(core.Entry{ID: id, Payload: env.Pay("pushed meanwhile", -1)})
	}
	return v, h, claims
}

func boundFirstSettles(e *env.Env) {
	v, h, claims := claimAndPush(e)

	settle := env.SettleAll(claims, env.Untouched)
	for sent := len(settle); len(settle) > 0; sent-- {
		reply := h.Settle(settle...)
		e.Reported("whether the turn is a repeat, which does not report deferred settlements", reply.Repeat, false)
		if sent == v.Jobs && len(reply.Deferred) == 0 || slices.Contains(reply.Deferred, 0) || sent == 0 {
			e.Errorf("the turn deferred the settlements %v of %d, want some in the first turn, and never settlement 0",
				reply.Deferred, len(settle))
			return
		}

		if len(reply.Deferred) == 0 {
			break
		}
		settle = settle[reply.Deferred[0]:]
	}

	e.Same("what is claimed", e.Counts().Claimed, int64(0))
}

func boundSkipsSettled(e *env.Env) {
	v, h, claims := claimAndPush(e)
	reply := h.Settle(append(env.SettleAll(claims, env.Untouched),
		env.Buried(claims[0], "second"), env.Done(claims[0]))...)
	e.Reported("the skipped", reply.Skipped, []int{v.Jobs, v.Jobs + 1})
	e.Reported("whether some were deferred", len(reply.Deferred) > 0, true)
	e.Same("the dead letter", e.DeadLetter(claims[0].ID), core.DeadLetter{})
}

// boundPushed pushes to jobs that together have more bytes than one call may move.
func boundPushed(e *env.Env) {
	var large, small []core.Entry
	for i := range 20 {
		id := fmt.Sprintf("%02d", i)
		large = append(large, core.Entry{ID: id, Payload: env.Sized(core.MaxStepBytes/16, 1)})
		small = append(small, env.Entry(id, "small", 2), env.Entry(id, "smaller", 3))
	}

	e.Push(large...)
	e.Push(small...)

	for i := range large {
		id := large[i].ID
		want := []core.Payload{large[i].Payload, small[2*i].Payload, small[2*i+1].Payload}
		e.Same("the payloads of "+id, env.Brief(e.Queued(id).Payloads), env.Brief(want))
	}
}

func boundFirst(e *env.Env) {
	large := env.Sized(core.MaxStepBytes+1, 1)
	e.Push(core.Entry{ID: "large", Payload: large})
	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claim", len(c.Payloads), 1)

	e.Clock.Advance(2 * env.TTL)
	h = e.Acquire("n2")
	h.HandedOver(1)
	e.Same("the job handed over", env.IDs(h.Inherited), []string{"large"})

	e.Push(env.Entry("large", "small", 0))
	e.Same("the deferred", h.Settle(env.Untouched(c)).Deferred, nil)

	all := []core.Payload{env.Pay("small", 0), large}
	for _, do := range []func(context []string) (ports.StepReply, error){
		func(ids []string) (ports.StepReply, error) {
			return e.Store.Bury(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids})
		},
		func(ids []string) (ports.StepReply, error) {
			return e.Store.Revive(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, DeadLetters: wholes(ids)})
		},
	} {
		e.StepIDs([]string{"large"}, do, func(int, bool) {})
	}

	e.Same("the payloads", env.Brief(e.Queued("large").Payloads), env.Brief(all))
}

// overPayloads is a volume with more payloads than any call may carry or move.
func overPayloads() env.Volume { return env.Volume{Jobs: 8, Payloads: 250, Size: 4} }

// overBytes is a volume with more bytes than any call may carry or move.
func overBytes() env.Volume { return env.Volume{Jobs: 5, Payloads: 4, Size: 512 << 10} }

// inAcquireBounds reports claims beyond the bounds of an acquire.
func inAcquireBounds(e *env.Env, what string, claims []core.Claim) {
	e.TB.Helper()
	e.InBounds(what, env.PayloadsOf(claims...)...)
	if _, bytes := env.SizeOf(slices.Concat(env.PayloadsOf(claims...)...)); bytes > core.AcquireBytes {
		e.Errorf("%s: %d bytes, want %d at most", what, bytes, core.AcquireBytes)
	}
}

// settleInParts settles claims. It sends deferred settlements again until no settlement is
// deferred, and returns the number of turns.
func settleInParts(h *env.Holder, claims []core.Claim, how func(core.Claim) core.Settlement) (turns int) {
	h.Env.TB.Helper()

	for left := env.SettleAll(claims, how); len(left) > 0; turns++ {
		if turns > len(claims) {
			h.Env.Errorf("%d jobs are still not settled after %d turns", len(left), turns)
			return turns
		}

		reply := h.Settle(left...)
		if reply.Repeat {
			continue // a repeat reports no deferrals; the next turn skips settled jobs
		}

		var later []core.Settlement
		var moved [][]core.Payload
		for i, x := range left {
			if slices.Contains(reply.Deferred, i) {
				later = append(later, x)
				continue
			}
			at := slices.IndexFunc(claims, func(c core.Claim) bool { return c.ID == x.ID })
			if !x.Plain() && !slices.Contains(reply.Skipped, i) {
				moved = append(moved, claims[at].Payloads)
			}
		}

		h.Env.InBounds("what a turn settles", moved...)
		left = later
	}

	return turns
}

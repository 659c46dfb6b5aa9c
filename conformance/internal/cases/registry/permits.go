package registry

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	rulePermitEnds   = "Permit: expired permits don't count, and the next call for the queue removes them"
	rulePermitWakeup = "Permit: if the owner then holds fewer than before while another owner wants more, " +
		"the callers that asked for PermitsOf the queue are woken"
)

func permitCases() []env.Case {
	return []env.Case{
		{Name: "are held within the limit", Rule: env.RulePermits, Check: permitLimit},
		{
			Name:  "lists all owners that hold or want permits",
			Rule:  "PermitReply: Holders are all owners that hold or want permits, in order of Owner",
			Check: permitHolders,
		},
		{Name: "are changed by the next call", Rule: env.RulePermits, Check: permitChanges},
		{
			Name:  "are kept under a smaller limit",
			Rule:  "Permit: the owner keeps the permits that it holds and asks for again",
			Check: permitKeeps,
		},
		{
			Name:  "are all given back by an empty request",
			Rule:  "Permit: a call with neither Hold nor Want gives all permits back and forgets the owner",
			Check: permitGivesBack,
		},
		{Name: "end with their TTL", Rule: rulePermitEnds, Check: permitEnds},
		{Name: "are renewed by a repeated call", Rule: "Permit: repeating a call renews", Check: permitRenews},
		{Name: "are lost by an owner that renews too late", Rule: rulePermitEnds, Check: permitLate},
		{
			Name: "end even if the clock stepped back",
			Rule: "Permit: a TTL whose end is further away than its length, " +
				"because the clock stepped back, ends its length after the next call",
			Check: permitStepBack,
		},
		{
			Name: "refuses a call that comes late",
			Rule: "Permit: ErrStaleAttempt for an Attempt below the last one of an owner whose TTL lasts: " +
				"the call is late and changes nothing",
			Check: permitStale,
		},
		{
			Name:  "belong to one queue",
			Rule:  "Permit is atomic for the queue, and counts only its permits",
			Check: permitQueues,
		},
		{Name: "are shared between handles", Rule: env.RulePermits, Check: permitHandles},
		{
			Name:  "are removed with their queue",
			Rule:  "Permit: a Forget of the queue removes all its permits",
			Check: permitForget,
		},
		{Name: "refuses an unknown queue", Rule: "Permit: ErrUnknownQueue", Check: permitUnknown},
		{Name: "refuses a bad request", Rule: "PermitRequest.Validate: ErrInvalidRequest", Check: permitInvalid},
	}
}

func permitWakeupCases() []env.Case {
	return []env.Case{
		{Name: "reports permits that become free", Rule: rulePermitWakeup, Check: permitWakes},
		{Name: "reports permits to another handle", Rule: rulePermitWakeup, Check: permitWakesOther},
		{Name: "reports permits beside shards", Rule: rulePermitWakeup, Check: permitWakesBeside},
	}
}

func permitLimit(e *env.Env) {
	e.Same("what the first holds", e.Permit("n1", 3, 3).Held, 3)
	e.Same("what the second holds", e.Permit("n2", 3, 3).Held, 2)
	e.Same("what the third holds", e.Permit("n3", 1, 1).Held, 0)
	e.Same("what the first holds of more", e.Permit("n1", 4, 4).Held, 3)
}

func permitHolders(e *env.Env) {
	e.Permit("n2", 2, 4)
	e.Permit("n10", 0, 1)
	reply := e.Permit("n1", 9, 9)
	e.Same("the reply", reply, ports.PermitReply{
		Now: env.Start, Remaining: env.TTL, Held: 3,
		Holders: []core.PermitHolder{
			{Owner: "n1", Held: 3, Want: 9}, {Owner: "n10", Want: 1}, {Owner: "n2", Held: 2, Want: 4},
		},
	})
}

func permitChanges(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Same("what is left of less", e.Permit("n1", 2, 5).Held, 2)
	e.Same("what another gets", e.Permit("n2", 5, 5).Held, 3)
	e.Same("the holders", e.Permit("n2", 1, 1).Holders,
		[]core.PermitHolder{{Owner: "n1", Held: 2, Want: 5}, {Owner: "n2", Held: 1, Want: 1}})
}

func permitKeeps(e *env.Env) {
	e.Permit("n1", 4, 4)
	smaller := e.PermitRequest("n1", 4, 4)
	smaller.Limit = 2
	e.Same("what it holds under a smaller limit", e.PermitWith(smaller).Held, 4)
	smaller = e.PermitRequest("n1", 5, 5)
	smaller.Limit = 2
	e.Same("what it gets under a smaller limit", e.PermitWith(smaller).Held, 4)
	smaller = e.PermitRequest("n2", 1, 1)
	smaller.Limit = 2
	e.Same("what another gets under it", e.PermitWith(smaller).Held, 0)
}

func permitGivesBack(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Permit("n2", 0, 5)
	reply := e.Permit("n1", 0, 0)
	e.Same("the reply", reply, ports.PermitReply{
		Now: env.Start, Remaining: env.TTL, Holders: []core.PermitHolder{{Owner: "n2", Want: 5}},
	})
	e.Same("what another gets", e.Permit("n2", 5, 5).Held, 5)
}

func permitEnds(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Clock.Advance(env.TTL - time.Microsecond)
	e.Same("what another gets before", e.Permit("n2", 5, 5).Held, 0)
	e.Clock.Advance(time.Microsecond)
	reply := e.Permit("n2", 5, 5)
	e.Same("what another gets after", reply.Held, 5)
	e.Same("the holders", reply.Holders, []core.PermitHolder{{Owner: "n2", Held: 5, Want: 5}})
}

func permitRenews(e *env.Env) {
	r := e.PermitRequest("n1", 5, 5)
	e.PermitWith(r)
	e.Clock.Advance(env.TTL / 2)
	e.Same("what it holds", e.PermitWith(r).Held, 5)
	e.Clock.Advance(env.TTL - time.Microsecond)
	e.Same("what another gets", e.Permit("n2", 5, 5).Held, 0)
}

func permitLate(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Clock.Advance(env.TTL)
	e.Permit("n2", 3, 3)
	late := e.PermitRequest("n1", 5, 5)
	late.Attempt = 1 // an owner whose TTL is over counts its attempts anew
	e.Same("what the first gets again", e.PermitWith(late).Held, 2)
}

func permitStepBack(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Clock.Advance(-time.Hour)
	e.Same("what another gets at once", e.Permit("n2", 5, 5).Held, 0)
	e.Clock.Advance(env.TTL - time.Microsecond)
	e.Same("what another gets before the TTL", e.Permit("n2", 5, 5).Held, 0)
	e.Clock.Advance(time.Microsecond)
	e.Same("what another gets after it", e.Permit("n2", 5, 5).Held, 5)
}

func permitStale(e *env.Env) {
	lowered := e.PermitRequest("n1", 1, 1)
	e.Permit("n1", 4, 4)
	_, err := e.Store.Permit(e.Ctx, lowered)
	e.Refused("a Permit that comes late", err, ports.ErrStaleAttempt)
	e.Same("what another gets", e.Permit("n2", 5, 5).Held, 1)
}

func permitQueues(e *env.Env) {
	e.Declare("mail", 1)
	e.Permit("n1", 5, 5)
	other := e.PermitRequest("n1", 5, 5)
	other.Queue, other.Attempt = "mail", 1
	reply := e.PermitWith(other)
	e.Same("what it holds of another queue", reply.Held, 5)
	e.Same("its holders", reply.Holders, []core.PermitHolder{{Owner: "n1", Held: 5, Want: 5}})
}

func permitHandles(e *env.Env) {
	e.Permit("n1", 4, 4)
	e.Same("what another handle gives", e.With(e.Open()).Permit("n2", 4, 4).Held, 1)
}

func permitForget(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Forget()
	if e.Repeats.All.Load() == 0 {
		_, err := e.Store.Permit(e.Ctx, e.PermitRequest("n1", 5, 5))
		e.Refused("Permit after Forget", err, ports.ErrUnknownQueue)
	}
	e.Declare(env.Orders, 1)
	reply := e.Permit("n2", 5, 5)
	e.Same("what a new queue has", reply.Held, 5)
	e.Same("its holders", reply.Holders, []core.PermitHolder{{Owner: "n2", Held: 5, Want: 5}})
}

func permitUnknown(e *env.Env) {
	for _, hold := range []int{0, 1} {
		r := e.PermitRequest("n1", hold, hold)
		r.Queue = "never"
		_, err := e.Store.Permit(e.Ctx, r)
		e.Refused("Permit of an unknown queue", err, ports.ErrUnknownQueue)
	}
}

func permitInvalid(e *env.Env) {
	for _, change := range []func(r *ports.PermitRequest){
		func(r *ports.PermitRequest) { r.Owner = "" },
		func(r *ports.PermitRequest) { r.Attempt = 0 },
		func(r *ports.PermitRequest) { r.Limit = 0 },
		func(r *ports.PermitRequest) { r.Limit = ports.MaxPermits + 1 },
		func(r *ports.PermitRequest) { r.Hold = -1 },
		func(r *ports.PermitRequest) { r.Want = r.Hold - 1 },
		func(r *ports.PermitRequest) { r.Want = ports.MaxPermits + 1 },
		func(r *ports.PermitRequest) { r.TTL = time.Millisecond - 1 },
	} {
		r := e.PermitRequest("n1", 1, 1)
		change(&r)
		_, err := e.Store.Permit(e.Ctx, r)
		e.Refused(fmt.Sprintf("Permit %+v", r), err, ports.ErrInvalidRequest)
	}

	e.Same("the holders", e.Permit("n2", 1, 1).Holders, []core.PermitHolder{{Owner: "n2", Held: 1, Want: 1}})
}

func permitWakes(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Permit("n2", 0, 1)
	ch := wakeups(e, ports.PermitsOf(env.Orders))
	e.Permit("n1", 4, 5)
	wakes(e, "one permit fewer", ch, ports.PermitsOf(env.Orders))
	e.Permit("n1", 0, 0)
	wakes(e, "all given back", ch, ports.PermitsOf(env.Orders))
}

func permitWakesOther(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Permit("n2", 0, 1)
	ch := wakeups(e.With(e.Open()), ports.PermitsOf(env.Orders))
	e.Permit("n1", 4, 4)
	wakes(e, "one permit fewer", ch, ports.PermitsOf(env.Orders))
}

func permitWakesBeside(e *env.Env) {
	e.Permit("n1", 5, 5)
	e.Permit("n2", 0, 1)
	ch := wakeups(e, e.Shard, ports.PermitsOf(env.Orders))
	e.PushIDs("a")
	wakes(e, "a push", ch, e.Shard)
	e.Permit("n1", 4, 4)
	wakes(e, "one permit fewer", ch, ports.PermitsOf(env.Orders))
}

package conformance

import (
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	rulePermits      = "Permit gives the owner as many permits of the queue as it asks for and the limit allows; the permits of all owners together stay within Limit"
	rulePermitEnds   = "Permit: expired permits don't count, and the next call for the queue removes them"
	rulePermitWakeup = "Permit: if the owner then holds fewer than before while another owner wants more, the callers that asked for PermitsOf the queue are woken"
)

func permitCases() []namedCase {
	return []namedCase{
		{"are held within the limit", rulePermits, permitLimit},
		{"lists all owners that hold or want permits", "PermitReply: Holders are all owners that hold or want permits, in order of Owner", permitHolders},
		{"are changed by the next call", rulePermits, permitChanges},
		{"are kept under a smaller limit", "Permit: the owner keeps the permits that it holds and asks for again", permitKeeps},
		{"are all given back by an empty request", "Permit: a call with neither Hold nor Want gives all permits back and forgets the owner", permitGivesBack},
		{"end with their TTL", rulePermitEnds, permitEnds},
		{"are renewed by a repeated call", "Permit: repeating a call renews", permitRenews},
		{"are lost by an owner that renews too late", rulePermitEnds, permitLate},
		{"end even if the clock stepped back", "Permit: a TTL whose end is further away than its length, because the clock stepped back, ends its length after the next call", permitStepBack},
		{"refuses a call that comes late", "Permit: ErrStaleAttempt for an Attempt below the last one of an owner whose TTL lasts: the call is late and changes nothing", permitStale},
		{"belong to one queue", "Permit is atomic for the queue, and counts only its permits", permitQueues},
		{"are shared between handles", rulePermits, permitHandles},
		{"are removed with their queue", "Permit: a Forget of the queue removes all its permits", permitForget},
		{"refuses an unknown queue", "Permit: ErrUnknownQueue", permitUnknown},
		{"refuses a bad request", "PermitRequest.Validate: ErrInvalidRequest", permitInvalid},
	}
}

func permitWakeupCases() []namedCase {
	return []namedCase{
		{"reports permits that become free", rulePermitWakeup, permitWakes},
		{"reports permits to another handle", rulePermitWakeup, permitWakesOther},
		{"reports permits beside shards", rulePermitWakeup, permitWakesBeside},
	}
}

// fivePermits is the limit of permits in most cases.
const fivePermits = 5

// permit requests permits of the queue orders, with a new attempt.
func (e *env) permit(owner string, hold, want int) ports.PermitReply {
	e.tb.Helper()
	return e.permitWith(e.permitRequest(owner, hold, want))
}

func (e *env) permitWith(r ports.PermitRequest) ports.PermitReply {
	e.tb.Helper()
	reply, err := e.store.Permit(e.ctx, r)
	e.must(err, "Permit")
	return reply
}

func (e *env) permitRequest(owner string, hold, want int) ports.PermitRequest {
	e.attempts++
	return ports.PermitRequest{
		Queue: orders, Owner: owner, Attempt: e.attempts, Limit: fivePermits, Hold: hold, Want: want, TTL: ttl,
	}
}

func permitLimit(e *env) {
	e.same("what the first holds", e.permit("n1", 3, 3).Held, 3)
	e.same("what the second holds", e.permit("n2", 3, 3).Held, 2)
	e.same("what the third holds", e.permit("n3", 1, 1).Held, 0)
	e.same("what the first holds of more", e.permit("n1", 4, 4).Held, 3)
}

func permitHolders(e *env) {
	e.permit("n2", 2, 4)
	e.permit("n10", 0, 1)
	reply := e.permit("n1", 9, 9)
	e.same("the reply", reply, ports.PermitReply{
		Now: start, Remaining: ttl, Held: 3,
		Holders: []core.PermitHolder{{Owner: "n1", Held: 3, Want: 9}, {Owner: "n10", Want: 1}, {Owner: "n2", Held: 2, Want: 4}},
	})
}

func permitChanges(e *env) {
	e.permit("n1", 5, 5)
	e.same("what is left of less", e.permit("n1", 2, 5).Held, 2)
	e.same("what another gets", e.permit("n2", 5, 5).Held, 3)
	e.same("the holders", e.permit("n2", 1, 1).Holders, []core.PermitHolder{{Owner: "n1", Held: 2, Want: 5}, {Owner: "n2", Held: 1, Want: 1}})
}

func permitKeeps(e *env) {
	e.permit("n1", 4, 4)
	smaller := e.permitRequest("n1", 4, 4)
	smaller.Limit = 2
	e.same("what it holds under a smaller limit", e.permitWith(smaller).Held, 4)
	smaller = e.permitRequest("n1", 5, 5)
	smaller.Limit = 2
	e.same("what it gets under a smaller limit", e.permitWith(smaller).Held, 4)
	smaller = e.permitRequest("n2", 1, 1)
	smaller.Limit = 2
	e.same("what another gets under it", e.permitWith(smaller).Held, 0)
}

func permitGivesBack(e *env) {
	e.permit("n1", 5, 5)
	e.permit("n2", 0, 5)
	reply := e.permit("n1", 0, 0)
	e.same("the reply", reply, ports.PermitReply{
		Now: start, Remaining: ttl, Holders: []core.PermitHolder{{Owner: "n2", Want: 5}},
	})
	e.same("what another gets", e.permit("n2", 5, 5).Held, 5)
}

func permitEnds(e *env) {
	e.permit("n1", 5, 5)
	e.clock.Advance(ttl - time.Microsecond)
	e.same("what another gets before", e.permit("n2", 5, 5).Held, 0)
	e.clock.Advance(time.Microsecond)
	reply := e.permit("n2", 5, 5)
	e.same("what another gets after", reply.Held, 5)
	e.same("the holders", reply.Holders, []core.PermitHolder{{Owner: "n2", Held: 5, Want: 5}})
}

func permitRenews(e *env) {
	r := e.permitRequest("n1", 5, 5)
	e.permitWith(r)
	e.clock.Advance(ttl / 2)
	e.same("what it holds", e.permitWith(r).Held, 5)
	e.clock.Advance(ttl - time.Microsecond)
	e.same("what another gets", e.permit("n2", 5, 5).Held, 0)
}

func permitLate(e *env) {
	e.permit("n1", 5, 5)
	e.clock.Advance(ttl)
	e.permit("n2", 3, 3)
	late := e.permitRequest("n1", 5, 5)
	late.Attempt = 1 // an owner whose TTL is over counts its attempts anew
	e.same("what the first gets again", e.permitWith(late).Held, 2)
}

func permitStepBack(e *env) {
	e.permit("n1", 5, 5)
	e.clock.Advance(-time.Hour)
	e.same("what another gets at once", e.permit("n2", 5, 5).Held, 0)
	e.clock.Advance(ttl - time.Microsecond)
	e.same("what another gets before the TTL", e.permit("n2", 5, 5).Held, 0)
	e.clock.Advance(time.Microsecond)
	e.same("what another gets after it", e.permit("n2", 5, 5).Held, 5)
}

func permitStale(e *env) {
	lowered := e.permitRequest("n1", 1, 1)
	e.permit("n1", 4, 4)
	_, err := e.store.Permit(e.ctx, lowered)
	e.refused("a Permit that comes late", err, ports.ErrStaleAttempt)
	e.same("what another gets", e.permit("n2", 5, 5).Held, 1)
}

func permitQueues(e *env) {
	e.declare("mail", 1)
	e.permit("n1", 5, 5)
	other := e.permitRequest("n1", 5, 5)
	other.Queue, other.Attempt = "mail", 1
	reply := e.permitWith(other)
	e.same("what it holds of another queue", reply.Held, 5)
	e.same("its holders", reply.Holders, []core.PermitHolder{{Owner: "n1", Held: 5, Want: 5}})
}

func permitHandles(e *env) {
	e.permit("n1", 4, 4)
	e.same("what another handle gives", e.with(e.open()).permit("n2", 4, 4).Held, 1)
}

func permitForget(e *env) {
	e.permit("n1", 5, 5)
	e.forget()
	if e.repeats.All.Load() == 0 {
		_, err := e.store.Permit(e.ctx, e.permitRequest("n1", 5, 5))
		e.refused("Permit after Forget", err, ports.ErrUnknownQueue)
	}
	e.declare(orders, 1)
	reply := e.permit("n2", 5, 5)
	e.same("what a new queue has", reply.Held, 5)
	e.same("its holders", reply.Holders, []core.PermitHolder{{Owner: "n2", Held: 5, Want: 5}})
}

func permitUnknown(e *env) {
	for _, hold := range []int{0, 1} {
		r := e.permitRequest("n1", hold, hold)
		r.Queue = "never"
		_, err := e.store.Permit(e.ctx, r)
		e.refused("Permit of an unknown queue", err, ports.ErrUnknownQueue)
	}
}

func permitInvalid(e *env) {
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
		r := e.permitRequest("n1", 1, 1)
		change(&r)
		_, err := e.store.Permit(e.ctx, r)
		e.refused(fmt.Sprintf("Permit %+v", r), err, ports.ErrInvalidRequest)
	}
	e.same("the holders", e.permit("n2", 1, 1).Holders, []core.PermitHolder{{Owner: "n2", Held: 1, Want: 1}})
}

func permitWakes(e *env) {
	e.permit("n1", 5, 5)
	e.permit("n2", 0, 1)
	ch := e.wakeups(ports.PermitsOf(orders))
	e.permit("n1", 4, 5)
	e.wakes("one permit fewer", ch, ports.PermitsOf(orders))
	e.permit("n1", 0, 0)
	e.wakes("all given back", ch, ports.PermitsOf(orders))
}

func permitWakesOther(e *env) {
	e.permit("n1", 5, 5)
	e.permit("n2", 0, 1)
	ch := e.with(e.open()).wakeups(ports.PermitsOf(orders))
	e.permit("n1", 4, 4)
	e.wakes("one permit fewer", ch, ports.PermitsOf(orders))
}

func permitWakesBeside(e *env) {
	e.permit("n1", 5, 5)
	e.permit("n2", 0, 1)
	ch := e.wakeups(e.shard, ports.PermitsOf(orders))
	e.pushIDs("a")
	e.wakes("a push", ch, e.shard)
	e.permit("n1", 4, 4)
	e.wakes("one permit fewer", ch, ports.PermitsOf(orders))
}

// permitsStayWithin lets racers request permits and return them. It counts the permits that each
// racer may use.
func permitsStayWithin(e *env) {
	var mu sync.Mutex
	used := make([]int, racers)
	use := func(i, n int) {
		mu.Lock()
		defer mu.Unlock()
		used[i] = n
		sum := 0
		for _, n := range used {
			sum += n
		}
		if sum > fivePermits {
			e.errorf("racers may use %d permits at once, want at most %d", sum, fivePermits)
		}
	}
	e.race(func(i int, store ports.ShardStore) {
		for round := range 20 {
			hold := (i + round) % 4
			mu.Lock()
			had := used[i]
			mu.Unlock()
			use(i, min(had, hold)) // a racer stops using permits before it returns them
			reply, err := store.Permit(e.ctx, ports.PermitRequest{
				Queue: orders, Owner: fmt.Sprint("n", i), Attempt: int64(round + 1), Limit: fivePermits, Hold: hold, Want: 4, TTL: ttl,
			})
			if !e.check(err, "a racing Permit") {
				return
			}
			use(i, reply.Held)
		}
	})
}

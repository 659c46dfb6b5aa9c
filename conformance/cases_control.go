package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const rulePause = "Pause stops claims on all shards of a queue; claimed jobs continue and settle"

func pauseCases() []namedCase {
	return []namedCase{
		{"stops claims", "Turn: nothing is claimed from a paused shard, whatever the request", pauseStopsClaims},
		{"lets claimed jobs settle", rulePause, pauseSettles},
		{"accepts pushes", rulePause, pausePushes},
		{"applies to all shards of its queue and to no other queue", rulePause, pauseReaches},
		{"uses no number for a turn that only wants jobs", ruleEmpty, pauseUsesNoNumber},
		{"ends with resume", "Resume ends a pause", pauseEnds},
		{"changes nothing when it is repeated", "Pause, Resume: repeating it changes nothing", pauseRepeats},
	}
}

func pauseStopsClaims(e *env) {
	e.pushIDs("a")
	e.pause(orders)
	h := e.acquire("n1")
	reply := h.turn(10)
	e.same("the claims", reply.Claims, nil)
	e.same("Paused of the reply", reply.Paused, true)
	e.same("the queued jobs", e.queuedIDs(), []string{"a"})
}

func pauseSettles(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	claims := h.claim(2)
	e.pause(orders)
	reply := h.turn(10, done(claims[0]), failed(claims[1], "boom", 0))
	e.reported("the skipped", reply.Skipped, nil)
	e.same("the claims", reply.Claims, nil)
	e.same("the queued jobs", e.queuedIDs(), []string{"b", "c"})
	e.same("the claimed", e.counts().Claimed, int64(0))
}

func pausePushes(e *env) {
	e.pause(orders)
	e.pushIDs("a")
	e.same("the queued jobs", e.queuedIDs(), []string{"a"})
}

func pauseReaches(e *env) {
	e.declare("wide", 3)
	e.pause("wide")
	e.pushIDs("a")
	for _, s := range core.Shards("wide", 3) {
		e.pushTo("wide", entry(idsOf(s, 3, 1)[0], "p", 1))
		reply := e.acquireBy(e.acquireRequest(s, "n1")).turn(1)
		e.same("the claims of "+s.String(), reply.Claims, nil)
	}
	reply := e.acquire("n1").turn(1)
	e.same("the claims of another queue", ids(reply.Claims), []string{"a"})
	e.same("Paused of the reply", reply.Paused, false)
}

func pauseUsesNoNumber(e *env) {
	e.pushIDs("a")
	e.pause(orders)
	h := e.acquire("n1")
	last := h.number
	e.unchanged("a turn while paused", func() {
		reply := h.turn(1)
		e.giveUpIfRepeated(0)
		e.same("the number", reply.Last, last)
	})
}

func pauseEnds(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	e.pause(orders)
	h.turn(1)
	e.resume(orders)
	reply := h.turn(1)
	e.same("the claims", ids(reply.Claims), []string{"a"})
	e.same("Paused of the reply", reply.Paused, false)
}

func pauseRepeats(e *env) {
	paused := func(want bool) {
		queues, err := e.store.Queues(e.ctx)
		e.must(err, "Queues")
		e.same("Paused of Queues", queues[0].Paused, want)
		e.same("Paused of Stats", e.stats(orders).Queue.Paused, want)
	}
	e.resume(orders)
	paused(false)
	e.pause(orders)
	e.pause(orders)
	paused(true)
	e.resume(orders)
	paused(false)
	e.declare(orders, 1)
	e.pause(orders)
	e.declare(orders, 1)
	paused(true)
}

const ruleCancel = "TurnReply: Cancellations are the claimed jobs of the shard that an operator has cancelled, in order of id, in each reply until they are settled"

func cancelCases() []namedCase {
	return []namedCase{
		{"is reported in each reply until its job is settled", ruleCancel, cancelReported},
		{"is reported in order of id", ruleCancel, cancelOrder},
		{"passes to the next owner", ruleCancel, cancelPasses},
		{"drops the job if the last call asks for it", "Cancel: if it is repeated, the last Drop counts", cancelLastDrop},
		{"ends with its claim", "Cancel requests that claimed jobs end", cancelNewClaim},
		{"ignores what is not claimed", "Cancel: ids that are not claimed are ignored and not counted", cancelUnclaimed},
		{"ignores ids of other shards", "CancelRequest: ids of other shards are ignored", cancelOtherShard},
		{"is shown with the claim", "ClaimView: Cancelled reports whether an operator has cancelled it", cancelSeen},
		{"refuses a bad request", "CancelRequest.Validate: ErrInvalidRequest", cancelInvalid},
	}
}

func cancelReported(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(1)
	c := h.send(r).Claims[0]
	e.reported("the reply", e.cancel(true, "a"), ports.StepReply{Handled: 1, Reached: 1, Now: start})
	want := []ports.Cancellation{{ID: "a", Receipt: c.Receipt, Drop: true}}
	e.same("in the turn repeated", h.send(r).Cancellations, want)
	e.same("in an empty turn", h.turn(0).Cancellations, want)
	e.same("in a turn that claims", h.turn(1).Cancellations, want)
	e.same("once it is settled", h.settle(dropped(c)).Cancellations, nil)
	e.same("after it", h.turn(0).Cancellations, nil)
}

func cancelOrder(e *env) {
	e.pushIDs("c", "é", "a", "B")
	h := e.acquire("n1")
	h.claim(4)
	e.cancel(false, "é", "a")
	e.cancel(true, "B", "c")
	var got []string
	for _, c := range h.turn(0).Cancellations {
		got = append(got, c.ID)
	}
	e.same("the cancelled ids", got, []string{"B", "a", "c", "é"})
}

func cancelPasses(e *env) {
	e.pushIDs("a")
	c := claimAndCrash(e, "n1")[0]
	e.cancel(true, "a")
	want := []ports.Cancellation{{ID: "a", Receipt: c.Receipt, Drop: true}}
	r := e.acquireRequest(e.shard, "n2")
	h := e.acquireBy(r)
	e.same("in the reply of Acquire", h.reply.Cancellations, want)
	e.same("when it is repeated", e.acquireBy(r).reply.Cancellations, want)
	e.same("in a turn", h.turn(0).Cancellations, want)
}

func cancelLastDrop(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	h.one()
	for _, drop := range []bool{true, false, true} {
		e.cancel(drop, "a")
		e.same("whether it is dropped", h.turn(0).Cancellations[0].Drop, drop)
	}
}

func cancelNewClaim(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	e.cancel(false, "a")
	reply := h.turn(1, untouched(c))
	e.same("the claims", ids(reply.Claims), []string{"a"})
	e.same("the cancels of the new claim", reply.Cancellations, nil)
}

func cancelUnclaimed(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	h.one()
	e.reported("how many were cancelled", e.cancel(true, "b", "a", "never").Handled, 1)
	e.same("the cancels", len(h.turn(0).Cancellations), 1)
	e.same("the queued jobs", e.queuedIDs(), []string{"b"})
}

func cancelOtherShard(e *env) {
	e.declare("wide", 2)
	s := core.Shards("wide", 2)
	id := idsOf(s[0], 2, 1)[0]
	e.pushTo("wide", entry(id, "p", 1))
	h := e.acquireBy(e.acquireRequest(s[0], "n1"))
	h.one()
	reply, err := e.store.Cancel(e.ctx, ports.CancelRequest{Shard: s[1], IDs: []string{id}})
	e.must(err, "Cancel")
	e.reported("how many were cancelled", reply.Handled, 0)
	e.same("the cancels", h.turn(0).Cancellations, nil)
}

func cancelSeen(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	seen := func(when string, cancelled, drop bool) {
		e.tb.Helper()
		for from, c := range map[string]ports.ClaimView{"Find": *e.find("a").Claim, "Claimed": e.snapshot(orders).Claims[0]} {
			e.same(when+": Cancelled of "+from, c.Cancelled, cancelled)
			e.same(when+": Drop of "+from, c.Drop, drop)
		}
	}
	seen("before it", false, false)
	e.cancel(true, "a")
	seen("after one that drops", true, true)
	e.cancel(false, "a")
	seen("after one that doesn't", true, false)
	e.cancel(true, "a")
	h.turn(1, failed(c, "boom", -time.Second))
	seen("of the next claim", false, false)
}

func cancelInvalid(e *env) {
	for _, r := range []ports.CancelRequest{
		{Shard: core.Shard{Queue: orders, Index: -1}, IDs: []string{"a"}},
		{Shard: e.shard, IDs: make([]string, ports.MaxStep+1)},
	} {
		_, err := e.store.Cancel(e.ctx, r)
		e.refused("a bad Cancel", err, ports.ErrInvalidRequest)
	}
}

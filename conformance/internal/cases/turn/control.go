package turn

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const rulePause = "Pause stops claims on all shards of a queue; claimed jobs continue and settle"

func pauseCases() []env.Case {
	return []env.Case{
		{
			Name:  "stops claims",
			Rule:  "Turn: nothing is claimed from a paused shard, whatever the request",
			Check: pauseStopsClaims,
		},
		{Name: "lets claimed jobs settle", Rule: rulePause, Check: pauseSettles},
		{Name: "accepts pushes", Rule: rulePause, Check: pausePushes},
		{Name: "applies to all shards of its queue and to no other queue", Rule: rulePause, Check: pauseReaches},
		{Name: "uses no number for a turn that only wants jobs", Rule: ruleEmpty, Check: pauseUsesNoNumber},
		{Name: "ends with resume", Rule: "Resume ends a pause", Check: pauseEnds},
		{
			Name:  "changes nothing when it is repeated",
			Rule:  "Pause, Resume: repeating it changes nothing",
			Check: pauseRepeats,
		},
	}
}

func pauseStopsClaims(e *env.Env) {
	e.PushIDs("a")
	e.Pause(env.Orders)
	h := e.Acquire("n1")
	reply := h.Turn(10)
	e.Same("the claims", reply.Claims, nil)
	e.Same("Paused of the reply", reply.Paused, true)
	e.Same("the queued jobs", e.QueuedIDs(), []string{"a"})
}

func pauseSettles(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	e.Pause(env.Orders)
	reply := h.Turn(10, env.Done(claims[0]), env.Failed(claims[1], "boom", 0))
	e.Reported("the skipped", reply.Skipped, nil)
	e.Same("the claims", reply.Claims, nil)
	e.Same("the queued jobs", e.QueuedIDs(), []string{"b", "c"})
	e.Same("the claimed", e.Counts().Claimed, int64(0))
}

func pausePushes(e *env.Env) {
	e.Pause(env.Orders)
	e.PushIDs("a")
	e.Same("the queued jobs", e.QueuedIDs(), []string{"a"})
}

func pauseReaches(e *env.Env) {
	e.Declare("wide", 3)
	e.Pause("wide")
	e.PushIDs("a")
	for _, s := range core.Shards("wide", 3) {
		e.PushTo("wide", env.Entry(env.IDsOf(s, 3, 1)[0], "p", 1))
		reply := e.AcquireBy(e.AcquireRequest(s, "n1")).Turn(1)
		e.Same("the claims of "+s.String(), reply.Claims, nil)
	}
	reply := e.Acquire("n1").Turn(1)
	e.Same("the claims of another queue", env.IDs(reply.Claims), []string{"a"})
	e.Same("Paused of the reply", reply.Paused, false)
}

func pauseUsesNoNumber(e *env.Env) {
	e.PushIDs("a")
	e.Pause(env.Orders)
	h := e.Acquire("n1")
	last := h.Number
	e.Unchanged("a turn while paused", func() {
		reply := h.Turn(1)
		e.GiveUpIfRepeated(0)
		e.Same("the number", reply.Last, last)
	})
}

func pauseEnds(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	e.Pause(env.Orders)
	h.Turn(1)
	e.Resume(env.Orders)
	reply := h.Turn(1)
	e.Same("the claims", env.IDs(reply.Claims), []string{"a"})
	e.Same("Paused of the reply", reply.Paused, false)
}

func pauseRepeats(e *env.Env) {
	paused := func(want bool) {
		queues, err := e.Store.Queues(e.Ctx)
		e.Must(err, "Queues")
		e.Same("Paused of Queues", queues[0].Paused, want)
		e.Same("Paused of Stats", e.Stats(env.Orders).Queue.Paused, want)
	}

	e.Resume(env.Orders)
	paused(false)
	e.Pause(env.Orders)
	e.Pause(env.Orders)
	paused(true)

	e.Resume(env.Orders)
	paused(false)

	e.Declare(env.Orders, 1)
	e.Pause(env.Orders)
	e.Declare(env.Orders, 1)
	paused(true)
}

const ruleCancel = "TurnReply: Cancellations are the claimed jobs of the shard that an operator has cancelled, " +
	"in order of id, in each reply until they are settled"

func cancelCases() []env.Case {
	return []env.Case{
		{Name: "is reported in each reply until its job is settled", Rule: ruleCancel, Check: cancelReported},
		{Name: "is reported in order of id", Rule: ruleCancel, Check: cancelOrder},
		{Name: "passes to the next owner", Rule: ruleCancel, Check: cancelPasses},
		{
			Name:  "drops the job if the last call asks for it",
			Rule:  "Cancel: if it is repeated, the last Drop counts",
			Check: cancelLastDrop,
		},
		{Name: "ends with its claim", Rule: "Cancel requests that claimed jobs end", Check: cancelNewClaim},
		{
			Name:  "ignores what is not claimed",
			Rule:  "Cancel: ids that are not claimed are ignored and not counted",
			Check: cancelUnclaimed,
		},
		{
			Name:  "ignores ids of other shards",
			Rule:  "CancelRequest: ids of other shards are ignored",
			Check: cancelOtherShard,
		},
		{
			Name:  "is shown with the claim",
			Rule:  "ClaimView: Cancelled reports whether an operator has cancelled it",
			Check: cancelSeen,
		},
		{Name: "refuses a bad request", Rule: "CancelRequest.Validate: ErrInvalidRequest", Check: cancelInvalid},
	}
}

func cancelReported(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(1)
	c := h.Send(r).Claims[0]
	e.Reported("the reply", e.Cancel(true, "a"), ports.StepReply{Handled: 1, Reached: 1, Now: env.Start})
	want := []ports.Cancellation{{ID: "a", Receipt: c.Receipt, Drop: true}}
	e.Same("in the turn repeated", h.Send(r).Cancellations, want)
	e.Same("in an empty turn", h.Turn(0).Cancellations, want)
	e.Same("in a turn that claims", h.Turn(1).Cancellations, want)
	e.Same("once it is settled", h.Settle(env.Dropped(c)).Cancellations, nil)
	e.Same("after it", h.Turn(0).Cancellations, nil)
}

func cancelOrder(e *env.Env) {
	e.PushIDs("c", "é", "a", "B")
	h := e.Acquire("n1")
	h.Claim(4)
	e.Cancel(false, "é", "a")
	e.Cancel(true, "B", "c")
	var got []string
	for _, c := range h.Turn(0).Cancellations {
		got = append(got, c.ID)
	}
	e.Same("the cancelled ids", got, []string{"B", "a", "c", "é"})
}

func cancelPasses(e *env.Env) {
	e.PushIDs("a")
	c := e.ClaimAndCrash("n1")[0]
	e.Cancel(true, "a")
	want := []ports.Cancellation{{ID: "a", Receipt: c.Receipt, Drop: true}}
	r := e.AcquireRequest(e.Shard, "n2")
	h := e.AcquireBy(r)
	e.Same("in the reply of Acquire", h.Reply.Cancellations, want)
	e.Same("when it is repeated", e.AcquireBy(r).Reply.Cancellations, want)
	e.Same("in a turn", h.Turn(0).Cancellations, want)
}

func cancelLastDrop(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	h.One()
	for _, drop := range []bool{true, false, true} {
		e.Cancel(drop, "a")
		e.Same("whether it is dropped", h.Turn(0).Cancellations[0].Drop, drop)
	}
}

func cancelNewClaim(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	e.Cancel(false, "a")
	reply := h.Turn(1, env.Untouched(c))
	e.Same("the claims", env.IDs(reply.Claims), []string{"a"})
	e.Same("the cancels of the new claim", reply.Cancellations, nil)
}

func cancelUnclaimed(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	h.One()
	e.Reported("how many were cancelled", e.Cancel(true, "b", "a", "never").Handled, 1)
	e.Same("the cancels", len(h.Turn(0).Cancellations), 1)
	e.Same("the queued jobs", e.QueuedIDs(), []string{"b"})
}

func cancelOtherShard(e *env.Env) {
	e.Declare("wide", 2)
	s := core.Shards("wide", 2)
	id := env.IDsOf(s[0], 2, 1)[0]
	e.PushTo("wide", env.Entry(id, "p", 1))
	h := e.AcquireBy(e.AcquireRequest(s[0], "n1"))
	h.One()
	reply, err := e.Store.Cancel(e.Ctx, ports.CancelRequest{Shard: s[1], IDs: []string{id}})
	e.Must(err, "Cancel")
	e.Reported("how many were cancelled", reply.Handled, 0)
	e.Same("the cancels", h.Turn(0).Cancellations, nil)
}

func cancelSeen(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()

	seen := func(when string, cancelled, drop bool) {
		e.TB.Helper()
		for from, c := range map[string]ports.ClaimView{
			"Find":    *e.Find("a").Claim,
			"Claimed": e.Snapshot(env.Orders).Claims[0],
		} {
			e.Same(when+": Cancelled of "+from, c.Cancelled, cancelled)
			e.Same(when+": Drop of "+from, c.Drop, drop)
		}
	}

	seen("before it", false, false)
	e.Cancel(true, "a")
	seen("after one that drops", true, true)
	e.Cancel(false, "a")
	seen("after one that doesn't", true, false)

	e.Cancel(true, "a")
	h.Turn(1, env.Failed(c, "boom", -time.Second))
	seen("of the next claim", false, false)
}

func cancelInvalid(e *env.Env) {
	for _, r := range []ports.CancelRequest{
		{Shard: core.Shard{Queue: env.Orders, Index: -1}, IDs: []string{"a"}},
		{Shard: e.Shard, IDs: make([]string, ports.MaxStep+1)},
	} {
		_, err := e.Store.Cancel(e.Ctx, r)
		e.Refused("a bad Cancel", err, ports.ErrInvalidRequest)
	}
}

package look

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	rulePending   = "Pending: for each of some ids, whether jobs of it are queued or claimed, and since when"
	rulePendingID = "PendingReply: what is pending of each id is in the order of the request"
)

// pendingCases are about what is not settled yet of ids. Beside them, each look of the suite for
// one id compares Pending with Find.
func pendingCases() []env.Case {
	return []env.Case{
		{Name: "follows a job from its push to its end", Rule: rulePending, Check: pendingFollows},
		{Name: "has the earlier push of a queued and a claimed job", Rule: rulePending, Check: pendingEarlier},
		{Name: "tells held jobs from others", Rule: "Pending: Held is true if the queued job is held", Check: pendingHeld},
		{Name: "has the ids of all shards in their order", Rule: rulePendingID, Check: pendingOrder},
		{Name: "has as many ids as may be asked for", Rule: rulePendingID, Check: pendingMany},
		{Name: "has large jobs", Rule: rulePendingID, Check: pendingLarge},
		{Name: "refuses invalid ids and their numbers", Rule: "PendingRequest.Validate", Check: pendingInvalid},
	}
}

// pendingIs checks what is pending of an id of orders.
func pendingIs(e *env.Env, what, id string, want ports.Pending) {
	e.TB.Helper()
	want.Shard, want.Now = e.Shard, e.Now()
	e.Same(what, e.Pending(env.Orders, id), []ports.Pending{want})
}

func pendingFollows(e *env.Env) {
	pendingIs(e, "never pushed", "a", ports.Pending{})
	e.Push(env.Entry("a", "p", 1), env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	pendingIs(e, "queued", "a", ports.Pending{Queued: true, FirstPush: env.Start})
	pendingIs(e, "queued for later", "b", ports.Pending{Queued: true, FirstPush: env.Start})

	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(time.Second)
	pendingIs(e, "claimed", "a", ports.Pending{Claimed: true, FirstPush: env.Start})

	h.Settle(env.Failed(c, "boom", time.Minute))
	pendingIs(e, "in backoff", "a", ports.Pending{Queued: true, FirstPush: env.Start})
	e.Clock.Advance(time.Minute)
	h.Settle(env.Buried(h.One(), "no use"))
	pendingIs(e, "dead", "a", ports.Pending{Dead: true})

	e.Push(env.Entry("a", "q", 2))
	pendingIs(e, "pushed again", "a", ports.Pending{Queued: true, FirstPush: e.Now(), Dead: true})
	h.Settle(env.Done(h.One()))
	pendingIs(e, "done beside a dead letter", "a", ports.Pending{Dead: true})
}

func pendingEarlier(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(time.Second)
	e.Push(env.Entry("a", "q", 2))
	both := ports.Pending{Queued: true, Claimed: true, FirstPush: env.Start}
	pendingIs(e, "pushed while it is claimed", "a", both)

	h.Settle(env.Untouched(c))
	pendingIs(e, "put back onto the push", "a", ports.Pending{Queued: true, FirstPush: env.Start})

	// The rest of a claim has the time of the first push too.
	h.Cut(1)
	pendingIs(e, "claimed in part", "a", both)
	e.ByIDs(e.Store.Delete, "a")
	pendingIs(e, "without the rest", "a", ports.Pending{Claimed: true, FirstPush: env.Start})
}

func pendingHeld(e *env.Env) {
	e.Hold("a", env.TwoPayloads()...)
	pendingIs(e, "held", "a", ports.Pending{Queued: true, FirstPush: env.Start, Held: true})
	e.Push(env.EntryAt("b", "p", 1, core.MaxInstant))
	pendingIs(e, "pushed for the last instant", "b", ports.Pending{Queued: true, FirstPush: env.Start})

	e.ByIDs(e.Store.Expedite, "a")
	pendingIs(e, "released", "a", ports.Pending{Queued: true, FirstPush: env.Start})
}

func pendingOrder(e *env.Env) {
	e.Declare("wide", 3)
	var ids []string
	var want []ports.Pending
	for k := range 4 {
		for _, s := range core.Shards("wide", 3) {
			id := env.IDsOf(s, 3, 4)[k]
			p := ports.Pending{Shard: s, Now: e.Now()}
			if k != 1 {
				e.PushTo("wide", env.Entry(id, "p", 1))
				p.Queued, p.FirstPush = true, e.Now()
			}
			ids, want = append(ids, id), append(want, p)
		}
	}

	// One is named again, and so is one that is in the queue of another name.
	e.Push(env.Entry("elsewhere", "p", 1))
	ids = append(ids, ids[0], "elsewhere")
	want = append(want, want[0],
		ports.Pending{Shard: core.Shard{Queue: "wide", Index: core.ShardOf("elsewhere", 3)}, Now: e.Now()})
	e.Same("what is pending", e.Pending("wide", ids...), want)
}

func pendingMany(e *env.Env) {
	ids := make([]string, ports.MaxPending)
	want := make([]ports.Pending, len(ids))
	for i := range ids {
		ids[i], want[i] = fmt.Sprintf("%04d", i), ports.Pending{Shard: e.Shard, Now: e.Now()}
		if i < 500 {
			want[i].Queued, want[i].FirstPush = true, e.Now()
		}
	}
	e.PushMany(500)
	e.Same("what is pending", e.Pending(env.Orders, ids...), want)
}

func pendingLarge(e *env.Env) {
	var ids []string
	var want []ports.Pending
	for i := range 12 {
		id := fmt.Sprintf("%02d", i)
		e.PushLarge(id, env.Sized(core.DefaultMaxPayloadBytes, 1))
		ids = append(ids, id)
		want = append(want, ports.Pending{Shard: e.Shard, Now: e.Now(), Queued: true, FirstPush: e.Now()})
	}
	e.Same("what is pending", e.Pending(env.Orders, ids...), want)

	e.PushLarge("many", env.Tied(env.LargeJob)...)
	pendingIs(e, "of many payloads", "many", ports.Pending{Queued: true, FirstPush: e.Now()})
}

func pendingInvalid(e *env.Env) {
	for what, ids := range map[string][]string{
		"no ids": {}, "too many ids": make([]string, ports.MaxPending+1),
	} {
		_, err := e.Store.Pending(e.Ctx, ports.PendingRequest{Queue: env.Orders, IDs: ids})
		e.Refused(what, err, ports.ErrInvalidRequest)
	}
	for _, id := range []string{"", "line\nbreak", strings.Repeat("x", core.MaxIDBytes+1)} {
		_, err := e.Store.Pending(e.Ctx, ports.PendingRequest{Queue: env.Orders, IDs: []string{"a", id}})
		e.Refused(fmt.Sprintf("id %.20q", id), err, core.ErrInvalidID)
	}
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// storeCases are about rules for the store as a whole, and about Find.
func storeCases() []env.Case {
	return []env.Case{
		{
			Name:  "shares its data between handles",
			Rule:  "Factory: each handle is a store of its own; all share the backend's data",
			Check: storeHandles,
		},
		{
			Name:  "keeps backends apart",
			Rule:  "Factory makes an empty backend, even while earlier ones are in use",
			Check: storeBackends,
		},
		{Name: "keeps queues apart", Rule: "architecture 1: a queue is a named stream of jobs", Check: storeQueues},
		{
			Name:  "keeps shards apart",
			Rule:  "package ports: atomic for each shard, never across them",
			Check: storeShards,
		},
		{Name: "finds an id wherever it is", Rule: "Find looks one id up everywhere", Check: storeFinds},
		{
			Name:  "refuses to find an invalid id",
			Rule:  "Find returns core.ErrInvalidID for an invalid id",
			Check: storeFindInvalid,
		},
		{
			Name:  "keeps nothing of a request except its bytes",
			Rule:  "package ports: requests are read only during the call, except for the bytes in them",
			Check: storeRequests,
		},
		{
			Name:  "leaves its replies to the caller",
			Rule:  "package ports: slices of a reply belong to the caller",
			Check: storeReplies,
		},
		{
			Name:  "delays due jobs when the clock steps back",
			Rule:  "package ports: a clock that steps back delays due jobs but breaks no promise",
			Check: storeClockBack,
		},
		{
			Name:  "ends a call whose context has ended",
			Rule:  "package ports: when its context ends, a call returns soon with the context's error wrapped",
			Check: storeContext,
		},
	}
}

func storeHandles(e *env.Env) {
	other := *e
	other.Store = e.Open()
	other.PushIDs("a", "b")

	h := e.Acquire("n1")
	e.Same("what the other handle pushed", env.IDs(h.Claim(1)), []string{"a"})
	existing := *h
	existing.Env = &other
	e.Same("a turn by the other handle", env.IDs(existing.Claim(1)), []string{"b"})

	other.Pause(env.Orders)
	e.Same("the pause of the other handle", e.Stats(env.Orders).Queue.Paused, true)
	e.Same("all that can be seen", other.Snapshot(env.Orders), e.Snapshot(env.Orders))

	_, err := other.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
	e.Refused("Acquire by the other handle", err, ports.ErrLeaseHeld)
}

func storeBackends(e *env.Env) {
	e.PushIDs("a")
	announce(e, ports.Node{Owner: "1"})
	other := e.Another()()
	queues, err := other.Queues(e.Ctx)
	e.Must(err, "Queues")
	e.Same("the queues of a new backend", queues, nil)
	nodes, err := other.Nodes(e.Ctx)
	e.Must(err, "Nodes")
	e.Same("the nodes of a new backend", nodes.Nodes, nil)
}

func storeQueues(e *env.Env) {
	names := []string{"q", "q:0", "q:1", "q.0", "Q", "q0", "0:q"}
	for _, name := range names {
		e.Declare(name, 2)
		e.PushTo(name, env.Entry("a", name, 1))
	}

	s := core.Shard{Queue: "q", Index: core.ShardOf("a", 2)}
	h := e.AcquireBy(e.AcquireRequest(s, "n1"))
	h.Settle(env.Failed(h.One(), "boom", time.Minute))
	_, err := e.Store.Bury(e.Ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	e.Must(err, "Bury")
	e.Record("n1", ports.Record{Queue: "q", Minute: env.Start.Minute(), Stats: *env.Measured(1)})
	e.Pause("q")

	for _, name := range names[1:] {
		got := e.Snapshot(name)
		e.Same("the jobs of "+name, got.Jobs, []core.Job{env.Job("a", env.Fresh(env.Start), env.Pay(name, 1))})
		e.Same("the dead of "+name, got.Dead, nil)
		e.Same("the counts of "+name, got.Stats.Counts, ports.Counts{Fresh: 1, Oldest: env.Due(env.Start)})
		e.Same("the record of "+name, got.Stats.Queue, e.Declared[name])
		e.History(ports.HistoryRequest{Queue: name})
	}
}

func storeShards(e *env.Env) {
	const shards = 3
	e.Declare("wide", shards)
	for _, s := range core.Shards("wide", shards) {
		e.PushTo("wide", env.Entry(env.IDsOf(s, shards, 1)[0], "p", 1))
	}
	for _, s := range core.Shards("wide", shards) {
		claims := e.AcquireBy(e.AcquireRequest(s, "n1")).Claim(10)
		e.Same("the claims of "+s.String(), env.IDs(claims), env.IDsOf(s, shards, 1))
	}
}

func storeFinds(e *env.Env) {
	found := func() ports.Found {
		f := e.Find("a")
		f.Standing = ports.Standing{} // has cases of its own
		return f
	}

	e.Same("nothing", found(), ports.Found{Shard: e.Shard})

	e.BuryAll("a")
	e.Push(env.EntryAt("a", "c", 1, 5), env.EntryAt("a", "d", 2, 5))
	at := e.Now()
	c := e.Acquire("n1").One()
	e.Push(env.Entry("a", "e", 1), env.Entry("a", "f", 2))

	queued := env.Job("a", core.Pushed(core.When{}, at), env.Pay("e", 1), env.Pay("f", 2))
	e.Same("everywhere", found(), ports.Found{
		Shard:  e.Shard,
		Queued: &ports.JobView{Job: queued, Count: 2},
		Claim: &ports.ClaimView{
			Claim:      c,
			Count:      2,
			Shard:      e.Shard,
			Owner:      "n1",
			Node:       "node of n1",
			Since:      at,
			LeaseUntil: at.Add(env.TTL),
		},
		DeadLetter: &ports.DeadLetterView{DeadLetter: core.DeadLetter{
			ID:        "a",
			ChangedAt: env.Start,
			Failures:  core.Failures{{Text: core.BuriedByHand}},
			Group:     core.BuriedByHand,
			Payloads:  env.TwoPayloads(),
		}, Count: 2},
	})
}

func storeFindInvalid(e *env.Env) {
	for _, id := range []string{"", "\n", "\xff"} {
		_, err := e.Store.Find(e.Ctx, ports.FindRequest{Queue: env.Orders, ID: id, Payloads: 1000})
		e.Refused(fmt.Sprintf("Find of %q", id), err, core.ErrInvalidID)
	}
}

func storeRequests(e *env.Env) {
	r := e.PushRequest(env.Orders, env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	_, err := e.Store.Push(e.Ctx, r)
	e.Must(err, "Push")

	clear(r.Entries)

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the payloads", len(c.Payloads), 3)

	s := env.Untouched(c)
	s.Except = []core.PayloadDisposition{{Position: 0}, {Position: 2, Disposition: core.Bury}}
	turn := h.Request(0, s)
	h.Send(turn)

	clear(s.Except)
	clear(turn.Settlements)
	e.Same("what was put back", e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2)})
	e.Same("what was buried", e.DeadLetter("a").Payloads, []core.Payload{env.Pay("r", 3)})

	records := []ports.Record{e.Recorded(env.Measured(1))}
	e.Record("n1", records...)
	clear(records)
	e.History(ports.HistoryRequest{Queue: env.Orders}, thisMinute(e, env.Measured(1)))

	n := ports.Node{Owner: "1", Queues: []string{env.Orders}}
	announce(e, n)
	clear(n.Queues)
	e.Same("the node's queues", e.Nodes()[0].Queues, []string{env.Orders})
}

func storeReplies(e *env.Env) {
	e.PushIDs("a", "b")

	h := e.Acquire("n1")
	r := h.Request(10)
	reply := h.Send(r)
	want := []string{"a", "b"}
	e.Same("the claims", env.IDs(reply.Claims), want)

	clear(reply.Claims)
	e.Same("the claims again", env.IDs(h.Send(r).Claims), want)

	e.Cancel(true, "a")
	clear(h.Turn(0).Cancellations)
	e.Same("the cancels again", h.Turn(0).Cancellations[0].ID, "a")

	announce(e, ports.Node{Owner: "1", Queues: []string{env.Orders}})
	nodes := e.Nodes()
	clear(nodes[0].Queues)
	clear(nodes)
	e.Same("the nodes again", e.Nodes()[0].Queues, []string{env.Orders})
}

func storeClockBack(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	e.Clock.Advance(-time.Hour)
	e.Same("the claims an hour before", h.Claim(1), nil)

	e.Push(env.Entry("b", "p", 1))
	reply := h.Turn(1)
	e.Same("the claims of what came then", env.IDs(reply.Claims), []string{"b"})
	e.Same("the store's clock", reply.Now, env.Start.Add(-time.Hour))

	h.Settle(env.Failed(reply.Claims[0], "boom", time.Minute))
	e.Same("the job put back", e.Queued("b").PerformAt, env.Start.Add(-time.Hour+time.Minute))

	e.Clock.Set(env.Start.Time())
	e.Same("the claims when time is back", env.IDs(h.Claim(2)), []string{"b", "a"})
}

func storeContext(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")

	ctx, cancel := context.WithCancel(e.Ctx)
	cancel()

	errs := map[string]error{"Release": e.Store.Release(ctx, h.Lease), "Pause": e.Store.Pause(ctx, env.Orders)}
	_, errs["Push"] = e.Store.Push(ctx, e.PushRequest(env.Orders, env.Entry("b", "p", 1)))
	_, errs["Turn"] = e.Store.Turn(ctx, h.Request(1))
	_, errs["Heads"] = e.Store.Heads(ctx, []core.Shard{e.Shard})
	_, errs["Stats"] = e.Store.Stats(ctx, ports.StatsRequest{Queues: []string{env.Orders}})
	_, errs["Find"] = e.Store.Find(ctx, ports.FindRequest{Queue: env.Orders, ID: "a", Payloads: 1000})
	_, errs["Pending"] = e.Store.Pending(ctx, ports.PendingRequest{Queue: env.Orders, IDs: []string{"a"}})
	errs["DrainNode"] = e.Store.DrainNode(ctx, "1", true)
	_, errs["Nodes"] = e.Store.Nodes(ctx)
	errs["Audit"] = e.Store.Audit(ctx, ports.Action{ID: "1", Verb: "pause"})
	_, errs["Take"] = e.Store.Take(ctx, ports.TakeRequest{Queue: env.Orders, Takes: []ports.Take{{Want: 1}}})
	errs["Stop"] = e.Store.Stop(ctx, ports.StopRequest{Queue: env.Orders, For: time.Second})
	_, errs["Limits"] = e.Store.Limits(ctx, ports.LimitsRequest{Queue: env.Orders})
	_, errs["Track"] = e.Store.Track(ctx, ports.TrackRequest{Queue: env.Orders, ID: "a"})
	_, errs["Tracked"] = e.Store.Tracked(ctx, env.Orders)
	_, errs["Actions"] = e.Store.Actions(ctx, ports.ActionsRequest{})

	for call, err := range errs {
		if !errors.Is(err, context.Canceled) {
			e.Errorf("%s with an ended context returned error %v, want context.Canceled", call, err)
		}
	}
}

package registry

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func declareCases() []env.Case {
	return []env.Case{
		{Name: "makes a queue of the first generation",
			Rule:  "DeclareReply: Generation counts the queue's layouts, from 1",
			Check: declareMakesAQueue},
		{Name: "changes nothing when it is repeated",
			Rule:  "Declare: repeating it changes nothing",
			Check: declareRepeats},
		{Name: "refuses another shard count",
			Rule:  "Declare: ErrShardCountMismatch if the queue exists with another count, nothing was written",
			Check: declareRefusesCount},
		{Name: "refuses another index",
			Rule:  "Declare: ErrQueueMismatch if the queue exists with another index, nothing was written",
			Check: declareRefusesIndex},
		{Name: "refuses a bad name or count",
			Rule:  "Declare: core.ErrInvalidQueue for a name or a count that the rules refuse",
			Check: declareRefusesInvalid},
		{Name: "accepts every name that the rules allow",
			Rule:  "core.ValidateQueue: 1 to 128 of ASCII letters, digits and _-.:, but not . or ..",
			Check: declareTakesOddNames},
		{Name: "must come before other calls",
			Rule:  "ErrUnknownQueue is a queue that was never declared",
			Check: declareMustComeFirst},
	}
}

func declareMakesAQueue(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "mail", Shards: 7, IndexIDs: true})
	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	e.Same("the declared queues", queues, []ports.Queue{
		{Name: "mail", Shards: 7, Generation: 1, IndexIDs: true},
		{Name: env.Orders, Shards: 1, Generation: 1},
	})
}

func declareRepeats(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	e.Acquire("n1").One()
	e.Push(env.Entry("b", "p", 1))
	e.Unchanged("a second Declare", func() { e.Declare(env.Orders, 1) })
	e.Same("the generation", e.Declared[env.Orders].Generation, int64(1))
}

func declareRefusesCount(e *env.Env) {
	e.Unchanged("a refused Declare", func() {
		_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: env.Orders, Shards: 2})
		e.Refused("Declare with another count", err, ports.ErrShardCountMismatch)
	})
}

func declareRefusesIndex(e *env.Env) {
	e.Unchanged("a refused Declare", func() {
		_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: env.Orders, Shards: 1, IndexIDs: true})
		e.Refused("Declare with another index", err, ports.ErrQueueMismatch)
	})
}

func declareRefusesInvalid(e *env.Env) {
	for _, r := range []ports.DeclareRequest{
		{Queue: "", Shards: 1},
		{Queue: "a b", Shards: 1},
		{Queue: "a/b", Shards: 1},
		{Queue: ".", Shards: 1},
		{Queue: "..", Shards: 1},
		{Queue: "é", Shards: 1},
		{Queue: strings.Repeat("q", core.MaxQueueNameBytes+1), Shards: 1},
		{Queue: "none", Shards: 0},
		{Queue: "many", Shards: core.MaxShards + 1},
	} {
		_, err := e.Store.Declare(e.Ctx, r)
		e.Refused("Declare of "+r.Queue, err, core.ErrInvalidQueue)
	}

	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	e.Same("how many queues there are", len(queues), 1)
}

func declareTakesOddNames(e *env.Env) {
	names := []string{"0", "A", "_", "-", "...", ":", "a:b.c_d-E9", strings.Repeat("q", core.MaxQueueNameBytes)}
	for _, name := range names {
		e.Declare(name, 1)
		e.PushTo(name, env.Entry("a", name, 1))
	}
	for _, name := range names {
		j := e.FindIn(name, "a").Queued
		if j == nil || len(j.Payloads) != 1 || string(j.Payloads[0].Data) != name {
			e.Errorf("queue %q holds %v, want its own payload only", name, j)
		}
	}
}

func declareMustComeFirst(e *env.Env) {
	for what, err := range e.UndeclaredCalls("nowhere") {
		e.Refused(what+" on a queue that was not declared", err, ports.ErrUnknownQueue)
	}

	_, err := e.Store.Push(e.Ctx, ports.PushRequest{
		Queue: "nowhere", Shards: 1, Generation: 1,
		Entries: []core.Entry{env.Entry("a", "p", 1), env.Entry("b", "p", 1)},
	})
	e.Refused("Push to a queue that was not declared", err, ports.ErrUnknownQueue)

	var partial *ports.PushError
	if !errors.As(err, &partial) || !slices.Equal(partial.Entries, []int{0, 1}) {
		e.Errorf("Push to a queue that was not declared returned %#v, want a *PushError that names entries 0 and 1",
			err)
	}
}

func forgetCases() []env.Case {
	return []env.Case{
		{Name: "removes everything of an empty queue", Rule: env.RuleForget, Check: forgetRemoves},
		{
			Name:  "allows the name to be declared again",
			Rule:  "Forget: after it the name can be declared anew, with another shard count too",
			Check: forgetAnew,
		},
		{Name: "refuses a queue that is not empty", Rule: "Forget: ErrNotEmpty", Check: forgetNotEmpty},
		{Name: "refuses a queue with a leased shard", Rule: "Forget: a *HeldError", Check: forgetLeased},
		{Name: "leaves other queues alone", Rule: env.RuleForget, Check: forgetOthers},
	}
}

func forgetRemoves(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	r := h.Request(0, env.SettleAll(h.Claim(2), env.Done)...)
	r.Number = h.Number + 1
	h.Send(r)
	h.Release()

	e.Forget()
	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	e.Same("the queues", queues, nil)

	_, err = e.Store.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "p", 1)))
	e.Refused("Push", err, ports.ErrUnknownQueue)
	_, err = e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n1"))
	e.Refused("Acquire", err, ports.ErrUnknownQueue)
	_, err = e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{env.Orders}})
	e.Refused("Stats", err, ports.ErrUnknownQueue)
	_, err = e.Store.Turn(e.Ctx, r)
	e.Refused("Turn", err, ports.ErrUnknownQueue)

	if e.Repeats.All.Load() == 0 {
		e.Refused("Forget again", e.Store.Forget(e.Ctx, env.Orders), ports.ErrUnknownQueue)
	}
}

func forgetAnew(e *env.Env) {
	e.Declare("wide", 5)
	for _, at := range core.Shards("wide", 5) {
		e.PushTo("wide", env.Entry(env.IDsOf(at, 5, 1)[0], "p", 1))
		h := e.AcquireAt(at, "n1")
		h.Settle(env.Done(h.One()))
		h.Release()
	}

	e.ForgetQueue("wide")
	e.Declare("wide", 2)
	stats := e.Stats("wide")
	e.Same("the shards", len(stats.Shards), 2)
	e.Same("the counts", stats.Counts, ports.Counts{})

	at := core.Shard{Queue: "wide", Index: 1}
	id := env.IDsOf(at, 2, 1)[0]
	e.PushTo("wide", env.Entry(id, "p", 1))
	e.Same("the claims", env.IDs(e.AcquireAt(at, "n1").Claim(1)), []string{id})
}

func forgetNotEmpty(e *env.Env) {
	refused := func(what string) {
		e.TB.Helper()
		e.Unchanged("a refused Forget", func() {
			e.Refused("Forget with "+what, e.Store.Forget(e.Ctx, env.Orders), ports.ErrNotEmpty)
		})
	}

	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	refused("a queued job")

	e.ByIDs(e.Store.Expedite, "a")
	h := e.Acquire("n1")
	c := h.One()
	h.Release()
	refused("a claimed job")

	h = e.Acquire("n1")
	h.Orphans()
	h.Settle(env.Buried(c, "no use"))
	h.Release()
	refused("a dead letter")

	e.ByRefs(e.Store.Purge, env.Whole("a"))
	e.Forget()
}

func forgetLeased(e *env.Env) {
	h := e.Acquire("n1")
	err := e.Store.Forget(e.Ctx, env.Orders)
	e.Refused("Forget of a leased queue", err, ports.ErrLeaseHeld)
	if held, ok := errors.AsType[*ports.HeldError](err); !ok || held.Shard != e.Shard || held.Owner != "n1" {
		e.Errorf("Forget of a leased queue returned %#v, want a *HeldError that names shard and owner", err)
	}
	e.Same("what the holder claims", h.Claim(1), nil)
	e.Clock.Advance(env.TTL + time.Microsecond)
	e.Forget()
}

func forgetOthers(e *env.Env) {
	e.Declare("orders2", 1)
	e.Declare("order", 1)
	e.PushTo("orders2", env.Entry("a", "p", 1))
	before := e.Snapshot("orders2")
	e.Forget()
	e.Same("another queue", e.Snapshot("orders2"), before)
	e.Same("the length of a third", e.Stats("order").Fresh, int64(0))
}

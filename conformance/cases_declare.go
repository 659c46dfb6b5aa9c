package conformance

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func declareCases() []namedCase {
	return []namedCase{
		{"makes a queue of the first generation",
			"DeclareReply: Generation counts the queue's layouts, from 1",
			declareMakesAQueue},
		{"changes nothing when it is repeated",
			"Declare: repeating it changes nothing",
			declareRepeats},
		{"refuses another shard count",
			"Declare: ErrShardCountMismatch if the queue exists with another count, nothing was written",
			declareRefusesCount},
		{"refuses another index",
			"Declare: ErrQueueMismatch if the queue exists with another index, nothing was written",
			declareRefusesIndex},
		{"refuses a bad name or count",
			"Declare: core.ErrInvalidQueue for a name or a count that the rules refuse",
			declareRefusesInvalid},
		{"accepts every name that the rules allow",
			"core.ValidateQueue: 1 to 128 of ASCII letters, digits and _-.:, but not . or ..",
			declareTakesOddNames},
		{"must come before other calls",
			"ErrUnknownQueue is a queue that was never declared",
			declareMustComeFirst},
	}
}

func declareMakesAQueue(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "mail", Shards: 7, IndexIDs: true})
	queues, err := e.store.Queues(e.ctx)
	e.must(err, "Queues")
	e.same("the declared queues", queues, []ports.Queue{
		{Name: "mail", Shards: 7, Generation: 1, IndexIDs: true},
		{Name: orders, Shards: 1, Generation: 1},
	})
}

func declareRepeats(e *env) {
	e.push(entry("a", "p", 1))
	e.acquire("n1").one()
	e.push(entry("b", "p", 1))
	e.unchanged("a second Declare", func() { e.declare(orders, 1) })
	e.same("the generation", e.declared[orders].Generation, int64(1))
}

func declareRefusesCount(e *env) {
	e.unchanged("a refused Declare", func() {
		_, err := e.store.Declare(e.ctx, ports.DeclareRequest{Queue: orders, Shards: 2})
		e.refused("Declare with another count", err, ports.ErrShardCountMismatch)
	})
}

func declareRefusesIndex(e *env) {
	e.unchanged("a refused Declare", func() {
		_, err := e.store.Declare(e.ctx, ports.DeclareRequest{Queue: orders, Shards: 1, IndexIDs: true})
		e.refused("Declare with another index", err, ports.ErrQueueMismatch)
	})
}

func declareRefusesInvalid(e *env) {
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
		_, err := e.store.Declare(e.ctx, r)
		e.refused("Declare of "+r.Queue, err, core.ErrInvalidQueue)
	}
	queues, err := e.store.Queues(e.ctx)
	e.must(err, "Queues")
	e.same("how many queues there are", len(queues), 1)
}

func declareTakesOddNames(e *env) {
	names := []string{"0", "A", "_", "-", "...", ":", "a:b.c_d-E9", strings.Repeat("q", core.MaxQueueNameBytes)}
	for _, name := range names {
		e.declare(name, 1)
		e.pushTo(name, entry("a", name, 1))
	}
	for _, name := range names {
		j := e.findIn(name, "a").Queued
		if j == nil || len(j.Payloads) != 1 || string(j.Payloads[0].Data) != name {
			e.errorf("queue %q holds %v, want its own payload only", name, j)
		}
	}
}

func declareMustComeFirst(e *env) {
	for what, err := range undeclaredCalls(e, "nowhere") {
		e.refused(what+" on a queue that was not declared", err, ports.ErrUnknownQueue)
	}
	_, err := e.store.Push(e.ctx, ports.PushRequest{
		Queue: "nowhere", Shards: 1, Generation: 1,
		Entries: []core.Entry{entry("a", "p", 1), entry("b", "p", 1)},
	})
	e.refused("Push to a queue that was not declared", err, ports.ErrUnknownQueue)
	var partial *ports.PushError
	if !errors.As(err, &partial) || !slices.Equal(partial.Entries, []int{0, 1}) {
		e.errorf("Push to a queue that was not declared returned %#v, want a *PushError that names entries 0 and 1", err)
	}
}

// undeclaredCalls returns the errors of all methods of ports.ShardStore that refuse an unknown
// queue, except Push.
func undeclaredCalls(e *env, queue string) map[string]error {
	ctx, s := e.ctx, core.Shard{Queue: queue}
	lease := ports.Lease{Shard: s, Owner: "n1", Token: 1}
	page := ports.PageRequest{Queue: queue}
	errs := map[string]error{
		"Release": e.store.Release(ctx, lease),
		"Pause":   e.store.Pause(ctx, queue),
		"Resume":  e.store.Resume(ctx, queue),
		"Forget":  e.store.Forget(ctx, queue),
	}
	_, errs["Acquire"] = e.store.Acquire(ctx, ports.AcquireRequest{
		Shard: s, Shards: 1, Generation: 1, Owner: "n1", Attempt: 1, TTL: ttl,
	})
	_, errs["Turn"] = e.store.Turn(ctx, ports.TurnRequest{Lease: lease, Number: 1, TTL: ttl, Want: 1})
	_, errs["Renew"] = e.store.Renew(ctx, ports.RenewRequest{Lease: lease, TTL: ttl})
	_, errs["Heads"] = e.store.Heads(ctx, []core.Shard{s})
	_, errs["Permit"] = e.store.Permit(ctx, ports.PermitRequest{
		Queue: queue, Owner: "n1", Attempt: 1, Limit: 1, Hold: 1, Want: 1, TTL: ttl,
	})
	_, errs["Track"] = e.store.Track(ctx, ports.TrackRequest{Queue: queue, ID: "a"})
	_, errs["Tracked"] = e.store.Tracked(ctx, queue)
	_, errs["QuarantinedShards"] = e.store.QuarantinedShards(ctx, ports.QuarantinedShardsRequest{Queue: queue})
	_, errs["Quarantined"] = e.store.Quarantined(ctx, ports.QuarantineRequest{Shard: s})
	_, errs["Discard"] = e.store.Discard(ctx, ports.DiscardRequest{Shard: s, Keys: []string{"x"}})
	_, errs["Recount"] = e.store.Recount(ctx, ports.RecountRequest{Shard: s})
	_, errs["Groups"] = e.store.Groups(ctx, ports.GroupsRequest{Queue: queue})
	_, errs["Stats"] = e.store.Stats(ctx, ports.StatsRequest{Queues: []string{queue}})
	_, errs["History"] = e.store.History(ctx, ports.HistoryRequest{Queue: queue})
	_, errs["Jobs"] = e.store.Jobs(ctx, ports.JobsRequest{PageRequest: page})
	_, errs["Claimed"] = e.store.Claimed(ctx, page)
	_, errs["Morgue"] = e.store.Morgue(ctx, ports.MorgueRequest{PageRequest: page})
	_, errs["Find"] = e.store.Find(ctx, ports.FindRequest{Queue: queue, ID: "a", Payloads: 1000})
	_, errs["Expedite"] = e.store.Expedite(ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	_, errs["Bury"] = e.store.Bury(ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	_, errs["Delete"] = e.store.Delete(ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	_, errs["Cancel"] = e.store.Cancel(ctx, ports.CancelRequest{Shard: s, IDs: []string{"a"}})
	_, errs["Revive"] = e.store.Revive(ctx, ports.DeadLetterStep{Shard: s, Before: e.now()})
	_, errs["Purge"] = e.store.Purge(ctx, ports.DeadLetterStep{Shard: s, Before: e.now()})
	_, errs["Edit"] = e.store.Edit(ctx, ports.EditRequest{Shard: s, ID: "a", Old: []byte("x"), New: []byte("y")})
	_, errs["Import"] = e.store.Import(ctx, ports.ImportRequest{Shard: s, Shards: 1, Generation: 1, DeadLetters: []core.DeadLetter{letter("a", 1, pay("p", 1))}})
	return errs
}

const ruleForget = "Forget removes a queue with no queued, claimed or dead entry and no leased shard: its record, counters and history"

func forgetCases() []namedCase {
	return []namedCase{
		{"removes everything of an empty queue", ruleForget, forgetRemoves},
		{"allows the name to be declared again", "Forget: after it the name can be declared anew, with another shard count too", forgetAnew},
		{"refuses a queue that is not empty", "Forget: ErrNotEmpty", forgetNotEmpty},
		{"refuses a queue with a leased shard", "Forget: a *HeldError", forgetLeased},
		{"leaves other queues alone", ruleForget, forgetOthers},
	}
}

func forgetRemoves(e *env) {
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	r := h.request(0, settleAll(h.claim(2), done)...)
	r.Number = h.number + 1
	h.send(r)
	h.release()
	e.forget()
	queues, err := e.store.Queues(e.ctx)
	e.must(err, "Queues")
	e.same("the queues", queues, nil)
	_, err = e.store.Push(e.ctx, e.pushRequest(orders, entry("a", "p", 1)))
	e.refused("Push", err, ports.ErrUnknownQueue)
	_, err = e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n1"))
	e.refused("Acquire", err, ports.ErrUnknownQueue)
	_, err = e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{orders}})
	e.refused("Stats", err, ports.ErrUnknownQueue)
	_, err = e.store.Turn(e.ctx, r)
	e.refused("Turn", err, ports.ErrUnknownQueue)
	if e.repeats.All.Load() == 0 {
		e.refused("Forget again", e.store.Forget(e.ctx, orders), ports.ErrUnknownQueue)
	}
}

func forgetAnew(e *env) {
	e.declare("wide", 5)
	for _, at := range core.Shards("wide", 5) {
		e.pushTo("wide", entry(idsOf(at, 5, 1)[0], "p", 1))
		h := e.acquireAt(at, "n1")
		h.settle(done(h.one()))
		h.release()
	}
	e.forgetQueue("wide")
	e.declare("wide", 2)
	stats := e.stats("wide")
	e.same("the shards", len(stats.Shards), 2)
	e.same("the counts", stats.Counts, ports.Counts{})
	at := core.Shard{Queue: "wide", Index: 1}
	id := idsOf(at, 2, 1)[0]
	e.pushTo("wide", entry(id, "p", 1))
	e.same("the claims", ids(e.acquireAt(at, "n1").claim(1)), []string{id})
}

func forgetNotEmpty(e *env) {
	refused := func(what string) {
		e.tb.Helper()
		e.unchanged("a refused Forget", func() {
			e.refused("Forget with "+what, e.store.Forget(e.ctx, orders), ports.ErrNotEmpty)
		})
	}
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	refused("a queued job")
	e.byIDs(e.store.Expedite, "a")
	h := e.acquire("n1")
	c := h.one()
	h.release()
	refused("a claimed job")
	h = e.acquire("n1")
	h.orphans()
	h.settle(buried(c, "no use"))
	h.release()
	refused("a dead letter")
	e.byRefs(e.store.Purge, whole("a"))
	e.forget()
}

func forgetLeased(e *env) {
	h := e.acquire("n1")
	err := e.store.Forget(e.ctx, orders)
	e.refused("Forget of a leased queue", err, ports.ErrLeaseHeld)
	if held, ok := errors.AsType[*ports.HeldError](err); !ok || held.Shard != e.shard || held.Owner != "n1" {
		e.errorf("Forget of a leased queue returned %#v, want a *HeldError that names shard and owner", err)
	}
	e.same("what the holder claims", h.claim(1), nil)
	e.clock.Advance(ttl + time.Microsecond)
	e.forget()
}

func forgetOthers(e *env) {
	e.declare("orders2", 1)
	e.declare("order", 1)
	e.pushTo("orders2", entry("a", "p", 1))
	before := e.snapshot("orders2")
	e.forget()
	e.same("another queue", e.snapshot("orders2"), before)
	e.same("the length of a third", e.stats("order").Fresh, int64(0))
}

// forget forgets the queue orders.
func (e *env) forget() {
	e.tb.Helper()
	e.forgetQueue(orders)
}

func (e *env) forgetQueue(queue string) {
	e.tb.Helper()
	before := e.repeats.All.Load()
	err := e.store.Forget(e.ctx, queue)
	if errors.Is(err, ports.ErrUnknownQueue) && e.repeats.All.Load() > before {
		return // the first call has removed the queue
	}
	e.must(err, "Forget")
}

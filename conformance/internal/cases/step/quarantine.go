package step

import (
	"slices"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleAside = "Quarantine: an unreadable record never stops its shard: " +
		"the first call that would change or take it sets it aside and does its other work as if the record were absent"
	ruleAsideShards = "QuarantinedShards returns the shards of a queue that have quarantined records"
	ruleDiscard     = "Discard removes quarantined records; other data of their ids stays. Unknown keys are ignored"
)

// quarantineCases are for all stores. damageCases are for stores whose records the suite can
// damage.
func quarantineCases() []env.Case {
	return []env.Case{
		{
			Name:  "is empty if every record can be read",
			Rule:  "Quarantined lists a shard's quarantined records",
			Check: quarantineEmpty,
		},
		{
			Name: "refuses a queue or shard that is not there",
			Rule: "Quarantine: ErrUnknownQueue; " +
				"ErrInvalidRequest for a shard that the queue does not have, or for more than MaxStep keys",
			Check: quarantineRefuses,
		},
	}
}

func damageCases() []env.Case {
	return []env.Case{
		{Name: "a queued job stops no turn", Rule: ruleAside, Check: damagedQueued},
		{Name: "a queued job makes room for a push", Rule: ruleAside, Check: damagedPushed},
		{Name: "a queued job stops no step", Rule: ruleAside, Check: damagedSteps},
		{
			Name:  "a claimed job stops no settlement",
			Rule:  "Quarantine: a settlement of a quarantined claim is skipped",
			Check: damagedClaim,
		},
		{Name: "a claimed job stops no acquire", Rule: ruleAside, Check: damagedOrphan},
		{Name: "a dead letter stops no step", Rule: ruleAside, Check: damagedDead},
		{Name: "a dead letter leaves its group", Rule: env.RuleGroups, Check: damagedGroup},
		{Name: "is reported for its shard", Rule: ruleAsideShards, Check: damagedShards},
		{
			Name: "is left out by lists and Find",
			Rule: "Quarantine: lists and Find leave out unreadable records, and write nothing; " +
				"Found.Damaged are the places with a record that the store can't read",
			Check: damagedLists,
		},
		{Name: "is discarded by its key", Rule: ruleDiscard, Check: damagedDiscarded},
		{
			Name:  "is listed page by page",
			Rule:  "Quarantined lists a shard's quarantined records, in order of key",
			Check: damagedPages,
		},
		{
			Name:  "keeps its queue from being forgotten",
			Rule:  "Quarantine: a queue with quarantined records is not empty for Forget",
			Check: damagedForget,
		},
	}
}

func quarantined(e *env.Env) []ports.QuarantinedRecord {
	e.TB.Helper()
	page, err := e.Store.Quarantined(e.Ctx, ports.QuarantineRequest{Shard: e.Shard, Limit: ports.MaxPage})
	e.Must(err, "Quarantined")
	e.Same("the page after it", page.Next, "")
	return page.Records
}

// aside checks that the shard has set aside the records of the given ids in a place, and no others.
func aside(e *env.Env, place ports.Place, ids ...string) {
	e.TB.Helper()

	var got []string
	for _, r := range quarantined(e) {
		got = append(got, r.ID)
		e.Same("the place of "+r.ID, r.Place, place)
		if r.Key == "" || r.Reason == "" || r.Since == 0 || len(r.Stored) > r.Size {
			e.Errorf("%s was set aside as %+v; want a Key, a Reason, a Since, and a Size of at least the Stored bytes",
				r.ID, r)
		}
	}

	slices.Sort(got)
	e.Same("what was set aside", got, ids)
	e.Same("its count", e.Counts().Quarantined, int64(len(ids)))
}

func damage(e *env.Env, place ports.Place, ids ...string) {
	e.TB.Helper()
	for _, id := range ids {
		e.Must(e.Store.(env.Damager).Damage(e.Ctx, e.Shard, id, place), "Damage")
	}
}

func discard(e *env.Env, keys ...string) int {
	e.TB.Helper()
	n, err := e.Store.Discard(e.Ctx, ports.DiscardRequest{Shard: e.Shard, Keys: keys})
	e.Must(err, "Discard")
	return n
}

func quarantineEmpty(e *env.Env) {
	e.ClaimedJob()
	e.BuryAll("x")
	e.PushIDs("y")
	e.Same("what was set aside", quarantined(e), []ports.QuarantinedRecord(nil))
	e.Same("its count", e.Counts().Quarantined, int64(0))
	e.Same("the shards that have set something aside", quarantinedShards(e, env.Orders, nil), []int(nil))
	e.Unchanged("Discard of what is not there", func() { e.Same("what it discarded", discard(e, "x", ""), 0) })
}

func quarantineRefuses(e *env.Env) {
	for at, sentinel := range map[core.Shard]error{
		{Queue: env.Orders, Index: 1}:  ports.ErrInvalidRequest,
		{Queue: env.Orders, Index: -1}: ports.ErrInvalidRequest,
		{Queue: "never"}:               ports.ErrUnknownQueue,
	} {
		_, err := e.Store.Quarantined(e.Ctx, ports.QuarantineRequest{Shard: at})
		e.Refused("Quarantined of "+at.String(), err, sentinel)

		_, err = e.Store.Discard(e.Ctx, ports.DiscardRequest{Shard: at, Keys: []string{"x"}})
		e.Refused("Discard in "+at.String(), err, sentinel)

		_, err = e.Store.QuarantinedShards(e.Ctx, ports.QuarantinedShardsRequest{
			Queue:  at.Queue,
			Shards: []int{at.Index},
		})
		e.Refused("QuarantinedShards of "+at.String(), err, sentinel)
	}

	_, err := e.Store.Discard(e.Ctx, ports.DiscardRequest{Shard: e.Shard, Keys: make([]string, ports.MaxStep+1)})
	e.Refused("Discard of too much", err, ports.ErrInvalidRequest)
}

func damagedQueued(e *env.Env) {
	e.PushIDs("a", "b", "c", "d")
	damage(e, ports.PlaceQueued, "a", "c")
	h := e.Acquire("n1")
	e.Same("the jobs claimed", env.IDs(h.Claim(10)), []string{"b", "d"})
	aside(e, ports.PlaceQueued, "a", "c")
	c := e.Counts()
	e.Same("the jobs that wait", c.Fresh+c.Retrying, int64(0))
	e.Same("the head", e.Head(), core.Head{})
}

func damagedPushed(e *env.Env) {
	e.Push(env.Entry("a", "old", 1))
	damage(e, ports.PlaceQueued, "a")
	e.Push(env.Entry("a", "new", 2))
	e.Same("the payloads queued", e.Queued("a").Payloads, []core.Payload{env.Pay("new", 2)})
	aside(e, ports.PlaceQueued, "a")
	e.Same("the jobs claimed", env.IDs(e.Acquire("n1").Claim(10)), []string{"a"})
}

func damagedSteps(e *env.Env) {
	for name, do := range jobSteps(e) {
		e.FailAll(name+"-a", name+"-b", name+"-c")
		damage(e, ports.PlaceQueued, name+"-a", name+"-b")
		e.ByIDs(do, name+"-a")

		for range 5 {
			e.ByIDs(do, name+"-a", name+"-b", name+"-c")
		}

		if name == "Expedite" {
			e.Same("the job that is due", e.Head(), env.Due(e.Now()))
			e.ByIDs(e.Store.Delete, name+"-c")
		}

		c := e.Counts()
		e.Same("the jobs that wait after "+name, c.Fresh+c.Retrying, int64(0))

		for _, r := range quarantined(e) {
			discard(e, r.Key)
		}
	}

	e.Same("the dead letters", e.DeadIDs(), []string{"Bury-c"})
}

func damagedClaim(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(10)
	damage(e, ports.PlaceClaimed, "b")
	e.Reported("the settlements skipped", h.Settle(env.SettleAll(claims, env.Done)...).Skipped, []int{1})
	aside(e, ports.PlaceClaimed, "b")
	e.Same("the jobs claimed", e.Counts().Claimed, int64(0))
	e.PushIDs("b")
	e.Same("the next job", env.IDs(h.Claim(10)), []string{"b"})
}

func damagedOrphan(e *env.Env) {
	e.PushIDs("a", "b", "c")
	e.ClaimAndCrash("n1")
	damage(e, ports.PlaceClaimed, "a", "c")
	h := e.Acquire("n2")
	e.Same("the jobs left", env.IDs(h.Orphans()), []string{"b"})
	aside(e, ports.PlaceClaimed, "a", "c")
	e.Same("the jobs claimed", e.Counts().Claimed, int64(1))
}

func damagedDead(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		e.BuryAll(name+"-a", name+"-b", name+"-c")
		damage(e, ports.PlaceDead, name+"-a", name+"-b")
		e.ByRefs(do, env.Whole(name+"-a"))

		for range 5 {
			e.ByAge(do, e.Now()+1, 0)
		}

		e.Same("the dead letters after "+name, e.Counts().Dead, int64(0))
		for _, r := range quarantined(e) {
			e.Same("the place of "+r.ID, r.Place, ports.PlaceDead)
			discard(e, r.Key)
		}
	}

	e.Same("the jobs that wait", e.QueuedIDs(), []string{"Revive-c"})
	e.BuryAll("x")
	damage(e, ports.PlaceDead, "x")
	e.BuryAll("x")
	e.Same("the dead letters", e.DeadIDs(), []string{"x"})
	aside(e, ports.PlaceDead, "x")
}

func damagedGroup(e *env.Env) {
	e.BuryIn("timeout", "a", "b")
	e.BuryIn("refused", "c")
	damage(e, ports.PlaceDead, "a", "c")
	for range 5 {
		e.ByRefs(e.Store.Purge, env.Whole("a"), env.Whole("c"))
	}
	aside(e, ports.PlaceDead, "a", "c")
	e.HaveGroups("of what can be read", env.GroupOf("timeout", 1, 1, 1))
	e.Same("a group's list", e.MorgueOf("timeout")(env.WholePage(env.Orders)).IDs, []string{"b"})
	e.BuryIn("refused", "c")
	e.HaveGroups("after another burial", env.GroupOf("refused", 1, 3, 3), env.GroupOf("timeout", 1, 1, 1))
}

func damagedLists(e *env.Env) {
	e.PushIDs("c1", "c2")
	h := e.Acquire("n1")
	h.Claim(10)
	e.BuryAll("d1", "d2")
	e.PushIDs("q1", "q2")

	damage(e, ports.PlaceQueued, "q1")
	damage(e, ports.PlaceClaimed, "c1")
	damage(e, ports.PlaceDead, "d1")

	e.Same("the queued jobs", e.QueuedIDs(), []string{"q2"})
	e.Same("the claimed jobs", e.ClaimedPages(env.WholePage(env.Orders)).IDs, []string{"c2"})
	e.Same("the dead letters", e.DeadIDs(), []string{"d2"})

	for id, place := range map[string]ports.Place{
		"q1": ports.PlaceQueued,
		"c1": ports.PlaceClaimed,
		"d1": ports.PlaceDead,
	} {
		f := e.Find(id)
		e.Same("Damaged of Find for "+id, f.Damaged, []ports.Place{place})
		if f.Queued != nil || f.Claim != nil || f.DeadLetter != nil {
			e.Errorf("Find of %s returned %+v; want nothing", id, f)
		}
	}
}

func damagedDiscarded(e *env.Env) {
	e.PushIDs("a", "b", "c")
	damage(e, ports.PlaceQueued, "a", "b")
	e.Same("the jobs claimed", env.IDs(e.Acquire("n1").Claim(10)), []string{"c"})
	e.PushIDs("a")

	all := quarantined(e)
	if len(all) != 2 {
		e.Errorf("%d were set aside, want 2", len(all))
		return
	}

	first := all[0].Key
	e.Reported("how many were discarded", discard(e, first, "never"), 1)
	e.Reported("how many were discarded again", discard(e, first), 0)
	e.Same("what is left", quarantined(e), all[1:])
	e.Same("its count", e.Counts().Quarantined, int64(1))
	e.Same("what its id has besides", e.QueuedIDs(), []string{"a"})

	e.Reported("how many were discarded", discard(e, all[1].Key), 1)
	aside(e, ports.PlaceQueued)
}

func damagedPages(e *env.Env) {
	names := []string{"a", "b", "c", "d", "e"}
	e.PushIDs(names...)
	damage(e, ports.PlaceQueued, names...)
	e.Acquire("n1").Claim(10)

	var got, keys []string
	r := ports.QuarantineRequest{Shard: e.Shard, Limit: 2}

	for range names {
		page, err := e.Store.Quarantined(e.Ctx, r)
		e.Must(err, "Quarantined")
		for _, record := range page.Records {
			got, keys = append(got, record.ID), append(keys, record.Key)
		}
		if r.After = page.Next; r.After == "" {
			break
		}
	}

	slices.Sort(got)
	e.Same("the ids of all pages", got, names)
	e.Same("whether they are in order of key", slices.IsSorted(keys), true)
}

func damagedForget(e *env.Env) {
	e.PushIDs("a")
	damage(e, ports.PlaceQueued, "a")
	h := e.Acquire("n1")
	h.Claim(10)
	h.Release()
	e.Refused("Forget", e.Store.Forget(e.Ctx, env.Orders), ports.ErrNotEmpty)
	for _, r := range quarantined(e) {
		discard(e, r.Key)
	}
	e.Must(e.Store.Forget(e.Ctx, env.Orders), "Forget")
}

// quarantinedShards returns the indexes of the shards that have set a record aside.
func quarantinedShards(e *env.Env, queue string, of []int) (indexes []int) {
	e.TB.Helper()
	reply, err := e.Store.QuarantinedShards(e.Ctx, ports.QuarantinedShardsRequest{Queue: queue, Shards: of})
	e.Must(err, "QuarantinedShards")
	e.Same("the shards that are not reached", reply.Unreached, []core.Shard(nil))
	for _, shard := range reply.Shards {
		e.Same("the shard's queue", shard.Queue, queue)
		indexes = append(indexes, shard.Index)
	}
	return indexes
}

func damagedShards(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "wide", Shards: 3})
	for _, shard := range core.Shards("wide", 3)[1:] {
		id := env.IDsOf(shard, 3, 1)[0]
		e.PushTo("wide", env.EntryAt(id, "p", 1, e.Now()))
		e.Must(e.Store.(env.Damager).Damage(e.Ctx, shard, id, ports.PlaceQueued), "Damage")
		_, err := e.Store.Delete(e.Ctx, ports.JobStep{Shard: shard, IDs: []string{id}})
		e.Must(err, "Delete")
	}
	e.Same("the shards that have set something aside", quarantinedShards(e, "wide", nil), []int{1, 2})
	e.Same("those of the first two", quarantinedShards(e, "wide", []int{1, 0}), []int{1})
	e.Same("those of none", quarantinedShards(e, "wide", []int{}), []int(nil))
}

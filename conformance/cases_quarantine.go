package conformance

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleAside       = "Quarantine: an unreadable record never stops its shard: the first call that would change or take it sets it aside and does its other work as if the record were absent"
	ruleAsideShards = "QuarantinedShards returns the shards of a queue that have quarantined records"
	ruleDiscard     = "Discard removes quarantined records; other data of their ids stays. Unknown keys are ignored"
)

// quarantineCases are for all stores. damageCases are for stores whose records the suite can
// damage.
func quarantineCases() []namedCase {
	return []namedCase{
		{"is empty if every record can be read", "Quarantined lists a shard's quarantined records", quarantineEmpty},
		{"refuses a queue or shard that is not there", "Quarantine: ErrUnknownQueue; ErrInvalidRequest for a shard that the queue does not have, or for more than MaxStep keys", quarantineRefuses},
	}
}

func damageCases() []namedCase {
	return []namedCase{
		{"a queued job stops no turn", ruleAside, damagedQueued},
		{"a queued job makes room for a push", ruleAside, damagedPushed},
		{"a queued job stops no step", ruleAside, damagedSteps},
		{"a claimed job stops no settlement", "Quarantine: a settlement of a quarantined claim is skipped", damagedClaim},
		{"a claimed job stops no acquire", ruleAside, damagedOrphan},
		{"a dead letter stops no step", ruleAside, damagedDead},
		{"a dead letter leaves its group", ruleGroups, damagedGroup},
		{"is reported for its shard", ruleAsideShards, damagedShards},
		{"is left out by lists and Find", "Quarantine: lists and Find leave out unreadable records, and write nothing; Found.Damaged are the places with a record that the store can't read", damagedLists},
		{"is discarded by its key", ruleDiscard, damagedDiscarded},
		{"is listed page by page", "Quarantined lists a shard's quarantined records, in order of key", damagedPages},
		{"keeps its queue from being forgotten", "Quarantine: a queue with quarantined records is not empty for Forget", damagedForget},
	}
}

func (e *env) quarantined() []ports.QuarantinedRecord {
	e.tb.Helper()
	page, err := e.store.Quarantined(e.ctx, ports.QuarantineRequest{Shard: e.shard, Limit: ports.MaxPage})
	e.must(err, "Quarantined")
	e.same("the page after it", page.Next, "")
	return page.Records
}

// aside checks that the shard has set aside the records of the given ids in a place, and no others.
func (e *env) aside(place ports.Place, ids ...string) {
	e.tb.Helper()
	var got []string
	for _, r := range e.quarantined() {
		got = append(got, r.ID)
		e.same("the place of "+r.ID, r.Place, place)
		if r.Key == "" || r.Reason == "" || r.Since == 0 || len(r.Stored) > r.Size {
			e.errorf("%s was set aside as %+v; want a Key, a Reason, a Since, and a Size of at least the Stored bytes", r.ID, r)
		}
	}
	slices.Sort(got)
	e.same("what was set aside", got, ids)
	e.same("its count", e.counts().Quarantined, int64(len(ids)))
}

func (e *env) damage(place ports.Place, ids ...string) {
	e.tb.Helper()
	for _, id := range ids {
		e.must(e.store.(Damager).Damage(e.ctx, e.shard, id, place), "Damage")
	}
}

func (e *env) discard(keys ...string) int {
	e.tb.Helper()
	n, err := e.store.Discard(e.ctx, ports.DiscardRequest{Shard: e.shard, Keys: keys})
	e.must(err, "Discard")
	return n
}

func quarantineEmpty(e *env) {
	claimedJob(e)
	buryAll(e, "x")
	e.pushIDs("y")
	e.same("what was set aside", e.quarantined(), []ports.QuarantinedRecord(nil))
	e.same("its count", e.counts().Quarantined, int64(0))
	e.same("the shards that have set something aside", e.quarantinedShards(orders, nil), []int(nil))
	e.unchanged("Discard of what is not there", func() { e.same("what it discarded", e.discard("x", ""), 0) })
}

func quarantineRefuses(e *env) {
	for at, sentinel := range map[core.Shard]error{
		{Queue: orders, Index: 1}:  ports.ErrInvalidRequest,
		{Queue: orders, Index: -1}: ports.ErrInvalidRequest,
		{Queue: "never"}:           ports.ErrUnknownQueue,
	} {
		_, err := e.store.Quarantined(e.ctx, ports.QuarantineRequest{Shard: at})
		e.refused("Quarantined of "+at.String(), err, sentinel)
		_, err = e.store.Discard(e.ctx, ports.DiscardRequest{Shard: at, Keys: []string{"x"}})
		e.refused("Discard in "+at.String(), err, sentinel)
		_, err = e.store.QuarantinedShards(e.ctx, ports.QuarantinedShardsRequest{Queue: at.Queue, Shards: []int{at.Index}})
		e.refused("QuarantinedShards of "+at.String(), err, sentinel)
	}
	_, err := e.store.Discard(e.ctx, ports.DiscardRequest{Shard: e.shard, Keys: make([]string, ports.MaxStep+1)})
	e.refused("Discard of too much", err, ports.ErrInvalidRequest)
}

func damagedQueued(e *env) {
	e.pushIDs("a", "b", "c", "d")
	e.damage(ports.PlaceQueued, "a", "c")
	h := e.acquire("n1")
	e.same("the jobs claimed", ids(h.claim(10)), []string{"b", "d"})
	e.aside(ports.PlaceQueued, "a", "c")
	c := e.counts()
	e.same("the jobs that wait", c.Fresh+c.Retrying, int64(0))
	e.same("the head", e.head(), core.Head{})
}

func damagedPushed(e *env) {
	e.push(entry("a", "old", 1))
	e.damage(ports.PlaceQueued, "a")
	e.push(entry("a", "new", 2))
	e.same("the payloads queued", e.queued("a").Payloads, []core.Payload{pay("new", 2)})
	e.aside(ports.PlaceQueued, "a")
	e.same("the jobs claimed", ids(e.acquire("n1").claim(10)), []string{"a"})
}

func damagedSteps(e *env) {
	for name, do := range e.jobSteps() {
		failAll(e, name+"-a", name+"-b", name+"-c")
		e.damage(ports.PlaceQueued, name+"-a", name+"-b")
		e.byIDs(do, name+"-a")
		for range 5 {
			e.byIDs(do, name+"-a", name+"-b", name+"-c")
		}
		if name == "Expedite" {
			e.same("the job that is due", e.head(), due(e.now()))
			e.byIDs(e.store.Delete, name+"-c")
		}
		c := e.counts()
		e.same("the jobs that wait after "+name, c.Fresh+c.Retrying, int64(0))
		for _, r := range e.quarantined() {
			e.discard(r.Key)
		}
	}
	e.same("the dead letters", e.deadIDs(), []string{"Bury-c"})
}

func damagedClaim(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	claims := h.claim(10)
	e.damage(ports.PlaceClaimed, "b")
	e.same("the settlements skipped", h.settle(settleAll(claims, done)...).Skipped, []int{1})
	e.aside(ports.PlaceClaimed, "b")
	e.same("the jobs claimed", e.counts().Claimed, int64(0))
	e.pushIDs("b")
	e.same("the next job", ids(h.claim(10)), []string{"b"})
}

func damagedOrphan(e *env) {
	e.pushIDs("a", "b", "c")
	claimAndCrash(e, "n1")
	e.damage(ports.PlaceClaimed, "a", "c")
	h := e.acquire("n2")
	e.same("the jobs left", ids(h.orphans()), []string{"b"})
	e.aside(ports.PlaceClaimed, "a", "c")
	e.same("the jobs claimed", e.counts().Claimed, int64(1))
}

func damagedDead(e *env) {
	for name, do := range e.deadLetterSteps() {
		buryAll(e, name+"-a", name+"-b", name+"-c")
		e.damage(ports.PlaceDead, name+"-a", name+"-b")
		e.byRefs(do, whole(name+"-a"))
		for range 5 {
			e.byAge(do, e.now()+1, 0)
		}
		e.same("the dead letters after "+name, e.counts().Dead, int64(0))
		for _, r := range e.quarantined() {
			e.same("the place of "+r.ID, r.Place, ports.PlaceDead)
			e.discard(r.Key)
		}
	}
	e.same("the jobs that wait", e.queuedIDs(), []string{"Revive-c"})
	buryAll(e, "x")
	e.damage(ports.PlaceDead, "x")
	buryAll(e, "x")
	e.same("the dead letters", e.deadIDs(), []string{"x"})
	e.aside(ports.PlaceDead, "x")
}

func damagedGroup(e *env) {
	e.buryIn("timeout", "a", "b")
	e.buryIn("refused", "c")
	e.damage(ports.PlaceDead, "a", "c")
	for range 5 {
		e.byRefs(e.store.Purge, whole("a"), whole("c"))
	}
	e.aside(ports.PlaceDead, "a", "c")
	e.haveGroups("of what can be read", groupOf("timeout", 1, 1, 1))
	e.same("a group's list", e.morgueOf("timeout")(wholePage(orders)).ids, []string{"b"})
	e.buryIn("refused", "c")
	e.haveGroups("after another burial", groupOf("refused", 1, 3, 3), groupOf("timeout", 1, 1, 1))
}

func damagedLists(e *env) {
	e.pushIDs("c1", "c2")
	h := e.acquire("n1")
	h.claim(10)
	buryAll(e, "d1", "d2")
	e.pushIDs("q1", "q2")
	e.damage(ports.PlaceQueued, "q1")
	e.damage(ports.PlaceClaimed, "c1")
	e.damage(ports.PlaceDead, "d1")
	e.same("the queued jobs", e.queuedIDs(), []string{"q2"})
	e.same("the claimed jobs", e.claimedPages(wholePage(orders)).ids, []string{"c2"})
	e.same("the dead letters", e.deadIDs(), []string{"d2"})
	for id, place := range map[string]ports.Place{"q1": ports.PlaceQueued, "c1": ports.PlaceClaimed, "d1": ports.PlaceDead} {
		f := e.find(id)
		e.same("Damaged of Find for "+id, f.Damaged, []ports.Place{place})
		if f.Queued != nil || f.Claim != nil || f.DeadLetter != nil {
			e.errorf("Find of %s returned %+v; want nothing", id, f)
		}
	}
}

func damagedDiscarded(e *env) {
	e.pushIDs("a", "b", "c")
	e.damage(ports.PlaceQueued, "a", "b")
	e.same("the jobs claimed", ids(e.acquire("n1").claim(10)), []string{"c"})
	e.pushIDs("a")
	all := e.quarantined()
	if len(all) != 2 {
		e.errorf("%d were set aside, want 2", len(all))
		return
	}
	first := all[0].Key
	e.reported("how many were discarded", e.discard(first, "never"), 1)
	e.reported("how many were discarded again", e.discard(first), 0)
	e.same("what is left", e.quarantined(), all[1:])
	e.same("its count", e.counts().Quarantined, int64(1))
	e.same("what its id has besides", e.queuedIDs(), []string{"a"})
	e.reported("how many were discarded", e.discard(all[1].Key), 1)
	e.aside(ports.PlaceQueued)
}

func damagedPages(e *env) {
	names := []string{"a", "b", "c", "d", "e"}
	e.pushIDs(names...)
	e.damage(ports.PlaceQueued, names...)
	e.acquire("n1").claim(10)
	var got, keys []string
	r := ports.QuarantineRequest{Shard: e.shard, Limit: 2}
	for range names {
		page, err := e.store.Quarantined(e.ctx, r)
		e.must(err, "Quarantined")
		for _, record := range page.Records {
			got, keys = append(got, record.ID), append(keys, record.Key)
		}
		if r.After = page.Next; r.After == "" {
			break
		}
	}
	slices.Sort(got)
	e.same("the ids of all pages", got, names)
	e.same("whether they are in order of key", slices.IsSorted(keys), true)
}

func damagedForget(e *env) {
	e.pushIDs("a")
	e.damage(ports.PlaceQueued, "a")
	h := e.acquire("n1")
	h.claim(10)
	h.release()
	e.refused("Forget", e.store.Forget(e.ctx, orders), ports.ErrNotEmpty)
	for _, r := range e.quarantined() {
		e.discard(r.Key)
	}
	e.must(e.store.Forget(e.ctx, orders), "Forget")
}

// quarantinedShards returns the indexes of the shards that have set a record aside.
func (e *env) quarantinedShards(queue string, of []int) (indexes []int) {
	e.tb.Helper()
	reply, err := e.store.QuarantinedShards(e.ctx, ports.QuarantinedShardsRequest{Queue: queue, Shards: of})
	e.must(err, "QuarantinedShards")
	e.same("the shards that are not reached", reply.Unreached, []core.Shard(nil))
	for _, shard := range reply.Shards {
		e.same("the shard's queue", shard.Queue, queue)
		indexes = append(indexes, shard.Index)
	}
	return indexes
}

func damagedShards(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3})
	for _, shard := range core.Shards("wide", 3)[1:] {
		id := idsOf(shard, 3, 1)[0]
		e.pushTo("wide", entryAt(id, "p", 1, e.now()))
		e.must(e.store.(Damager).Damage(e.ctx, shard, id, ports.PlaceQueued), "Damage")
		_, err := e.store.Delete(e.ctx, ports.JobStep{Shard: shard, IDs: []string{id}})
		e.must(err, "Delete")
	}
	e.same("the shards that have set something aside", e.quarantinedShards("wide", nil), []int{1, 2})
	e.same("those of the first two", e.quarantinedShards("wide", []int{1, 0}), []int{1})
	e.same("those of none", e.quarantinedShards("wide", []int{}), []int(nil))
}

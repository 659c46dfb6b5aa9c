package conformance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleGroups    = "Groups counts the dead letters by group. Each dead letter has one group, that of its newest burial; so the counts match the lists and steps by group, and add up to Counts.Dead"
	ruleGroupName = "Groups: the group is core.GroupName of Settlement.Group, or core.BuriedByHand of Operator.Bury"
	ruleGroupTime = "Group: First is the earliest burial since the group was empty, and Last the latest; dead letters that are gone count for both, and an edit for neither"
	ruleGroupStep = "DeadLetterStep: Group limits a step over all to the dead letters of a group"
	ruleGroupMost = "Groups: core.OtherGroup, if its shard already had core.MaxGroups other groups"
)

func groupCases() []namedCase {
	return []namedCase{
		{"counts burials", ruleGroups, groupCounts},
		{"keeps names, or the part of them that GroupName keeps", ruleGroupName, groupNames},
		{"is the group of the newest burial", ruleGroups, groupNewest},
		{"stays after an edit and with the payloads that are left", "Groups: an edit keeps the group, and so do the payloads that are left after a step has taken some", groupStays},
		{"is removed with its last dead letter", ruleGroupTime, groupGoes},
		{"keeps its earliest and latest burial when the clock steps back", ruleGroupTime, groupClockBack},
		{"counts the burials of one call together", "Groups: the burials of one call are counted together", groupTogether},
		{"keeps MaxGroups groups apart", ruleGroupMost, groupMost},
		{"is listed by size, up to the limit", "GroupsReply: Groups are those with the most dead letters; Total and Dead include those that Limit leaves out", groupLargest},
		{"is counted in the given shards only", "GroupsRequest: Shards are the indexes of the shards to count, in any order; nil means all shards, an empty list means no shard", groupShards},
		{"lists its dead letters in both directions", "MorgueRequest: Group limits a list by time to the dead letters of a group", groupLists},
		{"is revived and purged without other groups", ruleGroupStep, groupSteps},
		{"limits a step to dead letters before an instant", ruleGroupStep, groupBefore},
		{"is refused in a request that can't have one", "MorgueRequest, DeadLetterStep: ErrInvalidRequest for a group that no dead letter can have, for a group of a list by id, and for one beside named dead letters", groupRefused},
		{"is removed with its queue", ruleForget, groupForgotten},
		{"is unchanged by a recount if its count was right", ruleCount, groupRecounted},
	}
}

// buriedAs buries a claim in a group.
func buriedAs(c core.Claim, group string) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Buried, Error: "no use", Group: group})
}

// buryIn buries a job of each id in a group, in one call, a second after the previous call.
func (e *env) buryIn(group string, ids ...string) {
	e.tb.Helper()
	e.buryAt(e.shard, group, ids...)
}

func (e *env) buryAt(at core.Shard, group string, ids ...string) {
	e.tb.Helper()
	e.clock.Advance(time.Second)
	for _, id := range ids {
		e.pushTo(at.Queue, entryAt(id, "p", 1, 0), entryAt(id, "q", 2, 0))
	}
	h := e.acquireAt(at, "burier")
	h.settle(settleAll(h.claim(len(ids)), func(c core.Claim) core.Settlement { return buriedAs(c, group) })...)
	h.release()
}

func (e *env) groups(r ports.GroupsRequest) ports.GroupsReply {
	e.tb.Helper()
	reply, err := e.store.Groups(e.ctx, r)
	e.must(err, "Groups")
	return reply
}

// haveGroups checks the groups of the queue orders, and that they count all dead letters.
func (e *env) haveGroups(what string, want ...core.Group) {
	e.tb.Helper()
	got := e.groups(ports.GroupsRequest{Queue: orders})
	e.same("the groups "+what, got.Groups, want)
	e.same("how many groups there are "+what, got.Total, len(want))
	e.same("how many dead letters they have "+what, got.Dead, e.counts().Dead)
	e.same("the store's clock", got.Now, e.now())
}

// seconds returns the instant n seconds after the start.
func seconds(n int) core.Instant { return start.Add(time.Duration(n) * time.Second) }

func groupOf(name string, count int64, first, last int) core.Group {
	return core.Group{Name: name, Count: count, First: seconds(first), Last: seconds(last)}
}

func groupCounts(e *env) {
	e.haveGroups("of an empty morgue")
	e.buryIn("timeout", "a", "b")
	e.buryIn("refused", "c")
	e.buryIn("timeout", "d")
	e.haveGroups("of four", groupOf("timeout", 3, 1, 3), groupOf("refused", 1, 2, 2))
	e.same("a dead letter's group", e.deadLetter("a").Group, "timeout")
	page, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: wholePage(orders)})
	e.must(err, "Morgue")
	var got []string
	for _, v := range page.DeadLetters {
		got = append(got, v.Group)
	}
	e.same("the groups of a list", got, []string{"timeout", "timeout", "refused", "timeout"})
}

func groupNames(e *env) {
	for i, name := range []string{
		"", "a \"b\" 'c' \\ % $1 {d} é日", "\x00", "a\nb\xffc", strings.Repeat("x", core.MaxGroupBytes), strings.Repeat("é", core.MaxGroupBytes),
		core.OtherGroup, " ", "-1", "other\u0085",
	} {
		id := fmt.Sprint(i)
		e.buryIn(name, id)
		want := core.GroupName(name)
		e.same(fmt.Sprintf("the group of %q", name), e.deadLetter(id).Group, want)
		e.same(fmt.Sprintf("the list of %q", want), e.morgueOf(want)(ports.PageRequest{Queue: orders}).ids, []string{id})
		e.byRefs(e.store.Purge, whole(id))
	}
	e.pushIDs("by hand")
	failAll(e, "failed")
	e.byIDs(e.store.Bury, "by hand", "failed")
	e.same("what is buried by hand", e.morgueOf(core.BuriedByHand)(ports.PageRequest{Queue: orders}).ids, []string{"by hand", "failed"})
}

func groupNewest(e *env) {
	e.buryIn("first", "a", "b")
	e.buryIn("second", "a")
	e.same("the group", e.deadLetter("a").Group, "second")
	e.haveGroups("after another burial", groupOf("first", 1, 1, 1), groupOf("second", 1, 2, 2))
	e.same("the first group's list", e.morgueOf("first")(wholePage(orders)).ids, []string{"b"})
	e.same("the second group's list", e.morgueOf("second")(wholePage(orders)).ids, []string{"a"})
	e.buryIn("second", "a")
	e.haveGroups("after one more in the same group", groupOf("first", 1, 1, 1), groupOf("second", 1, 2, 3))
	e.push(entry("a", "r", 3))
	e.byIDs(e.store.Bury, "a")
	e.haveGroups("after a burial by hand", groupOf(core.BuriedByHand, 1, 3, 3), groupOf("first", 1, 1, 1))
}

func groupStays(e *env) {
	e.buryIn("timeout", "a", "b")
	e.clock.Advance(time.Second)
	e.reported("how many were edited", e.edit("a", "p", "new"), 1)
	e.byRefs(e.store.Purge, parts("b", "p"))
	e.byRefs(e.store.Revive, parts("a", "q"))
	e.haveGroups("after an edit and steps on payloads", groupOf("timeout", 2, 1, 1))
	e.same("the edited one's group", e.deadLetter("a").Group, "timeout")
	e.same("the group of what is left", e.deadLetter("b").Group, "timeout")
	e.lists("the group's list", orders, e.morgueOf("timeout"), []string{"b", "a"})
}

func groupGoes(e *env) {
	e.buryIn("timeout", "a", "b", "c")
	e.byRefs(e.store.Purge, whole("a"))
	e.byRefs(e.store.Revive, whole("b"))
	e.haveGroups("of one of three", groupOf("timeout", 1, 1, 1))
	e.byIDs(e.store.Delete, "b")
	e.buryIn("timeout", "d")
	e.byRefs(e.store.Purge, whole("d"))
	e.haveGroups("after one that is gone", groupOf("timeout", 1, 1, 2))
	e.byAge(e.store.Purge, e.now()+1, 0)
	e.haveGroups("of an empty morgue")
	e.buryIn("timeout", "e")
	e.haveGroups("that begins anew", groupOf("timeout", 1, 3, 3))
}

func groupClockBack(e *env) {
	e.clock.Advance(time.Minute)
	e.buryIn("timeout", "a", "b")
	e.haveGroups("of two", groupOf("timeout", 2, 61, 61))
	e.clock.Advance(-time.Minute)
	e.buryIn("timeout", "c")
	e.haveGroups("after the clock stepped back", groupOf("timeout", 3, 2, 61))
}

func groupTogether(e *env) {
	e.buryIn("x", "a")
	e.buryIn("y", "b")
	e.clock.Advance(time.Second)
	e.pushIDs("a", "b")
	h := e.acquire("n1")
	claims := h.claim(2)
	h.settle(buriedAs(claims[0], "y"), buriedAs(claims[1], "x")) // each group loses its only dead letter, and gets another
	e.haveGroups("after two have changed places", groupOf("x", 1, 1, 3), groupOf("y", 1, 2, 3))
}

func groupMost(e *env) {
	pushMany(e, core.MaxGroups)
	h := e.acquire("n1")
	for done := 0; done < core.MaxGroups; {
		claims := h.claim(core.MaxTurnJobs)
		h.settle(settleAll(claims, func(c core.Claim) core.Settlement { return buriedAs(c, "group "+c.ID) })...)
		done += len(claims)
	}
	h.release()
	e.same("how many groups there are", e.groups(ports.GroupsRequest{Queue: orders}).Total, core.MaxGroups)
	e.buryIn("new", "n")
	e.buryIn("newer", "n", "0007")
	e.buryIn("group 0008", "m")
	for id, want := range map[string]string{"n": core.OtherGroup, "0007": core.OtherGroup, "m": "group 0008", "0008": "group 0008"} {
		e.same("the group of "+id, e.deadLetter(id).Group, want)
	}
	e.same("the largest groups", e.groups(ports.GroupsRequest{Queue: orders, Limit: 2}).Groups,
		[]core.Group{{Name: "group 0008", Count: 2, First: start, Last: seconds(3)}, groupOf(core.OtherGroup, 2, 1, 2)})
	e.byRefs(e.store.Purge, whole("0001"))
	e.buryIn("at last", "o")
	e.same("a group once there is room", e.deadLetter("o").Group, "at last")
	reply := e.groups(ports.GroupsRequest{Queue: orders})
	e.same("how many groups there are, and dead letters in them", [2]int64{int64(reply.Total), reply.Dead}, [2]int64{core.MaxGroups, e.counts().Dead})
}

// groupsInWide buries jobs in three shards: in one group that all shards have, and in another group
// for each shard.
func groupsInWide(e *env) []core.Shard {
	e.tb.Helper()
	e.declare("wide", 3)
	shards := core.Shards("wide", 3)
	for _, s := range shards {
		of := idsOf(s, 3, 6)
		e.buryAt(s, "everywhere", of[:2]...)
		e.buryAt(s, fmt.Sprint("of ", s.Index), of[2:3+s.Index]...)
		e.buryAt(s, "everywhere", of[5])
	}
	return shards
}

func groupLargest(e *env) {
	groupsInWide(e)
	all := []core.Group{groupOf("everywhere", 9, 1, 9), groupOf("of 2", 3, 8, 8), groupOf("of 1", 2, 5, 5), groupOf("of 0", 1, 2, 2)}
	for limit, want := range map[int]int{-1: 4, 0: 4, 1: 1, 3: 3, 4: 4, ports.MaxPage + 1: 4} {
		got := e.groups(ports.GroupsRequest{Queue: "wide", Limit: limit})
		e.same(fmt.Sprintf("at most %d groups", limit), got.Groups, all[:want])
		e.same("how many there are, and of how many dead letters", [2]int64{int64(got.Total), got.Dead}, [2]int64{4, 15})
	}
	e.buryIn("b", "1", "2")
	e.buryIn("a", "3", "4")
	e.haveGroups("of one size", groupOf("a", 2, 11, 11), groupOf("b", 2, 10, 10))
}

func groupShards(e *env) {
	groupsInWide(e)
	for _, tt := range []struct {
		shards []int
		want   []core.Group
	}{
		{[]int{1}, []core.Group{groupOf("everywhere", 3, 4, 6), groupOf("of 1", 2, 5, 5)}},
		{[]int{2, 0, 2}, []core.Group{groupOf("everywhere", 6, 1, 9), groupOf("of 2", 3, 8, 8), groupOf("of 0", 1, 2, 2)}},
		{[]int{}, nil},
	} {
		got := e.groups(ports.GroupsRequest{Queue: "wide", Shards: tt.shards})
		e.same(fmt.Sprintf("the groups of shards %v", tt.shards), got.Groups, tt.want)
		e.same("how many there are", got.Total, len(tt.want))
	}
}

func groupForgotten(e *env) {
	e.declare("wide", 3)
	shards := core.Shards("wide", 3)
	e.buryAt(shards[1], "timeout", idsOf(shards[1], 3, 2)...)
	_, err := e.store.Purge(e.ctx, ports.DeadLetterStep{Shard: shards[1], Before: e.now() + 1})
	e.must(err, "Purge")
	e.forgetQueue("wide")
	e.declare("wide", 3)
	e.same("the groups of a new queue", e.groups(ports.GroupsRequest{Queue: "wide"}).Groups, []core.Group(nil))
	e.buryAt(shards[1], "timeout", idsOf(shards[1], 3, 1)...)
	e.same("the groups after a burial", e.groups(ports.GroupsRequest{Queue: "wide"}).Groups, []core.Group{groupOf("timeout", 1, 2, 2)})
}

func groupRecounted(e *env) {
	e.buryIn("timeout", "a", "b", "c")
	e.buryIn("refused", "d")
	e.byRefs(e.store.Purge, whole("a"))
	want := []core.Group{groupOf("timeout", 2, 1, 1), groupOf("refused", 1, 2, 2)}
	e.haveGroups("before", want...)
	e.recount(1, func() {})
	e.haveGroups("after", want...)
	e.lists("the list of a group", orders, e.morgueOf("timeout"), []string{"b", "c"})
}

func groupLists(e *env) {
	shards := groupsInWide(e)
	var want []string
	for _, s := range shards {
		of := idsOf(s, 3, 6)
		want = append(want, of[0], of[1], of[5])
	}
	e.lists("a group of three shards", "wide", e.morgueOf("everywhere"), want)
	e.lists("a group of one shard", "wide", e.morgueOf("of 2"), idsOf(shards[2], 3, 5)[2:])
	e.same("a group that nothing is of", e.morgueOf("never")(wholePage("wide")).ids, nil)
	some := ports.PageRequest{Queue: "wide", Shards: []int{2, 0}}
	e.pagesOf("a group of some shards", some, e.morgueOf("everywhere"), append(want[:3:3], want[6:]...), 1, 2, 9)
	from := ports.PageRequest{Queue: "wide", From: &ports.Cursor{Key: int64(seconds(6))}, Limit: 2}
	e.same("from a time", allPages(from, e.morgueOf("everywhere"), 9), want[5:])
	from.Descending = true
	e.same("down from a time", allPages(from, e.morgueOf("everywhere"), 9), []string{want[5], want[4], want[3], want[2], want[1], want[0]})
	got := e.morgueOf("everywhere")(ports.PageRequest{Queue: "wide", Limit: 3}).next
	e.same("the cursor", got, ports.Cursor{Key: int64(seconds(3)), ID: want[2]})
}

func groupSteps(e *env) {
	for name, do := range e.deadLetterSteps() {
		begun := int(e.now()-start) / 1_000_000
		e.buryIn("timeout", "z", "y")
		e.buryIn("refused", "x")
		e.buryIn("timeout", "a")
		step := func(limit int) ports.StepReply {
			since := e.repeats.Lossy.Load()
			reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, Group: "timeout", Before: e.now() + 1, Limit: limit})
			e.must(err, name)
			e.giveUpIfRepeated(since)
			return reply
		}
		e.reported("the first step of "+name, step(2), ports.StepReply{Handled: 2, More: true, Now: e.now()})
		e.same("the dead after it", e.deadIDs(), []string{"x", "a"})
		e.reported("the second step of "+name, step(2), ports.StepReply{Handled: 1, Now: e.now()})
		e.reported("the third step of "+name, step(0), ports.StepReply{Now: e.now()})
		e.same("the dead", e.deadIDs(), []string{"x"})
		e.haveGroups("after "+name, groupOf("refused", 1, begun+2, begun+2))
		e.byAge(e.store.Purge, e.now()+1, 0)
		for _, id := range e.queuedIDs() {
			e.byIDs(e.store.Delete, id)
		}
	}
}

func groupBefore(e *env) {
	for name, do := range e.deadLetterSteps() {
		e.buryIn("timeout", "a")
		e.buryIn("refused", "b")
		e.buryIn("timeout", "c", "d")
		before := e.now()
		e.buryIn("timeout", "a") // again
		reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, Group: "timeout", Before: before + 1})
		e.must(err, name)
		e.reported("the reply to "+name, reply, ports.StepReply{Handled: 2, Now: e.now()})
		e.same("the dead after "+name, e.deadIDs(), []string{"b", "a"})
		e.byAge(e.store.Purge, e.now()+1, 0)
		for _, id := range e.queuedIDs() {
			e.byIDs(e.store.Delete, id)
		}
	}
}

func groupRefused(e *env) {
	errs := map[string]error{}
	morgue := func(what string, r ports.MorgueRequest) {
		r.Queue = orders
		_, errs[what] = e.store.Morgue(e.ctx, r)
	}
	morgue("a list of a group by id", ports.MorgueRequest{Group: "timeout", ByID: true})
	morgue("a list of a group that is no text", ports.MorgueRequest{Group: "\xff"})
	morgue("a list of a group that is too long", ports.MorgueRequest{Group: strings.Repeat("x", core.MaxGroupBytes+1)})
	for name, do := range e.deadLetterSteps() {
		_, errs[name+" of a group with a NUL"] = do(e.ctx, ports.DeadLetterStep{Shard: e.shard, Group: "\x00"})
		_, errs[name+" of a group and an id"] = do(e.ctx, ports.DeadLetterStep{
			Shard: e.shard, Group: "timeout", DeadLetters: []ports.DeadLetterRef{whole("a")},
		})
	}
	_, errs["groups of shard 1 of 1"] = e.store.Groups(e.ctx, ports.GroupsRequest{Queue: orders, Shards: []int{1}})
	_, errs["groups of shard -1"] = e.store.Groups(e.ctx, ports.GroupsRequest{Queue: orders, Shards: []int{-1}})
	for what, err := range errs {
		if !errors.Is(err, ports.ErrInvalidRequest) {
			e.errorf("%s: %v, want ErrInvalidRequest", what, err)
		}
	}
	_, err := e.store.Groups(e.ctx, ports.GroupsRequest{Queue: "never"})
	e.refused("Groups of an unknown queue", err, ports.ErrUnknownQueue)
}

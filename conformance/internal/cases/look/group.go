package look

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleGroupName = "Groups: the group is core.GroupName of Settlement.Group, or core.BuriedByHand of Operator.Bury"
	ruleGroupTime = "Group: First is the earliest burial since the group was empty, and Last the latest; " +
		"dead letters that are gone count for both, and an edit for neither"
	ruleGroupStep = "DeadLetterStep: Group limits a step over all to the dead letters of a group"
	ruleGroupMost = "Groups: core.OtherGroup, if its shard already had core.MaxGroups other groups"
)

func groupCases() []env.Case {
	return []env.Case{
		{Name: "counts burials", Rule: env.RuleGroups, Check: groupCounts},
		{Name: "keeps names, or the part of them that GroupName keeps", Rule: ruleGroupName, Check: groupNames},
		{Name: "is the group of the newest burial", Rule: env.RuleGroups, Check: groupNewest},
		{
			Name:  "stays after an edit and with the payloads that are left",
			Rule:  "Groups: an edit keeps the group, and so do the payloads that are left after a step has taken some",
			Check: groupStays,
		},
		{Name: "is removed with its last dead letter", Rule: ruleGroupTime, Check: groupGoes},
		{
			Name:  "keeps its earliest and latest burial when the clock steps back",
			Rule:  ruleGroupTime,
			Check: groupClockBack,
		},
		{
			Name:  "counts the burials of one call together",
			Rule:  "Groups: the burials of one call are counted together",
			Check: groupTogether,
		},
		{Name: "keeps MaxGroups groups apart", Rule: ruleGroupMost, Check: groupMost},
		{
			Name: "is listed by size, up to the limit",
			Rule: "GroupsReply: Groups are those with the most dead letters; " +
				"Total and Dead include those that Limit leaves out",
			Check: groupLargest,
		},
		{
			Name: "is counted in the given shards only",
			Rule: "GroupsRequest: Shards are the indexes of the shards to count, in any order; " +
				"nil means all shards, an empty list means no shard",
			Check: groupShards,
		},
		{
			Name:  "lists its dead letters in both directions",
			Rule:  "MorgueRequest: Group limits a list by time to the dead letters of a group",
			Check: groupLists,
		},
		{Name: "is revived and purged without other groups", Rule: ruleGroupStep, Check: groupSteps},
		{Name: "limits a step to dead letters before an instant", Rule: ruleGroupStep, Check: groupBefore},
		{
			Name: "is refused in a request that can't have one",
			Rule: "MorgueRequest, DeadLetterStep: ErrInvalidRequest for a group that no dead letter can have, " +
				"for a group of a list by id, and for one beside named dead letters",
			Check: groupRefused,
		},
		{Name: "is removed with its queue", Rule: env.RuleForget, Check: groupForgotten},
		{Name: "is unchanged by a recount if its count was right", Rule: ruleCount, Check: groupRecounted},
	}
}

func groupCounts(e *env.Env) {
	e.HaveGroups("of an empty morgue")

	e.BuryIn("timeout", "a", "b")
	e.BuryIn("refused", "c")
	e.BuryIn("timeout", "d")
	e.HaveGroups("of four", env.GroupOf("timeout", 3, 1, 3), env.GroupOf("refused", 1, 2, 2))
	e.Same("a dead letter's group", e.DeadLetter("a").Group, "timeout")

	page, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: env.WholePage(env.Orders)})
	e.Must(err, "Morgue")
	var got []string
	for _, v := range page.DeadLetters {
		got = append(got, v.Group)
	}
	e.Same("the groups of a list", got, []string{"timeout", "timeout", "refused", "timeout"})
}

func groupNames(e *env.Env) {
	for i, name := range []string{
		"", "a \"b\" 'c' \\ % $1 {d} é日", "\x00", "a\nb\xffc", strings.Repeat("x", core.MaxGroupBytes),
		strings.Repeat("é", core.MaxGroupBytes),
		core.OtherGroup, " ", "-1", "other\u0085",
	} {
		id := fmt.Sprint(i)
		e.BuryIn(name, id)

		want := core.GroupName(name)
		e.Same(fmt.Sprintf("the group of %q", name), e.DeadLetter(id).Group, want)
		e.Same(fmt.Sprintf("the list of %q", want),
			e.MorgueOf(want)(ports.PageRequest{Queue: env.Orders}).IDs, []string{id})

		e.ByRefs(e.Store.Purge, env.Whole(id))
	}

	e.PushIDs("by hand")
	e.FailAll("failed")
	e.ByIDs(e.Store.Bury, "by hand", "failed")

	e.Same("what is buried by hand",
		e.MorgueOf(core.BuriedByHand)(ports.PageRequest{Queue: env.Orders}).IDs, []string{"by hand", "failed"})
}

func groupNewest(e *env.Env) {
	e.BuryIn("first", "a", "b")
	e.BuryIn("second", "a")
	e.Same("the group", e.DeadLetter("a").Group, "second")
	e.HaveGroups("after another burial", env.GroupOf("first", 1, 1, 1), env.GroupOf("second", 1, 2, 2))
	e.Same("the first group's list", e.MorgueOf("first")(env.WholePage(env.Orders)).IDs, []string{"b"})
	e.Same("the second group's list", e.MorgueOf("second")(env.WholePage(env.Orders)).IDs, []string{"a"})
	e.BuryIn("second", "a")
	e.HaveGroups("after one more in the same group", env.GroupOf("first", 1, 1, 1), env.GroupOf("second", 1, 2, 3))
	e.Push(env.Entry("a", "r", 3))
	e.ByIDs(e.Store.Bury, "a")
	e.HaveGroups("after a burial by hand", env.GroupOf(core.BuriedByHand, 1, 3, 3), env.GroupOf("first", 1, 1, 1))
}

func groupStays(e *env.Env) {
	e.BuryIn("timeout", "a", "b")
	e.Clock.Advance(time.Second)
	e.Reported("how many were edited", e.Edit("a", "p", "new"), 1)
	e.ByRefs(e.Store.Purge, env.Parts("b", "p"))
	e.ByRefs(e.Store.Revive, env.Parts("a", "q"))
	e.HaveGroups("after an edit and steps on payloads", env.GroupOf("timeout", 2, 1, 1))
	e.Same("the edited one's group", e.DeadLetter("a").Group, "timeout")
	e.Same("the group of what is left", e.DeadLetter("b").Group, "timeout")
	e.Lists("the group's list", env.Orders, e.MorgueOf("timeout"), []string{"b", "a"})
}

func groupGoes(e *env.Env) {
	e.BuryIn("timeout", "a", "b", "c")
	e.ByRefs(e.Store.Purge, env.Whole("a"))
	e.ByRefs(e.Store.Revive, env.Whole("b"))
	e.HaveGroups("of one of three", env.GroupOf("timeout", 1, 1, 1))

	e.ByIDs(e.Store.Delete, "b")
	e.BuryIn("timeout", "d")
	e.ByRefs(e.Store.Purge, env.Whole("d"))
	e.HaveGroups("after one that is gone", env.GroupOf("timeout", 1, 1, 2))

	e.ByAge(e.Store.Purge, e.Now()+1, 0)
	e.HaveGroups("of an empty morgue")
	e.BuryIn("timeout", "e")
	e.HaveGroups("that begins anew", env.GroupOf("timeout", 1, 3, 3))
}

func groupClockBack(e *env.Env) {
	e.Clock.Advance(time.Minute)
	e.BuryIn("timeout", "a", "b")
	e.HaveGroups("of two", env.GroupOf("timeout", 2, 61, 61))
	e.Clock.Advance(-time.Minute)
	e.BuryIn("timeout", "c")
	e.HaveGroups("after the clock stepped back", env.GroupOf("timeout", 3, 2, 61))
}

func groupTogether(e *env.Env) {
	e.BuryIn("x", "a")
	e.BuryIn("y", "b")
	e.Clock.Advance(time.Second)
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	// Each group loses its only dead letter, and gets another.
	h.Settle(env.BuriedAs(claims[0], "y"), env.BuriedAs(claims[1], "x"))
	e.HaveGroups("after two have changed places", env.GroupOf("x", 1, 1, 3), env.GroupOf("y", 1, 2, 3))
}

func groupMost(e *env.Env) {
	e.PushMany(core.MaxGroups)

	h := e.Acquire("n1")
	for done := 0; done < core.MaxGroups; {
		claims := h.Claim(core.MaxTurnJobs)
		h.Settle(env.SettleAll(claims, func(c core.Claim) core.Settlement { return env.BuriedAs(c, "group "+c.ID) })...)
		done += len(claims)
	}
	h.Release()

	e.Same("how many groups there are", e.Groups(ports.GroupsRequest{Queue: env.Orders}).Total, core.MaxGroups)
	e.BuryIn("new", "n")
	e.BuryIn("newer", "n", "0007")
	e.BuryIn("group 0008", "m")

	for id, want := range map[string]string{
		"n":    core.OtherGroup,
		"0007": core.OtherGroup,
		"m":    "group 0008",
		"0008": "group 0008",
	} {
		e.Same("the group of "+id, e.DeadLetter(id).Group, want)
	}

	e.Same("the largest groups", e.Groups(ports.GroupsRequest{Queue: env.Orders, Limit: 2}).Groups,
		[]core.Group{
			{Name: "group 0008", Count: 2, First: env.Start, Last: env.Seconds(3)},
			env.GroupOf(core.OtherGroup, 2, 1, 2),
		})

	e.ByRefs(e.Store.Purge, env.Whole("0001"))
	e.BuryIn("at last", "o")
	e.Same("a group once there is room", e.DeadLetter("o").Group, "at last")

	reply := e.Groups(ports.GroupsRequest{Queue: env.Orders})
	e.Same("how many groups there are, and dead letters in them",
		[2]int64{int64(reply.Total), reply.Dead}, [2]int64{core.MaxGroups, e.Counts().Dead})
}

// groupsInWide buries jobs in three shards: in one group that all shards have, and in another group
// for each shard.
func groupsInWide(e *env.Env) []core.Shard {
	e.TB.Helper()
	e.Declare("wide", 3)
	shards := core.Shards("wide", 3)
	for _, s := range shards {
		of := env.IDsOf(s, 3, 6)
		e.BuryAt(s, "everywhere", of[:2]...)
		e.BuryAt(s, fmt.Sprint("of ", s.Index), of[2:3+s.Index]...)
		e.BuryAt(s, "everywhere", of[5])
	}
	return shards
}

func groupLargest(e *env.Env) {
	groupsInWide(e)
	all := []core.Group{
		env.GroupOf("everywhere", 9, 1, 9),
		env.GroupOf("of 2", 3, 8, 8),
		env.GroupOf("of 1", 2, 5, 5),
		env.GroupOf("of 0", 1, 2, 2),
	}

	for limit, want := range map[int]int{-1: 4, 0: 4, 1: 1, 3: 3, 4: 4, ports.MaxPage + 1: 4} {
		got := e.Groups(ports.GroupsRequest{Queue: "wide", Limit: limit})
		e.Same(fmt.Sprintf("at most %d groups", limit), got.Groups, all[:want])
		e.Same("how many there are, and of how many dead letters",
			[2]int64{int64(got.Total), got.Dead}, [2]int64{4, 15})
	}

	e.BuryIn("b", "1", "2")
	e.BuryIn("a", "3", "4")
	e.HaveGroups("of one size", env.GroupOf("a", 2, 11, 11), env.GroupOf("b", 2, 10, 10))
}

func groupShards(e *env.Env) {
	groupsInWide(e)

	for _, tt := range []struct {
		shards []int
		want   []core.Group
	}{
		{[]int{1}, []core.Group{env.GroupOf("everywhere", 3, 4, 6), env.GroupOf("of 1", 2, 5, 5)}},
		{
			[]int{2, 0, 2},
			[]core.Group{
				env.GroupOf("everywhere", 6, 1, 9), env.GroupOf("of 2", 3, 8, 8), env.GroupOf("of 0", 1, 2, 2),
			},
		},
		{[]int{}, nil},
	} {
		got := e.Groups(ports.GroupsRequest{Queue: "wide", Shards: tt.shards})
		e.Same(fmt.Sprintf("the groups of shards %v", tt.shards), got.Groups, tt.want)
		e.Same("how many there are", got.Total, len(tt.want))
	}
}

func groupForgotten(e *env.Env) {
	e.Declare("wide", 3)
	shards := core.Shards("wide", 3)
	e.BuryAt(shards[1], "timeout", env.IDsOf(shards[1], 3, 2)...)
	_, err := e.Store.Purge(e.Ctx, ports.DeadLetterStep{Shard: shards[1], Before: e.Now() + 1})
	e.Must(err, "Purge")
	e.ForgetQueue("wide")
	e.Declare("wide", 3)
	e.Same("the groups of a new queue", e.Groups(ports.GroupsRequest{Queue: "wide"}).Groups, []core.Group(nil))
	e.BuryAt(shards[1], "timeout", env.IDsOf(shards[1], 3, 1)...)
	e.Same("the groups after a burial",
		e.Groups(ports.GroupsRequest{Queue: "wide"}).Groups, []core.Group{env.GroupOf("timeout", 1, 2, 2)})
}

func groupRecounted(e *env.Env) {
	e.BuryIn("timeout", "a", "b", "c")
	e.BuryIn("refused", "d")
	e.ByRefs(e.Store.Purge, env.Whole("a"))
	want := []core.Group{env.GroupOf("timeout", 2, 1, 1), env.GroupOf("refused", 1, 2, 2)}
	e.HaveGroups("before", want...)
	e.Recount(1, func() {})
	e.HaveGroups("after", want...)
	e.Lists("the list of a group", env.Orders, e.MorgueOf("timeout"), []string{"b", "c"})
}

func groupLists(e *env.Env) {
	shards := groupsInWide(e)

	var want []string
	for _, s := range shards {
		of := env.IDsOf(s, 3, 6)
		want = append(want, of[0], of[1], of[5])
	}

	e.Lists("a group of three shards", "wide", e.MorgueOf("everywhere"), want)
	e.Lists("a group of one shard", "wide", e.MorgueOf("of 2"), env.IDsOf(shards[2], 3, 5)[2:])
	e.Same("a group that nothing is of", e.MorgueOf("never")(env.WholePage("wide")).IDs, nil)

	some := ports.PageRequest{Queue: "wide", Shards: []int{2, 0}}
	pagesOf(e, "a group of some shards", some, e.MorgueOf("everywhere"), append(want[:3:3], want[6:]...), 1, 2, 9)

	from := ports.PageRequest{Queue: "wide", From: &ports.Cursor{Key: int64(env.Seconds(6))}, Limit: 2}
	e.Same("from a time", env.AllPages(from, e.MorgueOf("everywhere"), 9), want[5:])
	from.Descending = true
	e.Same("down from a time",
		env.AllPages(from, e.MorgueOf("everywhere"), 9), []string{want[5], want[4], want[3], want[2], want[1], want[0]})

	got := e.MorgueOf("everywhere")(ports.PageRequest{Queue: "wide", Limit: 3}).Next
	e.Same("the cursor", got, ports.Cursor{Key: int64(env.Seconds(3)), ID: want[2]})
}

func groupSteps(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		begun := int(e.Now()-env.Start) / 1_000_000
		e.BuryIn("timeout", "z", "y")
		e.BuryIn("refused", "x")
		e.BuryIn("timeout", "a")

		step := func(limit int) ports.StepReply {
			since := e.Repeats.Lossy.Load()
			reply, err := do(e.Ctx, ports.DeadLetterStep{
				Shard:  e.Shard,
				Group:  "timeout",
				Before: e.Now() + 1,
				Limit:  limit,
			})
			e.Must(err, name)
			e.GiveUpIfRepeated(since)
			return reply
		}

		e.Reported("the first step of "+name, step(2), ports.StepReply{Handled: 2, More: true, Now: e.Now()})
		e.Same("the dead after it", e.DeadIDs(), []string{"x", "a"})
		e.Reported("the second step of "+name, step(2), ports.StepReply{Handled: 1, Now: e.Now()})
		e.Reported("the third step of "+name, step(0), ports.StepReply{Now: e.Now()})

		e.Same("the dead", e.DeadIDs(), []string{"x"})
		e.HaveGroups("after "+name, env.GroupOf("refused", 1, begun+2, begun+2))

		e.ByAge(e.Store.Purge, e.Now()+1, 0)
		for _, id := range e.QueuedIDs() {
			e.ByIDs(e.Store.Delete, id)
		}
	}
}

func groupBefore(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		e.BuryIn("timeout", "a")
		e.BuryIn("refused", "b")
		e.BuryIn("timeout", "c", "d")

		before := e.Now()
		e.BuryIn("timeout", "a") // again

		reply, err := do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Group: "timeout", Before: before + 1})
		e.Must(err, name)
		e.Reported("the reply to "+name, reply, ports.StepReply{Handled: 2, Now: e.Now()})
		e.Same("the dead after "+name, e.DeadIDs(), []string{"b", "a"})

		e.ByAge(e.Store.Purge, e.Now()+1, 0)
		for _, id := range e.QueuedIDs() {
			e.ByIDs(e.Store.Delete, id)
		}
	}
}

func groupRefused(e *env.Env) {
	errs := map[string]error{}

	morgue := func(what string, r ports.MorgueRequest) {
		r.Queue = env.Orders
		_, errs[what] = e.Store.Morgue(e.Ctx, r)
	}
	morgue("a list of a group by id", ports.MorgueRequest{Group: "timeout", ByID: true})
	morgue("a list of a group that is no text", ports.MorgueRequest{Group: "\xff"})
	morgue("a list of a group that is too long", ports.MorgueRequest{Group: strings.Repeat("x", core.MaxGroupBytes+1)})

	for name, do := range e.DeadLetterSteps() {
		_, errs[name+" of a group with a NUL"] = do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Group: "\x00"})
		_, errs[name+" of a group and an id"] = do(e.Ctx, ports.DeadLetterStep{
			Shard: e.Shard, Group: "timeout", DeadLetters: []ports.DeadLetterRef{env.Whole("a")},
		})
	}

	_, errs["groups of shard 1 of 1"] = e.Store.Groups(e.Ctx, ports.GroupsRequest{Queue: env.Orders, Shards: []int{1}})
	_, errs["groups of shard -1"] = e.Store.Groups(e.Ctx, ports.GroupsRequest{Queue: env.Orders, Shards: []int{-1}})

	for what, err := range errs {
		if !errors.Is(err, ports.ErrInvalidRequest) {
			e.Errorf("%s: %v, want ErrInvalidRequest", what, err)
		}
	}

	_, err := e.Store.Groups(e.Ctx, ports.GroupsRequest{Queue: "never"})
	e.Refused("Groups of an unknown queue", err, ports.ErrUnknownQueue)
}

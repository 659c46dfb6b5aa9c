package conformance

import (
	"errors"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

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

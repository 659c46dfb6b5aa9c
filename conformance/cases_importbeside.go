package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func importCounts(e *env) {
	at := func(id string, n int) core.DeadLetter {
		d := letter(id, n, pay("p", 1))
		d.Group = "g"
		return d
	}
	e.bringIn(at("a", 20), at("b", 10))
	e.bringIn(at("c", 30), at("d", 5))
	e.haveGroups("of four", core.Group{Name: "g", Count: 4, First: seconds(5), Last: seconds(30)})
	e.clock.Advance(time.Minute)
	e.buryIn("g", "e")
	e.haveGroups("and one that was buried", core.Group{Name: "g", Count: 5, First: seconds(5), Last: seconds(61)})
	moved := at("a", 62)
	moved.Group = "h"
	e.bringIn(moved)
	e.haveGroups("after one has changed its group", core.Group{Name: "g", Count: 4, First: seconds(5), Last: seconds(61)}, core.Group{Name: "h", Count: 1, First: seconds(62), Last: seconds(62)})
	reply := e.recount(0, func() {})
	e.same("the counts, one by one", reply.After, reply.Before)
	e.same("how many are dead", reply.After.Dead, int64(5))
}

func importManyGroups(e *env) {
	var letters []core.DeadLetter
	for i := range core.MaxGroups + 2 {
		letters = append(letters, letter(fmt.Sprintf("%04d", i), i, pay("p", 1)))
	}
	for part := range slices.Chunk(letters, ports.MaxStep) {
		e.bringIn(part...)
	}
	reply := e.groups(ports.GroupsRequest{Queue: orders})
	e.same("how many groups there are", reply.Total, core.MaxGroups+1)
	e.same("the largest", reply.Groups[0], core.Group{Name: core.OtherGroup, Count: 2, First: seconds(core.MaxGroups), Last: seconds(core.MaxGroups + 1)})
}

func importBeside(e *env) {
	e.push(entry("a", "p", 1), entry("b", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	before := e.snapshot(orders)
	e.bringIn(letter("a", 1, pay("p", 0)), letter("b", 1, pay("q", 0)))
	after := e.snapshot(orders)
	e.same("the queued", after.Jobs, before.Jobs)
	e.same("the claimed", after.Claims, before.Claims)
	e.same("the heads", after.Heads, before.Heads)
	h.settle(buried(c, "no use"))
	e.same("the payloads once the job is buried too", e.deadLetter("a").Payloads, []core.Payload{pay("p", 0)})
}

func importRevived(e *env) {
	e.bringIn(letter("a", 1, twoPayloads()...), letter("b", 2, pay("p", 1)), letter("c", 3, many(20)...))
	e.clock.Advance(time.Minute)
	e.reported("how many of a group were purged", e.byGroup(e.store.Purge, "group at 2"), 1)
	e.reported("how many were revived", e.byAge(e.store.Revive, e.now(), 0).Handled, 2)
	e.same("the job", e.queued("a"), job("a", e.revived(), twoPayloads()...))
	e.same("the payloads of the other", e.queued("c").Payloads, many(20))
	e.same("the dead", e.deadIDs(), nil)
	e.haveGroups("then")
}

// byGroup handles all dead letters of a group, and returns how many.
func (e *env) byGroup(do deadLetterStep, group string) int {
	e.tb.Helper()
	since := e.repeats.Lossy.Load()
	reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, Before: e.now(), Group: group})
	e.must(err, "a step over a group")
	e.giveUpIfRepeated(since)
	return reply.Handled
}

func importPurged(e *env) {
	d := letter("a", 1, twoPayloads()...)
	e.bringIn(d)
	e.byRefs(e.store.Purge, whole("a"))
	e.reported("how many were imported", e.bringIn(d), 1)
	e.same("the dead letter", e.deadLetter("a"), d)
}

func importRefused(e *env) {
	good := letter("a", 1, pay("p", 1))
	change := func(change func(d *core.DeadLetter)) core.DeadLetter {
		d := letter("b", 1, pay("p", 1))
		change(&d)
		return d
	}
	for name, bad := range map[string]struct {
		letter core.DeadLetter
		want   error
	}{
		"no id":                {change(func(d *core.DeadLetter) { d.ID = "" }), core.ErrInvalidID},
		"an id that is none":   {change(func(d *core.DeadLetter) { d.ID = "\xff" }), core.ErrInvalidID},
		"a control character":  {change(func(d *core.DeadLetter) { d.ID = "a\n" }), core.ErrInvalidID},
		"an id twice":          {change(func(d *core.DeadLetter) { d.ID = "a" }), ports.ErrInvalidRequest},
		"no payloads":          {change(func(d *core.DeadLetter) { d.Payloads = nil }), ports.ErrInvalidRequest},
		"a payload twice":      {change(func(d *core.DeadLetter) { d.Payloads = []core.Payload{pay("p", 1), pay("p", 2)} }), ports.ErrInvalidRequest},
		"payloads upside down": {change(func(d *core.DeadLetter) { d.Payloads = []core.Payload{pay("p", 2), pay("q", 1)} }), ports.ErrInvalidRequest},
		"no number":            {change(func(d *core.DeadLetter) { d.Payloads[0].Score = math.NaN() }), core.ErrInvalidScore},
		"an infinite score":    {change(func(d *core.DeadLetter) { d.Payloads[0].Score = math.Inf(1) }), core.ErrInvalidScore},
		"a long Meta":          {change(func(d *core.DeadLetter) { d.Payloads[0].Meta = make([]byte, core.MaxMetaBytes+1) }), core.ErrInvalidPayload},
		"a time below 0":       {change(func(d *core.DeadLetter) { d.ChangedAt = -1 }), core.ErrInvalidTime},
		"a time beyond all":    {change(func(d *core.DeadLetter) { d.ChangedAt = core.MaxInstant + 1 }), core.ErrInvalidTime},
		"a long error":         {change(func(d *core.DeadLetter) { d.Error = strings.Repeat("e", core.MaxErrorBytes+1) }), ports.ErrInvalidRequest},
		"an error with NUL":    {change(func(d *core.DeadLetter) { d.Error = "\x00" }), ports.ErrInvalidRequest},
		"no group":             {change(func(d *core.DeadLetter) { d.Group = "" }), ports.ErrInvalidRequest},
		"a long group":         {change(func(d *core.DeadLetter) { d.Group = strings.Repeat("g", core.MaxGroupBytes+1) }), ports.ErrInvalidRequest},
	} {
		e.unchanged(name, func() {
			_, err := e.store.Import(e.ctx, e.importRequest(good, bad.letter))
			e.refused("Import with "+name, err, bad.want)
		})
	}
}

func importTooMuch(e *env) {
	var letters []core.DeadLetter
	for i := range ports.MaxStep + 1 {
		letters = append(letters, letter(fmt.Sprintf("%04d", i), i, pay("p", 1)))
	}
	for name, r := range map[string]ports.ImportRequest{
		"too many dead letters": e.importRequest(letters...),
		"too many payloads":     e.importRequest(letter("a", 1, many(core.MaxTurnPayloads)...), letter("b", 1, pay("p", 1))),
		"too many bytes":        e.importRequest(letter("a", 1, sized(core.MaxStepBytes, 1)), letter("b", 1, pay("p", 1))),
	} {
		e.unchanged(name, func() {
			_, err := e.store.Import(e.ctx, r)
			e.refused("Import of "+name, err, ports.ErrInvalidRequest)
		})
	}
	e.reported("how many of as many as may be were imported", e.bringIn(letters[:ports.MaxStep]...), ports.MaxStep)
	e.reported("how many of a large one were imported", e.bringIn(letter("a", 1, many(core.MaxTurnPayloads)...)), 1)
}

func importLayout(e *env) {
	e.declare("wide", 2)
	q, s := e.declared["wide"], core.Shards("wide", 2)
	own, other := letter(idsOf(s[0], 2, 1)[0], 1, pay("p", 1)), letter(idsOf(s[1], 2, 1)[0], 1, pay("p", 1))
	for name, c := range map[string]struct {
		change func(r *ports.ImportRequest)
		want   error
	}{
		"another shard count": {func(r *ports.ImportRequest) { r.Shards, r.DeadLetters = 1, nil }, ports.ErrShardCountMismatch},
		"another generation":  {func(r *ports.ImportRequest) { r.Generation++ }, ports.ErrShardCountMismatch},
		"an unknown queue":    {func(r *ports.ImportRequest) { r.Shard.Queue = "never" }, ports.ErrUnknownQueue},
		"a shard below 0":     {func(r *ports.ImportRequest) { r.Shard.Index = -1 }, ports.ErrInvalidRequest},
		"a shard too many":    {func(r *ports.ImportRequest) { r.Shard.Index = 2 }, ports.ErrInvalidRequest},
		"an id of another":    {func(r *ports.ImportRequest) { r.DeadLetters = append(r.DeadLetters, other) }, ports.ErrInvalidRequest},
	} {
		r := ports.ImportRequest{Shard: s[0], Shards: 2, Generation: q.Generation, DeadLetters: []core.DeadLetter{own}}
		c.change(&r)
		_, err := e.store.Import(e.ctx, r)
		e.refused("Import with "+name, err, c.want)
		if found := e.findIn("wide", own.ID); found.DeadLetter != nil {
			e.errorf("Import with %s has stored %+v", name, found.DeadLetter)
		}
	}
	_, err := e.store.Import(e.ctx, ports.ImportRequest{Shard: s[1], Shards: 2, Generation: q.Generation, DeadLetters: []core.DeadLetter{other}})
	e.must(err, "Import into the second shard")
	e.same("its dead letter", e.findIn("wide", other.ID).DeadLetter, &ports.DeadLetterView{DeadLetter: other, Count: len(other.Payloads)})
}

package conformance

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleImport       = "Import adds dead letters of another morgue to this one, unchanged: payloads with Score and Meta, ChangedAt, Error and Group"
	ruleImportUnites = "Import: of equal bytes the smaller score stays, on a tie the existing one; ChangedAt, Error and Group are those of the later change, on a tie those of the existing dead letter"
	ruleImportRepeat = "Import: Handled counts the dead letters that are new or changed; so repeating it changes and counts nothing more"
	ruleImportGroup  = "Import: a dead letter is counted in its group as buried at its ChangedAt, and in core.OtherGroup if the shard has core.MaxGroups others"
	ruleImportWhole  = "Import: after an error of ImportRequest.Validate nothing is stored"
)

func importCases() []namedCase {
	return []namedCase{
		{"stores every field of a dead letter", ruleImport, importBrings},
		{"accepts unusual ids", ruleImport, importOddIDs},
		{"restores exported dead letters unchanged", ruleImport, importExported},
		{"unites payloads with those of an existing dead letter", ruleImportUnites, importUnites},
		{"keeps the fields that changed later", ruleImportUnites, importLater},
		{"accepts a dead letter in parts", "ImportRequest: a dead letter with more payloads is imported in parts, one per call", importParts},
		{"accepts a large payload", "ImportRequest: at most as much as a step moves; the first payload always passes", importLarge},
		{"changes and counts nothing when it is repeated", ruleImportRepeat, importRepeats},
		{"counts its dead letters", ruleImportGroup, importCounts},
		{"keeps MaxGroups groups apart", ruleImportGroup, importManyGroups},
		{"leaves queued and claimed jobs alone", "Import: imported dead letters don't run, and queued or claimed jobs of their ids stay", importBeside},
		{"stores dead letters that can be revived", "RULES 5: revive puts payloads back", importRevived},
		{"restores dead letters that were purged meanwhile", "Import: dead letters that were revived or purged meanwhile are stored again", importPurged},
		{"refuses a whole request for one invalid dead letter", ruleImportWhole, importRefused},
		{"refuses more than a step moves", ruleImportWhole, importTooMuch},
		{"refuses another layout", "Import: ErrShardCountMismatch for a layout that is not the queue's, with nothing stored", importLayout},
	}
}

// letter returns a dead letter that changed at the given second after the start. Its error and its
// group name that second.
func letter(id string, at int, payloads ...core.Payload) core.DeadLetter {
	return core.DeadLetter{
		ID: id, ChangedAt: seconds(at), Error: fmt.Sprint("error at ", at), Group: fmt.Sprint("group at ", at), Payloads: payloads,
	}
}

func (e *env) importRequest(letters ...core.DeadLetter) ports.ImportRequest {
	q := e.declared[orders]
	return ports.ImportRequest{Shard: e.shard, Shards: q.Shards, Generation: q.Generation, DeadLetters: letters}
}

// bringIn imports dead letters. If a call has reached only some, it continues with the others. It
// returns the number of handled dead letters.
func (e *env) bringIn(letters ...core.DeadLetter) int {
	e.tb.Helper()
	handled := 0
	for left := letters; ; {
		reply, err := e.store.Import(e.ctx, e.importRequest(left...))
		e.must(err, "Import")
		handled += reply.Handled
		if left = left[reply.Reached:]; len(left) == 0 {
			return handled
		}
		if reply.Reached == 0 {
			e.tb.Fatalf("Import has reached none of %d dead letters\nthe rule: %s", len(left), e.rule)
		}
	}
}

// oddLetters returns dead letters with values that a careless store loses.
func oddLetters() []core.DeadLetter {
	meta := func(p core.Payload, meta string) core.Payload { p.Meta = []byte(meta); return p }
	return []core.DeadLetter{
		{ID: "a", ChangedAt: 0, Group: core.OtherGroup, Payloads: []core.Payload{pay("", 0)}},
		{ID: "b", ChangedAt: start - 1, Error: "\u00e9\n\t\u2028", Group: "g\u00e9", Payloads: []core.Payload{
			pay("p", -math.MaxFloat64), meta(pay("\x00\xff", -1), "\x00m"), pay("q", math.SmallestNonzeroFloat64), meta(pay("r", 0.1), strings.Repeat("m", core.MaxMetaBytes)),
			pay("s", 1.7e9+1e-6), pay("t", 1<<53), pay("u", math.MaxFloat64),
		}},
		{ID: "c", ChangedAt: core.MaxInstant, Error: strings.Repeat("e", core.MaxErrorBytes), Group: strings.Repeat("g", core.MaxGroupBytes), Payloads: []core.Payload{
			meta(pay("p", 1), "only"),
		}},
	}
}

func importBrings(e *env) {
	letters := oddLetters()
	e.reported("how many were imported", e.bringIn(letters...), 3)
	for i := range letters {
		e.same("the dead letter "+letters[i].ID, e.deadLetter(letters[i].ID), letters[i])
	}
	e.same("the dead by time", e.deadIDs(), []string{"a", "b", "c"})
	e.same("how many are dead", e.counts().Dead, int64(3))
	d := letter("d", 1, core.Payload{Data: []byte("p"), Score: math.Copysign(0, -1)})
	e.bringIn(d)
	e.same("the score -0", math.Signbit(e.deadLetter("d").Payloads[0].Score), false)
	e.same("the caller's, which is only read", math.Signbit(d.Payloads[0].Score), true)
	e.reported("how many of an empty request were imported", e.bringIn(), 0)
	reply, err := e.store.Import(e.ctx, e.importRequest(letter("e", 1, pay("p", 1))))
	e.must(err, "Import")
	e.same("the store's clock", reply.Now, e.now())
}

func importOddIDs(e *env) {
	var letters []core.DeadLetter
	for i, id := range append(oddIDs(), ".", "..", "/", "a/b", "%", "{x}", strings.Repeat("\u00e9", core.MaxIDBytes/2)) {
		if !slices.ContainsFunc(letters, func(d core.DeadLetter) bool { return d.ID == id }) {
			letters = append(letters, letter(id, i, pay("p", float64(i))))
		}
	}
	e.reported("how many were imported", e.bringIn(letters...), len(letters))
	for i := range letters {
		e.same("the dead letter", e.deadLetter(letters[i].ID), letters[i])
	}
}

// importExported imports three dead letters after two of them were purged. The import restores
// these two.
func importExported(e *env) {
	pushPayloads(e, 20, "large")
	e.push(core.Entry{ID: "meta", Payload: core.Payload{Data: []byte("p"), Score: 2, Meta: []byte("m")}})
	h := e.acquire("burier")
	h.settle(settleAll(h.claim(2), func(c core.Claim) core.Settlement { return buriedAs(c, "of "+c.ID) })...)
	h.release()
	buryAll(e, "x")
	before := e.snapshot(orders)
	var letters []core.DeadLetter
	for _, id := range e.deadIDs() {
		letters = append(letters, e.deadLetter(id))
	}
	e.byRefs(e.store.Purge, whole("large"), whole("x"))
	e.reported("how many were imported", e.bringIn(letters...), 2)
	e.same("the queue", e.snapshot(orders), before)
}

func importUnites(e *env) {
	tagged := core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("there")}
	untagged := core.Payload{Data: []byte("n"), Score: 5}
	for _, many := range []int{0, 30} {
		id := fmt.Sprint("with ", many, " more")
		there := letter(id, 1, pay("p", 1), pay("q", 2), pay("r", 3), tagged, untagged)
		coming := letter(id, 1, pay("r", 2.5), pay("p", 3), pay("o", 4), core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("coming")},
			core.Payload{Data: []byte("n"), Score: 5, Meta: []byte("coming")})
		for i := range many {
			there.Payloads = append(there.Payloads, pay(fmt.Sprint("more ", 100+i), float64(100+i)))
		}
		e.bringIn(there)
		e.reported("how many were imported", e.bringIn(coming), 1)
		want := there
		want.Payloads = append([]core.Payload{pay("p", 1), pay("q", 2), pay("r", 2.5), pay("o", 4), tagged, untagged}, there.Payloads[5:]...)
		e.same("the dead letter", e.deadLetter(id), want)
		tagless := letter(id, 1, core.Payload{Data: []byte("m"), Score: 4.5}, core.Payload{Data: []byte("n"), Score: 4.5, Meta: []byte("new")})
		e.bringIn(tagless)
		e.same("the Metas that came with smaller scores", e.deadLetter(id).Payloads[4:6], tagless.Payloads)
	}
}

func importLater(e *env) {
	e.bringIn(letter("a", 5, pay("p", 1)))
	e.reported("how many were imported", e.bringIn(letter("a", 4, pay("q", 2))), 1)
	e.same("after an earlier one", e.deadLetter("a"), letter("a", 5, twoPayloads()...))
	other := letter("a", 5, pay("p", 9))
	other.Error, other.Group = "other", "other group"
	e.unchanged("one of the same time", func() { e.reported("how many of the same time were imported", e.bringIn(other), 0) })
	e.reported("how many later ones were imported", e.bringIn(letter("a", 6, pay("p", 7))), 1)
	e.same("after a later one", e.deadLetter("a"), letter("a", 6, twoPayloads()...))
	e.haveGroups("then", core.Group{Name: "group at 6", Count: 1, First: seconds(6), Last: seconds(6)})
	e.clock.Advance(time.Minute)
	buryAll(e, "a")
	e.bringIn(letter("a", 30, pay("r", 3)))
	want := core.DeadLetter{ID: "a", ChangedAt: seconds(60), Error: core.BuriedByHand, Group: core.BuriedByHand, Payloads: []core.Payload{pay("p", 1), pay("q", 2), pay("r", 3)}}
	e.same("after an earlier one was imported onto one that was buried here", e.deadLetter("a"), want)
	e.same("the dead by time", e.deadIDs(), []string{"a"})
}

func importParts(e *env) {
	all := make([]core.Payload, 2500)
	for i := range all {
		all[i] = core.Payload{Data: fmt.Appendf(nil, "%05d", i), Score: float64(i)}
		if i%100 == 7 {
			all[i].Meta = []byte("meta")
		}
	}
	for range 2 {
		for part := range slices.Chunk(all, core.MaxTurnPayloads) {
			e.bringIn(letter("a", 5, part...))
		}
		e.same("the dead letter", e.deadLetter("a"), letter("a", 5, all...))
		e.haveGroups("with its parts", core.Group{Name: "group at 5", Count: 1, First: seconds(5), Last: seconds(5)})
	}
}

func importLarge(e *env) {
	large := letter("a", 1, sized(core.MaxStepBytes+1, 1))
	e.reported("how many were imported", e.bringIn(large), 1)
	got := e.deadLetter("a").Payloads
	e.same("whether the large payload is there", len(got) == 1 && bytes.Equal(got[0].Data, large.Payloads[0].Data), true)
	e.reported("how many were imported", e.bringIn(letter("a", 2, pay("p", 0)), letter("b", 2, pay("p", 0))), 2)
	e.same("how many payloads it has", len(e.deadLetter("a").Payloads), 2)
	e.reported("how many were imported again", e.bringIn(large), 0)
}

func importRepeats(e *env) {
	letters := append(oddLetters(), letter("d", 3, many(20)...))
	e.bringIn(letters...)
	e.clock.Advance(time.Minute)
	e.unchanged("a repeated Import", func() {
		e.reported("how many it counted", e.bringIn(letters...), 0)
		e.reported("how many parts it counted", e.bringIn(letter("d", 3, many(20)[7:9]...)), 0)
	})
}

// many returns n payloads, some with a Meta.
func many(n int) []core.Payload {
	var all []core.Payload
	for i := range n {
		p := pay(fmt.Sprintf("%04d", i), float64(i))
		if i%3 == 0 {
			p.Meta = []byte{byte(i)}
		}
		all = append(all, p)
	}
	return all
}

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

// byGroup handles all dead letters of a group, and returns their number.
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

// importRefused checks that an import is refused and changes nothing.
func (e *env) importRefused(with string, r ports.ImportRequest, want error) {
	e.tb.Helper()
	e.unchanged("Import with "+with, func() {
		_, err := e.store.Import(e.ctx, r)
		e.refused("Import with "+with, err, want)
	})
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
		"no id":                         {change(func(d *core.DeadLetter) { d.ID = "" }), core.ErrInvalidID},
		"an id that is not UTF-8":       {change(func(d *core.DeadLetter) { d.ID = "\xff" }), core.ErrInvalidID},
		"a control character":           {change(func(d *core.DeadLetter) { d.ID = "a\n" }), core.ErrInvalidID},
		"an id twice":                   {change(func(d *core.DeadLetter) { d.ID = "a" }), ports.ErrInvalidRequest},
		"no payloads":                   {change(func(d *core.DeadLetter) { d.Payloads = nil }), ports.ErrInvalidRequest},
		"a payload twice":               {change(func(d *core.DeadLetter) { d.Payloads = []core.Payload{pay("p", 1), pay("p", 2)} }), ports.ErrInvalidRequest},
		"payloads upside down":          {change(func(d *core.DeadLetter) { d.Payloads = []core.Payload{pay("p", 2), pay("q", 1)} }), ports.ErrInvalidRequest},
		"a score that is NaN":           {change(func(d *core.DeadLetter) { d.Payloads[0].Score = math.NaN() }), core.ErrInvalidScore},
		"an infinite score":             {change(func(d *core.DeadLetter) { d.Payloads[0].Score = math.Inf(1) }), core.ErrInvalidScore},
		"a long Meta":                   {change(func(d *core.DeadLetter) { d.Payloads[0].Meta = make([]byte, core.MaxMetaBytes+1) }), core.ErrInvalidPayload},
		"a time below 0":                {change(func(d *core.DeadLetter) { d.ChangedAt = -1 }), core.ErrInvalidTime},
		"a time after the last instant": {change(func(d *core.DeadLetter) { d.ChangedAt = core.MaxInstant + 1 }), core.ErrInvalidTime},
		"a long error":                  {change(func(d *core.DeadLetter) { d.Error = strings.Repeat("e", core.MaxErrorBytes+1) }), ports.ErrInvalidRequest},
		"an error with NUL":             {change(func(d *core.DeadLetter) { d.Error = "\x00" }), ports.ErrInvalidRequest},
		"no group":                      {change(func(d *core.DeadLetter) { d.Group = "" }), ports.ErrInvalidRequest},
		"a long group":                  {change(func(d *core.DeadLetter) { d.Group = strings.Repeat("g", core.MaxGroupBytes+1) }), ports.ErrInvalidRequest},
	} {
		e.importRefused(name, e.importRequest(good, bad.letter), bad.want)
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
		e.importRefused(name, r, ports.ErrInvalidRequest)
	}
	e.reported("how many of the largest number of dead letters were imported", e.bringIn(letters[:ports.MaxStep]...), ports.MaxStep)
	e.reported("how many dead letters with the largest number of payloads were imported", e.bringIn(letter("a", 1, many(core.MaxTurnPayloads)...)), 1)
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

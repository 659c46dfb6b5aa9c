package step

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleImport = "Import adds dead letters of another morgue to this one, unchanged: " +
		"payloads with Score and Meta, ChangedAt, Error and Group"
	ruleImportUnites = "Import: of equal bytes the smaller score stays, on a tie the existing one; " +
		"ChangedAt, Error and Group are those of the later change, on a tie those of the existing dead letter"
	ruleImportRepeat = "Import: Handled counts the dead letters that are new or changed; " +
		"so repeating it changes and counts nothing more"
	ruleImportGroup = "Import: a dead letter is counted in its group as buried at its ChangedAt, " +
		"and in core.OtherGroup if the shard has core.MaxGroups others"
	ruleImportWhole = "Import: after an error of ImportRequest.Validate nothing is stored"
)

func importCases() []env.Case {
	return []env.Case{
		{Name: "stores every field of a dead letter", Rule: ruleImport, Check: importBrings},
		{Name: "accepts unusual ids", Rule: ruleImport, Check: importOddIDs},
		{Name: "restores exported dead letters unchanged", Rule: ruleImport, Check: importExported},
		{Name: "unites payloads with those of an existing dead letter", Rule: ruleImportUnites, Check: importUnites},
		{Name: "keeps the fields that changed later", Rule: ruleImportUnites, Check: importLater},
		{
			Name:  "accepts a dead letter in parts",
			Rule:  "ImportRequest: a dead letter with more payloads is imported in parts, one per call",
			Check: importParts,
		},
		{
			Name:  "accepts a large payload",
			Rule:  "ImportRequest: at most as much as a step moves; the first payload always passes",
			Check: importLarge,
		},
		{Name: "changes and counts nothing when it is repeated", Rule: ruleImportRepeat, Check: importRepeats},
		{Name: "counts its dead letters", Rule: ruleImportGroup, Check: importCounts},
		{Name: "keeps MaxGroups groups apart", Rule: ruleImportGroup, Check: importManyGroups},
		{
			Name:  "leaves queued and claimed jobs alone",
			Rule:  "Import: imported dead letters don't run, and queued or claimed jobs of their ids stay",
			Check: importBeside,
		},
		{
			Name:  "stores dead letters that can be revived",
			Rule:  "RULES 5: revive puts payloads back",
			Check: importRevived,
		},
		{
			Name:  "restores dead letters that were purged meanwhile",
			Rule:  "Import: dead letters that were revived or purged meanwhile are stored again",
			Check: importPurged,
		},
		{Name: "refuses a whole request for one invalid dead letter", Rule: ruleImportWhole, Check: importRefuses},
		{Name: "refuses more than a step moves", Rule: ruleImportWhole, Check: importTooMuch},
		{
			Name:  "refuses another layout",
			Rule:  "Import: ErrShardCountMismatch for a layout that is not the queue's, with nothing stored",
			Check: importLayout,
		},
	}
}

// oddLetters returns dead letters with values that a careless store loses.
func oddLetters() []core.DeadLetter {
	meta := func(p core.Payload, meta string) core.Payload { p.Meta = []byte(meta); return p }

	return []core.DeadLetter{
		{ID: "a", ChangedAt: 0, Group: core.OtherGroup, Payloads: []core.Payload{env.Pay("", 0)}},
		{
			ID:        "b",
			ChangedAt: env.Start - 1,
			Failures:  env.Failures("\u00e9\n\t\u2028", "", "3", "4", "5"),
			Group:     "g\u00e9",
			Payloads: []core.Payload{
				env.Pay("p", -math.MaxFloat64),
				meta(env.Pay("\x00\xff", -1), "\x00m"),
				env.Pay("q", math.SmallestNonzeroFloat64),
				meta(env.Pay("r", 0.1), strings.Repeat("m", core.MaxMetaBytes)),
				env.Pay("s", 1.7e9+1e-6),
				env.Pay("t", 1<<53),
				env.Pay("u", math.MaxFloat64),
			},
		},
		{
			ID:        "c",
			ChangedAt: core.MaxInstant,
			Failures:  env.Failures(strings.Repeat("e", core.MaxErrorBytes)),
			Group:     strings.Repeat("g", core.MaxGroupBytes),
			Payloads: []core.Payload{
				meta(env.Pay("p", 1), "only"),
			},
		},
	}
}

func importBrings(e *env.Env) {
	letters := oddLetters()
	e.Reported("how many were imported", e.BringIn(letters...), 3)
	for i := range letters {
		e.Same("the dead letter "+letters[i].ID, e.DeadLetter(letters[i].ID), letters[i])
	}

	e.Same("the dead by time", e.DeadIDs(), []string{"a", "b", "c"})
	e.Same("how many are dead", e.Counts().Dead, int64(3))

	d := env.Letter("d", 1, core.Payload{Data: []byte("p"), Score: math.Copysign(0, -1)})
	e.BringIn(d)
	e.Same("the score -0", math.Signbit(e.DeadLetter("d").Payloads[0].Score), false)
	e.Same("the caller's, which is only read", math.Signbit(d.Payloads[0].Score), true)

	e.Reported("how many of an empty request were imported", e.BringIn(), 0)
	reply, err := e.Store.Import(e.Ctx, e.ImportRequest(env.Letter("e", 1, env.Pay("p", 1))))
	e.Must(err, "Import")
	e.Same("the store's clock", reply.Now, e.Now())
}

func importOddIDs(e *env.Env) {
	var letters []core.DeadLetter
	for i, id := range append(
		env.OddIDs(), ".", "..", "/", "a/b", "%", "{x}", strings.Repeat("\u00e9", core.MaxIDBytes/2),
	) {
		if !slices.ContainsFunc(letters, func(d core.DeadLetter) bool { return d.ID == id }) {
			letters = append(letters, env.Letter(id, i, env.Pay("p", float64(i))))
		}
	}
	e.Reported("how many were imported", e.BringIn(letters...), len(letters))
	for i := range letters {
		e.Same("the dead letter", e.DeadLetter(letters[i].ID), letters[i])
	}
}

// importExported imports three dead letters after two of them were purged. The import restores
// these two.
func importExported(e *env.Env) {
	e.PushPayloads(20, "large")
	e.Push(core.Entry{ID: "meta", Payload: core.Payload{Data: []byte("p"), Score: 2, Meta: []byte("m")}})

	h := e.Acquire("burier")
	h.Settle(env.SettleAll(h.Claim(2), func(c core.Claim) core.Settlement { return env.BuriedAs(c, "of "+c.ID) })...)
	h.Release()
	e.BuryAll("x")

	before := e.Snapshot(env.Orders)
	var letters []core.DeadLetter
	for _, id := range e.DeadIDs() {
		letters = append(letters, e.DeadLetter(id))
	}

	e.ByRefs(e.Store.Purge, env.Whole("large"), env.Whole("x"))
	e.Reported("how many were imported", e.BringIn(letters...), 2)
	e.Same("the queue", e.Snapshot(env.Orders), before)
}

func importUnites(e *env.Env) {
	tagged := core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("there")}
	untagged := core.Payload{Data: []byte("n"), Score: 5}
	for _, many := range []int{0, 30} {
		id := fmt.Sprint("with ", many, " more")
		existing := env.Letter(id, 1, env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3), tagged, untagged)
		incoming := env.Letter(id, 1, env.Pay("r", 2.5), env.Pay("p", 3), env.Pay("o", 4),
			core.Payload{Data: []byte("m"), Score: 5, Meta: []byte("coming")},
			core.Payload{Data: []byte("n"), Score: 5, Meta: []byte("coming")})

		for i := range many {
			existing.Payloads = append(existing.Payloads, env.Pay(fmt.Sprint("more ", 100+i), float64(100+i)))
		}
		e.BringIn(existing)
		e.Reported("how many were imported", e.BringIn(incoming), 1)

		want := existing
		want.Payloads = append(
			[]core.Payload{env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 2.5), env.Pay("o", 4), tagged, untagged},
			existing.Payloads[5:]...,
		)
		e.Same("the dead letter", e.DeadLetter(id), want)

		tagless := env.Letter(id, 1, core.Payload{Data: []byte("m"), Score: 4.5},
			core.Payload{Data: []byte("n"), Score: 4.5, Meta: []byte("new")})
		e.BringIn(tagless)
		e.Same("the Metas that came with smaller scores", e.DeadLetter(id).Payloads[4:6], tagless.Payloads)
	}
}

func importLater(e *env.Env) {
	e.BringIn(env.Letter("a", 5, env.Pay("p", 1)))
	e.Reported("how many were imported", e.BringIn(env.Letter("a", 4, env.Pay("q", 2))), 1)
	e.Same("after an earlier one", e.DeadLetter("a"), env.Letter("a", 5, env.TwoPayloads()...))

	other := env.Letter("a", 5, env.Pay("p", 9))
	other.Failures, other.Group = env.Failures("other"), "other group"
	e.Unchanged("one of the same time", func() {
		e.Reported("how many of the same time were imported", e.BringIn(other), 0)
	})

	e.Reported("how many later ones were imported", e.BringIn(env.Letter("a", 6, env.Pay("p", 7))), 1)
	e.Same("after a later one", e.DeadLetter("a"), env.Letter("a", 6, env.TwoPayloads()...))
	e.HaveGroups("then", core.Group{Name: "group at 6", Count: 1, First: env.Seconds(6), Last: env.Seconds(6)})

	e.Clock.Advance(time.Minute)
	e.BuryAll("a")
	e.BringIn(env.Letter("a", 30, env.Pay("r", 3)))

	want := core.DeadLetter{
		ID:        "a",
		ChangedAt: env.Seconds(60),
		Failures:  core.Failures{{Text: core.BuriedByHand}},
		Group:     core.BuriedByHand,
		Payloads:  []core.Payload{env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3)},
	}
	e.Same("after an earlier one was imported onto one that was buried here", e.DeadLetter("a"), want)
	e.Same("the dead by time", e.DeadIDs(), []string{"a"})
}

func importParts(e *env.Env) {
	all := many(2500)
	for range 2 {
		for part := range slices.Chunk(all, core.MaxTurnPayloads) {
			e.BringIn(env.Letter("a", 5, part...))
		}
		e.Same("the dead letter", e.DeadLetter("a"), env.Letter("a", 5, all...))
		e.HaveGroups("with its parts",
			core.Group{Name: "group at 5", Count: 1, First: env.Seconds(5), Last: env.Seconds(5)})
	}
}

func importLarge(e *env.Env) {
	large := env.Letter("a", 1, env.Sized(core.MaxStepBytes+1, 1))
	e.Reported("how many were imported", e.BringIn(large), 1)
	got := e.DeadLetter("a").Payloads
	e.Same("whether the large payload is there",
		len(got) == 1 && bytes.Equal(got[0].Data, large.Payloads[0].Data), true)
	e.Reported("how many were imported",
		e.BringIn(env.Letter("a", 2, env.Pay("p", 0)), env.Letter("b", 2, env.Pay("p", 0))), 2)
	e.Same("how many payloads it has", len(e.DeadLetter("a").Payloads), 2)
	e.Reported("how many were imported again", e.BringIn(large), 0)
}

func importRepeats(e *env.Env) {
	letters := append(oddLetters(), env.Letter("d", 3, many(20)...))
	e.BringIn(letters...)
	e.Clock.Advance(time.Minute)
	e.Unchanged("a repeated Import", func() {
		e.Reported("how many it counted", e.BringIn(letters...), 0)
		e.Reported("how many parts it counted", e.BringIn(env.Letter("d", 3, many(20)[7:9]...)), 0)
	})
}

func importCounts(e *env.Env) {
	at := func(id string, n int) core.DeadLetter {
		d := env.Letter(id, n, env.Pay("p", 1))
		d.Group = "g"
		return d
	}

	e.BringIn(at("a", 20), at("b", 10))
	e.BringIn(at("c", 30), at("d", 5))
	e.HaveGroups("of four", core.Group{Name: "g", Count: 4, First: env.Seconds(5), Last: env.Seconds(30)})

	e.Clock.Advance(time.Minute)
	e.BuryIn("g", "e")
	e.HaveGroups("and one that was buried",
		core.Group{Name: "g", Count: 5, First: env.Seconds(5), Last: env.Seconds(61)})

	moved := at("a", 62)
	moved.Group = "h"
	e.BringIn(moved)
	e.HaveGroups(
		"after one has changed its group",
		core.Group{Name: "g", Count: 4, First: env.Seconds(5), Last: env.Seconds(61)},
		core.Group{Name: "h", Count: 1, First: env.Seconds(62), Last: env.Seconds(62)},
	)

	reply := e.Recount(0, func() {})
	e.Same("the counts, one by one", reply.After, reply.Before)
	e.Same("how many are dead", reply.After.Dead, int64(5))
}

func importManyGroups(e *env.Env) {
	var letters []core.DeadLetter
	for i := range core.MaxGroups + 2 {
		letters = append(letters, env.Letter(fmt.Sprintf("%04d", i), i, env.Pay("p", 1)))
	}

	for part := range slices.Chunk(letters, ports.MaxStep) {
		e.BringIn(part...)
	}

	reply := e.Groups(ports.GroupsRequest{Queue: env.Orders})
	e.Same("how many groups there are", reply.Total, core.MaxGroups+1)
	e.Same("the largest", reply.Groups[0], core.Group{
		Name:  core.OtherGroup,
		Count: 2,
		First: env.Seconds(core.MaxGroups),
		Last:  env.Seconds(core.MaxGroups + 1),
	})
}

func importBeside(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("b", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	before := e.Snapshot(env.Orders)
	e.BringIn(env.Letter("a", 1, env.Pay("p", 0)), env.Letter("b", 1, env.Pay("q", 0)))
	after := e.Snapshot(env.Orders)
	e.Same("the queued", after.Jobs, before.Jobs)
	e.Same("the claimed", after.Claims, before.Claims)
	e.Same("the heads", after.Heads, before.Heads)
	h.Settle(env.Buried(c, "no use"))
	e.Same("the payloads once the job is buried too", e.DeadLetter("a").Payloads, []core.Payload{env.Pay("p", 0)})
}

func importRevived(e *env.Env) {
	e.BringIn(env.Letter("a", 1, env.TwoPayloads()...),
		env.Letter("b", 2, env.Pay("p", 1)), env.Letter("c", 3, many(20)...))
	e.Clock.Advance(time.Minute)
	e.Reported("how many of a group were purged", byGroup(e, e.Store.Purge, "group at 2"), 1)
	e.Reported("how many were revived", e.ByAge(e.Store.Revive, e.Now(), 0).Handled, 2)
	e.Same("the job", e.Queued("a"), env.Job("a", revived(e), env.TwoPayloads()...))
	e.Same("the payloads of the other", e.Queued("c").Payloads, many(20))
	e.Same("the dead", e.DeadIDs(), nil)
	e.HaveGroups("then")
}

// byGroup handles all dead letters of a group, and returns their number.
func byGroup(e *env.Env, do env.DeadLetterStep, group string) int {
	e.TB.Helper()
	since := e.Repeats.Lossy.Load()
	reply, err := do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Before: e.Now(), Group: group})
	e.Must(err, "a step over a group")
	e.GiveUpIfRepeated(since)
	return reply.Handled
}

func importPurged(e *env.Env) {
	d := env.Letter("a", 1, env.TwoPayloads()...)
	e.BringIn(d)
	e.ByRefs(e.Store.Purge, env.Whole("a"))
	e.Reported("how many were imported", e.BringIn(d), 1)
	e.Same("the dead letter", e.DeadLetter("a"), d)
}

// importRefused checks that an import is refused and changes nothing.
func importRefused(e *env.Env, with string, r ports.ImportRequest, want error) {
	e.TB.Helper()
	e.Unchanged("Import with "+with, func() {
		_, err := e.Store.Import(e.Ctx, r)
		e.Refused("Import with "+with, err, want)
	})
}

func importRefuses(e *env.Env) {
	good := env.Letter("a", 1, env.Pay("p", 1))
	change := func(change func(d *core.DeadLetter)) core.DeadLetter {
		d := env.Letter("b", 1, env.Pay("p", 1))
		change(&d)
		return d
	}

	for name, bad := range map[string]struct {
		letter core.DeadLetter
		want   error
	}{
		"no id":                   {change(func(d *core.DeadLetter) { d.ID = "" }), core.ErrInvalidID},
		"an id that is not UTF-8": {change(func(d *core.DeadLetter) { d.ID = "\xff" }), core.ErrInvalidID},
		"a control character":     {change(func(d *core.DeadLetter) { d.ID = "a\n" }), core.ErrInvalidID},
		"an id twice":             {change(func(d *core.DeadLetter) { d.ID = "a" }), ports.ErrInvalidRequest},
		"no payloads":             {change(func(d *core.DeadLetter) { d.Payloads = nil }), ports.ErrInvalidRequest},
		"a payload twice": {
			change(func(d *core.DeadLetter) { d.Payloads = []core.Payload{env.Pay("p", 1), env.Pay("p", 2)} }),
			ports.ErrInvalidRequest,
		},
		"payloads upside down": {
			change(func(d *core.DeadLetter) { d.Payloads = []core.Payload{env.Pay("p", 2), env.Pay("q", 1)} }),
			ports.ErrInvalidRequest,
		},
		"a score that is NaN": {
			change(func(d *core.DeadLetter) { d.Payloads[0].Score = math.NaN() }),
			core.ErrInvalidScore,
		},
		"an infinite score": {
			change(func(d *core.DeadLetter) { d.Payloads[0].Score = math.Inf(1) }),
			core.ErrInvalidScore,
		},
		"a long Meta": {
			change(func(d *core.DeadLetter) { d.Payloads[0].Meta = make([]byte, core.MaxMetaBytes+1) }),
			core.ErrInvalidPayload,
		},
		"a time below 0": {change(func(d *core.DeadLetter) { d.ChangedAt = -1 }), core.ErrInvalidTime},
		"a time after the last instant": {
			change(func(d *core.DeadLetter) { d.ChangedAt = core.MaxInstant + 1 }),
			core.ErrInvalidTime,
		},
		"a long error": {
			change(func(d *core.DeadLetter) { d.Failures = env.Failures(strings.Repeat("e", core.MaxErrorBytes+1)) }),
			ports.ErrInvalidRequest,
		},
		"long errors together": {
			change(func(d *core.DeadLetter) { d.Failures = env.Failures(strings.Repeat("e", core.MaxErrorBytes), "e") }),
			ports.ErrInvalidRequest,
		},
		"an error with NUL": {change(func(d *core.DeadLetter) { d.Failures = env.Failures("\x00") }), ports.ErrInvalidRequest},
		"no group":          {change(func(d *core.DeadLetter) { d.Group = "" }), ports.ErrInvalidRequest},
		"a long group": {
			change(func(d *core.DeadLetter) { d.Group = strings.Repeat("g", core.MaxGroupBytes+1) }),
			ports.ErrInvalidRequest,
		},
	} {
		importRefused(e, name, e.ImportRequest(good, bad.letter), bad.want)
	}
}

func importTooMuch(e *env.Env) {
	var letters []core.DeadLetter
	for i := range ports.MaxStep + 1 {
		letters = append(letters, env.Letter(fmt.Sprintf("%04d", i), i, env.Pay("p", 1)))
	}

	for name, r := range map[string]ports.ImportRequest{
		"too many dead letters": e.ImportRequest(letters...),
		"too many payloads": e.ImportRequest(env.Letter("a", 1, many(core.MaxTurnPayloads)...),
			env.Letter("b", 1, env.Pay("p", 1))),
		"too many bytes": e.ImportRequest(env.Letter("a", 1, env.Sized(core.MaxStepBytes, 1)),
			env.Letter("b", 1, env.Pay("p", 1))),
	} {
		importRefused(e, name, r, ports.ErrInvalidRequest)
	}

	e.Reported("how many of the largest number of dead letters were imported",
		e.BringIn(letters[:ports.MaxStep]...), ports.MaxStep)
	e.Reported("how many dead letters with the largest number of payloads were imported",
		e.BringIn(env.Letter("a", 1, many(core.MaxTurnPayloads)...)), 1)
}

func importLayout(e *env.Env) {
	importIntoLayouts(e, func(r *ports.ImportRequest, id string) {
		r.DeadLetters = append(r.DeadLetters, env.Letter(id, 1, env.Pay("p", 1)))
	}, func(f ports.Found) bool { return f.DeadLetter != nil })
}

// importIntoLayouts checks that an import of what add adds to a request is refused for a layout
// that is not the queue's, with nothing stored, and passes otherwise. stored reports whether Find
// has found what was added.
func importIntoLayouts(e *env.Env, add func(r *ports.ImportRequest, id string), stored func(ports.Found) bool) {
	e.TB.Helper()
	e.Declare("wide", 2)
	q, s := e.Declared["wide"], core.Shards("wide", 2)
	own, other := env.IDsOf(s[0], 2, 1)[0], env.IDsOf(s[1], 2, 1)[0]

	request := func(shard core.Shard, id string) ports.ImportRequest {
		r := ports.ImportRequest{Shard: shard, Shards: 2, Generation: q.Generation}
		add(&r, id)
		return r
	}

	for name, c := range map[string]struct {
		change func(r *ports.ImportRequest)
		want   error
	}{
		"another shard count": {
			func(r *ports.ImportRequest) { r.Shards, r.DeadLetters, r.Jobs = 1, nil, nil },
			ports.ErrShardCountMismatch,
		},
		"another generation": {func(r *ports.ImportRequest) { r.Generation++ }, ports.ErrShardCountMismatch},
		"an unknown queue":   {func(r *ports.ImportRequest) { r.Shard.Queue = "never" }, ports.ErrUnknownQueue},
		"a shard below 0":    {func(r *ports.ImportRequest) { r.Shard.Index = -1 }, ports.ErrInvalidRequest},
		"a shard too many":   {func(r *ports.ImportRequest) { r.Shard.Index = 2 }, ports.ErrInvalidRequest},
		"an id of another":   {func(r *ports.ImportRequest) { add(r, other) }, ports.ErrInvalidRequest},
	} {
		r := request(s[0], own)
		c.change(&r)
		_, err := e.Store.Import(e.Ctx, r)
		e.Refused("Import with "+name, err, c.want)

		if found := e.FindIn("wide", own); stored(found) {
			e.Errorf("Import with %s has stored %+v", name, found)
		}
	}

	_, err := e.Store.Import(e.Ctx, request(s[1], other))
	e.Must(err, "Import into the second shard")
	e.Same("whether it is stored", stored(e.FindIn("wide", other)), true)
}

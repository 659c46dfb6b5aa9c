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
	ruleImport       = "Import puts dead letters that another morgue had into this one, as they were there: payloads with Score and Meta, ChangedAt, Error and Group"
	ruleImportUnites = "Import: of equal bytes the smaller score stays, on a tie the one that was there; ChangedAt, Error and Group are those of the one that changed later, on a tie of the one that was there"
	ruleImportRepeat = "Import: Handled counts the dead letters that are new or of which something changed; so repeating it changes and counts nothing more"
	ruleImportGroup  = "Import: it is counted in its group as buried at its ChangedAt, and in core.OtherGroup if the shard has core.MaxGroups others"
	ruleImportWhole  = "Import: after an error of ImportRequest.Validate nothing is stored"
)

func importCases() []namedCase {
	return []namedCase{
		{"brings all that a dead letter has", ruleImport, importBrings},
		{"brings odd ids", ruleImport, importOddIDs},
		{"brings what was exported, as it was", ruleImport, importExported},
		{"unites payloads with those that are there", ruleImportUnites, importUnites},
		{"keeps what changed later", ruleImportUnites, importLater},
		{"brings a dead letter in parts", "ImportRequest: one that has more comes in parts, in calls of their own", importParts},
		{"brings a large payload", "ImportRequest: no more in all than a step moves, of which the first always passes", importLarge},
		{"changes and counts nothing when it is repeated", ruleImportRepeat, importRepeats},
		{"counts its dead letters", ruleImportGroup, importCounts},
		{"tells so many groups apart", ruleImportGroup, importManyGroups},
		{"leaves what is queued and claimed", "Import: nothing in it runs, and what is queued or claimed of their ids stays", importBeside},
		{"brings what can be revived", "RULES 5: revive puts payloads back", importRevived},
		{"brings back what was purged meanwhile", "Import: what was revived or purged meanwhile comes back", importPurged},
		{"refuses what is no dead letter, whole", ruleImportWhole, importRefused},
		{"refuses more than a step moves", ruleImportWhole, importTooMuch},
		{"refuses another layout", "Import: ErrShardCountMismatch for another layout than the queue's: then nothing is stored", importLayout},
	}
}

// letter is a dead letter with a group and an error of its own, which changed at seconds after the
// suite's start.
func letter(id string, at int, payloads ...core.Payload) core.DeadLetter {
	return core.DeadLetter{
		ID: id, ChangedAt: seconds(at), Error: fmt.Sprint("error at ", at), Group: fmt.Sprint("group at ", at), Payloads: payloads,
	}
}

func (e *env) importRequest(letters ...core.DeadLetter) ports.ImportRequest {
	q := e.declared[orders]
	return ports.ImportRequest{Shard: e.shard, Shards: q.Shards, Generation: q.Generation, DeadLetters: letters}
}

// bringIn imports dead letters, and continues where a call has handled only some. It returns how
// many were handled.
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
			e.tb.Fatalf("Import gets on with none of %d dead letters\nthe rule: %s", len(left), e.rule)
		}
	}
}

// oddLetters are dead letters with whatever a careless store loses.
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
	e.reported("how many of none were imported", e.bringIn(), 0)
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

// importExported imports the contents of a list of the morgue, after it was purged, and in
// between.
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
	e.same("after an earlier one came to one that was buried here", e.deadLetter("a"), want)
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

// many are n payloads, some with a Meta.
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

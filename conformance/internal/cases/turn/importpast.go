package turn

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/vectors"
	"github.com/skeinq/skein/ports"
)

const (
	ruleImportPast  = "Import: a record keeps its fields and its Result"
	ruleImportMarks = "Import: of two marks of an id that are kept beside its records " +
		"the higher score and the later time stay"
	rulePastMarks = "Past: with Marks it lists the marks that are kept beside records"
)

// importPastCases are about records and marks of another queue.
func importPastCases() []env.Case {
	return []env.Case{
		{Name: "stores every field of a record", Rule: ruleImportPast, Check: importPastStores},
		{Name: "stores many records", Rule: ruleImportPast, Check: importPastMany},
		{
			Name:  "keeps the record that was done later and the highest mark",
			Rule:  "RULES 14 and 16: the record that was done later stays, on a tie the present one; no mark is lowered",
			Check: importPastMeets,
		},
		{Name: "changes nothing when it is repeated", Rule: "Import: a repeated call changes nothing more",
			Check: importPastRepeats},
		{Name: "stores marks", Rule: ruleImportMarks, Check: importPastMarks},
		{Name: "lists marks", Rule: rulePastMarks, Check: importPastListsMarks},
		{
			Name:  "leaves jobs and dead letters alone",
			Rule:  "Import: records run nothing",
			Check: importPastBeside,
		},
		{
			Name:  "stores records that go by the bounds of their new queue",
			Rule:  "RULES 14: the next settlements remove records, by the bounds of the queue that they come to",
			Check: importPastGoes,
		},
		{
			Name:  "stores records that stay for 30 days in a queue that keeps none",
			Rule:  "RULES 14: by an age of 30 days in a queue that has never kept any",
			Check: importPastUnkept,
		},
		{
			Name:  "stores records that the next run replaces",
			Rule:  "RULES 14: an id has one record, that of its last run that was done",
			Check: importPastReplaced,
		},
		{Name: "refuses a whole request for one invalid record", Rule: "Import: after an error nothing is stored",
			Check: importPastRefuses},
	}
}

// doneAt returns a record of a run that was done at the given second after the start.
func doneAt(id string, at int, result string) core.Past {
	p := core.Past{
		ID:       id,
		Started:  env.Seconds(at) - 9,
		DoneAt:   env.Seconds(at),
		Took:     3 * time.Second,
		Score:    float64(at),
		Raises:   true,
		Payloads: 2,
		Attempt:  3,
		Node:     "web-1",
	}
	if result != "" {
		p.Result = []byte(result)
	}
	return p
}

// markOf returns a mark that was raised at the given second after the start.
func markOf(id string, at int, score float64) core.Past {
	return core.Past{ID: id, DoneAt: env.Seconds(at), Score: score, Raises: true}
}

// bringPast imports records.
func bringPast(e *env.Env, records ...core.Past) {
	e.TB.Helper()
	r := e.ImportRequest()
	r.Past = records
	bringAll(e, r)
}

// bringMarks imports marks.
func bringMarks(e *env.Env, marks ...core.Past) {
	e.TB.Helper()
	r := e.ImportRequest()
	r.Marks = marks
	bringAll(e, r)
}

func bringAll(e *env.Env, r ports.ImportRequest) {
	e.TB.Helper()
	reply, err := e.Store.Import(e.Ctx, r)
	e.Must(err, "Import")
	n := r.Entries()
	e.Same("how many are handled and reached", []int{reply.Handled, reply.Reached}, []int{n, n})
	e.Same("the store's clock", reply.Now, e.Now())
}

// pastMarks returns the marks that are kept beside records.
func pastMarks(e *env.Env) (marks []core.Past) {
	e.TB.Helper()
	r := env.WholePage(env.Orders)
	r.Marks = true
	page, err := e.Store.Past(e.Ctx, r)
	e.Must(err, "Past")
	for _, p := range page.Past {
		marks = append(marks, p.Past)
	}
	return marks
}

func importPastStores(e *env.Env) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	records := []core.Past{
		{ID: "a"},
		doneAt("b", -3600, "42"),
		{
			ID:       "c",
			DoneAt:   core.MaxInstant,
			Started:  core.MaxInstant,
			Took:     core.Forever,
			Score:    math.MaxFloat64,
			Raises:   true,
			Payloads: math.MaxInt32,
			Attempt:  math.MaxInt32,
			Node:     strings.Repeat("é", core.MaxNodeBytes),
			Result:   every,
		},
		{ID: "d", DoneAt: 1, Started: -1, Took: -1, Score: math.Copysign(0, -1), Result: []byte{}},
		{ID: "e", DoneAt: 2, Score: -math.MaxFloat64, Node: "'\"\\\u2028\x00\xff", Result: []byte(`\x00`)},
		{ID: "f", DoneAt: 3, Score: 5e-324, Result: []byte(strings.Repeat("r", core.MaxResultBytes))},
	}
	bringPast(e, records...)
	for i := range records {
		p := &records[i]
		samePast(e, "record "+p.ID, p.Stored(p.ID, p.DoneAt))
		sameMark(e, "of an imported record", p.ID, p.Mark())
	}
	e.Same("the list", pastIDs(e), []string{"a", "d", "e", "f", "b", "c"})
	e.Same("the marks beside the records", pastMarks(e), nil)

	e.Push(env.EntryAt("b", "p", 1, 0))
	h := e.Acquire("n1")
	r := h.Request(1)
	r.Keep, r.Marks = keepDay(), true
	e.Same("the mark of a claim", h.Send(r).Claims[0].Mark, core.MarkAt(-3600))
	bringPast(e)
}

func importPastMany(e *env.Env) {
	var records []core.Past
	for i := range ports.MaxStep {
		records = append(records, doneAt(fmt.Sprintf("id %03d", i), i, fmt.Sprint("result ", i)))
	}
	bringPast(e, records...)
	e.Same("how many records there are", len(past(e)), ports.MaxStep)
	samePast(e, "the last", records[ports.MaxStep-1])
}

// importPastMeets runs the worked cases, with an id for each.
func importPastMeets(e *env.Env) {
	type vector struct{ Present, Mark, Imported, Stays, Beside []float64 }
	list, err := vectors.Read[vector]("pastimport.json")
	e.Must(err, "reading the vectors")
	record := func(id string, f []float64) core.Past {
		p := doneAt(id, int(f[0]), fmt.Sprint("result at ", f[0]))
		p.Score, p.Raises = f[1], f[2] == 1
		return p
	}

	for i, v := range list {
		id, rule := fmt.Sprint("id ", i), e.Rule
		e.Rule = fmt.Sprintf("%s, pastimport.json, case %d", rule, i)
		if v.Present != nil {
			bringPast(e, record(id, v.Present))
		}
		if v.Mark != nil {
			bringMarks(e, markOf(id, int(v.Mark[0]), v.Mark[1]))
		}
		bringPast(e, record(id, v.Imported))

		want := record(id, v.Stays)
		samePast(e, "the record that stays", want)
		mark := want.Mark()
		var beside []core.Past
		if v.Beside != nil {
			beside = append(beside, markOf(id, int(v.Beside[0]), v.Beside[1]))
			mark = mark.Raised(beside[0].Mark())
		}
		sameMark(e, "after the import", id, mark)
		for _, m := range pastMarks(e) {
			if m.ID == id {
				e.Same("the mark beside the record", []core.Past{m}, beside)
				beside = nil
			}
		}
		e.Same("the marks that are missing", beside, nil)
		e.Rule = rule
	}
}

func importPastRepeats(e *env.Env) {
	bringPast(e, doneAt("a", 5, "first"), doneAt("b", 5, "first"))
	records := []core.Past{doneAt("a", 6, "second"), doneAt("b", 4, "second"), doneAt("c", 3, "")}
	marks := []core.Past{markOf("a", 9, 1), markOf("d", 2, 7)}
	var seen []string
	for range 3 {
		bringPast(e, records...)
		bringMarks(e, marks...)
		results := []string{string(e.Find("a").Past.Result), string(e.Find("b").Past.Result)}
		seen = append(seen, fmt.Sprint(past(e), pastMarks(e), results))
	}
	e.Same("what a repeat has changed", seen[1], seen[0])
	e.Same("what a second repeat has changed", seen[2], seen[0])
	e.Same("the list", pastIDs(e), []string{"c", "b", "a"})
}

func importPastMarks(e *env.Env) {
	bringMarks(e, markOf("a", 1, 7), markOf("b", 2, math.Copysign(0, -1)), markOf("c", 3, -math.MaxFloat64))
	sameMark(e, "once it is imported", "a", core.MarkAt(7))
	sameMark(e, "once it is imported", "b", core.MarkAt(0))
	sameMark(e, "once it is imported", "c", core.MarkAt(-math.MaxFloat64))
	e.Same("the records", past(e), nil)

	bringMarks(e, markOf("a", 9, 5), markOf("b", 1, 3))
	e.Same("the marks", pastMarks(e),
		[]core.Past{markOf("b", 2, 3), markOf("c", 3, -math.MaxFloat64), markOf("a", 9, 7)})

	h := e.Acquire("n1")
	raise(h, keepDay(), "b", 4)
	raise(h, keepDay(), "a", 6)
	sameMark(e, "that was raised since", "b", core.MarkAt(4))
	sameMark(e, "that was higher", "a", core.MarkAt(7))
	e.Same("the record", e.Find("a").Past, (*core.Past)(nil))
}

func importPastListsMarks(e *env.Env) {
	pages := func(r ports.PageRequest) env.Listed {
		r.Marks = true
		return pastPages(e)(r)
	}
	e.Lists("no marks", env.Orders, pages, nil)
	bringPast(e, doneAt("a", 5, ""), doneAt("x", 6, "result"))
	bringMarks(e, markOf("c", 5, 9), markOf("a", 5, 3), markOf("b", 4, 1), markOf("d", 7, 1))
	e.Lists("the marks", env.Orders, pages, []string{"b", "a", "c", "d"})
	e.Lists("the records", env.Orders, pastPages(e), []string{"a", "x"})
}

func importPastBeside(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("b", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.BringIn(env.Letter("a", 1, env.Pay("p", 0)))
	e.Unchanged("an import of records", func() {
		bringPast(e, doneAt("a", 5, "result"), doneAt("b", 5, ""))
		bringMarks(e, markOf("a", 5, 9))
	})
	record(h, keepDay(), recorded(c, "done"))
	e.CountsMatch(env.Orders, 1, 0)
}

func importPastGoes(e *env.Env) {
	bringPast(e, doneAt("a", -7200, ""), doneAt("b", 1, "bb"), doneAt("c", 2, ""), doneAt("d", 3, ""))
	bringMarks(e, markOf("e", 4, 1))
	e.Clock.Advance(10 * time.Second)
	h := e.Acquire("n1")
	keep := core.KeepPast{Age: time.Hour}
	done(h, keep, "f")
	e.Same("by age", pastIDs(e), []string{"b", "c", "d", "f"})

	keep.Count = 4
	done(h, keep, "g")
	e.Same("by count, of which a mark is one", pastIDs(e), []string{"d", "f", "g"})
	sameMark(e, "which is kept", "e", core.MarkAt(1))

	// The bytes of results that came are counted, and those of records that they replace are free.
	keep = core.KeepPast{Age: time.Hour, Bytes: core.MaxResultBytes}
	large := strings.Repeat("r", core.MaxResultBytes)
	bringPast(e, doneAt("d", 11, large))
	bringPast(e, doneAt("d", 12, "x"))
	done(h, keep, "h")
	e.Same("with a small result", pastIDs(e), []string{"f", "g", "h", "d"})
	bringPast(e, doneAt("d", 13, large), doneAt("i", 14, "x"))
	done(h, keep, "h")
	e.Same("by the bytes of results", pastIDs(e), []string{"i"})
}

// importPastUnkept settles jobs by turns that keep none, with renewals in between.
func importPastUnkept(e *env.Env) {
	const day = 24 * 3600
	bringPast(e, doneAt("a", -29*day, ""), doneAt("b", -1, "result"))
	bringMarks(e, markOf("c", -29*day, 1))
	h := e.Acquire("n1")
	settle := func() {
		e.Clock.Advance(env.TTL / 2)
		e.Push(env.EntryAt("last", "p", 1, 0))
		h.Settle(env.Done(h.One()))
	}
	settle()
	e.Same("the records", pastIDs(e), []string{"a", "b"})

	e.Clock.Advance(day * time.Second)
	for i := 0; len(past(e)) > 1 || len(pastMarks(e)) > 0; i++ {
		if i == 20 {
			e.Errorf("after %d turns that keep none there are old records", i)
			return
		}
		settle()
	}
	e.Same("the records a day later", pastIDs(e), []string{"b"})
}

func importPastReplaced(e *env.Env) {
	bringPast(e, doneAt("a", 3600, "ahead of the clock"))
	h := e.Acquire("n1")
	e.Push(env.EntryAt("a", "p", 1, 0))
	record(h, keepDay(), recorded(h.One(), "run"))
	e.Same("the result", string(e.Find("a").Past.Result), "run")
	e.Same("how many records there are", len(past(e)), 1)

	bringPast(e, doneAt("a", -1, "before it"))
	e.Same("the result after an older one came", string(e.Find("a").Past.Result), "run")
}

func importPastRefuses(e *env.Env) {
	good := doneAt("good", 1, "")
	changed := func(change func(p *core.Past)) core.Past {
		p := doneAt("bad", 1, "")
		change(&p)
		return p
	}
	refused := func(what string, sentinel error, change func(r *ports.ImportRequest)) {
		e.TB.Helper()
		r := e.ImportRequest()
		r.Past = []core.Past{good}
		change(&r)
		_, err := e.Store.Import(e.Ctx, r)
		e.Refused("Import of "+what, err, sentinel)
		e.Same("the records after an import of "+what, past(e), nil)
		e.Same("the marks after an import of "+what, pastMarks(e), nil)
	}

	for _, c := range []struct {
		what     string
		sentinel error
		record   core.Past
	}{
		{"an invalid id", core.ErrInvalidID, changed(func(p *core.Past) { p.ID = "a\x00" })},
		{"an id that comes twice", ports.ErrInvalidRequest, good},
		{"a time before 0", core.ErrInvalidTime, changed(func(p *core.Past) { p.DoneAt = -1 })},
		{"a time that is too late", core.ErrInvalidTime, changed(func(p *core.Past) { p.DoneAt = core.MaxInstant + 1 })},
		{"no score", core.ErrInvalidScore, changed(func(p *core.Past) { p.Score = math.NaN() })},
		{"a result that is too long", ports.ErrInvalidRequest,
			changed(func(p *core.Past) { p.Result = make([]byte, core.MaxResultBytes+1) })},
	} {
		refused("a record with "+c.what, c.sentinel, func(r *ports.ImportRequest) { r.Past = append(r.Past, c.record) })
		if c.record.Result == nil {
			refused("a mark with "+c.what, c.sentinel, func(r *ports.ImportRequest) {
				r.Past, r.Marks = nil, []core.Past{good, c.record}
			})
		}
	}

	refused("records and marks", ports.ErrInvalidRequest, func(r *ports.ImportRequest) { r.Marks = []core.Past{good} })
	refused("records and jobs", ports.ErrInvalidRequest, func(r *ports.ImportRequest) {
		r.Jobs = []core.Job{env.Job("a", env.Fresh(env.Start), env.Pay("p", 1))}
	})
	refused("too many records", ports.ErrInvalidRequest, func(r *ports.ImportRequest) {
		for i := range ports.MaxStep {
			r.Past = append(r.Past, doneAt(fmt.Sprint(i), 1, ""))
		}
	})
	refused("too many bytes of results", ports.ErrInvalidRequest, func(r *ports.ImportRequest) {
		for i := range core.MaxStepBytes/core.MaxResultBytes + 1 {
			r.Past = append(r.Past, doneAt(fmt.Sprint(i), 1, strings.Repeat("r", core.MaxResultBytes)))
		}
	})
	refused("records for another layout", ports.ErrShardCountMismatch, func(r *ports.ImportRequest) { r.Generation++ })
	refused("records for another shard", ports.ErrInvalidRequest, func(r *ports.ImportRequest) { r.Shard.Index = 1 })
	refused("records for a paused shard only", ports.ErrNotPaused, func(r *ports.ImportRequest) { r.OnlyPaused = true })
}

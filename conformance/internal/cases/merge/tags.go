package merge

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleTagsGone = "RULES 1: tags are gone with their job"

func tagsCases() []env.Case {
	return []env.Case{
		{
			Name:  "are with the job in every place",
			Rule:  "RULES 1: a job has the tags of its pushes",
			Check: tagsEverywhere,
		},
		{Name: "of pushes unite", Rule: env.RuleTags, Check: tagsOfPushes},
		{
			Name:  "change nothing in what a push reports",
			Rule:  "PushReply: New, Merged and Duplicate, in the order of the entries",
			Check: tagsMet,
		},
		{Name: "of a superseded push stay", Rule: env.RuleTags, Check: tagsByMergeRule},
		{Name: "of a put-back and a push unite", Rule: env.RuleTags, Check: tagsOfPutBacks},
		{Name: "stay when a lease is lost", Rule: env.RuleTags, Check: tagsRecovered},
		{Name: "are gone when the job is done", Rule: ruleTagsGone, Check: tagsDone},
		{
			Name:  "stay with the rest of a claim",
			Rule:  "RULES 1: the rest of a claimed job stays queued with its tags",
			Check: tagsOfRest,
		},
		{Name: "stay with the dead letter", Rule: "RULES 5: a dead letter has the tags of its jobs", Check: tagsOfDead},
		{Name: "come back from the morgue", Rule: env.RuleTags, Check: tagsRevived},
		{Name: "stay when operators change the job", Rule: env.RuleTags, Check: tagsOfSteps},
		{Name: "are imported", Rule: env.RuleTags, Check: tagsImported},
		{
			Name:  "of an import are counted as a change once",
			Rule:  "Import: a repeated import changes and counts nothing",
			Check: tagsImportedAgain,
		},
		{
			Name:  "leave every error text as it is",
			Rule:  "RULES 1: error is the text of the last failure",
			Check: tagsBesideErrors,
		},
		{
			Name:  "that are invalid are refused",
			Rule:  "core.Entry.Validate: ErrInvalidTag, and nothing is stored",
			Check: tagsRefused,
		},
	}
}

// tagsVector pushes one set and then the other one.
func tagsVector(e *env.Env, id string, v *struct{ A, B, Union []string }) {
	e.TB.Helper()
	for i, list := range [][]string{v.A, v.B} {
		en := env.Entry(id, fmt.Sprint(i), 1)
		var err error
		en.Tags, err = core.NewTags(list...)
		e.Must(err, "NewTags")
		e.Push(en)
	}
	e.Same("the tags", e.Queued(id).Tags.List(), emptyAsNil(v.Union))
}

func emptyAsNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func tagsEverywhere(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "vip import-7"), env.Entry("b", "p", 1))

	want := env.Job("a", env.Fresh(env.Start), env.Pay("p", 1))
	want.Tags = env.Tags("import-7 vip")
	e.Same("the queued job", e.Queued("a"), want)
	e.Same("the list", e.Jobs(), []core.Job{want, env.Job("b", env.Fresh(env.Start), env.Pay("p", 1))})

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claim", c.Job, want)
	e.Same("the claimed job", e.Claimed("a").Job, want)

	page, err := e.Store.Claimed(e.Ctx, env.WholePage(env.Orders))
	e.Must(err, "Claimed")
	e.Same("the list of claimed jobs", page.Claims[0].Job, want)
	e.Same("a job without tags", h.One().Tags, core.Tags(""))

	h.Settle(env.Buried(c, "no use"))
	letters, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: env.WholePage(env.Orders)})
	e.Must(err, "Morgue")
	e.Same("the dead letter", e.DeadLetter("a").Tags, want.Tags)
	e.Same("the list of dead letters", letters.DeadLetters[0].Tags, want.Tags)
}

func tagsOfPushes(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "b"), env.Tagged("a", "q", 2, "a"),
		env.Tagged("b", "p", 1, "x"), env.Entry("a", "r", 3))
	e.Same("after one call", e.Queued("a").Tags, env.Tags("a b"))

	e.Push(env.Tagged("a", "p", 1, "c"))
	e.Same("after a duplicate", e.Queued("a").Tags, env.Tags("a b c"))

	e.Push(env.Entry("a", "s", 4))
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("a", "t", 5, 0))
	e.Same("after pushes without tags", e.Queued("a"),
		env.Job("a", core.State{RetryCount: core.FreshRetryCount, FirstPush: env.Start, Tags: env.Tags("a b c")},
			env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3), env.Pay("s", 4), env.Pay("t", 5)))

	e.Push(env.Entry("d", "p", 1))
	e.Push(env.Tagged("d", "p", 1, "late"))
	e.Same("after a push without", e.Queued("d").Tags, env.Tags("late"))

	en := env.Tagged("d", "q", 2, "urgent")
	en.When = core.Urgent(time.Minute)
	e.Push(en)
	e.Same("after an urgent push", e.Queued("d").State, core.State{
		PerformAt:  env.Start.Add(-time.Minute),
		RetryCount: core.FreshRetryCount,
		FirstPush:  env.Start,
		Tags:       env.Tags("late urgent"),
	})

	e.Same("another id", e.Queued("b").Tags, env.Tags("x"))
}

func tagsMet(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	e.Met("what tagged entries meet",
		e.PushRequest(env.Orders, env.Tagged("a", "p", 1, "d"), env.Tagged("a", "u", 6, "e"),
			env.Tagged("c", "p", 1, "f"), env.Entry("c", "q", 2)),
		ports.PushReply{New: 1, Merged: 2, Duplicate: 1})
}

func tagsByMergeRule(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 1})
	e.Push(env.Tagged("a", "new", 2, "x"))
	e.Push(env.Tagged("a", "old", 1, "y"))

	h := e.Acquire("n1")
	c := h.One()
	e.Same("the claim", c.Tags, env.Tags("x y"))

	e.Push(env.Tagged("a", "newest", 3, "z"))
	h.Settle(env.Failed(c, "boom", 0))
	want := env.Job("a",
		core.State{PerformAt: env.Start, FirstPush: env.Start, Failures: env.Failures("boom"), Tags: env.Tags("x y z")},
		env.Pay("newest", 3))
	e.Same("the job put back", e.Queued("a"), want)

	h.Settle(env.Buried(h.One(), "no use"))
	e.Same("the dead letter", e.DeadLetter("a").Tags, env.Tags("x y z"))
}

func tagsOfPutBacks(e *env.Env) {
	h := e.Acquire("n1")
	for i, end := range []func(core.Claim) core.Settlement{
		func(c core.Claim) core.Settlement { return env.Failed(c, "boom", 0) },
		env.Untouched,
		func(c core.Claim) core.Settlement {
			return withCount(env.Failed(c, "", time.Hour), core.FreshRetryCount)
		},
	} {
		id := fmt.Sprint("a", i)
		e.Push(env.Tagged(id, "p", 1, "old"), env.Tagged(id, "q", 2, "older"))

		c := h.One()
		s := end(c)
		h.Settle(s)
		e.Same("put back alone", e.Queued(id).Tags, env.Tags("old older"))

		e.Push(env.Tagged(id, "r", 3, "new"))
		e.Same("pushed onto it", e.Queued(id).Tags, env.Tags("new old older"))
		e.Same("its error", e.Queued(id).Failures.Newest().Text, s.PutBack.Failures.Newest().Text)

		e.ByIDs(e.Store.Expedite, id)
		c = h.One()
		e.Push(env.Tagged(id, "s", 4, "newest"))
		e.Same("pushed beside it", e.Queued(id).Tags, env.Tags("newest"))

		h.Settle(end(c))
		e.Same("put back onto a push", e.Queued(id).Tags, env.Tags("new newest old older"))
		e.Same("the error of both", e.Queued(id).Failures.Newest().Text, s.PutBack.Failures.Newest().Text)

		e.ByIDs(e.Store.Delete, id)
	}
}

// withCount returns a settlement that puts its job back with another RetryCount.
func withCount(s core.Settlement, count int) core.Settlement {
	s.PutBack.RetryCount = count
	return s
}

func tagsRecovered(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"))
	e.Acquire("n1").One()
	e.Push(env.Tagged("a", "q", 2, "y"))
	e.Clock.Advance(env.TTL)
	h := e.Acquire("n2")
	orphans := h.Orphans()
	e.Same("the tags of the orphan", orphans[0].Tags, env.Tags("x"))
	h.Settle(env.Untouched(orphans[0]))
	e.Same("the tags of the job", e.Queued("a").Tags, env.Tags("x y"))
}

func tagsDone(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"))
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.Entry("a", "q", 2))
	e.Same("the job behind the claimed one", e.Queued("a").Tags, core.Tags(""))
	h.Settle(env.Done(c))
	e.Same("the job that is left", e.Queued("a"), env.Job("a", env.Fresh(env.Start), env.Pay("q", 2)))
	e.Push(env.Tagged("b", "p", 1, "x"))
	e.ByIDs(e.Store.Delete, "b")
	e.Push(env.Entry("b", "p", 1))
	e.Same("pushed again after it was deleted", e.Queued("b").Tags, core.Tags(""))
}

func tagsOfRest(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	h := e.Acquire("n1")
	c := h.Cut(1)
	e.Same("the claim", c.Tags, env.Tags("x"))
	e.Same("the rest", e.Queued("a").Tags, env.Tags("x"))
	h.Settle(env.Done(c))
	e.Same("the last claim", h.One().Tags, env.Tags("x"))
}

func tagsOfDead(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"), env.Entry("a", "q", 2))

	h := e.Acquire("n1")
	c := h.One()
	s := env.Failed(c, "boom", 0)
	s.Except = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}
	s.Letter.Failures, s.Letter.Group = env.Failures("no use"), "g"
	h.Settle(s)

	want := core.DeadLetter{
		ID:        "a",
		Payloads:  []core.Payload{env.Pay("p", 1)},
		ChangedAt: env.Start,
		Failures:  env.Failures("no use"),
		Group:     "g",
		Tags:      env.Tags("x"),
	}
	e.Same("the first payload", e.DeadLetter("a"), want)
	e.Same("the rest", e.Queued("a").Tags, env.Tags("x"))

	e.Push(env.Tagged("a", "r", 3, "y"))
	e.ByIDs(e.Store.Bury, "a")
	want.Payloads, want.Failures, want.Group, want.Tags =
		append(want.Payloads, env.Pay("q", 2), env.Pay("r", 3)), env.Failures("boom"), core.BuriedByHand, env.Tags("x y")
	e.Same("buried by hand", e.DeadLetter("a"), want)

	e.Push(env.Tagged("b", "p", 1, "z"))
	e.ByIDs(e.Store.Bury, "b")
	e.Same("a fresh job buried by hand", e.DeadLetter("b"), core.DeadLetter{
		ID:        "b",
		Payloads:  []core.Payload{env.Pay("p", 1)},
		ChangedAt: env.Start,
		Failures:  core.Failures{{Text: core.BuriedByHand}},
		Group:     core.BuriedByHand,
		Tags:      env.Tags("z"),
	})

	e.Push(env.Entry("b", "q", 2))
	e.ByIDs(e.Store.Bury, "b")
	e.Same("buried beside it without tags", e.DeadLetter("b").Tags, env.Tags("z"))

	_, err := e.Store.Edit(e.Ctx, ports.EditRequest{Shard: e.Shard, ID: "b", Old: []byte("q"), New: []byte("r")})
	e.Must(err, "Edit")
	e.Same("edited", e.DeadLetter("b").Tags, env.Tags("z"))
}

func tagsRevived(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"), env.Entry("a", "q", 2), env.Tagged("held", "dead", 1, "x"))
	e.ByIDs(e.Store.Bury, "a", "held")
	e.ByRefs(e.Store.Revive, ports.DeadLetterRef{ID: "a", Payloads: [][]byte{[]byte("p")}})

	e.Same("a payload of it", e.Queued("a"), env.Job("a", core.State{
		PerformAt:  env.Start,
		RetryCount: core.FreshRetryCount,
		FirstPush:  env.Start,
		Tags:       env.Tags("x"),
	}, env.Pay("p", 1)))
	e.Same("the rest", e.DeadLetter("a").Tags, env.Tags("x"))

	e.ByIDs(e.Store.Delete, "a")
	e.Push(env.Tagged("a", "r", 3, "y"))
	e.ByRefs(e.Store.Revive, env.Whole("a"))
	e.Same("revived onto a push", e.Queued("a").Tags, env.Tags("x y"))

	e.Hold("held", env.Pay("p", 2))
	e.Push(env.Tagged("held", "q", 3, "y"))
	e.ByRefs(e.Store.Revive, env.Whole("held"))

	want := env.HeldState()
	want.Tags = env.Tags("x y")
	e.Same("revived onto a held job", e.Queued("held").State, want)
}

func tagsOfSteps(e *env.Env) {
	e.Push(env.Tagged("a", "p", 1, "x"), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	h := e.Acquire("n1")
	h.Settle(env.Failed(h.One(), "boom", time.Hour))

	e.ByIDs(e.Store.Expedite, "a")
	e.Same("expedited", e.Queued("a").Tags, env.Tags("x"))

	e.Firsts(e.Store.Bury, "a", "p")
	e.Same("without its first payload", e.Queued("a").Tags, env.Tags("x"))
	e.Same("the first payload", e.DeadLetter("a").Tags, env.Tags("x"))

	_, err := e.Store.Delete(e.Ctx, ports.JobStep{
		Shard:    e.Shard,
		IDs:      []string{"a"},
		Payloads: [][]core.Payload{{env.Pay("q", 2)}},
	})
	e.Must(err, "Delete")
	e.Same("without another payload", e.Queued("a").Tags, env.Tags("x"))
}

func tagsImported(e *env.Env) {
	state := func(retry int, text, list string) core.State {
		return core.State{
			PerformAt:  env.Start,
			RetryCount: retry,
			FirstPush:  env.Start,
			Failures:   env.Failures(text),
			Tags:       env.Tags(list),
		}
	}

	e.BringInJobs(env.Job("a", state(core.FreshRetryCount, "", "a"), env.Pay("p", 1)),
		env.Job("b", state(2, "boom", "a b c d e f g h"), env.Pay("p", 1)))
	e.Same("a fresh job", e.Queued("a").State, state(core.FreshRetryCount, "", "a"))
	e.Same("a job with a failure", e.Queued("b").State, state(2, "boom", "a b c d e f g h"))

	e.BringInJobs(env.Job("a", state(1, "worse", "b"), env.Pay("p", 1)),
		env.Job("b", state(1, "better", "A z"), env.Pay("p", 1)))
	e.Same("one with more failures", e.Queued("a").State, state(1, "worse", "a b"))
	e.Same("one with fewer", e.Queued("b").State, state(2, "boom", "A a b c d e f g"))
}

func tagsImportedAgain(e *env.Env) {
	letter := func(at core.Instant, list string) core.DeadLetter {
		return core.DeadLetter{
			ID:        "a",
			Payloads:  []core.Payload{env.Pay("p", 1)},
			ChangedAt: at,
			Failures:  env.Failures("boom"),
			Group:     "g",
			Tags:      env.Tags(list),
		}
	}

	for i, d := range []struct {
		incoming core.DeadLetter
		want     core.Tags
	}{
		{letter(env.Start, "b"), env.Tags("b")},
		{letter(env.Start, "c"), env.Tags("b c")},
		{letter(env.Start-1, "a"), env.Tags("a b c")},
		{letter(env.Start+1, "d"), env.Tags("a b c d")},
	} {
		for again := range 2 {
			r := e.ImportRequest()
			r.DeadLetters = []core.DeadLetter{d.incoming}
			reply, err := e.Store.Import(e.Ctx, r)
			e.Must(err, "Import")
			e.Reported(fmt.Sprintf("import %d, repeated %d times", i, again),
				reply, ports.StepReply{Handled: 1 - again, Reached: 1, Now: e.Now()})
			e.Same("the tags", e.DeadLetter("a").Tags, d.want)
		}
	}

	e.Same("the other fields", e.DeadLetter("a"), letter(env.Start+1, "a b c d"))
}

func tagsBesideErrors(e *env.Env) {
	h := e.Acquire("n1")
	for i, text := range []string{
		"",
		"boom",
		"\x1eboom",
		"\x1e",
		"\x1e\x1e",
		"\x1evip\x1eboom",
		"\x1f",
		"boom\x1e",
		strings.Repeat("é", core.MaxErrorBytes/2),
	} {
		for k, list := range []string{"", "x", "x y"} {
			id := fmt.Sprint(i, " ", k)

			e.Push(env.Tagged(id, "p", 1, list), env.Entry(id, "q", 2))
			s := env.Failed(h.One(), text, time.Hour)
			s.Except = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}
			s.Letter.Failures, s.Letter.Group = env.Failures(text), "g"
			h.Settle(s)

			e.Same("the error and the tags of the job",
				fmt.Sprintf("%q %q", e.Queued(id).Failures.Newest().Text, e.Queued(id).Tags), fmt.Sprintf("%q %q", text, env.Tags(list)))
			dead := e.DeadLetter(id)
			e.Same("those of the dead letter",
				fmt.Sprintf("%q %q", dead.Failures.Newest().Text, dead.Tags), fmt.Sprintf("%q %q", text, env.Tags(list)))

			for bytes, want := range map[int]string{
				-1:            "",
				1:             core.CutText(text, 1),
				3:             core.CutText(text, 3),
				math.MaxInt32: text,
				math.MaxInt:   text,
			} {
				page, err := e.Store.Jobs(e.Ctx,
					ports.JobsRequest{PageRequest: ports.PageRequest{Queue: env.Orders, Limit: 1, ErrorBytes: bytes}})
				e.Must(err, "Jobs")
				e.Same("a cut error, with the tags", fmt.Sprintf("%q %q", page.Jobs[0].Failures.Newest().Text, page.Jobs[0].Tags),
					fmt.Sprintf("%q %q", want, env.Tags(list)))
			}

			e.ByIDs(e.Store.Bury, id)
			letter := e.DeadLetter(id)
			e.Same("those of a job buried by hand",
				fmt.Sprintf("%q %q", letter.Failures.Newest().Text, letter.Tags), fmt.Sprintf("%q %q", text, env.Tags(list)))
		}
	}
}

func tagsRefused(e *env.Env) {
	e.Unchanged("a refused Push", func() {
		for _, bad := range []core.Tags{
			"b\x1fa",
			"a\x1fa",
			"\x1f",
			"a\n",
			"\xff",
			core.Tags(strings.Repeat("x", core.MaxTagBytes+1)),
			"a\x1fb\x1fc\x1fd\x1fe\x1ff\x1fg\x1fh\x1fi",
		} {
			en := env.Entry("b", "p", 1)
			en.Tags = bad
			_, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "p", 1), en))
			e.Refused(fmt.Sprintf("Push of the tags %q", bad), err, core.ErrInvalidTag)

			j := env.Job("b", env.Fresh(env.Start), env.Pay("p", 1))
			j.Tags = bad
			_, err = e.Store.Import(e.Ctx, e.ImportJobs(j))
			if !errors.Is(err, core.ErrInvalidTag) {
				e.TB.Errorf("Import of the tags %q: error %v\nthe rule: %s", bad, err, e.Rule)
			}

			r := e.ImportRequest()
			r.DeadLetters = []core.DeadLetter{env.Letter("b", 1, env.Pay("p", 1))}
			r.DeadLetters[0].Tags = bad
			if _, err = e.Store.Import(e.Ctx, r); !errors.Is(err, core.ErrInvalidTag) {
				e.TB.Errorf("Import of a dead letter with the tags %q: error %v\nthe rule: %s", bad, err, e.Rule)
			}
		}
	})
}

package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleTags     = "RULES 2: wherever two jobs or dead letters of an id merge, their tags unite"
	ruleTagsGone = "RULES 1: tags are gone with their job"
)

func tagsCases() []namedCase {
	return []namedCase{
		{"are with the job in every place", "RULES 1: a job has the tags of its pushes", tagsEverywhere},
		{"of pushes unite", ruleTags, tagsOfPushes},
		{"change nothing in what a push reports", "PushReply: New, Merged and Duplicate, in the order of the entries", tagsMet},
		{"of a superseded push stay", ruleTags, tagsByMergeRule},
		{"of a put-back and a push unite", ruleTags, tagsOfPutBacks},
		{"stay when a lease is lost", ruleTags, tagsRecovered},
		{"are gone when the job is done", ruleTagsGone, tagsDone},
		{"stay with the rest of a claim", "RULES 1: the rest of a claimed job stays queued with its tags", tagsOfRest},
		{"stay with the dead letter", "RULES 5: a dead letter has the tags of its jobs", tagsOfDead},
		{"come back from the morgue", ruleTags, tagsRevived},
		{"stay when operators change the job", ruleTags, tagsOfSteps},
		{"are imported", ruleTags, tagsImported},
		{"of an import are counted as a change once", "Import: a repeated import changes and counts nothing", tagsImportedAgain},
		{"leave every error text as it is", "RULES 1: error is the text of the last failure", tagsBesideErrors},
		{"that are invalid are refused", "core.Entry.Validate: ErrInvalidTag, and nothing is stored", tagsRefused},
	}
}

// tags returns a set of valid tags, which spaces separate.
func tags(list string) core.Tags {
	set, _ := core.NewTags(strings.Fields(list)...) // it refuses invalid ones only
	return set
}

// tagged returns an entry with tags.
func tagged(id, data string, score float64, list string) core.Entry {
	en := entry(id, data, score)
	en.Tags = tags(list)
	return en
}

// tagsVector pushes one set and then the other one.
func tagsVector(e *env, id string, v *struct{ A, B, Union []string }) {
	e.tb.Helper()
	for i, list := range [][]string{v.A, v.B} {
		en := entry(id, fmt.Sprint(i), 1)
		var err error
		en.Tags, err = core.NewTags(list...)
		e.must(err, "NewTags")
		e.push(en)
	}
	e.same("the tags", e.queued(id).Tags.List(), emptyAsNil(v.Union))
}

func emptyAsNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func tagsEverywhere(e *env) {
	e.push(tagged("a", "p", 1, "vip import-7"), entry("b", "p", 1))
	want := job("a", fresh(start), pay("p", 1))
	want.Tags = tags("import-7 vip")
	e.same("the queued job", e.queued("a"), want)
	e.same("the list", e.jobs(), []core.Job{want, job("b", fresh(start), pay("p", 1))})
	h := e.acquire("n1")
	c := h.one()
	e.same("the claim", c.Job, want)
	e.same("the claimed job", e.claimed("a").Job, want)
	page, err := e.store.Claimed(e.ctx, wholePage(orders))
	e.must(err, "Claimed")
	e.same("the list of claimed jobs", page.Claims[0].Job, want)
	e.same("a job without tags", h.one().Tags, core.Tags(""))
	h.settle(buried(c, "no use"))
	letters, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: wholePage(orders)})
	e.must(err, "Morgue")
	e.same("the dead letter", e.deadLetter("a").Tags, want.Tags)
	e.same("the list of dead letters", letters.DeadLetters[0].Tags, want.Tags)
}

func tagsOfPushes(e *env) {
	e.push(tagged("a", "p", 1, "b"), tagged("a", "q", 2, "a"), tagged("b", "p", 1, "x"), entry("a", "r", 3))
	e.same("after one call", e.queued("a").Tags, tags("a b"))
	e.push(tagged("a", "p", 1, "c"))
	e.same("after a duplicate", e.queued("a").Tags, tags("a b c"))
	e.push(entry("a", "s", 4))
	e.pushBy(core.PushRule{Kind: core.Earliest}, entryAt("a", "t", 5, 0))
	e.same("after pushes without tags", e.queued("a"), job("a", core.State{RetryCount: core.FreshRetryCount, FirstPush: start, Tags: tags("a b c")},
		pay("p", 1), pay("q", 2), pay("r", 3), pay("s", 4), pay("t", 5)))
	e.push(entry("d", "p", 1))
	e.push(tagged("d", "p", 1, "late"))
	e.same("after a push without", e.queued("d").Tags, tags("late"))
	en := tagged("d", "q", 2, "urgent")
	en.When = core.Urgent(time.Minute)
	e.push(en)
	e.same("after an urgent push", e.queued("d").State, core.State{
		PerformAt: start.Add(-time.Minute), RetryCount: core.FreshRetryCount, FirstPush: start, Tags: tags("late urgent"),
	})
	e.same("another id", e.queued("b").Tags, tags("x"))
}

func tagsMet(e *env) {
	e.push(entry("a", "p", 1))
	e.met("what tagged entries meet", e.pushRequest(orders, tagged("a", "p", 1, "d"), tagged("a", "u", 6, "e"), tagged("c", "p", 1, "f"), entry("c", "q", 2)),
		ports.PushReply{New: 1, Merged: 2, Duplicate: 1})
}

func tagsByMergeRule(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 1})
	e.push(tagged("a", "new", 2, "x"))
	e.push(tagged("a", "old", 1, "y"))
	h := e.acquire("n1")
	c := h.one()
	e.same("the claim", c.Tags, tags("x y"))
	e.push(tagged("a", "newest", 3, "z"))
	h.settle(failed(c, "boom", 0))
	want := job("a", core.State{PerformAt: start, FirstPush: start, Error: "boom", Tags: tags("x y z")}, pay("newest", 3))
	e.same("the job put back", e.queued("a"), want)
	h.settle(buried(h.one(), "no use"))
	e.same("the dead letter", e.deadLetter("a").Tags, tags("x y z"))
}

func tagsOfPutBacks(e *env) {
	h := e.acquire("n1")
	for i, end := range []func(core.Claim) core.Settlement{
		func(c core.Claim) core.Settlement { return failed(c, "boom", 0) },
		untouched,
		func(c core.Claim) core.Settlement { return withCount(failed(c, "", time.Hour), core.FreshRetryCount) },
	} {
		id := fmt.Sprint("a", i)
		e.push(tagged(id, "p", 1, "old"), tagged(id, "q", 2, "older"))
		c := h.one()
		s := end(c)
		h.settle(s)
		e.same("put back alone", e.queued(id).Tags, tags("old older"))
		e.push(tagged(id, "r", 3, "new"))
		e.same("pushed onto it", e.queued(id).Tags, tags("new old older"))
		e.same("its error", e.queued(id).Error, s.PutBack.Error)
		e.byIDs(e.store.Expedite, id)
		c = h.one()
		e.push(tagged(id, "s", 4, "newest"))
		e.same("pushed beside it", e.queued(id).Tags, tags("newest"))
		h.settle(end(c))
		e.same("put back onto a push", e.queued(id).Tags, tags("new newest old older"))
		e.same("the error of both", e.queued(id).Error, s.PutBack.Error)
		e.byIDs(e.store.Delete, id)
	}
}

// withCount returns a settlement that puts its job back with another RetryCount.
func withCount(s core.Settlement, count int) core.Settlement {
	s.PutBack.RetryCount = count
	return s
}

func tagsRecovered(e *env) {
	e.push(tagged("a", "p", 1, "x"))
	e.acquire("n1").one()
	e.push(tagged("a", "q", 2, "y"))
	e.clock.Advance(ttl)
	h := e.acquire("n2")
	orphans := h.orphans()
	e.same("the tags of the orphan", orphans[0].Tags, tags("x"))
	h.settle(untouched(orphans[0]))
	e.same("the tags of the job", e.queued("a").Tags, tags("x y"))
}

func tagsDone(e *env) {
	e.push(tagged("a", "p", 1, "x"))
	h := e.acquire("n1")
	c := h.one()
	e.push(entry("a", "q", 2))
	e.same("the job behind the claimed one", e.queued("a").Tags, core.Tags(""))
	h.settle(done(c))
	e.same("the job that is left", e.queued("a"), job("a", fresh(start), pay("q", 2)))
	e.push(tagged("b", "p", 1, "x"))
	e.byIDs(e.store.Delete, "b")
	e.push(entry("b", "p", 1))
	e.same("pushed again after it was deleted", e.queued("b").Tags, core.Tags(""))
}

func tagsOfRest(e *env) {
	e.push(tagged("a", "p", 1, "x"), entry("a", "q", 2), entry("a", "r", 3))
	h := e.acquire("n1")
	c := h.cut(1)
	e.same("the claim", c.Tags, tags("x"))
	e.same("the rest", e.queued("a").Tags, tags("x"))
	h.settle(done(c))
	e.same("the last claim", h.one().Tags, tags("x"))
}

func tagsOfDead(e *env) {
	e.push(tagged("a", "p", 1, "x"), entry("a", "q", 2))
	h := e.acquire("n1")
	c := h.one()
	s := failed(c, "boom", 0)
	s.Except, s.BuryError, s.Group = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}, "no use", "g"
	h.settle(s)
	want := core.DeadLetter{ID: "a", Payloads: []core.Payload{pay("p", 1)}, ChangedAt: start, Error: "no use", Group: "g", Tags: tags("x")}
	e.same("the first payload", e.deadLetter("a"), want)
	e.same("the rest", e.queued("a").Tags, tags("x"))
	e.push(tagged("a", "r", 3, "y"))
	e.byIDs(e.store.Bury, "a")
	want.Payloads, want.Error, want.Group, want.Tags = append(want.Payloads, pay("q", 2), pay("r", 3)), "boom", core.BuriedByHand, tags("x y")
	e.same("buried by hand", e.deadLetter("a"), want)
	e.push(tagged("b", "p", 1, "z"))
	e.byIDs(e.store.Bury, "b")
	e.same("a fresh job buried by hand", e.deadLetter("b"), core.DeadLetter{
		ID: "b", Payloads: []core.Payload{pay("p", 1)}, ChangedAt: start, Error: core.BuriedByHand, Group: core.BuriedByHand, Tags: tags("z"),
	})
	e.push(entry("b", "q", 2))
	e.byIDs(e.store.Bury, "b")
	e.same("buried beside it without tags", e.deadLetter("b").Tags, tags("z"))
	_, err := e.store.Edit(e.ctx, ports.EditRequest{Shard: e.shard, ID: "b", Old: []byte("q"), New: []byte("r")})
	e.must(err, "Edit")
	e.same("edited", e.deadLetter("b").Tags, tags("z"))
}

func tagsRevived(e *env) {
	e.push(tagged("a", "p", 1, "x"), entry("a", "q", 2), tagged("held", "dead", 1, "x"))
	e.byIDs(e.store.Bury, "a", "held")
	e.byRefs(e.store.Revive, ports.DeadLetterRef{ID: "a", Payloads: [][]byte{[]byte("p")}})
	e.same("a payload of it", e.queued("a"), job("a", core.State{PerformAt: start, RetryCount: core.FreshRetryCount, FirstPush: start, Tags: tags("x")}, pay("p", 1)))
	e.same("the rest", e.deadLetter("a").Tags, tags("x"))
	e.byIDs(e.store.Delete, "a")
	e.push(tagged("a", "r", 3, "y"))
	e.byRefs(e.store.Revive, whole("a"))
	e.same("revived onto a push", e.queued("a").Tags, tags("x y"))
	e.hold("held", pay("p", 2))
	e.push(tagged("held", "q", 3, "y"))
	e.byRefs(e.store.Revive, whole("held"))
	want := heldState()
	want.Tags = tags("x y")
	e.same("revived onto a held job", e.queued("held").State, want)
}

func tagsOfSteps(e *env) {
	e.push(tagged("a", "p", 1, "x"), entry("a", "q", 2), entry("a", "r", 3))
	h := e.acquire("n1")
	h.settle(failed(h.one(), "boom", time.Hour))
	e.byIDs(e.store.Expedite, "a")
	e.same("expedited", e.queued("a").Tags, tags("x"))
	e.firsts(e.store.Bury, "a", "p")
	e.same("without its first payload", e.queued("a").Tags, tags("x"))
	e.same("the first payload", e.deadLetter("a").Tags, tags("x"))
	_, err := e.store.Delete(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"a"}, Payloads: [][]core.Payload{{pay("q", 2)}}})
	e.must(err, "Delete")
	e.same("without another payload", e.queued("a").Tags, tags("x"))
}

func tagsImported(e *env) {
	state := func(retry int, text, list string) core.State {
		return core.State{PerformAt: start, RetryCount: retry, FirstPush: start, Error: text, Tags: tags(list)}
	}
	e.bringInJobs(job("a", state(core.FreshRetryCount, "", "a"), pay("p", 1)), job("b", state(2, "boom", "a b c d e f g h"), pay("p", 1)))
	e.same("a fresh job", e.queued("a").State, state(core.FreshRetryCount, "", "a"))
	e.same("a job with a failure", e.queued("b").State, state(2, "boom", "a b c d e f g h"))
	e.bringInJobs(job("a", state(1, "worse", "b"), pay("p", 1)), job("b", state(1, "better", "A z"), pay("p", 1)))
	e.same("one with more failures", e.queued("a").State, state(1, "worse", "a b"))
	e.same("one with fewer", e.queued("b").State, state(2, "boom", "A a b c d e f g"))
}

func tagsImportedAgain(e *env) {
	letter := func(at core.Instant, list string) core.DeadLetter {
		return core.DeadLetter{ID: "a", Payloads: []core.Payload{pay("p", 1)}, ChangedAt: at, Error: "boom", Group: "g", Tags: tags(list)}
	}
	for i, d := range []struct {
		coming core.DeadLetter
		want   core.Tags
	}{{letter(start, "b"), tags("b")}, {letter(start, "c"), tags("b c")}, {letter(start-1, "a"), tags("a b c")}, {letter(start+1, "d"), tags("a b c d")}} {
		for again := range 2 {
			r := e.importRequest()
			r.DeadLetters = []core.DeadLetter{d.coming}
			reply, err := e.store.Import(e.ctx, r)
			e.must(err, "Import")
			e.reported(fmt.Sprintf("import %d, repeated %d times", i, again), reply, ports.StepReply{Handled: 1 - again, Reached: 1, Now: e.now()})
			e.same("the tags", e.deadLetter("a").Tags, d.want)
		}
	}
	e.same("the other fields", e.deadLetter("a"), letter(start+1, "a b c d"))
}

func tagsBesideErrors(e *env) {
	h := e.acquire("n1")
	for i, text := range []string{"", "boom", "\x1eboom", "\x1e", "\x1e\x1e", "\x1evip\x1eboom", "\x1f", "boom\x1e", strings.Repeat("é", core.MaxErrorBytes/2)} {
		for k, list := range []string{"", "x", "x y"} {
			id := fmt.Sprint(i, " ", k)
			e.push(tagged(id, "p", 1, list), entry(id, "q", 2))
			s := failed(h.one(), text, time.Hour)
			s.Except, s.BuryError, s.Group = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}, text, "g"
			h.settle(s)
			e.same("the error and the tags of the job", fmt.Sprintf("%q %q", e.queued(id).Error, e.queued(id).Tags), fmt.Sprintf("%q %q", text, tags(list)))
			dead := e.deadLetter(id)
			e.same("those of the dead letter", fmt.Sprintf("%q %q", dead.Error, dead.Tags), fmt.Sprintf("%q %q", text, tags(list)))
			for bytes, want := range map[int]string{-1: "", 1: core.CutText(text, 1), 3: core.CutText(text, 3), math.MaxInt32: text, math.MaxInt: text} {
				page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: orders, Limit: 1, ErrorBytes: bytes}})
				e.must(err, "Jobs")
				e.same("a cut error, with the tags", fmt.Sprintf("%q %q", page.Jobs[0].Error, page.Jobs[0].Tags), fmt.Sprintf("%q %q", want, tags(list)))
			}
			e.byIDs(e.store.Bury, id)
			letter := e.deadLetter(id)
			want := cmp.Or(text, core.BuriedByHand)
			e.same("those of a job buried by hand", fmt.Sprintf("%q %q", letter.Error, letter.Tags), fmt.Sprintf("%q %q", want, tags(list)))
		}
	}
}

func tagsRefused(e *env) {
	e.unchanged("a refused Push", func() {
		for _, bad := range []core.Tags{"b\x1fa", "a\x1fa", "\x1f", "a\n", "\xff", core.Tags(strings.Repeat("x", core.MaxTagBytes+1)), "a\x1fb\x1fc\x1fd\x1fe\x1ff\x1fg\x1fh\x1fi"} {
			en := entry("b", "p", 1)
			en.Tags = bad
			_, err := e.store.Push(e.ctx, e.pushRequest(orders, entry("a", "p", 1), en))
			e.refused(fmt.Sprintf("Push of the tags %q", bad), err, core.ErrInvalidTag)
			j := job("b", fresh(start), pay("p", 1))
			j.Tags = bad
			_, err = e.store.Import(e.ctx, e.importJobs(j))
			if !errors.Is(err, core.ErrInvalidTag) {
				e.tb.Errorf("Import of the tags %q: error %v\nthe rule: %s", bad, err, e.rule)
			}
			r := e.importRequest()
			r.DeadLetters = []core.DeadLetter{letter("b", 1, pay("p", 1))}
			r.DeadLetters[0].Tags = bad
			if _, err = e.store.Import(e.ctx, r); !errors.Is(err, core.ErrInvalidTag) {
				e.tb.Errorf("Import of a dead letter with the tags %q: error %v\nthe rule: %s", bad, err, e.rule)
			}
		}
	})
}

// transactionTags pushes tags in a transaction, and settles a job with tags in one.
func transactionTags(e *env) {
	e.push(tagged("a", "p", 1, "x"), tagged("b", "p", 1, "x"), entry("b", "q", 2), entry("b", "r", 3))
	h := e.acquire("n1")
	claims := h.claim(2)
	tx := e.begin()
	_, err := tx.Push(e.ctx, e.pushRequest(orders, tagged("a", "q", 2, "y"), entry("a", "r", 3), tagged("c", "p", 1, "y")))
	e.must(err, "Push in a transaction")
	s := failed(claims[1], "boom", 0)
	s.Except, s.BuryError, s.Group = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}, "no use", "g"
	e.must(tx.Settle(e.ctx, e.shard, []core.Settlement{s}), "Settle in a transaction")
	e.must(tx.Commit(e.ctx), "Commit")
	e.same("pushed beside a claim", e.queued("a").Tags, tags("y"))
	e.same("pushed", e.queued("c").Tags, tags("y"))
	e.same("the job put back", e.queued("b").Tags, tags("x"))
	e.same("its error", e.queued("b").Error, "boom")
	e.same("the dead letter", e.deadLetter("b").Tags, tags("x"))
	e.same("its error", e.deadLetter("b").Error, "no use")
	h.settle(failed(claims[0], "boom", 0))
	e.same("put back onto it", e.queued("a").Tags, tags("x y"))
	tx = e.begin()
	_, err = tx.Push(e.ctx, e.pushRequest(orders, tagged("a", "q", 2, "z"), tagged("b", "q", 2, "z")))
	e.must(err, "Push in another transaction")
	e.must(tx.Commit(e.ctx), "Commit")
	e.same("pushed onto jobs", []core.Tags{e.queued("a").Tags, e.queued("b").Tags}, []core.Tags{tags("x y z"), tags("x z")})
}

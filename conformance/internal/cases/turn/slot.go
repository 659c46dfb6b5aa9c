package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleSlot      = "RULES 12: a job that is put back until its slot has the key of the rate as its slot"
	ruleSlotPush  = "RULES 2: while a job has a slot, no push changes its time"
	ruleSlotFirst = "RULES 1: the slot belongs to the first payload"
	ruleSlotEnds  = "RULES 12: every settlement but a put-back untouched clears the slot, and so do a recovery, run-now, " +
		"a removal of the first payload, a revive and an import"
)

// slotCases are about the slots of jobs that wait for the rate of their key.
func slotCases() []env.Case {
	return []env.Case{
		{Name: "is with the job in every place", Rule: ruleSlot, Check: slotEverywhere},
		{Name: "is any text of a key", Rule: ruleSlot, Check: slotTexts},
		{Name: "comes back with the claim", Rule: ruleSlot, Check: slotClaimed},
		{Name: "comes back with each of several claims", Rule: ruleSlot, Check: slotsClaimed},
		{Name: "is there once when a turn is repeated", Rule: "Turn: a repeat applies nothing", Check: slotRepeated},
		{Name: "keeps the time at a push", Rule: ruleSlotPush, Check: slotPushed},
		{Name: "keeps the time at pushes of one call", Rule: ruleSlotPush, Check: slotPushedTogether},
		{Name: "keeps the time at a push by a merge rule", Rule: ruleSlotPush, Check: slotPushedByMergeRule},
		{Name: "is that of a returning job", Rule: ruleReturn, Check: slotReturned},
		{Name: "stays when a job is put back untouched", Rule: ruleSlotEnds, Check: slotUntouched},
		{Name: "is gone after any other settlement", Rule: ruleSlotEnds, Check: slotSettled},
		{Name: "is gone after a recovery", Rule: ruleSlotEnds, Check: slotRecovered},
		{Name: "is not left to the rest of a claim", Rule: ruleSlotFirst, Check: slotOfRest},
		{Name: "is gone when the first payload ends by itself", Rule: ruleSlotFirst, Check: slotOfPart},
		{Name: "is gone when the job is run now", Rule: ruleSlotEnds, Check: slotExpedited},
		{Name: "is gone with the first payload", Rule: ruleSlotEnds, Check: slotWithoutFirst},
		{Name: "stays when other payloads are removed", Rule: ruleSlotFirst, Check: slotWithoutLater},
		{Name: "stays at an edit", Rule: "RULES 5: an edit of a queued job changes only payloads", Check: slotEdited},
		{Name: "is gone after a burial and a revive", Rule: ruleSlotEnds, Check: slotRevived},
		{Name: "is not imported", Rule: ruleSlotEnds, Check: slotImported},
		{Name: "of a queued job stays at an import", Rule: ruleSlotPush, Check: slotMeetsImport},
		{Name: "is with a job that failed, has tags and many payloads", Rule: ruleSlot, Check: slotBesideAll},
		{Name: "is with a job that runs alone", Rule: "RULES 4: a job with 2 recoveries is claimed alone", Check: slotAlone},
		{
			Name:  "is refused if it is not the key of a limiter",
			Rule:  "TurnRequest.Validate: a slot is a core.Text of at most MaxLimiterKey bytes",
			Check: slotRefused,
		},
	}
}

// slotted returns the state of a fresh job, pushed at the start, that has a slot.
func slotted(at core.Instant, slot string) core.State {
	s := env.Fresh(at)
	s.Slot = slot
	return s
}

// putOff queues a job with three payloads that has a slot in an hour. It returns the holder of the
// shard.
func putOff(e *env.Env, id string) *env.Holder {
	e.TB.Helper()
	e.Push(env.Entry(id, "p1", 1), env.Entry(id, "p2", 2), env.Entry(id, "p3", 3))
	h := e.Acquire("n1")
	c := h.One()
	h.Settle(c.PutOff(time.Hour, "tenant"))
	return h
}

// inAnHour is the time of the slot that putOff leaves.
const inAnHour = env.Start + core.Instant(time.Hour/time.Microsecond)

func slotEverywhere(e *env.Env) {
	h := putOff(e, "a")
	want := env.Job("a", slotted(inAnHour, "tenant"), env.ThreePayloads()...)
	e.Same("the queued job", e.Queued("a"), want)
	e.Same("the list", e.Jobs(), []core.Job{want})

	e.Clock.Advance(time.Hour)
	c := h.One()
	e.Same("the claim", c.Job, want)
	e.Same("the claimed job", e.Claimed("a"), c)
	page, err := e.Store.Claimed(e.Ctx, env.WholePage(env.Orders))
	e.Must(err, "Claimed")
	e.Same("the list of claimed jobs", page.Claims[0].Job, want)

	h.Settle(env.Done(c))
	e.CountsMatch(env.Orders, 1, 0)
}

func slotTexts(e *env.Env) {
	h := e.Acquire("n1")
	for i, slot := range []string{
		"a", " ", "\x01", "\x1e\x1f", "\x7f", "'\"\\%s$1{}", "null", "\u00e9", "\u2028", "\U0001F9F6", "\ufffd",
		strings.Repeat("s", ports.MaxLimiterKey), strings.Repeat("\u00e9", ports.MaxLimiterKey/2),
		strings.Repeat("\U0001F9F6", ports.MaxLimiterKey/4), strings.Repeat("\x01", ports.MaxLimiterKey),
	} {
		id := fmt.Sprint(i)
		e.Push(env.Entry(id, "p", 1))
		c := h.One()
		h.Settle(c.PutOff(0, slot))
		e.Same("the slot", e.Queued(id).Slot, slot)

		c = h.One()
		e.Same("the slot of the claim", c.Slot, slot)
		h.Settle(env.Done(c))
	}
}

func slotClaimed(e *env.Env) {
	h := putOff(e, "a")
	e.Same("a claim before the slot", h.Claim(1), nil)
	e.SameHead("the slot", h, env.Due(inAnHour))

	e.Clock.Advance(time.Hour)
	c := h.One()
	e.Same("the claim", c.Job, env.Job("a", slotted(inAnHour, "tenant"), env.ThreePayloads()...))
	c = h.One(c.PutOff(0, "other"))
	e.Same("the next slot", c.Slot, "other")
	c = h.One(c.PutOff(0, ""))
	e.Same("no slot", c.Slot, "")
	h.Settle(env.Done(c))
	e.CountsMatch(env.Orders, 1, 0)
}

// slotsClaimed claims jobs with and without slots together, in one turn that settles too.
func slotsClaimed(e *env.Env) {
	e.PushIDs("a", "b", "c", "d")
	h := e.Acquire("n1")
	claims := h.Claim(4)
	h.Settle(claims[0].PutOff(0, "x"), claims[1].PutOff(0, ""), claims[2].PutOff(0, "y"))
	e.PushIDs("e")

	again := h.Turn(9, env.Done(claims[3])).Claims
	var slots []string
	for _, c := range again {
		slots = append(slots, c.ID+" "+c.Slot)
	}
	e.Same("the slots", slots, []string{"a x", "b ", "c y", "e "})
	h.Settle(env.SettleAll(again, env.Done)...)
	e.CountsMatch(env.Orders, 5, 0)
}

func slotRepeated(e *env.Env) {
	e.PushIDs("a", "b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	r := h.Request(1, claims[0].PutOff(0, "x"), claims[1].PutOff(time.Hour, "y"))
	first := h.Send(r)
	e.Same("the slot of the claim", first.Claims[0].Slot, "x")

	e.Unchanged("a repeated turn", func() {
		reply := h.Send(r)
		e.Same("the claims of a repeated turn", reply.Claims, first.Claims)
	})
	want := slotted(inAnHour, "y")
	e.Same("the other job", e.Queued("b").State, want)
}

func slotPushed(e *env.Env) {
	putOff(e, "a")
	e.Clock.Advance(time.Minute)
	want := slotted(inAnHour, "tenant")

	for i, rule := range []core.PushRule{
		{}, {Kind: core.Earliest}, {Kind: core.Debounce, Limit: 24 * time.Hour},
	} {
		for k, at := range []core.Instant{0, e.Now(), inAnHour.Add(-1), inAnHour.Add(time.Hour)} {
			e.PushBy(rule, env.EntryAt("a", fmt.Sprint("q", i, k), 4, at))
			e.Same(fmt.Sprintf("rule %d, pushed for %d", rule.Kind, at), e.Queued("a").State, want)
		}
	}
	e.Push(env.Urgent("a", "urgent", 5, time.Hour))
	e.Same("after an urgent push", e.Queued("a").State, want)
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("a", "lowest", 0, 0))
	e.Same("after a push of another first payload", e.Queued("a").State, want)

	tagged := env.Tagged("a", "tagged", 6, "vip")
	tagged.When = core.At(0)
	e.PushBy(core.PushRule{Kind: core.Earliest}, tagged)
	want.Tags = env.Tags("vip")
	e.Same("after a push with tags", e.Queued("a").State, want)
	e.Same("the number of payloads", len(e.Queued("a").Payloads), 3+12+3)
}

func slotPushedTogether(e *env.Env) {
	putOff(e, "a")
	earliest := core.PushRule{Kind: core.Earliest}
	e.PushBy(earliest, env.EntryAt("b", "q", 4, 5), env.EntryAt("a", "q", 4, 5), env.EntryAt("a", "r", 5, 6),
		env.EntryAt("b", "r", 5, 4), env.EntryAt("c", "q", 4, 7))
	e.Same("the job with a slot", e.Queued("a").State, slotted(inAnHour, "tenant"))
	e.Same("a job without", e.Queued("b").State, env.Fresh(4))
	e.Same("another one", e.Queued("c").State, env.Fresh(7))
	e.CountsMatch(env.Orders, 0, 0)
}

func slotPushedByMergeRule(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 2})
	putOff(e, "a")
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("a", "q", 4, 0), env.Urgent("a", "r", 5, time.Hour))
	e.PushBy(core.PushRule{Kind: core.Debounce, Limit: 24 * time.Hour}, env.EntryAt("a", "r", 6, inAnHour.Add(time.Hour)))
	e.Same("the job", e.Queued("a"), env.Job("a", slotted(inAnHour, "tenant"), env.Pay("q", 4), env.Pay("r", 6)))
}

// slotReturned puts a job back onto one that was pushed since.
func slotReturned(e *env.Env) {
	h, c := e.ClaimedJob()
	e.Push(env.EntryAt("a", "p4", 4, 5))
	h.Settle(c.PutOff(time.Hour, "tenant"))
	payloads := append(env.ThreePayloads(), env.Pay("p4", 4))
	e.Same("put back with a slot", e.Queued("a"), env.Job("a", slotted(e.Now().Add(time.Hour), "tenant"), payloads...))

	e.Clock.Advance(time.Hour)
	c = h.One()
	e.Push(env.EntryAt("a", "p5", 5, 5))
	h.Settle(env.Snoozed(c, time.Minute))
	e.Same("put back without", e.Queued("a"),
		env.Job("a", env.Fresh(e.Now().Add(time.Minute)), append(payloads, env.Pay("p5", 5))...))
}

func slotUntouched(e *env.Env) {
	h := putOff(e, "a")
	e.Clock.Advance(time.Hour)
	want := env.Job("a", slotted(inAnHour, "tenant"), env.ThreePayloads()...)
	h.Settle(env.Untouched(h.One()))
	e.Same("the job", e.Queued("a"), want)

	// Of a claim with other receipts.
	c := h.One()
	e.Clock.Advance(env.TTL + time.Microsecond)
	h = e.Acquire("n2")
	orphans := h.Orphans()
	e.Same("the orphans", orphans, []core.Claim{c})
	h.Settle(env.Untouched(orphans[0]))
	e.Same("the job of a lost lease", e.Queued("a"), want)
}

func slotSettled(e *env.Env) {
	h := putOff(e, "a")
	e.Clock.Advance(time.Hour)
	for name, settle := range map[string]func(core.Claim) core.Settlement{
		"failed":   func(c core.Claim) core.Settlement { return env.Failed(c, "boom", 0) },
		"snoozed":  func(c core.Claim) core.Settlement { return env.Snoozed(c, 0) },
		"awaiting": func(c core.Claim) core.Settlement { return env.Awaiting(c, 0) },
		"put off":  func(c core.Claim) core.Settlement { return c.PutOff(0, "") },
	} {
		c := h.One()
		e.Same("the slot before", c.Slot, "tenant")
		h.Settle(settle(c))
		e.Same(name, e.Queued("a").Slot, "")

		c = h.One()
		h.Settle(c.PutOff(0, "tenant"))
	}

	h.Settle(env.Done(h.One()))
	e.Push(env.Entry("a", "p1", 1))
	e.Same("pushed after it was done", e.Queued("a").Slot, "")
}

func slotRecovered(e *env.Env) {
	h := putOff(e, "a")
	e.Clock.Advance(time.Hour)
	c := h.One()
	h.Settle(env.Recovered(c))
	want := env.Fresh(inAnHour)
	want.Recoveries = 1
	e.Same("the job", e.Queued("a").State, want)
}

func slotOfRest(e *env.Env) {
	h := putOff(e, "a")
	e.Clock.Advance(time.Hour)
	c := h.Cut(1)
	e.Same("the slot of the claim", c.Slot, "tenant")
	e.Same("the rest", e.Queued("a"), env.Job("a", env.Fresh(inAnHour), env.Pay("p2", 2), env.Pay("p3", 3)))
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("a", "p4", 4, 5))
	e.Same("the rest after a push", e.Queued("a").PerformAt, core.Instant(5))

	h.Settle(env.Untouched(c))
	want := slotted(inAnHour, "tenant")
	e.Same("the job put back onto it", e.Queued("a"),
		env.Job("a", want, append(env.ThreePayloads(), env.Pay("p4", 4))...))
}

func slotOfPart(e *env.Env) {
	h := putOff(e, "a")
	e.Clock.Advance(time.Hour)
	c := endPart(h, h.One(), 1)
	e.Same("the slot without a later payload", c.Slot, "tenant")
	e.Same("the claimed job", e.Claimed("a"), c)
	c = endPart(h, c, 0)
	e.Same("the slot without the first payload", c.Slot, "")
	e.Same("the claimed job then", e.Claimed("a"), c)
	h.Settle(env.Untouched(c))
	e.Same("the job put back", e.Queued("a"), env.Job("a", env.Fresh(inAnHour), env.Pay("p3", 3)))
}

func slotExpedited(e *env.Env) {
	h := putOff(e, "a")
	e.ByIDs(e.Store.Expedite, "a")
	e.Same("the job", e.Queued("a"), env.Job("a", env.Fresh(e.Now()), env.ThreePayloads()...))

	c := h.One()
	h.Settle(c.PutOff(time.Minute, "tenant"))
	e.Clock.Advance(time.Minute)
	e.ByIDs(e.Store.Expedite, "a")
	want := slotted(env.Start.Add(time.Minute), "tenant")
	e.Same("a job that is due already", e.Queued("a").State, want)
}

func slotWithoutFirst(e *env.Env) {
	remove := func(name string, do env.JobStep, step ports.JobStep) {
		step.Shard, step.IDs = e.Shard, []string{"a"}
		_, err := do(e.Ctx, step)
		e.Must(err, name)
	}

	for name, way := range map[string]func(){
		"Bury":   func() { e.Firsts(e.Store.Bury, "a", "p1") },
		"Delete": func() { e.Firsts(e.Store.Delete, "a", "p1") },
		"Delete of payloads": func() {
			remove("Delete of payloads", e.Store.Delete, ports.JobStep{Payloads: [][]core.Payload{{env.Pay("p1", 1)}}})
		},
	} {
		h := putOff(e, "a")
		way()
		want := env.Fresh(e.Now())
		e.Same("the job after "+name, e.Queued("a"), env.Job("a", want, env.Pay("p2", 2), env.Pay("p3", 3)))
		e.CountsMatch(env.Orders, 0, 0)
		e.Same("the claim after "+name, h.One().Slot, "")
		h.Settle(env.Dropped(e.Claimed("a")))
		e.ByRefs(e.Store.Purge, env.Whole("a"))
	}
}

func slotWithoutLater(e *env.Env) {
	putOff(e, "a")
	_, err := e.Store.Delete(e.Ctx, ports.JobStep{
		Shard:    e.Shard,
		IDs:      []string{"a"},
		Payloads: [][]core.Payload{{env.Pay("p2", 2)}},
	})
	e.Must(err, "Delete")
	e.Same("the job", e.Queued("a"), env.Job("a", slotted(inAnHour, "tenant"), env.Pay("p1", 1), env.Pay("p3", 3)))
	e.Firsts(e.Store.Delete, "a", "p3")
	e.Same("the job after a step for another first payload", e.Queued("a").State, slotted(inAnHour, "tenant"))
}

func slotEdited(e *env.Env) {
	putOff(e, "a")
	_, err := e.Store.Edit(e.Ctx, ports.EditRequest{
		Shard: e.Shard, ID: "a", Queued: true, Old: []byte("p1"), New: []byte("q"),
	})
	e.Must(err, "Edit")
	want := env.Job("a", slotted(inAnHour, "tenant"), env.Pay("q", 1), env.Pay("p2", 2), env.Pay("p3", 3))
	e.Same("the job", e.Queued("a"), want)
}

func slotRevived(e *env.Env) {
	putOff(e, "a")
	e.ByIDs(e.Store.Bury, "a")
	e.ByRefs(e.Store.Revive, env.Whole("a"))
	e.Same("the revived job", e.Queued("a"), env.Job("a", env.Fresh(e.Now()), env.ThreePayloads()...))

	e.ByIDs(e.Store.Bury, "a")
	h := putOff(e, "a")
	e.ByRefs(e.Store.Revive, env.Whole("a"))
	e.Same("a job with a slot that a revive meets", e.Queued("a"), env.Job("a", env.Fresh(e.Now()), env.ThreePayloads()...))
	e.Same("the claim", h.One().Slot, "")
}

func slotImported(e *env.Env) {
	fresh, failed := slotted(inAnHour, "tenant"), env.Retrying(inAnHour, 2)
	failed.Slot = strings.Repeat("long ", 20000) // the store drops it, so it need not be valid
	e.BringInJobs(env.Job("a", fresh, env.Pay("p", 1)), env.Job("b", failed, env.Pay("p", 1)))
	e.Same("a fresh job", e.Queued("a").State, env.Fresh(inAnHour))
	e.Same("a job that failed", e.Queued("b").State, env.Retrying(inAnHour, 2))

	e.BringInJobs(env.Job("a", failed, env.Pay("q", 2)))
	e.Same("one with more failures", e.Queued("a").State, env.Retrying(inAnHour, 2))
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("c", "p", 1, inAnHour))
	e.BringInJobs(env.Job("c", slotted(5, "tenant"), env.Pay("q", 2)))
	e.Same("one that is due earlier", e.Queued("c").State, env.Fresh(5))
}

func slotMeetsImport(e *env.Env) {
	putOff(e, "a")
	e.BringInJobs(env.Job("a", env.Fresh(5), env.Pay("q", 4)))
	e.Same("a fresh job that is due earlier", e.Queued("a"),
		env.Job("a", slotted(inAnHour, "tenant"), append(env.ThreePayloads(), env.Pay("q", 4))...))
	e.BringInJobs(env.Job("a", env.Retrying(5, 1), env.Pay("r", 5)))
	e.Same("a job that failed", e.Queued("a").State, env.Retrying(5, 1))
}

func slotBesideAll(e *env.Env) {
	payloads := env.Tied(3 * env.LargeJob)
	entries := env.EntriesOf("a", payloads)
	entries[0].Tags = env.Tags("blue red")
	e.Push(entries...)
	e.Clock.Advance(time.Second)

	h := e.Acquire("n1")
	c := h.One(env.Failed(h.One(), "boom", 0))
	h.Settle(c.PutOff(time.Hour, "tenant"))
	want := core.State{
		PerformAt: e.Now().Add(time.Hour),
		FirstPush: env.Start,
		Failures:  env.Failures("boom"),
		Tags:      env.Tags("blue red"),
		Slot:      "tenant",
	}
	e.Same("the job", e.Queued("a"), env.Job("a", want, payloads...))

	e.Clock.Advance(time.Hour)
	c = h.One()
	e.Same("the claim", c.Job, env.Job("a", want, payloads...))
	h.Settle(env.Buried(c, "no use"))
	e.Same("the tags of the dead letter", e.DeadLetter("a").Tags, want.Tags)
}

func slotAlone(e *env.Env) {
	state := slotted(env.Start, "tenant")
	state.Recoveries = core.AloneRecoveries
	e.Place("a", state, env.Pay("p", 1))
	e.PushIDs("b")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	e.Same("the claims", env.IDs(claims), []string{"a"})
	e.Same("the claimed job", claims[0].State, state)
	e.Same("the claims beside it", h.Claim(1), nil)

	// A job with a slot that was not recovered often runs beside others.
	e.Same("the claims after it", env.IDs(h.Turn(1, env.Done(claims[0])).Claims), []string{"b"})
	e.Push(env.EntryAt("c", "p", 1, env.Start))
	c := h.One()
	h.Settle(c.PutOff(0, "tenant"))
	e.Same("beside another claim", env.IDs(h.Claim(2)), []string{"c"})
}

func slotRefused(e *env.Env) {
	h, c := e.ClaimedJob()
	e.Unchanged("a refused turn", func() {
		for _, slot := range append(env.NoTexts(), strings.Repeat("s", ports.MaxLimiterKey+1)) {
			h.Refused("Turn with an invalid slot", h.Request(0, c.PutOff(0, slot)), ports.ErrInvalidRequest)
		}
	})
	h.Settle(env.Done(c))
}

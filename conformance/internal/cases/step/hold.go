package step

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleHeld = "RULES 3: a job that has failed and has the time 2^53 µs is held: it never runs by itself, " +
		"and a push and a revive keep it held"
	ruleTakeFirst = "JobStep: First limits Bury and Delete to the first payload of each job; " +
		"the others stay queued in the state core.State.WithoutFirst"
)

func holdCases() []env.Case {
	return []env.Case{
		{Name: "a held job is never claimed, after any merge", Rule: ruleHeld, Check: holdMerges},
		{Name: "a job is held whole if a claim of some of its payloads is exhausted", Rule: ruleHeld, Check: holdSplit},
		{
			Name:  "a held job is imported as it is",
			Rule:  "RULES 2: an imported job keeps its time and RetryCount if it has the larger RetryCount",
			Check: holdImport,
		},
		{
			Name:  "held jobs are counted among those with a failure",
			Rule:  "Counts: Held is the number of held jobs; they are among Retrying",
			Check: holdCounts,
		},
		{Name: "held jobs are the end of the list by time", Rule: ruleHeld, Check: holdList},
		{
			Name:  "expedite releases a held job",
			Rule:  "Expedite: a held job becomes fresh and due, and keeps its error",
			Check: holdExpedite,
		},
		{Name: "a job that was released runs and may be held again", Rule: ruleHeld, Check: holdAgain},
		{
			Name:  "a job that continues has no recoveries",
			Rule:  "RULES 3: a release, and the burial of the first payload, set Recoveries to 0",
			Check: holdForgetsRecoveries,
		},
		{Name: "burying the first payload continues with the others", Rule: ruleTakeFirst, Check: holdBuryFirst},
		{Name: "deleting the first payload continues with the others", Rule: ruleTakeFirst, Check: holdDeleteFirst},
		{Name: "a step skips jobs whose first payload is another one", Rule: ruleTakeFirst, Check: firstOther},
		{
			Name:  "a step can be limited to held jobs",
			Rule:  "JobStep: Held limits the step to held jobs",
			Check: holdSteps,
		},
		{Name: "a step over first payloads keeps the time of a fresh job", Rule: ruleTakeFirst, Check: firstFresh},
		{Name: "a step over first payloads makes a job in backoff due", Rule: ruleTakeFirst, Check: firstBackoff},
		{Name: "a step over first payloads removes a job with no other one", Rule: ruleTakeFirst, Check: firstLast},
		{
			Name:  "a step over first payloads obeys the conditions of a step",
			Rule:  ruleTakeFirst,
			Check: firstConditions,
		},
		{Name: "a step takes the first of many payloads", Rule: ruleTakeFirst, Check: firstOfMany},
		{
			Name:  "refuses an invalid step over first payloads",
			Rule:  "JobStep.Validate, JobStep.ValidateWhole: ErrInvalidRequest",
			Check: firstInvalid,
		},
	}
}

func holdMerges(e *env.Env) {
	e.Push(env.Entry("a", "dead", 0.5))
	e.ByIDs(e.Store.Bury, "a")
	e.Hold("a", env.Pay("p", 2), env.Pay("q", 3))
	want := env.Job("a", env.HeldState(), env.Pay("p", 2), env.Pay("q", 3))

	h := e.Acquire("n1")
	check := func(what string, payloads ...core.Payload) {
		e.TB.Helper()
		want.Payloads = payloads
		e.Same("the job after "+what, e.Queued("a"), want)
		e.Clock.Advance(24 * time.Hour)
		e.Same("what is claimed after "+what, h.Claim(5), nil)
		e.SameHead(what, h, env.Due(core.MaxInstant))
	}

	check("it was held", env.Pay("p", 2), env.Pay("q", 3))

	e.Push(env.Entry("a", "first", 1))
	check("a push of another first payload", env.Pay("first", 1), env.Pay("p", 2), env.Pay("q", 3))

	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("a", "early", 4, 0), env.EntryAt("a", "p", 5, 0))
	check("a push by Earliest", env.Pay("first", 1), env.Pay("p", 2), env.Pay("q", 3), env.Pay("early", 4))

	e.PushBy(core.PushRule{Kind: core.Debounce}, env.Entry("a", "p", 0))
	check("a push by Debounce", env.Pay("p", 0), env.Pay("first", 1), env.Pay("q", 3), env.Pay("early", 4))

	e.ByRefs(e.Store.Revive, env.Whole("a"))
	check("a revive", env.Pay("p", 0), env.Pay("dead", 0.5), env.Pay("first", 1), env.Pay("q", 3), env.Pay("early", 4))

	e.Same("how many are held", e.Counts().Held, int64(1))
}

// holdSplit exhausts a claim of a job's first payload, while the rest of the job is queued and
// another payload is pushed.
func holdSplit(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2))
	h := e.Acquire("n1")
	c := h.Cut(1)
	e.Push(env.Entry("a", "r", 3))
	policy := core.RetryPolicy{Exhausted: core.Hold}
	h.Settle(policy.Settlement(&c, &core.Outcome{Kind: core.Failed, Error: "boom", At: env.FailedAt, Node: env.FailedOn}, 0))
	state := env.HeldState()
	state.RetryCount = 0
	e.Same("the job", e.Queued("a"), env.Job("a", state, env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3)))
	e.Clock.Advance(24 * time.Hour)
	e.Same("what is claimed", h.Claim(5), nil)
}

func holdImport(e *env.Env) {
	e.Push(env.Entry("a", "q", 2))
	for range 2 {
		reply, err := e.Store.Import(e.Ctx, ports.ImportRequest{
			Shard: e.Shard, Shards: 1, Generation: e.Declared[env.Orders].Generation,
			Jobs: []core.Job{
				env.Job("a", env.HeldState(), env.Pay("p", 1)), env.Job("b", env.HeldState(), env.Pay("p", 1)),
			},
		})
		e.Must(err, "Import")
		e.Reported("how many jobs were imported", reply.Handled, 2)
	}

	e.Same("the job that met a queued one",
		e.Queued("a"), env.Job("a", env.HeldState(), env.Pay("p", 1), env.Pay("q", 2)))
	e.Same("the job that met none", e.Queued("b"), env.Job("b", env.HeldState(), env.Pay("p", 1)))

	e.Clock.Advance(24 * time.Hour)
	e.Same("what is claimed", e.Acquire("n1").Claim(5), nil)
	e.Same("how many are held", e.Counts().Held, int64(2))
}

func holdCounts(e *env.Env) {
	e.Hold("a", env.Pay("p", 1))
	e.Hold("b", env.Pay("p", 1))
	e.FailAll("failed")
	e.Push(env.EntryAt("never", "p", 1, core.MaxInstant), env.Entry("now", "p", 1))

	e.CountsMatch(env.Orders, e.Counts().Processed, e.Counts().Failed)
	c := e.Counts()
	e.Same("fresh, retrying and held", [3]int64{c.Fresh, c.Retrying, c.Held}, [3]int64{2, 3, 2})

	reply, err := e.Store.Recount(e.Ctx, ports.RecountRequest{Shard: e.Shard})
	e.Must(err, "Recount")
	e.Reported("held by the recount", [2]int64{reply.Before.Held, reply.After.Held}, [2]int64{2, 2})

	e.ByIDs(e.Store.Delete, "a", "b")
	e.Same("how many are held then", e.Counts().Held, int64(0))
}

func holdList(e *env.Env) {
	e.Hold("b", env.Pay("p", 1))
	e.Hold("a", env.Pay("p", 1))
	e.FailAll("failed")
	e.Push(env.EntryAt("never", "p", 1, core.MaxInstant))
	page := e.JobPages(ports.RetryingByTime)(ports.PageRequest{
		Queue: env.Orders,
		From:  &ports.Cursor{Key: int64(core.MaxInstant)},
	})
	e.Same("the held jobs", page.IDs, []string{"a", "b"})
}

func holdExpedite(e *env.Env) {
	e.Hold("a", env.Pay("p", 1), env.Pay("q", 2))
	e.FailAll("failed")
	e.Push(env.EntryAt("never", "p", 1, core.MaxInstant))
	e.Clock.Advance(time.Minute)
	h := e.Acquire("n1")

	e.Reported("the reply",
		e.ByIDs(e.Store.Expedite, "a", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: e.Now()})

	want := env.HeldState()
	want.PerformAt, want.RetryCount = e.Now(), core.FreshRetryCount
	e.Same("the job", e.Queued("a"), env.Job("a", want, env.Pay("p", 1), env.Pay("q", 2)))
	e.Same("a failed job, which was due", e.Queued("failed").RetryCount, 0)
	never := env.Fresh(e.Now())
	e.Same("a fresh job at the last instant", e.Queued("never").State, never)

	c := e.Counts()
	e.Same("fresh, retrying and held", [3]int64{c.Fresh, c.Retrying, c.Held}, [3]int64{2, 1, 0})

	claims := h.Claim(5)
	e.Same("how many are claimed", len(claims), 3)
	e.CountsMatch(env.Orders, e.Counts().Processed, e.Counts().Failed)
}

// holdSteps checks steps on a held job, and on jobs that have only one property of a held job.
func holdSteps(e *env.Env) {
	steps := jobSteps(e)
	for name, do := range firstSteps(e) {
		steps[name+" of first payloads"] = do
	}

	steps["Delete of payloads"] = e.Store.Delete
	ids := []string{"backoff", "failed", "held", "never", "none"}

	for name, do := range steps {
		e.Hold("held", env.Pay("p", 1), env.Pay("q", 2))
		e.Place("backoff", core.State{PerformAt: e.Now().Add(time.Hour), RetryCount: 3, Failures: env.Failures("boom")},
			env.Pay("p", 1), env.Pay("q", 2))
		e.FailAll("failed")
		e.Push(env.EntryAt("never", "p", 1, core.MaxInstant))

		var others []core.Job
		for _, id := range []string{"backoff", "failed", "never"} {
			others = append(others, e.Queued(id))
		}

		step := ports.JobStep{Shard: e.Shard, IDs: ids, Held: true}
		for range ids {
			switch name {
			case "Delete of payloads":
				step.Payloads = append(step.Payloads, []core.Payload{env.Pay("p", 1)})
			case "Bury of first payloads", "Delete of first payloads":
				step.First = append(step.First, []byte("p"))
			}
		}

		reply, err := do(e.Ctx, step)
		e.Must(err, name)
		e.Reported("the reply of "+name, reply, ports.StepReply{Handled: 1, Reached: 5, Now: e.Now()})

		for _, want := range others {
			e.Same("a job that is not held, after "+name, e.Queued(want.ID), want)
		}

		e.Same("how many are held after "+name, e.Counts().Held, int64(0))
		e.ByIDs(e.Store.Delete, ids...)
	}
}

func holdAgain(e *env.Env) {
	e.Hold("a", env.Pay("p", 1), env.Pay("q", 2))
	e.ByIDs(e.Store.Expedite, "a")
	h := e.Acquire("n1")

	policy := core.RetryPolicy{
		MaxRetries: 1,
		Exhausted:  core.Hold,
		Backoff:    func(int, int) time.Duration { return time.Second },
	}

	fail := func() {
		c := h.One()
		h.Settle(policy.Settlement(&c, &core.Outcome{Kind: core.Failed, Error: "boom again", At: env.FailedAt, Node: env.FailedOn}, 0))
	}

	fail()
	e.Same("how many are held after a failure", e.Counts().Held, int64(0))

	e.Clock.Advance(time.Second)
	fail()

	want := env.HeldState()
	want.RetryCount, want.Failures = 1, env.Failures("boom again", "boom again", "boom")
	e.Same("the job after the last failure", e.Queued("a"), env.Job("a", want, env.Pay("p", 1), env.Pay("q", 2)))
}

// holdForgetsRecoveries checks jobs that would run alone, and be held again at once, if they kept
// their earlier recoveries.
func holdForgetsRecoveries(e *env.Env) {
	state := env.HeldState()
	state.Recoveries = 3
	for _, id := range []string{"a", "b", "c"} {
		e.Place(id, state, env.Pay("p", 1), env.Pay("q", 2))
	}

	e.ByIDs(e.Store.Expedite, "a")
	e.Firsts(e.Store.Bury, "b", "p")
	e.Firsts(e.Store.Delete, "c", "p")

	for _, id := range []string{"a", "b", "c"} {
		want := env.HeldState()
		want.PerformAt, want.RetryCount = e.Now(), core.FreshRetryCount
		e.Same("the state of "+id, e.Queued(id).State, want)
	}

	e.Same("how many are claimed together", len(e.Acquire("n1").Claim(5)), 3)
}

func holdBuryFirst(e *env.Env) {
	e.Hold("a", env.Pay("p", 1), env.Pay("q", 2))
	e.Clock.Advance(time.Minute)
	h := e.Acquire("n1")
	e.Reported("the reply", e.Firsts(e.Store.Bury, "a", "p"), ports.StepReply{Handled: 1, Reached: 1, Now: e.Now()})
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{
		ID:        "a",
		ChangedAt: e.Now(),
		Failures:  env.Failures("boom"),
		Group:     core.BuriedByHand,
		Payloads:  []core.Payload{env.Pay("p", 1)},
	})
	continues(e, h, "Bury", e.Store.Bury)
}

func holdDeleteFirst(e *env.Env) {
	e.Hold("a", env.Pay("p", 1), env.Pay("q", 2))
	e.Clock.Advance(time.Minute)
	h := e.Acquire("n1")
	e.Reported("the reply", e.Firsts(e.Store.Delete, "a", "p"), ports.StepReply{Handled: 1, Reached: 1, Now: e.Now()})
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{})
	continues(e, h, "Delete", e.Store.Delete)
}

// continues checks the remaining payloads of a held job whose first payload a step has removed.
func continues(e *env.Env, h *env.Holder, name string, do env.JobStep) {
	e.TB.Helper()

	want := env.HeldState()
	want.PerformAt, want.RetryCount = e.Now(), core.FreshRetryCount
	e.Same("the rest", e.Queued("a"), env.Job("a", want, env.Pay("q", 2)))

	e.Unchanged(name+" repeated", func() {
		e.Reported("how many it handled again", e.Firsts(do, "a", "p").Handled, 0)
	})
	e.CountsMatch(env.Orders, e.Counts().Processed, e.Counts().Failed)
	e.SameHead("the rest", h, env.Due(e.Now()))

	c := h.One()
	e.Same("the claimed payloads", c.Payloads, []core.Payload{env.Pay("q", 2)})
	e.Same("the claimed job's error", c.Failures.Newest().Text, "boom")
}

// firstSteps are the methods that handle first payloads.
func firstSteps(e *env.Env) map[string]env.JobStep {
	return map[string]env.JobStep{"Bury": e.Store.Bury, "Delete": e.Store.Delete}
}

func firstOther(e *env.Env) {
	e.Hold("a", env.Pay("p", 1), env.Pay("q", 2))
	e.Push(env.Entry("b", "", 0), env.Entry("b", "q", 1))
	for name, do := range firstSteps(e) {
		e.Unchanged(name, func() {
			e.Reported("the reply of "+name,
				e.Firsts(do, "a", "q", "b", "q", "none", "p"), ports.StepReply{Reached: 3, Now: e.Now()})
			_, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: []string{"\xff"}, First: [][]byte{nil}})
			e.Must(err, name)
		})
	}
	e.Reported("how many jobs with an empty first payload", e.Firsts(e.Store.Delete, "b", "").Handled, 1)
	e.Same("the rest of it", e.Queued("b").Payloads, []core.Payload{env.Pay("q", 1)})
}

func firstFresh(e *env.Env) {
	later := env.Start.Add(time.Hour)
	for name, do := range firstSteps(e) {
		e.Push(env.EntryAt("a", "p", 1, later), env.EntryAt("a", "q", 2, later))
		e.Reported("how many "+name+" handled", e.Firsts(do, "a", "p").Handled, 1)
		e.Same("the rest after "+name, e.Queued("a"), env.Job("a", env.Fresh(later), env.Pay("q", 2)))
		e.ByIDs(e.Store.Delete, "a")
	}
}

func firstBackoff(e *env.Env) {
	for name, do := range firstSteps(e) {
		e.Place("a", core.State{PerformAt: e.Now().Add(time.Hour), RetryCount: 3, Failures: env.Failures("boom")},
			env.Pay("p", 1), env.Pay("q", 2))
		e.Reported("how many "+name+" handled", e.Firsts(do, "a", "p").Handled, 1)
		want := core.State{PerformAt: e.Now(), RetryCount: core.FreshRetryCount, FirstPush: env.Start, Failures: env.Failures("boom")}
		e.Same("the rest after "+name, e.Queued("a"), env.Job("a", want, env.Pay("q", 2)))
		e.ByIDs(e.Store.Delete, "a")
	}
}

func firstLast(e *env.Env) {
	for name, do := range firstSteps(e) {
		e.Hold("a", env.Pay("p", 1))
		e.Push(env.Entry("b", "p", 1))
		e.Reported("how many "+name+" handled", e.Firsts(do, "a", "p", "b", "p").Handled, 2)
		e.Same("the jobs after "+name, e.QueuedIDs(), nil)
		e.CountsMatch(env.Orders, e.Counts().Processed, e.Counts().Failed)
	}
}

func firstConditions(e *env.Env) {
	for name, do := range firstSteps(e) {
		e.Hold("a", env.Pay("p", 1), env.Pay("q", 2))
		e.Push(env.Entry("b", "p", 1), env.Entry("b", "q", 2))

		step := ports.JobStep{
			Shard:  e.Shard,
			IDs:    []string{"a", "b"},
			First:  [][]byte{[]byte("p"), []byte("p")},
			Before: env.Start,
		}

		e.Unchanged(name, func() {
			reply, err := do(e.Ctx, step)
			e.Must(err, name)
			e.Reported("how many "+name+" handled before their first push", reply.Handled, 0)
		})

		step.Before, step.Failed = 0, true
		reply, err := do(e.Ctx, step)
		e.Must(err, name)
		e.Reported("how many "+name+" handled with a failure", reply.Handled, 1)
		e.Same("the payloads of the fresh job after "+name, len(e.Queued("b").Payloads), 2)

		e.ByIDs(e.Store.Delete, "a", "b")
	}
}

// firstOfMany removes the first payloads of a large job with Meta, one by one.
func firstOfMany(e *env.Env) {
	all := env.Volume{Jobs: 1, Payloads: 1500, Size: 8}.List()
	for i := range all {
		all[i].Meta = []byte(fmt.Sprint("meta ", i%7))
	}

	for name, do := range firstSteps(e) {
		e.PushList("a", all)
		for i := range 3 {
			e.Reported("how many "+name+" handled", e.Firsts(do, "a", string(all[i].Data)).Handled, 1)
			left := e.Queued("a").Payloads
			e.Same("how many are left", len(left), len(all)-i-1)
			e.Same("the first one that is left", left[0], all[i+1])
			e.Same("the last one that is left", left[len(left)-1], all[len(all)-1])
		}

		if name == "Bury" {
			e.Same("what is dead", e.DeadLetter("a").Payloads, all[:3])
		}

		e.StepIDs([]string{"a"}, func(ids []string) (ports.StepReply, error) {
			return e.Store.Delete(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids})
		}, func(int, bool) {})
		e.ByRefs(e.Store.Purge, env.Whole("a"))
	}
}

func firstInvalid(e *env.Env) {
	p := []byte("p")
	for name, do := range firstSteps(e) {
		for what, step := range map[string]ports.JobStep{
			"without a payload for each id": {IDs: []string{"a", "b"}, First: [][]byte{p}},
			"with an id twice":              {IDs: []string{"a", "a"}, First: [][]byte{p, p}},
			"without ids":                   {First: [][]byte{p}},
			"with payloads too": {
				IDs:      []string{"a"},
				First:    [][]byte{p},
				Payloads: [][]core.Payload{{env.Pay("p", 1)}},
			},
			"of too many bytes": {IDs: []string{"a", "b"}, First: [][]byte{make([]byte, core.MaxStepBytes), p}},
		} {
			step.Shard = e.Shard
			_, err := do(e.Ctx, step)
			e.Refused(name+" "+what, err, ports.ErrInvalidRequest)
		}
	}

	e.Hold("a", env.Pay("p", 1))
	e.Unchanged("Expedite of first payloads", func() {
		_, err := e.Store.Expedite(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: []string{"a"}, First: [][]byte{p}})
		e.Refused("Expedite of first payloads", err, ports.ErrInvalidRequest)
	})
}

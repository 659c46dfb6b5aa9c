package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleHeld      = "RULES 3: a job that has failed and has the time 2^53 µs is held: it never runs by itself, and a push and a revive keep it held"
	ruleTakeFirst = "JobStep: First limits Bury and Delete to the first payload of each job; the others stay queued in the state core.State.WithoutFirst"
)

func holdCases() []namedCase {
	return []namedCase{
		{"a held job is never claimed, after any merge", ruleHeld, holdMerges},
		{"a job is held whole if a claim of some of its payloads is exhausted", ruleHeld, holdSplit},
		{"a held job is imported as it is", "RULES 2: an imported job keeps its time and RetryCount if it has the larger RetryCount", holdImport},
		{"held jobs are counted among those with a failure", "Counts: Held is the number of held jobs; they are among Retrying", holdCounts},
		{"held jobs are the end of the list by time", ruleHeld, holdList},
		{"expedite releases a held job", "Expedite: a held job becomes fresh and due, and keeps its error", holdExpedite},
		{"a job that was released runs and may be held again", ruleHeld, holdAgain},
		{"a job that continues has no recoveries", "RULES 3: a release, and the burial of the first payload, set Recoveries to 0", holdForgetsRecoveries},
		{"burying the first payload continues with the others", ruleTakeFirst, holdBuryFirst},
		{"deleting the first payload continues with the others", ruleTakeFirst, holdDeleteFirst},
		{"a step skips jobs whose first payload is another one", ruleTakeFirst, firstOther},
		{"a step can be limited to held jobs", "JobStep: Held limits the step to held jobs", holdSteps},
		{"a step over first payloads keeps the time of a fresh job", ruleTakeFirst, firstFresh},
		{"a step over first payloads makes a job in backoff due", ruleTakeFirst, firstBackoff},
		{"a step over first payloads removes a job with no other one", ruleTakeFirst, firstLast},
		{"a step over first payloads obeys the conditions of a step", ruleTakeFirst, firstConditions},
		{"a step takes the first of many payloads", ruleTakeFirst, firstOfMany},
		{"refuses an invalid step over first payloads", "JobStep.Validate, JobStep.ValidateWhole: ErrInvalidRequest", firstInvalid},
	}
}

// heldState is the state of a job that env.hold has made held, pushed at the start.
func heldState() core.State {
	return core.State{PerformAt: core.MaxInstant, RetryCount: 2, FirstPush: start, Error: "boom"}
}

// hold pushes a job and makes it held.
func (e *env) hold(id string, payloads ...core.Payload) {
	e.tb.Helper()
	e.place(id, heldState(), payloads...)
}

// firsts handles first payloads of jobs. named has two elements for each job: its id, and the Data
// of its first payload.
func (e *env) firsts(do jobStep, named ...string) ports.StepReply {
	e.tb.Helper()
	step := ports.JobStep{Shard: e.shard, First: [][]byte{}}
	for i := 0; i < len(named); i += 2 {
		step.IDs, step.First = append(step.IDs, named[i]), append(step.First, []byte(named[i+1]))
	}
	reply, err := do(e.ctx, step)
	e.must(err, "a step over first payloads")
	return reply
}

func holdMerges(e *env) {
	e.push(entry("a", "dead", 0.5))
	e.byIDs(e.store.Bury, "a")
	e.hold("a", pay("p", 2), pay("q", 3))
	want := job("a", heldState(), pay("p", 2), pay("q", 3))
	h := e.acquire("n1")
	check := func(what string, payloads ...core.Payload) {
		e.tb.Helper()
		want.Payloads = payloads
		e.same("the job after "+what, e.queued("a"), want)
		e.clock.Advance(24 * time.Hour)
		e.same("what is claimed after "+what, h.claim(5), nil)
		e.sameHead(what, h, due(core.MaxInstant))
	}
	check("it was held", pay("p", 2), pay("q", 3))
	e.push(entry("a", "first", 1))
	check("a push of another first payload", pay("first", 1), pay("p", 2), pay("q", 3))
	e.pushBy(core.PushRule{Kind: core.Earliest}, entryAt("a", "early", 4, 0), entryAt("a", "p", 5, 0))
	check("a push by Earliest", pay("first", 1), pay("p", 2), pay("q", 3), pay("early", 4))
	e.pushBy(core.PushRule{Kind: core.Debounce}, entry("a", "p", 0))
	check("a push by Debounce", pay("p", 0), pay("first", 1), pay("q", 3), pay("early", 4))
	e.byRefs(e.store.Revive, whole("a"))
	check("a revive", pay("p", 0), pay("dead", 0.5), pay("first", 1), pay("q", 3), pay("early", 4))
	e.same("how many are held", e.counts().Held, int64(1))
}

// holdSplit exhausts a claim of a job's first payload, while the rest of the job is queued and
// another payload is pushed.
func holdSplit(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2))
	h := e.acquire("n1")
	c := h.cut(1)
	e.push(entry("a", "r", 3))
	policy := core.RetryPolicy{Exhausted: core.Hold}
	h.settle(policy.Settlement(&c, &core.Outcome{Kind: core.Failed, Error: "boom"}, 0))
	state := heldState()
	state.RetryCount = 0
	e.same("the job", e.queued("a"), job("a", state, pay("p", 1), pay("q", 2), pay("r", 3)))
	e.clock.Advance(24 * time.Hour)
	e.same("what is claimed", h.claim(5), nil)
}

func holdImport(e *env) {
	e.push(entry("a", "q", 2))
	for range 2 {
		reply, err := e.store.Import(e.ctx, ports.ImportRequest{
			Shard: e.shard, Shards: 1, Generation: e.declared[orders].Generation,
			Jobs: []core.Job{job("a", heldState(), pay("p", 1)), job("b", heldState(), pay("p", 1))},
		})
		e.must(err, "Import")
		e.reported("how many jobs were imported", reply.Handled, 2)
	}
	e.same("the job that met a queued one", e.queued("a"), job("a", heldState(), pay("p", 1), pay("q", 2)))
	e.same("the job that met none", e.queued("b"), job("b", heldState(), pay("p", 1)))
	e.clock.Advance(24 * time.Hour)
	e.same("what is claimed", e.acquire("n1").claim(5), nil)
	e.same("how many are held", e.counts().Held, int64(2))
}

func holdCounts(e *env) {
	e.hold("a", pay("p", 1))
	e.hold("b", pay("p", 1))
	failAll(e, "failed")
	e.push(entryAt("never", "p", 1, core.MaxInstant), entry("now", "p", 1))
	e.countsMatch(orders, e.counts().Processed, e.counts().Failed)
	c := e.counts()
	e.same("fresh, retrying and held", [3]int64{c.Fresh, c.Retrying, c.Held}, [3]int64{2, 3, 2})
	reply, err := e.store.Recount(e.ctx, ports.RecountRequest{Shard: e.shard})
	e.must(err, "Recount")
	e.reported("held by the recount", [2]int64{reply.Before.Held, reply.After.Held}, [2]int64{2, 2})
	e.byIDs(e.store.Delete, "a", "b")
	e.same("how many are held then", e.counts().Held, int64(0))
}

func holdList(e *env) {
	e.hold("b", pay("p", 1))
	e.hold("a", pay("p", 1))
	failAll(e, "failed")
	e.push(entryAt("never", "p", 1, core.MaxInstant))
	page := e.jobPages(ports.RetryingByTime)(ports.PageRequest{Queue: orders, From: &ports.Cursor{Key: int64(core.MaxInstant)}})
	e.same("the held jobs", page.ids, []string{"a", "b"})
}

func holdExpedite(e *env) {
	e.hold("a", pay("p", 1), pay("q", 2))
	failAll(e, "failed")
	e.push(entryAt("never", "p", 1, core.MaxInstant))
	e.clock.Advance(time.Minute)
	h := e.acquire("n1")
	e.reported("the reply", e.byIDs(e.store.Expedite, "a", "failed", "never"), ports.StepReply{Handled: 2, Reached: 3, Now: e.now()})
	want := heldState()
	want.PerformAt, want.RetryCount = e.now(), core.FreshRetryCount
	e.same("the job", e.queued("a"), job("a", want, pay("p", 1), pay("q", 2)))
	e.same("a failed job, which was due", e.queued("failed").RetryCount, 0)
	never := fresh(e.now())
	e.same("a fresh job at the last instant", e.queued("never").State, never)
	c := e.counts()
	e.same("fresh, retrying and held", [3]int64{c.Fresh, c.Retrying, c.Held}, [3]int64{2, 1, 0})
	claims := h.claim(5)
	e.same("how many are claimed", len(claims), 3)
	e.countsMatch(orders, e.counts().Processed, e.counts().Failed)
}

// holdSteps checks steps on a held job, and on jobs that have only one property of a held job.
func holdSteps(e *env) {
	steps := e.jobSteps()
	for name, do := range e.firstSteps() {
		steps[name+" of first payloads"] = do
	}
	steps["Delete of payloads"] = e.store.Delete
	ids := []string{"backoff", "failed", "held", "never", "none"}
	for name, do := range steps {
		e.hold("held", pay("p", 1), pay("q", 2))
		e.place("backoff", core.State{PerformAt: e.now().Add(time.Hour), RetryCount: 3, Error: "boom"}, pay("p", 1), pay("q", 2))
		failAll(e, "failed")
		e.push(entryAt("never", "p", 1, core.MaxInstant))
		var others []core.Job
		for _, id := range []string{"backoff", "failed", "never"} {
			others = append(others, e.queued(id))
		}
		step := ports.JobStep{Shard: e.shard, IDs: ids, Held: true}
		for range ids {
			switch name {
			case "Delete of payloads":
				step.Payloads = append(step.Payloads, []core.Payload{pay("p", 1)})
			case "Bury of first payloads", "Delete of first payloads":
				step.First = append(step.First, []byte("p"))
			}
		}
		reply, err := do(e.ctx, step)
		e.must(err, name)
		e.reported("the reply of "+name, reply, ports.StepReply{Handled: 1, Reached: 5, Now: e.now()})
		for _, want := range others {
			e.same("a job that is not held, after "+name, e.queued(want.ID), want)
		}
		e.same("how many are held after "+name, e.counts().Held, int64(0))
		e.byIDs(e.store.Delete, ids...)
	}
}

func holdAgain(e *env) {
	e.hold("a", pay("p", 1), pay("q", 2))
	e.byIDs(e.store.Expedite, "a")
	h := e.acquire("n1")
	policy := core.RetryPolicy{MaxRetries: 1, Exhausted: core.Hold, Backoff: func(int, int) time.Duration { return time.Second }}
	fail := func() {
		c := h.one()
		h.settle(policy.Settlement(&c, &core.Outcome{Kind: core.Failed, Error: "boom again"}, 0))
	}
	fail()
	e.same("how many are held after a failure", e.counts().Held, int64(0))
	e.clock.Advance(time.Second)
	fail()
	want := heldState()
	want.RetryCount, want.Error = 1, "boom again"
	e.same("the job after the last failure", e.queued("a"), job("a", want, pay("p", 1), pay("q", 2)))
}

// holdForgetsRecoveries checks jobs that would run alone, and be held again at once, if they kept
// their earlier recoveries.
func holdForgetsRecoveries(e *env) {
	state := heldState()
	state.Recoveries = 3
	for _, id := range []string{"a", "b", "c"} {
		e.place(id, state, pay("p", 1), pay("q", 2))
	}
	e.byIDs(e.store.Expedite, "a")
	e.firsts(e.store.Bury, "b", "p")
	e.firsts(e.store.Delete, "c", "p")
	for _, id := range []string{"a", "b", "c"} {
		want := heldState()
		want.PerformAt, want.RetryCount = e.now(), core.FreshRetryCount
		e.same("the state of "+id, e.queued(id).State, want)
	}
	e.same("how many are claimed together", len(e.acquire("n1").claim(5)), 3)
}

func holdBuryFirst(e *env) {
	e.hold("a", pay("p", 1), pay("q", 2))
	e.clock.Advance(time.Minute)
	h := e.acquire("n1")
	e.reported("the reply", e.firsts(e.store.Bury, "a", "p"), ports.StepReply{Handled: 1, Reached: 1, Now: e.now()})
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{
		ID: "a", ChangedAt: e.now(), Error: "boom", Group: core.BuriedByHand, Payloads: []core.Payload{pay("p", 1)},
	})
	continues(e, h, "Bury", e.store.Bury)
}

func holdDeleteFirst(e *env) {
	e.hold("a", pay("p", 1), pay("q", 2))
	e.clock.Advance(time.Minute)
	h := e.acquire("n1")
	e.reported("the reply", e.firsts(e.store.Delete, "a", "p"), ports.StepReply{Handled: 1, Reached: 1, Now: e.now()})
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{})
	continues(e, h, "Delete", e.store.Delete)
}

// continues checks the remaining payloads of a held job whose first payload a step has removed.
func continues(e *env, h *holder, name string, do jobStep) {
	e.tb.Helper()
	want := heldState()
	want.PerformAt, want.RetryCount = e.now(), core.FreshRetryCount
	e.same("the rest", e.queued("a"), job("a", want, pay("q", 2)))
	e.unchanged(name+" repeated", func() {
		e.reported("how many it handled again", e.firsts(do, "a", "p").Handled, 0)
	})
	e.countsMatch(orders, e.counts().Processed, e.counts().Failed)
	e.sameHead("the rest", h, due(e.now()))
	c := h.one()
	e.same("the claimed payloads", c.Payloads, []core.Payload{pay("q", 2)})
	e.same("the claimed job's error", c.Error, "boom")
}

// firstSteps are the methods that handle first payloads.
func (e *env) firstSteps() map[string]jobStep {
	return map[string]jobStep{"Bury": e.store.Bury, "Delete": e.store.Delete}
}

func firstOther(e *env) {
	e.hold("a", pay("p", 1), pay("q", 2))
	e.push(entry("b", "", 0), entry("b", "q", 1))
	for name, do := range e.firstSteps() {
		e.unchanged(name, func() {
			e.reported("the reply of "+name, e.firsts(do, "a", "q", "b", "q", "none", "p"), ports.StepReply{Reached: 3, Now: e.now()})
			_, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"\xff"}, First: [][]byte{nil}})
			e.must(err, name)
		})
	}
	e.reported("how many jobs with an empty first payload", e.firsts(e.store.Delete, "b", "").Handled, 1)
	e.same("the rest of it", e.queued("b").Payloads, []core.Payload{pay("q", 1)})
}

func firstFresh(e *env) {
	later := start.Add(time.Hour)
	for name, do := range e.firstSteps() {
		e.push(entryAt("a", "p", 1, later), entryAt("a", "q", 2, later))
		e.reported("how many "+name+" handled", e.firsts(do, "a", "p").Handled, 1)
		e.same("the rest after "+name, e.queued("a"), job("a", fresh(later), pay("q", 2)))
		e.byIDs(e.store.Delete, "a")
	}
}

func firstBackoff(e *env) {
	for name, do := range e.firstSteps() {
		e.place("a", core.State{PerformAt: e.now().Add(time.Hour), RetryCount: 3, Error: "boom"}, pay("p", 1), pay("q", 2))
		e.reported("how many "+name+" handled", e.firsts(do, "a", "p").Handled, 1)
		want := core.State{PerformAt: e.now(), RetryCount: core.FreshRetryCount, FirstPush: start, Error: "boom"}
		e.same("the rest after "+name, e.queued("a"), job("a", want, pay("q", 2)))
		e.byIDs(e.store.Delete, "a")
	}
}

func firstLast(e *env) {
	for name, do := range e.firstSteps() {
		e.hold("a", pay("p", 1))
		e.push(entry("b", "p", 1))
		e.reported("how many "+name+" handled", e.firsts(do, "a", "p", "b", "p").Handled, 2)
		e.same("the jobs after "+name, e.queuedIDs(), nil)
		e.countsMatch(orders, e.counts().Processed, e.counts().Failed)
	}
}

func firstConditions(e *env) {
	for name, do := range e.firstSteps() {
		e.hold("a", pay("p", 1), pay("q", 2))
		e.push(entry("b", "p", 1), entry("b", "q", 2))
		step := ports.JobStep{Shard: e.shard, IDs: []string{"a", "b"}, First: [][]byte{[]byte("p"), []byte("p")}, Before: start}
		e.unchanged(name, func() {
			reply, err := do(e.ctx, step)
			e.must(err, name)
			e.reported("how many "+name+" handled before their first push", reply.Handled, 0)
		})
		step.Before, step.Failed = 0, true
		reply, err := do(e.ctx, step)
		e.must(err, name)
		e.reported("how many "+name+" handled with a failure", reply.Handled, 1)
		e.same("the payloads of the fresh job after "+name, len(e.queued("b").Payloads), 2)
		e.byIDs(e.store.Delete, "a", "b")
	}
}

// firstOfMany removes the first payloads of a large job with Meta, one by one.
func firstOfMany(e *env) {
	all := volume{jobs: 1, payloads: 1500, size: 8}.list()
	for i := range all {
		all[i].Meta = []byte(fmt.Sprint("meta ", i%7))
	}
	for name, do := range e.firstSteps() {
		e.pushList("a", all)
		for i := range 3 {
			e.reported("how many "+name+" handled", e.firsts(do, "a", string(all[i].Data)).Handled, 1)
			left := e.queued("a").Payloads
			e.same("how many are left", len(left), len(all)-i-1)
			e.same("the first one that is left", left[0], all[i+1])
			e.same("the last one that is left", left[len(left)-1], all[len(all)-1])
		}
		if name == "Bury" {
			e.same("what is dead", e.deadLetter("a").Payloads, all[:3])
		}
		e.stepIDs([]string{"a"}, e.partSteps()[1].do, func(int, bool) {})
		e.byRefs(e.store.Purge, whole("a"))
	}
}

func firstInvalid(e *env) {
	p := []byte("p")
	for name, do := range e.firstSteps() {
		for what, step := range map[string]ports.JobStep{
			"without a payload for each id": {IDs: []string{"a", "b"}, First: [][]byte{p}},
			"with an id twice":              {IDs: []string{"a", "a"}, First: [][]byte{p, p}},
			"without ids":                   {First: [][]byte{p}},
			"with payloads too":             {IDs: []string{"a"}, First: [][]byte{p}, Payloads: [][]core.Payload{{pay("p", 1)}}},
			"of too many bytes":             {IDs: []string{"a", "b"}, First: [][]byte{make([]byte, core.MaxStepBytes), p}},
		} {
			step.Shard = e.shard
			_, err := do(e.ctx, step)
			e.refused(name+" "+what, err, ports.ErrInvalidRequest)
		}
	}
	e.hold("a", pay("p", 1))
	e.unchanged("Expedite of first payloads", func() {
		_, err := e.store.Expedite(e.ctx, ports.JobStep{Shard: e.shard, IDs: []string{"a"}, First: [][]byte{p}})
		e.refused("Expedite of first payloads", err, ports.ErrInvalidRequest)
	})
}

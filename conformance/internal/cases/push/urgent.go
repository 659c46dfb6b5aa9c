package push

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func urgentCases() []env.Case {
	return []env.Case{
		{Name: "overtakes what became due at most d earlier", Rule: env.RuleUrgent, Check: urgentOvertakes},
		{Name: "makes a job due that waits", Rule: env.RuleUrgent, Check: urgentWaiting},
		{Name: "the more urgent push wins", Rule: env.RuleUrgent, Check: urgentMerges},
		{
			Name:  "keeps the time of a job in backoff",
			Rule:  "RULES 2, row 1: PerformAt and RetryCount are the queued job's, by every push rule",
			Check: urgentBackoff,
		},
		{
			Name:  "waits for a claimed job of its id",
			Rule:  "RULES 2: a claimed job is never touched: the push makes a new queued job for the id",
			Check: urgentClaimed,
		},
		{Name: "each entry of a push merges by its own rule", Rule: env.RuleUrgent, Check: urgentAmongOthers},
		{Name: "merges by its own rule in a queue with a merge rule", Rule: env.RuleUrgent, Check: urgentByMergeRule},
		{
			Name:  "reports what each entry of a push met",
			Rule:  "PushReply: New, Merged and Duplicate, in the order of the entries",
			Check: urgentMet,
		},
		{
			Name: "refuses an urgency outside the limits",
			Rule: "core.Entry.Validate: ErrInvalidTime outside core.MinUrgency … core.MaxUrgency, " +
				"and nothing is stored",
			Check: urgentLimits,
		},
	}
}

func urgentOvertakes(e *env.Env) {
	e.Push(env.EntryAt("older", "p", 1, env.Start.Add(-time.Minute-time.Microsecond)),
		env.EntryAt("old", "p", 1, env.Start.Add(-time.Minute+time.Microsecond)))
	e.Push(env.Entry("now", "p", 1), env.Urgent("urgent", "p", 1, time.Minute))
	e.Same("the urgent job", e.Queued("urgent").State, env.Fresh(env.Start.Add(-time.Minute)))
	var ids []string
	for _, c := range e.Acquire("n1").Claim(4) {
		ids = append(ids, c.ID)
	}
	e.Same("the order of the claims", ids, []string{"older", "urgent", "old", "now"})
}

func urgentWaiting(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	e.Clock.Advance(time.Minute)
	e.Push(env.Urgent("a", "q", 2, 10*time.Second))
	e.Same("the state", e.Queued("a").State, env.Fresh(env.Start.Add(50*time.Second)))
	e.Same("the head", e.Head(), env.Due(env.Start.Add(50*time.Second)))
	e.Same("what is claimed", e.Acquire("n1").One().Payloads, []core.Payload{env.Pay("p", 1), env.Pay("q", 2)})
}

func urgentMerges(e *env.Env) {
	e.Push(env.Urgent("a", "p", 1, time.Minute))
	e.Push(env.Urgent("a", "q", 2, time.Hour))
	e.Same("after a more urgent push", e.Queued("a").State, env.Fresh(env.Start.Add(-time.Hour)))
	e.Push(env.Urgent("a", "r", 3, time.Second))
	e.Push(env.Entry("a", "s", 4), env.EntryAt("a", "t", 5, env.Start.Add(time.Hour)))
	e.Same("after less urgent pushes", e.Queued("a").State, env.Fresh(env.Start.Add(-time.Hour)))
	e.Same("the payloads", e.Queued("a").Payloads,
		[]core.Payload{env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3), env.Pay("s", 4), env.Pay("t", 5)})
}

func urgentBackoff(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	h.Settle(env.Failed(h.One(), "boom", time.Hour))
	e.Push(env.Urgent("a", "q", 2, time.Hour))
	e.Push(env.Urgent("a", "r", 3, time.Hour), env.Entry("b", "p", 1))
	e.Same("the state",
		e.Queued("a").State, core.State{PerformAt: env.Start.Add(time.Hour), FirstPush: env.Start, Failures: env.Failures("boom")})
	e.Same("what is claimed", h.One().ID, "b")
}

func urgentClaimed(e *env.Env) {
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(time.Minute)
	e.Push(env.Urgent("a", "q", 2, time.Hour))
	e.Same("the claimed job", e.Claimed("a"), c)
	want := core.State{PerformAt: e.Now().Add(-time.Hour), RetryCount: core.FreshRetryCount, FirstPush: e.Now()}
	e.Same("the queued job", e.Queued("a").State, want)
	e.Push(env.EntryAt("b", "p", 1, e.Now().Add(-time.Minute)))
	h.Settle(env.Done(c))
	e.Same("what is claimed next", h.One().ID, "a")
}

// urgentAmongOthers pushes urgent and other entries together, by each push rule. The order of the
// entries of an id matters: Debounce may postpone an urgent job again.
func urgentAmongOthers(e *env.Env) {
	for _, rule := range []core.PushRule{{}, {Kind: core.Earliest}, {Kind: core.Debounce, Limit: 24 * time.Hour}} {
		r := e.PushRequest(env.Orders)
		r.Rule = rule
		queue := fmt.Sprintf("%d ", rule.Kind)

		want := map[string]core.State{}
		for n := range 3 {
			e.Clock.Advance(time.Second)
			r.Entries = nil
			for i, id := range []string{"c", "a", "b", "a", "d", "a"} {
				en := env.EntryAt(queue+id, fmt.Sprint(n, i), float64(i), e.Now().Add(time.Duration(7*i%5)*time.Hour))
				if (i+n)%3 == 0 {
					en.When = core.Urgent(time.Duration(i+1) * time.Minute)
				}
				r.Entries = append(r.Entries, en)

				incoming := core.Pushed(en.When, e.Now())
				if existing, ok := want[en.ID]; ok {
					incoming = core.MergePush(existing, incoming, en.When.Rule(rule))
				}
				want[en.ID] = incoming
			}

			_, err := e.Store.Push(e.Ctx, r)
			e.Must(err, "Push")
			for id, state := range want {
				e.Same("the state of "+id, e.Queued(id).State, state)
			}
		}
	}
}

func urgentByMergeRule(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 1})
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)), env.EntryAt("b", "p", 1, env.Start.Add(time.Hour)))
	e.Push(env.Urgent("a", "q", 2, time.Minute), env.Entry("b", "q", 2), env.Urgent("c", "p", 1, time.Minute))
	e.Push(env.Urgent("c", "old", 0, time.Hour))
	e.Same("the jobs", e.Jobs(), []core.Job{
		env.Job("c", env.Fresh(env.Start.Add(-time.Hour)), env.Pay("p", 1)),
		env.Job("a", env.Fresh(env.Start.Add(-time.Minute)), env.Pay("q", 2)),
		env.Job("b", env.Fresh(env.Start.Add(time.Hour)), env.Pay("q", 2)),
	})
}

func urgentMet(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("b", "p", 1))
	e.Met("several", e.PushRequest(env.Orders,
		env.Urgent("a", "p", 1, time.Minute), env.Entry("b", "q", 2), env.Urgent("c", "p", 1, time.Minute),
		env.Urgent("c", "q", 1, time.Minute), env.Entry("b", "q", 2)),
		ports.PushReply{New: 1, Merged: 2, Duplicate: 2})
	e.Met(
		"urgent ones",
		e.PushRequest(env.Orders, env.Urgent("d", "p", 1, time.Minute), env.Urgent("a", "q", 1, time.Minute)),
		ports.PushReply{New: 1, Merged: 1},
	)
}

func urgentLimits(e *env.Env) {
	e.Unchanged("a refused Push", func() {
		for _, d := range []time.Duration{0, -time.Hour, core.MinUrgency - 1, core.MaxUrgency + 1, -1 << 63} {
			_, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("a", "p", 1), env.Urgent("b", "p", 1, d)))
			e.Refused(fmt.Sprintf("Push of an urgency of %v", d), err, core.ErrInvalidTime)
		}
	})
	e.Push(env.Urgent("least", "p", 1, core.MinUrgency), env.Urgent("most", "p", 1, core.MaxUrgency))
	e.Same("the least urgent", e.Queued("least").State, env.Fresh(env.Start.Add(-core.MinUrgency)))
	e.Same("the most urgent", e.Queued("most").State, env.Fresh(env.Start.Add(-core.MaxUrgency)))
}

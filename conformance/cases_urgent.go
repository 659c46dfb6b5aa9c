package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleUrgent = "RULES 2: an urgent entry pushes at now - d and merges by Earliest, whatever the rule of the push is"

func urgentCases() []namedCase {
	return []namedCase{
		{"overtakes what became due at most d earlier", ruleUrgent, urgentOvertakes},
		{"makes a job due that waits", ruleUrgent, urgentWaiting},
		{"the more urgent push wins", ruleUrgent, urgentMerges},
		{"keeps the time of a job in backoff", "RULES 2, row 1: PerformAt and RetryCount are the queued job's, by every push rule", urgentBackoff},
		{"waits for a claimed job of its id", "RULES 2: a claimed job is never touched: the push makes a new queued job for the id", urgentClaimed},
		{"each entry of a push merges by its own rule", ruleUrgent, urgentAmongOthers},
		{"merges by its own rule in a queue with a merge rule", ruleUrgent, urgentByMergeRule},
		{"reports what each entry of a push met", "PushReply: New, Merged and Duplicate, in the order of the entries", urgentMet},
		{"refuses an urgency outside the limits", "core.Entry.Validate: ErrInvalidTime outside core.MinUrgency … core.MaxUrgency, and nothing is stored", urgentLimits},
	}
}

// urgent returns an entry for an id that overtakes the jobs that became due up to d earlier.
func urgent(id, data string, score float64, d time.Duration) core.Entry {
	en := entry(id, data, score)
	en.When = core.Urgent(d)
	return en
}

func urgentOvertakes(e *env) {
	e.push(entryAt("older", "p", 1, start.Add(-time.Minute-time.Microsecond)), entryAt("old", "p", 1, start.Add(-time.Minute+time.Microsecond)))
	e.push(entry("now", "p", 1), urgent("urgent", "p", 1, time.Minute))
	e.same("the urgent job", e.queued("urgent").State, fresh(start.Add(-time.Minute)))
	var ids []string
	for _, c := range e.acquire("n1").claim(4) {
		ids = append(ids, c.ID)
	}
	e.same("the order of the claims", ids, []string{"older", "urgent", "old", "now"})
}

func urgentWaiting(e *env) {
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	e.clock.Advance(time.Minute)
	e.push(urgent("a", "q", 2, 10*time.Second))
	e.same("the state", e.queued("a").State, fresh(start.Add(50*time.Second)))
	e.same("the head", e.head(), due(start.Add(50*time.Second)))
	e.same("what is claimed", e.acquire("n1").one().Payloads, []core.Payload{pay("p", 1), pay("q", 2)})
}

func wakeupUrgent(e *env) {
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	ch := e.wakeups(e.shard)
	e.push(urgent("a", "q", 2, time.Second))
	e.wakes("an urgent push", ch, e.shard)
}

func urgentMerges(e *env) {
	e.push(urgent("a", "p", 1, time.Minute))
	e.push(urgent("a", "q", 2, time.Hour))
	e.same("after a more urgent push", e.queued("a").State, fresh(start.Add(-time.Hour)))
	e.push(urgent("a", "r", 3, time.Second))
	e.push(entry("a", "s", 4), entryAt("a", "t", 5, start.Add(time.Hour)))
	e.same("after less urgent pushes", e.queued("a").State, fresh(start.Add(-time.Hour)))
	e.same("the payloads", e.queued("a").Payloads, []core.Payload{pay("p", 1), pay("q", 2), pay("r", 3), pay("s", 4), pay("t", 5)})
}

func urgentBackoff(e *env) {
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	h.settle(failed(h.one(), "boom", time.Hour))
	e.push(urgent("a", "q", 2, time.Hour))
	e.push(urgent("a", "r", 3, time.Hour), entry("b", "p", 1))
	e.same("the state", e.queued("a").State, core.State{PerformAt: start.Add(time.Hour), FirstPush: start, Error: "boom"})
	e.same("what is claimed", h.one().ID, "b")
}

func urgentClaimed(e *env) {
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.clock.Advance(time.Minute)
	e.push(urgent("a", "q", 2, time.Hour))
	e.same("the claimed job", e.claimed("a"), c)
	want := core.State{PerformAt: e.now().Add(-time.Hour), RetryCount: core.FreshRetryCount, FirstPush: e.now()}
	e.same("the queued job", e.queued("a").State, want)
	e.push(entryAt("b", "p", 1, e.now().Add(-time.Minute)))
	h.settle(done(c))
	e.same("what is claimed next", h.one().ID, "a")
}

// urgentAmongOthers pushes urgent and other entries together, by each push rule. The order of the
// entries of an id matters: Debounce may postpone an urgent job again.
func urgentAmongOthers(e *env) {
	for _, rule := range []core.PushRule{{}, {Kind: core.Earliest}, {Kind: core.Debounce, Limit: 24 * time.Hour}} {
		r := e.pushRequest(orders)
		r.Rule = rule
		queue := fmt.Sprintf("%d ", rule.Kind)
		want := map[string]core.State{}
		for n := range 3 {
			e.clock.Advance(time.Second)
			r.Entries = nil
			for i, id := range []string{"c", "a", "b", "a", "d", "a"} {
				en := entryAt(queue+id, fmt.Sprint(n, i), float64(i), e.now().Add(time.Duration(7*i%5)*time.Hour))
				if (i+n)%3 == 0 {
					en.When = core.Urgent(time.Duration(i+1) * time.Minute)
				}
				r.Entries = append(r.Entries, en)
				coming := core.Pushed(en.When, e.now())
				if there, ok := want[en.ID]; ok {
					coming = core.MergePush(there, coming, en.When.Rule(rule))
				}
				want[en.ID] = coming
			}
			_, err := e.store.Push(e.ctx, r)
			e.must(err, "Push")
			for id, state := range want {
				e.same("the state of "+id, e.queued(id).State, state)
			}
		}
	}
}

func urgentByMergeRule(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 1})
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)), entryAt("b", "p", 1, start.Add(time.Hour)))
	e.push(urgent("a", "q", 2, time.Minute), entry("b", "q", 2), urgent("c", "p", 1, time.Minute))
	e.push(urgent("c", "old", 0, time.Hour))
	e.same("the jobs", e.jobs(), []core.Job{
		job("c", fresh(start.Add(-time.Hour)), pay("p", 1)),
		job("a", fresh(start.Add(-time.Minute)), pay("q", 2)),
		job("b", fresh(start.Add(time.Hour)), pay("q", 2)),
	})
}

func urgentMet(e *env) {
	e.push(entry("a", "p", 1), entry("b", "p", 1))
	e.met("several", e.pushRequest(orders,
		urgent("a", "p", 1, time.Minute), entry("b", "q", 2), urgent("c", "p", 1, time.Minute), urgent("c", "q", 1, time.Minute), entry("b", "q", 2)),
		ports.PushReply{New: 1, Merged: 2, Duplicate: 2})
	e.met("urgent ones", e.pushRequest(orders, urgent("d", "p", 1, time.Minute), urgent("a", "q", 1, time.Minute)), ports.PushReply{New: 1, Merged: 1})
}

func urgentLimits(e *env) {
	e.unchanged("a refused Push", func() {
		for _, d := range []time.Duration{0, -time.Hour, core.MinUrgency - 1, core.MaxUrgency + 1, -1 << 63} {
			_, err := e.store.Push(e.ctx, e.pushRequest(orders, entry("a", "p", 1), urgent("b", "p", 1, d)))
			e.refused(fmt.Sprintf("Push of an urgency of %v", d), err, core.ErrInvalidTime)
		}
	})
	e.push(urgent("least", "p", 1, core.MinUrgency), urgent("most", "p", 1, core.MaxUrgency))
	e.same("the least urgent", e.queued("least").State, fresh(start.Add(-core.MinUrgency)))
	e.same("the most urgent", e.queued("most").State, fresh(start.Add(-core.MaxUrgency)))
}

// transactionUrgent pushes an urgent entry and others in a transaction.
func transactionUrgent(e *env) {
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)), entryAt("b", "p", 1, start.Add(time.Hour)))
	e.clock.Advance(time.Second)
	tx := e.begin()
	_, err := tx.Push(e.ctx, e.pushRequest(orders, entry("b", "q", 2), urgent("a", "q", 2, time.Minute), urgent("c", "p", 1, time.Minute)))
	e.must(err, "Push in a transaction")
	e.must(tx.Commit(e.ctx), "Commit")
	e.same("the queued job that it meets", e.queued("a").State, fresh(e.now().Add(-time.Minute)))
	e.same("the one that another entry meets", e.queued("b").State, fresh(start.Add(time.Hour)))
	made := core.State{PerformAt: e.now().Add(-time.Minute), RetryCount: core.FreshRetryCount, FirstPush: e.now()}
	e.same("the job that it makes", e.queued("c").State, made)
}

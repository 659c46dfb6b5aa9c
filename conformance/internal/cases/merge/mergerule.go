package merge

import (
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleSuperseded = "Counts: Superseded is the number of payloads that the queue's merge rule has dropped"

const ruleImported = "RULES 2: imported payloads become a set by the queue's rule, without its bound, " +
	"and then merge one after another"

// Merge rules other than the default and env.Newest.
var (
	latest = core.MergeRule{Stays: core.Highest, Keep: 1}
	every  = core.MergeRule{Same: core.SamePush}
)

func mergeRuleCases() []env.Case {
	return []env.Case{
		{
			Name:  "is kept in the record of the queue",
			Rule:  "DeclareRequest: Merge decides what stays when payloads of an id meet",
			Check: mergeRuleKept,
		},
		{
			Name:  "refuses another rule",
			Rule:  "Declare: ErrQueueMismatch if it exists with another Merge",
			Check: mergeRuleMismatch,
		},
		{
			Name:  "refuses a rule that depends on the order",
			Rule:  "Declare: core.ErrInvalidRule",
			Check: mergeRuleInvalid,
		},
		{
			Name:  "decides what pushes leave",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByPushes) },
		},
		{
			Name:  "decides what one push leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByOnePush) },
		},
		{
			Name:  "decides what a put-back leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByPutBack) },
		},
		{
			Name:  "decides what a recovery leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByRecovery) },
		},
		{
			Name:  "decides what a revive leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByRevive) },
		},
		{
			Name:  "decides what a burial leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByBurial) },
		},
		{
			Name:  "decides what a burial by a handler leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByHandlersBurial) },
		},
		{
			Name:  "decides what an import leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByImport) },
		},
		{
			Name:  "decides what an import of jobs leaves",
			Rule:  env.RuleMerge,
			Check: func(e *env.Env) { eachMergeRule(e, mergeByImportOfJobs) },
		},
		{
			Name:  "decides what a move leaves",
			Rule:  ruleImported,
			Check: func(e *env.Env) { eachVectorOfRule(e, "imports.json", mergeByMove) },
		},
		{
			Name:  "decides what a move of the morgue leaves",
			Rule:  ruleImported,
			Check: func(e *env.Env) { eachVectorOfRule(e, "imports.json", mergeByMoveOfMorgue) },
		},
		{Name: "decides what an edit leaves", Rule: env.RuleMerge, Check: mergeByEdit},
		{Name: "bounds what is imported", Rule: env.RuleMerge, Check: mergeRuleBoundsImports},
		{
			Name:  "keeps the Meta of the payload that stays",
			Rule:  "RULES 2: on a tie the payload that was there stays",
			Check: mergeRuleMeta,
		},
		{Name: "bounds a job beside a cut claim", Rule: env.RuleMerge, Check: mergeRuleCut},
		{Name: "bounds large payloads", Rule: env.RuleMerge, Check: mergeRuleLarge},
		{
			Name:  "keeps the state of a job whose payloads are superseded",
			Rule:  "RULES 2: the rows hold whatever the rule drops",
			Check: mergeRuleState,
		},
		{
			Name:  "reports what entries met",
			Rule:  "PushReply: New, Merged, Duplicate and Superseded",
			Check: mergeRuleMet,
		},
		{Name: "counts superseded payloads as nothing else", Rule: ruleSuperseded, Check: mergeRuleCounts},
		{Name: "claims what it kept", Rule: env.RuleMerge, Check: mergeRuleClaims},
		{
			Name:  "claims a job that was pushed twice behind its claim",
			Rule:  env.RuleMerge,
			Check: mergeRuleClaimsBehind,
		},
	}
}

func mergeRuleKept(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "newest", Shards: 3, IndexIDs: true, Merge: env.Newest})
	e.DeclareWith(ports.DeclareRequest{
		Queue:  "latest",
		Shards: 1,
		Merge:  core.MergeRule{Stays: core.Highest, Keep: core.MaxTurnPayloads},
	})
	e.DeclareWith(ports.DeclareRequest{Queue: "every", Shards: 2, IndexIDs: true, Merge: every})
	e.DeclareWith(ports.DeclareRequest{Queue: "every.last", Shards: 1, Merge: every.Last(12)})

	want := []ports.Queue{
		{Name: "every", Shards: 2, Generation: 1, IndexIDs: true, Merge: every},
		{Name: "every.last", Shards: 1, Generation: 1, Merge: every.Last(12)},
		{
			Name:       "latest",
			Shards:     1,
			Generation: 1,
			Merge:      core.MergeRule{Stays: core.Highest, Keep: core.MaxTurnPayloads},
		},
		{Name: "newest", Shards: 3, Generation: 1, IndexIDs: true, Merge: env.Newest},
		{Name: env.Orders, Shards: 1, Generation: 1},
	}

	check := func(when string) {
		e.TB.Helper()
		queues, err := e.Store.Queues(e.Ctx)
		e.Must(err, "Queues")
		e.Same("the declared queues "+when, queues, want)
		for _, q := range want {
			e.Same("the record in Stats "+when, e.Stats(q.Name).Queue, q)
		}
	}

	check("at first")

	for _, at := range []int{1, 3} {
		e.Pause(want[at].Name)
		want[at].Paused = true
	}
	check("while two are paused")

	e.Resume("every.last")
	want[1].Paused = false
	e.DeclareWith(ports.DeclareRequest{Queue: "newest", Shards: 3, IndexIDs: true, Merge: env.Newest})
	check("after a second Declare")

	e.Resume("newest")
	want[3].Paused = false
	check("after Resume")

	e.ForgetQueue("newest")
	e.Declare("newest", 3)
	want[3] = ports.Queue{Name: "newest", Shards: 3, Generation: 1}
	check("after Forget and another Declare")
}

func mergeRuleMismatch(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "newest", Shards: 1, Merge: env.Newest})
	e.DeclareWith(ports.DeclareRequest{Queue: "every", Shards: 1, Merge: every.Last(1)})

	for queue, rules := range map[string][]core.MergeRule{
		env.Orders: {env.Newest, latest, every}, "newest": {{}, latest}, "every": {every, every.Last(2), latest},
	} {
		for _, rule := range rules {
			_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: queue, Shards: 1, Merge: rule})
			e.Refused(fmt.Sprintf("Declare of %s with %v", queue, rule), err, ports.ErrQueueMismatch)
		}
	}

	e.Same("the rule", e.Stats("newest").Queue.Merge, env.Newest)
	e.Same("the rule", e.Stats(env.Orders).Queue.Merge, core.MergeRule{})
}

func mergeRuleInvalid(e *env.Env) {
	for _, rule := range []core.MergeRule{
		{Same: 2},
		{Stays: 2},
		{Keep: 1},
		{Same: core.SamePush, Stays: core.Highest},
		{Stays: core.Highest, Keep: -1},
		{Stays: core.Highest, Keep: core.MaxTurnPayloads + 1},
	} {
		_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: "other", Shards: 1, Merge: rule})
		e.Refused(fmt.Sprintf("Declare with %v", rule), err, core.ErrInvalidRule)
	}

	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	e.Same("how many queues there are", len(queues), 1)
}

// mergeRuleVector is a case of mergerules.json or imports.json.
type mergeRuleVector struct {
	About string
	Merge struct {
		Same  vectorSame
		Stays vectorStays
		Keep  int
	}
	There, Coming, Merged []payloadVector
	Superseded            int
}

func (v *mergeRuleVector) rule() core.MergeRule {
	return core.MergeRule{Same: core.Same(v.Merge.Same), Stays: core.Stays(v.Merge.Stays), Keep: v.Merge.Keep}
}

// vectorSame is written as "data" or "push", or left out for data. Another word is an error.
type vectorSame core.Same

func (s *vectorSame) UnmarshalText(text []byte) error {
	switch string(text) {
	case "data":
		*s = vectorSame(core.SameData)
	case "push":
		*s = vectorSame(core.SamePush)
	default:
		return fmt.Errorf("same %q; use data or push", text)
	}
	return nil
}

// vectorStays is written as "lowest" or "highest". Another word is an error, so that no case runs
// by another rule than it names.
type vectorStays core.Stays

func (s *vectorStays) UnmarshalText(text []byte) error {
	switch string(text) {
	case "lowest":
		*s = vectorStays(core.Lowest)
	case "highest":
		*s = vectorStays(core.Highest)
	default:
		return fmt.Errorf("stays %q; use lowest or highest", text)
	}
	return nil
}

// stored returns payloads of the case as a queue with its merge rule stores them.
func (v *mergeRuleVector) stored(list []payloadVector) []core.Payload {
	out := make([]core.Payload, len(list))
	for i, p := range list {
		out[i] = v.rule().Stored(core.Payload(p))
	}
	return out
}

// mergeRuleRun is a worked case for one way to merge. It has the payloads of an id, the payloads
// that merge into them, the payloads that stay, and the number of superseded ones.
type mergeRuleRun struct {
	id                    string
	there, coming, merged []core.Payload
	superseded            int
}

func eachMergeRule(e *env.Env, do func(e *env.Env, r *mergeRuleRun) []core.Payload) {
	e.TB.Helper()
	eachVectorOfRule(e, "mergerules.json", do)
}

// eachVectorOfRule runs the worked cases of a file, each on an id of its own. do merges the
// payloads, and returns those that the id has at the end, in the queue or in the morgue.
func eachVectorOfRule(e *env.Env, file string, do func(e *env.Env, r *mergeRuleRun) []core.Payload) {
	e.TB.Helper()
	list := readVectors[mergeRuleVector](e, file)
	stated := e.Rule

	byRule := map[core.MergeRule][]int{}
	var rules []core.MergeRule
	for i := range list {
		rule := list[i].rule()
		if byRule[rule] == nil {
			rules = append(rules, rule)
		}
		byRule[rule] = append(byRule[rule], i)
	}

	for _, rule := range rules {
		e.By(rule)
		for _, i := range byRule[rule] {
			v := &list[i]

			e.Rule = fmt.Sprintf("%s, %s, case %d, %s", stated, file, i, v.About)
			r := &mergeRuleRun{
				id:         fmt.Sprint(i),
				there:      v.stored(v.There),
				coming:     v.stored(v.Coming),
				merged:     v.stored(v.Merged),
				superseded: v.Superseded,
			}

			before := e.Counts().Superseded
			got := do(e, r)
			e.Same("what stays", got, r.merged)
			e.CountedOnce("how many are superseded", int(e.Counts().Superseded-before), r.superseded)

			e.ByIDs(e.Store.Delete, r.id)
			e.ByRefs(e.Store.Purge, env.Whole(r.id))
		}
	}
}

// kept merges the coming payloads among themselves, as the queue does before they are claimed or
// buried, and returns those that stay. It sets superseded to the sum of both merges.
func kept(e *env.Env, r *mergeRuleRun) []core.Payload {
	rule := e.Declared[env.Orders].Merge
	payloads := slices.Clone(r.coming)
	for i := range payloads {
		payloads[i].Score = core.NormalScore(payloads[i].Score)
	}
	kept, first := rule.Merge(nil, payloads)
	_, then := rule.Merge(r.there, kept)
	r.superseded = first + then
	return kept
}

func mergeByPushes(e *env.Env, r *mergeRuleRun) []core.Payload {
	for _, en := range env.EntriesOf(r.id, slices.Concat(r.there, r.coming)) {
		e.Push(en)
	}
	return e.Queued(r.id).Payloads
}

func mergeByOnePush(e *env.Env, r *mergeRuleRun) []core.Payload {
	e.Push(append(env.EntriesOf(r.id, slices.Concat(r.there, r.coming)), env.Entry("beside "+r.id, "p", 1))...)
	e.ByIDs(e.Store.Delete, "beside "+r.id)
	return e.Queued(r.id).Payloads
}

func mergeByPutBack(e *env.Env, r *mergeRuleRun) []core.Payload {
	kept(e, r)
	e.Push(env.EntriesOf(r.id, r.coming)...)
	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.EntriesOf(r.id, r.there)...)
	h.Settle(env.Failed(c, "boom", time.Minute))
	h.Release()
	return e.Queued(r.id).Payloads
}

func mergeByRecovery(e *env.Env, r *mergeRuleRun) []core.Payload {
	kept(e, r)
	e.Push(env.EntriesOf(r.id, r.coming)...)
	e.ClaimAndCrash("n1")
	e.Push(env.EntriesOf(r.id, r.there)...)
	h := e.Acquire("n2")
	h.Settle(env.Recovered(h.Orphans()[0]))
	h.Release()
	return e.Queued(r.id).Payloads
}

func mergeByRevive(e *env.Env, r *mergeRuleRun) []core.Payload {
	kept(e, r)
	e.Push(env.EntriesOf(r.id, r.coming)...)
	e.ByIDs(e.Store.Bury, r.id)
	e.Push(env.EntriesOf(r.id, r.there)...)
	e.ByRefs(e.Store.Revive, env.Whole(r.id))
	return e.Queued(r.id).Payloads
}

func mergeByBurial(e *env.Env, r *mergeRuleRun) []core.Payload {
	kept(e, r)
	for _, payloads := range [][]core.Payload{r.there, r.coming} {
		e.Push(env.EntriesOf(r.id, payloads)...)
		e.ByIDs(e.Store.Bury, r.id)
	}
	return e.DeadLetter(r.id).Payloads
}

func mergeByHandlersBurial(e *env.Env, r *mergeRuleRun) []core.Payload {
	kept(e, r)
	for _, payloads := range [][]core.Payload{r.there, r.coming} {
		if len(payloads) == 0 {
			continue
		}
		e.Push(env.EntriesOf(r.id, payloads)...)
		h := e.Acquire("n1")
		h.Settle(env.Buried(h.One(), "no use"))
		h.Release()
	}
	return e.DeadLetter(r.id).Payloads
}

func mergeByImport(e *env.Env, r *mergeRuleRun) []core.Payload {
	incoming := kept(e, r)
	_, r.superseded = e.Declared[env.Orders].Merge.Merge(r.there, incoming)
	if len(r.there) > 0 {
		e.BringIn(env.Letter(r.id, 2, r.there...))
	}
	e.BringIn(env.Letter(r.id, 1, incoming...))
	return e.DeadLetter(r.id).Payloads
}

func mergeByImportOfJobs(e *env.Env, r *mergeRuleRun) []core.Payload {
	incoming := kept(e, r)
	_, r.superseded = e.Declared[env.Orders].Merge.Merge(r.there, incoming)
	if len(r.there) > 0 {
		e.BringInJobs(env.Job(r.id, env.Retrying(env.Start, 1), r.there...))
	}
	e.BringInJobs(env.Job(r.id, env.Retrying(env.Start, 1+len(r.there)%2), incoming...))
	return e.Queued(r.id).Payloads
}

// imported returns the payloads that merge as a queue of the same rule imports them.
func imported(e *env.Env, r *mergeRuleRun) []core.Payload {
	rule := e.Declared[env.Orders].Merge
	return rule.Imported(rule.PushedAll(r.coming))
}

// mergeByMove imports a job as a move does.
func mergeByMove(e *env.Env, r *mergeRuleRun) []core.Payload {
	if len(r.there) > 0 {
		e.BringInJobs(env.Job(r.id, env.Retrying(env.Start, 1), r.there...))
	}
	e.BringInJobs(env.Job(r.id, env.Fresh(env.Start), imported(e, r)...))
	return e.Queued(r.id).Payloads
}

func mergeByMoveOfMorgue(e *env.Env, r *mergeRuleRun) []core.Payload {
	if len(r.there) > 0 {
		e.BringIn(env.Letter(r.id, 1, r.there...))
	}
	e.BringIn(env.Letter(r.id, 2, imported(e, r)...))
	return e.DeadLetter(r.id).Payloads
}

func mergeByEdit(e *env.Env) {
	for rule, want := range map[core.MergeRule]core.Payload{
		{}:                             env.Pay("b", 1),
		env.Newest:                     env.Pay("b", 2),
		{Stays: core.Highest, Keep: 2}: env.Pay("b", 2),
	} {
		e.By(rule)
		e.Push(env.Entry("low", "a", 1), env.Entry("low", "b", 2), env.Entry("high", "b", 1), env.Entry("high", "a", 2))
		e.ByIDs(e.Store.Bury, "low", "high")
		e.Edit("low", "a", "b")
		e.Edit("high", "a", "b")

		e.Same(fmt.Sprintf("what an edit of the lower payload leaves by %v", rule),
			e.DeadLetter("low").Payloads, []core.Payload{want})
		e.Same(fmt.Sprintf("what an edit of the higher payload leaves by %v", rule),
			e.DeadLetter("high").Payloads, []core.Payload{want})

		e.Same("how many are superseded", e.Counts().Superseded, int64(0))
		e.ByRefs(e.Store.Purge, env.Whole("low"), env.Whole("high"))
	}
}

func mergeRuleBoundsImports(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 2})
	e.BringIn(env.Letter("a", 1, env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3)))
	want := env.Letter("a", 1, env.Pay("q", 2), env.Pay("r", 3))
	e.Same("a new dead letter", e.DeadLetter("a"), want)
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(1))
	e.Reported("how many are handled of one that is too low", e.BringIn(env.Letter("a", 1, env.Pay("o", 0))), 0)
	e.Same("the dead letter", e.DeadLetter("a"), want)
	e.BringIn(env.Letter("a", 2, env.Pay("s", 4)))
	e.Same("the dead letter after a later one", e.DeadLetter("a"), env.Letter("a", 2, env.Pay("r", 3), env.Pay("s", 4)))
}

func mergeRuleMeta(e *env.Env) {
	tagged := func(data string, score float64, meta string) core.Entry {
		en := env.Entry("a", data, score)
		en.Meta = []byte(meta)
		return en
	}

	e.By(env.Newest)
	e.Push(tagged("p", 2, "first"), env.Entry("a", "q", 2))
	e.Push(tagged("p", 2, "tie"), tagged("p", 1, "lower"))
	want := tagged("p", 2, "first").Payload
	e.Same("after a tie and a smaller score", e.Queued("a").Payloads, []core.Payload{want, env.Pay("q", 2)})

	e.Push(tagged("p", 3, "higher"))
	e.Same("after a larger score",
		e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2), tagged("p", 3, "higher").Payload})

	e.Push(env.Entry("a", "p", 4), tagged("q", 5, "q"))
	e.Same("after one without Meta",
		e.Queued("a").Payloads, []core.Payload{env.Pay("p", 4), tagged("q", 5, "q").Payload})
}

func mergeRuleCut(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 3})
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	h := e.Acquire("n1")
	c := h.Cut(2)
	e.Push(env.Entry("a", "s", 4))
	h.Settle(env.Failed(c, "boom", time.Minute))
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2), env.Pay("r", 3), env.Pay("s", 4)})
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(1))
}

// mergeRuleLarge has more payloads, and larger ones, than a store keeps in one record.
func mergeRuleLarge(e *env.Env) {
	const keep = 20
	e.By(core.MergeRule{Stays: core.Highest, Keep: keep})

	data := func(i int) string { return fmt.Sprintf("%03d%01000d", i, i) }
	var all []core.Payload
	for i := range 30 {
		p := env.Pay(data(i), float64(i))
		if i%2 > 0 {
			p.Meta = fmt.Append(nil, "meta ", i)
		}
		all = append(all, p)
	}

	e.Push(env.EntriesOf("a", all[:25])...)
	e.Same("after a push", e.Queued("a").Payloads, all[5:25])

	h := e.Acquire("n1")
	c := h.Cut(10)
	e.Same("the claim", c.Payloads, all[5:15])

	e.Push(env.EntriesOf("a", all[25:])...)
	risen := all[16]
	risen.Score = 100
	e.Push(core.Entry{ID: "a", Payload: risen})
	h.Settle(env.Failed(c, "boom", time.Minute))
	h.Release()

	want := append(slices.Concat(all[10:16], all[17:30]), risen)
	e.Same("after a put-back", e.Queued("a").Payloads, want)
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(10))

	e.ByIDs(e.Store.Bury, "a")
	again := all[9]
	again.Score = 101
	e.Push(core.Entry{ID: "a", Payload: again}, core.Entry{ID: "a", Payload: all[3]})
	e.ByRefs(e.Store.Revive, env.Whole("a"))

	e.Same("after a revive", e.Queued("a").Payloads, append(want[1:], again))
	e.CountedOnce("how many are superseded", e.Counts().Superseded, int64(12))
}

func mergeRuleState(e *env.Env) {
	e.By(latest)
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Clock.Advance(time.Second)
	e.Push(env.Entry("a", "q", 2))
	h.Settle(env.Failed(c, "boom", time.Minute))
	want := core.State{PerformAt: e.Now().Add(time.Minute), FirstPush: env.Start, Failures: env.Failures("boom")}
	e.Same("the job", e.Queued("a"), env.Job("a", want, env.Pay("q", 2)))
	e.Push(env.Entry("a", "o", 0))
	e.Same("the job after a push that is superseded", e.Queued("a"), env.Job("a", want, env.Pay("q", 2)))
}

func mergeRuleMet(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 2})
	e.Met("a new id", e.PushRequest(env.Orders, env.Entry("a", "p", 5)), ports.PushReply{New: 1})
	e.Met("an equal payload", e.PushRequest(env.Orders, env.Entry("a", "p", 6)), ports.PushReply{Duplicate: 1})
	e.Met("another payload", e.PushRequest(env.Orders, env.Entry("a", "q", 7)), ports.PushReply{Merged: 1})

	e.Met("a payload that supersedes another",
		e.PushRequest(env.Orders, env.Entry("a", "r", 8)), ports.PushReply{Merged: 1})
	e.Met("a payload that is superseded",
		e.PushRequest(env.Orders, env.Entry("a", "s", 1)), ports.PushReply{Superseded: 1})

	e.Met("several",
		e.PushRequest(env.Orders, env.Entry("a", "s", 1), env.Entry("b", "p", 1), env.Entry("a", "t", 9),
			env.Entry("b", "q", 2), env.Entry("b", "r", 3), env.Entry("b", "p", 1)),
		ports.PushReply{New: 1, Merged: 3, Superseded: 2})

	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("r", 8), env.Pay("t", 9)})
	e.Same("the payloads", e.Queued("b").Payloads, []core.Payload{env.Pay("q", 2), env.Pay("r", 3)})
}

func mergeRuleCounts(e *env.Env) {
	e.By(latest)
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "o", 0), env.Entry("a", "q", 3))

	h := e.Acquire("n1")
	c := h.One()
	e.Push(env.Entry("a", "r", 4))
	h.Settle(env.Failed(c, "boom", time.Minute))
	h.Release()

	counts := e.Counts()
	counts.Oldest = core.Head{}
	e.CountedOnce("the counts", counts, ports.Counts{Retrying: 1, Failed: 1, Superseded: 3})

	e.Recount(0, func() {})
	e.CountedOnce("what a recount leaves", e.Counts().Superseded, int64(3))
}

func mergeRuleClaims(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 2})
	for i := range 5 {
		e.Push(env.Entry("a", fmt.Sprint(i), float64(i)), env.Entry("b", "same", float64(i)))
	}
	h := e.Acquire("n1")
	claims := h.Claim(3)
	e.Same("the claimed jobs", env.IDs(claims), []string{"a", "b"})
	e.Same("the payloads of one", claims[0].Payloads, []core.Payload{env.Pay("3", 3), env.Pay("4", 4)})
	e.Same("the payloads of the other", claims[1].Payloads, []core.Payload{env.Pay("same", 4)})
	h.Settle(env.SettleAll(claims, env.Done)...)
	e.Same("what is left", e.QueuedIDs(), nil)
}

// mergeRuleClaimsBehind lets a due job wait behind the claimed job of its id while other turns are
// made. Then another push merges into it.
func mergeRuleClaimsBehind(e *env.Env) {
	for _, rule := range []core.PushRule{{}, {Kind: core.Earliest}} {
		e.By(core.MergeRule{Stays: core.Highest, Keep: 2})
		e.Push(env.Entry("a", "p", 1))
		h := e.Acquire("n1")
		c := h.One()
		waits := e.Now()

		e.Push(env.Entry("a", "q", 2))
		e.Same("what a turn claims beside the claimed job", env.IDs(h.Claim(1)), nil)

		for range 10 {
			e.Clock.Advance(5 * time.Second)
			e.Push(env.Entry("b", "p", 1))
			h.Settle(env.Done(h.One()))
		}

		e.PushBy(rule, env.Entry("a", "r", 3))
		e.Same("since when the job waits", e.Counts().Oldest, core.Head{Due: waits, OK: true})

		h.Settle(env.Done(c))
		next := h.One()
		e.Same("what the next turn claims", next.Payloads, []core.Payload{env.Pay("q", 2), env.Pay("r", 3)})
		h.Settle(env.Done(next))
		h.Release()
	}
}

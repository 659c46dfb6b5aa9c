package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleMerge      = "RULES 2: payloads merge by the queue's merge rule, wherever they meet; what stays does not depend on the order of merges"
	ruleSuperseded = "Counts: Superseded is the number of payloads that the queue's merge rule has dropped"
)

// The merge rules other than the default.
var (
	newest = core.MergeRule{Stays: core.Highest}
	latest = core.MergeRule{Stays: core.Highest, Keep: 1}
	every  = core.MergeRule{Same: core.SamePush}
)

func mergeRuleCases() []namedCase {
	return []namedCase{
		{"is kept in the record of the queue", "DeclareRequest: Merge decides what stays when payloads of an id meet", mergeRuleKept},
		{"refuses another rule", "Declare: ErrQueueMismatch if it exists with another Merge", mergeRuleMismatch},
		{"refuses a rule that depends on the order", "Declare: core.ErrInvalidRule", mergeRuleInvalid},
		{"decides what pushes leave", ruleMerge, func(e *env) { eachMergeRule(e, mergeByPushes) }},
		{"decides what one push leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByOnePush) }},
		{"decides what a put-back leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByPutBack) }},
		{"decides what a recovery leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByRecovery) }},
		{"decides what a revive leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByRevive) }},
		{"decides what a burial leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByBurial) }},
		{"decides what a burial by a handler leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByHandlersBurial) }},
		{"decides what an import leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByImport) }},
		{"decides what an import of jobs leaves", ruleMerge, func(e *env) { eachMergeRule(e, mergeByImportOfJobs) }},
		{"decides what an edit leaves", ruleMerge, mergeByEdit},
		{"bounds what is imported", ruleMerge, mergeRuleBoundsImports},
		{"keeps the Meta of the payload that stays", "RULES 2: on a tie the payload that was there stays", mergeRuleMeta},
		{"bounds a job beside a cut claim", ruleMerge, mergeRuleCut},
		{"bounds large payloads", ruleMerge, mergeRuleLarge},
		{"keeps the state of a job whose payloads are superseded", "RULES 2: the rows hold whatever the rule drops", mergeRuleState},
		{"reports what entries met", "PushReply: New, Merged, Duplicate and Superseded", mergeRuleMet},
		{"counts superseded payloads as nothing else", ruleSuperseded, mergeRuleCounts},
		{"claims what it kept", ruleMerge, mergeRuleClaims},
		{"claims a job that was pushed twice behind its claim", ruleMerge, mergeRuleClaimsBehind},
	}
}

// by declares the queue orders again with a merge rule. The queue must be empty.
func (e *env) by(rule core.MergeRule) {
	e.tb.Helper()
	e.forget()
	e.declareWith(ports.DeclareRequest{Queue: orders, Shards: 1, Merge: rule})
}

func mergeRuleKept(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "newest", Shards: 3, IndexIDs: true, Merge: newest})
	e.declareWith(ports.DeclareRequest{Queue: "latest", Shards: 1, Merge: core.MergeRule{Stays: core.Highest, Keep: core.MaxTurnPayloads}})
	e.declareWith(ports.DeclareRequest{Queue: "every", Shards: 2, IndexIDs: true, Merge: every})
	e.declareWith(ports.DeclareRequest{Queue: "every.last", Shards: 1, Merge: every.Last(12)})
	want := []ports.Queue{
		{Name: "every", Shards: 2, Generation: 1, IndexIDs: true, Merge: every},
		{Name: "every.last", Shards: 1, Generation: 1, Merge: every.Last(12)},
		{Name: "latest", Shards: 1, Generation: 1, Merge: core.MergeRule{Stays: core.Highest, Keep: core.MaxTurnPayloads}},
		{Name: "newest", Shards: 3, Generation: 1, IndexIDs: true, Merge: newest},
		{Name: orders, Shards: 1, Generation: 1},
	}
	check := func(when string) {
		e.tb.Helper()
		queues, err := e.store.Queues(e.ctx)
		e.must(err, "Queues")
		e.same("the declared queues "+when, queues, want)
		for _, q := range want {
			e.same("the record in Stats "+when, e.stats(q.Name).Queue, q)
		}
	}
	check("at first")
	for _, at := range []int{1, 3} {
		e.pause(want[at].Name)
		want[at].Paused = true
	}
	check("while two are paused")
	e.resume("every.last")
	want[1].Paused = false
	e.declareWith(ports.DeclareRequest{Queue: "newest", Shards: 3, IndexIDs: true, Merge: newest})
	check("after a second Declare")
	e.resume("newest")
	want[3].Paused = false
	check("after Resume")
	e.forgetQueue("newest")
	e.declare("newest", 3)
	want[3] = ports.Queue{Name: "newest", Shards: 3, Generation: 1}
	check("after Forget and another Declare")
}

func mergeRuleMismatch(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "newest", Shards: 1, Merge: newest})
	e.declareWith(ports.DeclareRequest{Queue: "every", Shards: 1, Merge: every.Last(1)})
	for queue, rules := range map[string][]core.MergeRule{
		orders: {newest, latest, every}, "newest": {{}, latest}, "every": {every, every.Last(2), latest},
	} {
		for _, rule := range rules {
			_, err := e.store.Declare(e.ctx, ports.DeclareRequest{Queue: queue, Shards: 1, Merge: rule})
			e.refused(fmt.Sprintf("Declare of %s with %v", queue, rule), err, ports.ErrQueueMismatch)
		}
	}
	e.same("the rule", e.stats("newest").Queue.Merge, newest)
	e.same("the rule", e.stats(orders).Queue.Merge, core.MergeRule{})
}

func mergeRuleInvalid(e *env) {
	for _, rule := range []core.MergeRule{{Same: 2}, {Stays: 2}, {Keep: 1}, {Same: core.SamePush, Stays: core.Highest}, {Stays: core.Highest, Keep: -1}, {Stays: core.Highest, Keep: core.MaxTurnPayloads + 1}} {
		_, err := e.store.Declare(e.ctx, ports.DeclareRequest{Queue: "other", Shards: 1, Merge: rule})
		e.refused(fmt.Sprintf("Declare with %v", rule), err, core.ErrInvalidRule)
	}
	queues, err := e.store.Queues(e.ctx)
	e.must(err, "Queues")
	e.same("how many queues there are", len(queues), 1)
}

// mergeRuleVector is a case of testdata/mergerules.json.
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

// eachMergeRule runs the worked cases, each on an id of its own. do merges the payloads, and
// returns those that the id has at the end, in the queue or in the morgue.
func eachMergeRule(e *env, do func(e *env, r *mergeRuleRun) []core.Payload) {
	e.tb.Helper()
	text, err := vectors.ReadFile("testdata/mergerules.json")
	e.must(err, "reading the vectors")
	var file struct{ Cases []mergeRuleVector }
	e.must(json.Unmarshal(text, &file), "reading the vectors")
	stated := e.rule
	byRule := map[core.MergeRule][]int{}
	var rules []core.MergeRule
	for i := range file.Cases {
		rule := file.Cases[i].rule()
		if byRule[rule] == nil {
			rules = append(rules, rule)
		}
		byRule[rule] = append(byRule[rule], i)
	}
	for _, rule := range rules {
		e.by(rule)
		for _, i := range byRule[rule] {
			v := &file.Cases[i]
			e.rule = fmt.Sprintf("%s, testdata/mergerules.json, case %d, %s", stated, i, v.About)
			r := &mergeRuleRun{
				id: fmt.Sprint(i), there: v.stored(v.There), coming: v.stored(v.Coming),
				merged: v.stored(v.Merged), superseded: v.Superseded,
			}
			before := e.counts().Superseded
			got := do(e, r)
			e.same("what stays", got, r.merged)
			e.countedOnce("how many are superseded", int(e.counts().Superseded-before), r.superseded)
			e.byIDs(e.store.Delete, r.id)
			e.byRefs(e.store.Purge, whole(r.id))
		}
	}
}

func entriesOf(id string, payloads []core.Payload) []core.Entry {
	out := make([]core.Entry, len(payloads))
	for i, p := range payloads {
		out[i] = core.Entry{ID: id, Payload: p}
	}
	return out
}

// kept merges the coming payloads among themselves, as the queue does before they are claimed or
// buried, and returns those that stay. It sets superseded to the sum of both merges.
func (e *env) kept(r *mergeRuleRun) []core.Payload {
	rule := e.declared[orders].Merge
	payloads := slices.Clone(r.coming)
	for i := range payloads {
		payloads[i].Score = core.NormalScore(payloads[i].Score)
	}
	kept, first := rule.Merge(nil, payloads)
	_, then := rule.Merge(r.there, kept)
	r.superseded = first + then
	return kept
}

func mergeByPushes(e *env, r *mergeRuleRun) []core.Payload {
	for _, en := range entriesOf(r.id, slices.Concat(r.there, r.coming)) {
		e.push(en)
	}
	return e.queued(r.id).Payloads
}

func mergeByOnePush(e *env, r *mergeRuleRun) []core.Payload {
	e.push(append(entriesOf(r.id, slices.Concat(r.there, r.coming)), entry("beside "+r.id, "p", 1))...)
	e.byIDs(e.store.Delete, "beside "+r.id)
	return e.queued(r.id).Payloads
}

func mergeByPutBack(e *env, r *mergeRuleRun) []core.Payload {
	e.kept(r)
	e.push(entriesOf(r.id, r.coming)...)
	h := e.acquire("n1")
	c := h.one()
	e.push(entriesOf(r.id, r.there)...)
	h.settle(failed(c, "boom", time.Minute))
	h.release()
	return e.queued(r.id).Payloads
}

func mergeByRecovery(e *env, r *mergeRuleRun) []core.Payload {
	e.kept(r)
	e.push(entriesOf(r.id, r.coming)...)
	claimAndCrash(e, "n1")
	e.push(entriesOf(r.id, r.there)...)
	h := e.acquire("n2")
	h.settle(recovered(h.orphans()[0]))
	h.release()
	return e.queued(r.id).Payloads
}

func mergeByRevive(e *env, r *mergeRuleRun) []core.Payload {
	e.kept(r)
	e.push(entriesOf(r.id, r.coming)...)
	e.byIDs(e.store.Bury, r.id)
	e.push(entriesOf(r.id, r.there)...)
	e.byRefs(e.store.Revive, whole(r.id))
	return e.queued(r.id).Payloads
}

func mergeByBurial(e *env, r *mergeRuleRun) []core.Payload {
	e.kept(r)
	for _, payloads := range [][]core.Payload{r.there, r.coming} {
		e.push(entriesOf(r.id, payloads)...)
		e.byIDs(e.store.Bury, r.id)
	}
	return e.deadLetter(r.id).Payloads
}

func mergeByHandlersBurial(e *env, r *mergeRuleRun) []core.Payload {
	e.kept(r)
	for _, payloads := range [][]core.Payload{r.there, r.coming} {
		if len(payloads) == 0 {
			continue
		}
		e.push(entriesOf(r.id, payloads)...)
		h := e.acquire("n1")
		h.settle(buried(h.one(), "no use"))
		h.release()
	}
	return e.deadLetter(r.id).Payloads
}

func mergeByImport(e *env, r *mergeRuleRun) []core.Payload {
	coming := e.kept(r)
	_, r.superseded = e.declared[orders].Merge.Merge(r.there, coming)
	if len(r.there) > 0 {
		e.bringIn(letter(r.id, 2, r.there...))
	}
	e.bringIn(letter(r.id, 1, coming...))
	return e.deadLetter(r.id).Payloads
}

func mergeByImportOfJobs(e *env, r *mergeRuleRun) []core.Payload {
	coming := e.kept(r)
	_, r.superseded = e.declared[orders].Merge.Merge(r.there, coming)
	if len(r.there) > 0 {
		e.bringInJobs(job(r.id, retrying(start, 1), r.there...))
	}
	e.bringInJobs(job(r.id, retrying(start, 1+len(r.there)%2), coming...))
	return e.queued(r.id).Payloads
}

func mergeByEdit(e *env) {
	for rule, want := range map[core.MergeRule]core.Payload{{}: pay("b", 1), newest: pay("b", 2), {Stays: core.Highest, Keep: 2}: pay("b", 2)} {
		e.by(rule)
		e.push(entry("low", "a", 1), entry("low", "b", 2), entry("high", "b", 1), entry("high", "a", 2))
		e.byIDs(e.store.Bury, "low", "high")
		e.edit("low", "a", "b")
		e.edit("high", "a", "b")
		e.same(fmt.Sprintf("what an edit of the lower payload leaves by %v", rule), e.deadLetter("low").Payloads, []core.Payload{want})
		e.same(fmt.Sprintf("what an edit of the higher payload leaves by %v", rule), e.deadLetter("high").Payloads, []core.Payload{want})
		e.same("how many are superseded", e.counts().Superseded, int64(0))
		e.byRefs(e.store.Purge, whole("low"), whole("high"))
	}
}

func mergeRuleBoundsImports(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 2})
	e.bringIn(letter("a", 1, pay("p", 1), pay("q", 2), pay("r", 3)))
	want := letter("a", 1, pay("q", 2), pay("r", 3))
	e.same("a new dead letter", e.deadLetter("a"), want)
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(1))
	e.reported("how many are handled of one that is too low", e.bringIn(letter("a", 1, pay("o", 0))), 0)
	e.same("the dead letter", e.deadLetter("a"), want)
	e.bringIn(letter("a", 2, pay("s", 4)))
	e.same("the dead letter after a later one", e.deadLetter("a"), letter("a", 2, pay("r", 3), pay("s", 4)))
}

func mergeRuleMeta(e *env) {
	tagged := func(data string, score float64, meta string) core.Entry {
		en := entry("a", data, score)
		en.Meta = []byte(meta)
		return en
	}
	e.by(newest)
	e.push(tagged("p", 2, "first"), entry("a", "q", 2))
	e.push(tagged("p", 2, "tie"), tagged("p", 1, "lower"))
	want := tagged("p", 2, "first").Payload
	e.same("after a tie and a smaller score", e.queued("a").Payloads, []core.Payload{want, pay("q", 2)})
	e.push(tagged("p", 3, "higher"))
	e.same("after a larger score", e.queued("a").Payloads, []core.Payload{pay("q", 2), tagged("p", 3, "higher").Payload})
	e.push(entry("a", "p", 4), tagged("q", 5, "q"))
	e.same("after one without Meta", e.queued("a").Payloads, []core.Payload{pay("p", 4), tagged("q", 5, "q").Payload})
}

func mergeRuleCut(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 3})
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("a", "r", 3))
	h := e.acquire("n1")
	c := h.cut(2)
	e.push(entry("a", "s", 4))
	h.settle(failed(c, "boom", time.Minute))
	e.same("the payloads", e.queued("a").Payloads, []core.Payload{pay("q", 2), pay("r", 3), pay("s", 4)})
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(1))
}

// mergeRuleLarge has more payloads, and larger ones, than a store keeps in one record.
func mergeRuleLarge(e *env) {
	const keep = 20
	e.by(core.MergeRule{Stays: core.Highest, Keep: keep})
	data := func(i int) string { return fmt.Sprintf("%03d%01000d", i, i) }
	var all []core.Payload
	for i := range 30 {
		p := pay(data(i), float64(i))
		if i%2 > 0 {
			p.Meta = fmt.Append(nil, "meta ", i)
		}
		all = append(all, p)
	}
	e.push(entriesOf("a", all[:25])...)
	e.same("after a push", e.queued("a").Payloads, all[5:25])
	h := e.acquire("n1")
	c := h.cut(10)
	e.same("the claim", c.Payloads, all[5:15])
	e.push(entriesOf("a", all[25:])...)
	risen := all[16]
	risen.Score = 100
	e.push(core.Entry{ID: "a", Payload: risen})
	h.settle(failed(c, "boom", time.Minute))
	h.release()
	want := append(slices.Concat(all[10:16], all[17:30]), risen)
	e.same("after a put-back", e.queued("a").Payloads, want)
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(10))
	e.byIDs(e.store.Bury, "a")
	again := all[9]
	again.Score = 101
	e.push(core.Entry{ID: "a", Payload: again}, core.Entry{ID: "a", Payload: all[3]})
	e.byRefs(e.store.Revive, whole("a"))
	e.same("after a revive", e.queued("a").Payloads, append(want[1:], again))
	e.countedOnce("how many are superseded", e.counts().Superseded, int64(12))
}

func mergeRuleState(e *env) {
	e.by(latest)
	e.push(entry("a", "p", 1))
	h := e.acquire("n1")
	c := h.one()
	e.clock.Advance(time.Second)
	e.push(entry("a", "q", 2))
	h.settle(failed(c, "boom", time.Minute))
	want := core.State{PerformAt: e.now().Add(time.Minute), FirstPush: start, Error: "boom"}
	e.same("the job", e.queued("a"), job("a", want, pay("q", 2)))
	e.push(entry("a", "o", 0))
	e.same("the job after a push that is superseded", e.queued("a"), job("a", want, pay("q", 2)))
}

func mergeRuleMet(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 2})
	e.met("a new id", e.pushRequest(orders, entry("a", "p", 5)), ports.PushReply{New: 1})
	e.met("an equal payload", e.pushRequest(orders, entry("a", "p", 6)), ports.PushReply{Duplicate: 1})
	e.met("another payload", e.pushRequest(orders, entry("a", "q", 7)), ports.PushReply{Merged: 1})
	e.met("a payload that supersedes another", e.pushRequest(orders, entry("a", "r", 8)), ports.PushReply{Merged: 1})
	e.met("a payload that is superseded", e.pushRequest(orders, entry("a", "s", 1)), ports.PushReply{Superseded: 1})
	e.met("several", e.pushRequest(orders, entry("a", "s", 1), entry("b", "p", 1), entry("a", "t", 9), entry("b", "q", 2), entry("b", "r", 3), entry("b", "p", 1)),
		ports.PushReply{New: 1, Merged: 3, Superseded: 2})
	e.same("the payloads", e.queued("a").Payloads, []core.Payload{pay("r", 8), pay("t", 9)})
	e.same("the payloads", e.queued("b").Payloads, []core.Payload{pay("q", 2), pay("r", 3)})
}

func mergeRuleCounts(e *env) {
	e.by(latest)
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("a", "o", 0), entry("a", "q", 3))
	h := e.acquire("n1")
	c := h.one()
	e.push(entry("a", "r", 4))
	h.settle(failed(c, "boom", time.Minute))
	h.release()
	counts := e.counts()
	counts.Oldest = core.Head{}
	e.countedOnce("the counts", counts, ports.Counts{Retrying: 1, Failed: 1, Superseded: 3})
	e.recount(0, func() {})
	e.countedOnce("what a recount leaves", e.counts().Superseded, int64(3))
}

func mergeRuleClaims(e *env) {
	e.by(core.MergeRule{Stays: core.Highest, Keep: 2})
	for i := range 5 {
		e.push(entry("a", fmt.Sprint(i), float64(i)), entry("b", "same", float64(i)))
	}
	h := e.acquire("n1")
	claims := h.claim(3)
	e.same("the claimed jobs", ids(claims), []string{"a", "b"})
	e.same("the payloads of one", claims[0].Payloads, []core.Payload{pay("3", 3), pay("4", 4)})
	e.same("the payloads of the other", claims[1].Payloads, []core.Payload{pay("same", 4)})
	h.settle(settleAll(claims, done)...)
	e.same("what is left", e.queuedIDs(), nil)
}

// mergeRuleClaimsBehind lets a due job wait behind the claimed job of its id while other turns are
// made. Then another push merges into it.
func mergeRuleClaimsBehind(e *env) {
	for _, rule := range []core.PushRule{{}, {Kind: core.Earliest}} {
		e.by(core.MergeRule{Stays: core.Highest, Keep: 2})
		e.push(entry("a", "p", 1))
		h := e.acquire("n1")
		c := h.one()
		waits := e.now()
		e.push(entry("a", "q", 2))
		e.same("what a turn claims beside the claimed job", ids(h.claim(1)), nil)
		for range 10 {
			e.clock.Advance(5 * time.Second)
			e.push(entry("b", "p", 1))
			h.settle(done(h.one()))
		}
		e.pushBy(rule, entry("a", "r", 3))
		e.same("since when the job waits", e.counts().Oldest, core.Head{Due: waits, OK: true})
		h.settle(done(c))
		next := h.one()
		e.same("what the next turn claims", next.Payloads, []core.Payload{pay("q", 2), pay("r", 3)})
		h.settle(done(next))
		h.release()
	}
}

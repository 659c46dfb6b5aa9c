package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleRevive = "RULES 2, row 5: a job from the morgue meets a queued job: now, -1, no error; Recoveries: the larger; FirstPush: the smaller"
	ruleParts  = "DeadLetterRef: a dead letter that loses its last payload is removed; one that keeps some keeps its ChangedAt and Error"
)

func morgueCases() []namedCase {
	return []namedCase{
		{"revive makes a fresh job", "RULES 2, row 5: a job from the morgue: now, -1, no error", reviveMakes},
		{"revive merges into the queued job", ruleRevive, reviveMerges},
		{"revive keeps the larger recoveries", ruleRevive, reviveKeepsRecoveries},
		{"revive of a claimed id makes a queued job", "RULES 2: a revive that meets only a claimed job becomes the queued job; if the claimed one then fails, its backoff wins", reviveClaimed},
		{"revive takes selected payloads", ruleParts, reviveParts},
		{"revive duplicates nothing when it is repeated", "RULES 5: nothing is duplicated if it is revived twice", reviveRepeats},
		{"purge removes whole dead letters and selected payloads", ruleParts, purgeRemoves},
		{"steps take the oldest change first", "DeadLetterStep: they are taken in order of (ChangedAt, id)", deadInOrder},
		{"steps stop before an instant", "DeadLetterStep: nil means all dead letters that last changed before Before", deadBefore},
		{"steps on named dead letters skip those that have changed since", "DeadLetterStep: Before limits the step to dead letters that last changed before it", deadNamedBefore},
		{"steps handle 250 at most", "DeadLetterStep: Limit: 0 means MaxStep, which is also the maximum", deadLimit},
		{"steps ignore other shards", "DeadLetterStep: ids of other shards are ignored", deadOtherShards},
		{"steps without dead letters or payloads handle nothing", "DeadLetterStep, DeadLetterRef: an empty list means nothing", deadNone},
		{"edit replaces a payload's bytes", "Edit replaces one dead payload, keeping its Score and Meta; its ChangedAt becomes now", editReplaces},
		{"edit merges with equal bytes", "Edit: if the dead letter has the new bytes already, the two merge", editMerges},
		{"edit of a payload that is not there changes nothing", "Edit: a payload that is not there is not counted", editMissing},
		{"edit changes nothing more when it is repeated", "Edit: repeating it changes nothing more", editRepeats},
	}
}

// revived returns the state of a job that is revived now.
func (e *env) revived() core.State { return core.Revived("", e.now()) }

func reviveMakes(e *env) {
	buryAll(e, "a", "b")
	e.reported("the reply", e.byRefs(e.store.Revive, whole("a"), whole("never")), ports.StepReply{Handled: 1, Reached: 2, Now: e.now()})
	e.same("the jobs", e.jobs(), []core.Job{job("a", e.revived(), twoPayloads()...)})
	e.same("the dead", e.deadIDs(), []string{"b"})
	e.same("how many are dead", e.counts().Dead, int64(1))
}

func reviveMerges(e *env) {
	buryAll(e, "a")
	failAll(e, "a")
	first := e.now()
	e.push(entry("a", "q", 1), entry("a", "r", 3))
	e.clock.Advance(time.Minute)
	e.byRefs(e.store.Revive, whole("a"))
	want := e.revived()
	want.FirstPush = first
	e.same("the job", e.queued("a"), job("a", want, pay("p", 1), pay("q", 1), pay("r", 3)))
	counts := e.counts()
	e.same("fresh and retries", [2]int64{counts.Fresh, counts.Retrying}, [2]int64{1, 0})
}

func reviveKeepsRecoveries(e *env) {
	buryAll(e, "a")
	e.placeAlone("a", 10)
	first := e.queued("a").FirstPush
	e.byRefs(e.store.Revive, whole("a"))
	want := e.revived()
	want.Recoveries, want.FirstPush = 2, first
	e.same("the state", e.queued("a").State, want)
}

func reviveClaimed(e *env) {
	buryAll(e, "a")
	e.push(entry("a", "r", 3))
	h := e.acquire("n1")
	c := h.one()
	e.byRefs(e.store.Revive, whole("a"))
	e.same("the queued job", e.queued("a"), job("a", e.revived(), twoPayloads()...))
	e.same("the claimed job", e.claimed("a"), c)
	h.settle(failed(c, "boom", time.Hour))
	e.same("after the claimed one failed", e.queued("a"), job("a", core.State{
		PerformAt: e.now().Add(time.Hour), FirstPush: c.FirstPush, Error: "boom",
	}, pay("p", 1), pay("q", 2), pay("r", 3)))
}

func reviveParts(e *env) {
	buryAll(e, "a")
	before := e.deadLetter("a")
	e.reported("how many were revived", e.byRefs(e.store.Revive, parts("a", "q", "never")).Handled, 1)
	e.same("the job", e.queued("a").Payloads, []core.Payload{pay("q", 2)})
	before.Payloads = before.Payloads[:1]
	e.same("the rest", e.deadLetter("a"), before)
	e.byRefs(e.store.Revive, parts("a", "p"))
	e.same("the job with both", e.queued("a").Payloads, twoPayloads())
	e.same("the dead", e.deadIDs(), nil)
}

func reviveRepeats(e *env) {
	buryAll(e, "a")
	e.byRefs(e.store.Revive, whole("a"))
	h := e.acquire("n1")
	h.settle(done(h.one()))
	e.unchanged("a repeated Revive", func() {
		e.reported("how many it revived", e.byRefs(e.store.Revive, whole("a")).Handled, 0)
		e.reported("how many it revived by payload", e.byRefs(e.store.Revive, parts("a", "p")).Handled, 0)
		e.reported("how many it revived of all", e.byAge(e.store.Revive, e.now(), 0).Handled, 0)
	})
}

func purgeRemoves(e *env) {
	buryAll(e, "a", "b", "c")
	before := e.deadLetter("b")
	reply := e.byRefs(e.store.Purge, whole("a"), parts("b", "p"), whole("never"), parts("c", "never"))
	e.reported("the reply", reply, ports.StepReply{Handled: 2, Reached: 4, Now: e.now()})
	before.Payloads = before.Payloads[1:]
	e.same("the rest", e.deadLetter("b"), before)
	e.same("the dead", e.deadIDs(), []string{"b", "c"})
	e.byRefs(e.store.Purge, parts("b", "q"))
	e.same("the dead once the last is gone", e.deadIDs(), []string{"c"})
	e.same("the queued jobs", e.jobs(), nil)
}

func deadInOrder(e *env) {
	for name, do := range e.deadLetterSteps() {
		buryAll(e, "z", "y", "x")
		now := e.now()
		e.reported("the first step of "+name, e.byAge(do, now, 2), ports.StepReply{Handled: 2, More: true, Now: now})
		e.same("the dead", e.deadIDs(), []string{"x"})
		e.reported("the second step of "+name, e.byAge(do, now, 1), ports.StepReply{Handled: 1, Now: now})
		for _, id := range e.queuedIDs() {
			e.byIDs(e.store.Delete, id)
		}
	}
}

func deadBefore(e *env) {
	for name, do := range e.deadLetterSteps() {
		buryAll(e, "a", "b", "c")
		before := e.deadLetter("b").ChangedAt
		e.reported("what "+name+" handled", e.byAge(do, before, 0), ports.StepReply{Handled: 1, Now: e.now()})
		e.same("the dead", e.deadIDs(), []string{"b", "c"})
		e.byAge(e.store.Purge, e.now(), 0)
		e.byIDs(e.store.Delete, "a")
	}
}

// deadNamedBefore names three dead letters, once as a whole and once by their payloads. The first
// was buried before an instant, the second at that instant, and the third again after it.
func deadNamedBefore(e *env) {
	for name, do := range e.deadLetterSteps() {
		for _, payloads := range [][][]byte{nil, {[]byte("p"), []byte("q")}} {
			buryAll(e, "a", "b", "c")
			e.clock.Advance(time.Second)
			before := e.deadLetter("b").ChangedAt
			buryAll(e, "c")
			step := ports.DeadLetterStep{Shard: e.shard, Before: before}
			for _, id := range []string{"b", "a", "c", "none"} {
				step.DeadLetters = append(step.DeadLetters, ports.DeadLetterRef{ID: id, Payloads: payloads})
			}
			reply, err := do(e.ctx, step)
			e.must(err, "a step on named dead letters")
			e.reported("what "+name+" handled", reply, ports.StepReply{Handled: 1, Reached: 4, Now: e.now()})
			e.same("the dead", e.deadIDs(), []string{"b", "c"})
			e.clock.Advance(time.Second)
			e.byAge(e.store.Purge, e.now(), 0)
			e.byIDs(e.store.Delete, "a")
		}
	}
}

func deadLimit(e *env) {
	pushMany(e, ports.MaxStep+1)
	h := e.acquire("n1")
	for range 2 {
		h.settle(settleAll(h.claim(core.MaxTurnJobs), func(c core.Claim) core.Settlement { return buried(c, "no") })...)
	}
	e.clock.Advance(time.Second)
	e.reported("a step beyond the limit", e.byAge(e.store.Purge, e.now(), 10*ports.MaxStep),
		ports.StepReply{Handled: ports.MaxStep, More: true, Now: e.now()})
	e.reported("the rest", e.byAge(e.store.Purge, e.now(), 0), ports.StepReply{Handled: 1, Now: e.now()})
}

func deadOtherShards(e *env) {
	e.declare("wide", 2)
	s := core.Shards("wide", 2)
	other := idsOf(s[1], 2, 1)[0]
	e.pushTo("wide", entry(other, "p", 1))
	_, err := e.store.Bury(e.ctx, ports.JobStep{Shard: s[1], IDs: []string{other}})
	e.must(err, "Bury")
	want := e.findIn("wide", other)
	for name, do := range e.deadLetterSteps() {
		reply, err := do(e.ctx, ports.DeadLetterStep{Shard: s[0], DeadLetters: []ports.DeadLetterRef{whole(other)}})
		e.must(err, name)
		e.reported("how many "+name+" handled", reply.Handled, 0)
		e.same("the other shard's dead letter", e.findIn("wide", other), want)
	}
}

func deadNone(e *env) {
	buryAll(e, "a")
	for name, do := range e.deadLetterSteps() {
		e.unchanged(name, func() {
			reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, DeadLetters: []ports.DeadLetterRef{}, Before: e.now()})
			e.must(err, name)
			e.reported("how many "+name+" handled of no dead letters", reply.Handled, 0)
			e.reported("how many "+name+" handled of no payloads", e.byRefs(do, parts("a")).Handled, 0)
		})
	}
}

func (e *env) edit(id, old, new string) int {
	e.tb.Helper()
	reply, err := e.store.Edit(e.ctx, ports.EditRequest{Shard: e.shard, ID: id, Old: []byte(old), New: []byte(new)})
	e.must(err, "Edit")
	e.same("the store's clock", reply.Now, e.now())
	return reply.Handled
}

func editReplaces(e *env) {
	p := core.Payload{Data: []byte("p"), Score: 2, Meta: []byte("meta")}
	e.push(core.Entry{ID: "a", Payload: p}, entry("a", "o", 2), entry("b", "p", 1))
	h := e.acquire("n1")
	h.settle(settleAll(h.claim(2), func(c core.Claim) core.Settlement { return buried(c, "no use") })...)
	other := e.deadLetter("b")
	e.clock.Advance(time.Second)
	e.reported("how many were edited", e.edit("a", "p", ""), 1)
	p.Data = nil
	e.same("the dead letter", e.deadLetter("a"), core.DeadLetter{
		ID: "a", ChangedAt: e.now(), Error: "no use", Group: core.OtherGroup, Payloads: []core.Payload{p, pay("o", 2)},
	})
	e.same("another dead letter", e.deadLetter("b"), other)
	e.same("the dead by time", e.deadIDs(), []string{"b", "a"})
}

func editMerges(e *env) {
	for _, old := range []string{"p", "q"} {
		other := map[string]string{"p": "q", "q": "p"}[old]
		buryAll(e, "a")
		e.reported("how many were edited", e.edit("a", old, other), 1)
		e.same("the dead letter after "+old+" became "+other, e.deadLetter("a").Payloads, []core.Payload{pay(other, 1)})
		e.byRefs(e.store.Purge, whole("a"))
	}
}

func editMissing(e *env) {
	buryAll(e, "a")
	e.unchanged("Edit of what is not there", func() {
		for _, r := range [][2]string{{"a", "never"}, {"never", "p"}, {"a", ""}} {
			e.reported(fmt.Sprintf("how many %q of %q were edited", r[1], r[0]), e.edit(r[0], r[1], "new"), 0)
		}
	})
}

func editRepeats(e *env) {
	buryAll(e, "a")
	e.edit("a", "p", "new")
	e.clock.Advance(time.Second)
	e.unchanged("a repeated Edit", func() { e.reported("how many it edited", e.edit("a", "p", "new"), 0) })
	e.same("the payloads", e.deadLetter("a").Payloads, []core.Payload{pay("new", 1), pay("q", 2)})
}

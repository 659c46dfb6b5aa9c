package step

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleRevive = "RULES 2, row 5: a job from the morgue meets a queued job: now, -1, no error; " +
		"Recoveries: the larger; FirstPush: the smaller"
	ruleParts = "DeadLetterRef: a dead letter that loses its last payload is removed; " +
		"one that keeps some keeps its ChangedAt and Error"
)

func morgueCases() []env.Case {
	return []env.Case{
		{
			Name:  "revive makes a fresh job",
			Rule:  "RULES 2, row 5: a job from the morgue: now, -1, no error",
			Check: reviveMakes,
		},
		{Name: "revive merges into the queued job", Rule: ruleRevive, Check: reviveMerges},
		{Name: "revive keeps the larger recoveries", Rule: ruleRevive, Check: reviveKeepsRecoveries},
		{
			Name: "revive of a claimed id makes a queued job",
			Rule: "RULES 2: a revive that meets only a claimed job becomes the queued job; " +
				"if the claimed one then fails, its backoff wins",
			Check: reviveClaimed,
		},
		{Name: "revive takes selected payloads", Rule: ruleParts, Check: reviveParts},
		{
			Name:  "revive duplicates nothing when it is repeated",
			Rule:  "RULES 5: nothing is duplicated if it is revived twice",
			Check: reviveRepeats,
		},
		{Name: "purge removes whole dead letters and selected payloads", Rule: ruleParts, Check: purgeRemoves},
		{
			Name:  "steps take the oldest change first",
			Rule:  "DeadLetterStep: they are taken in order of (ChangedAt, id)",
			Check: deadInOrder,
		},
		{
			Name:  "steps stop before an instant",
			Rule:  "DeadLetterStep: nil means all dead letters that last changed before Before",
			Check: deadBefore,
		},
		{
			Name:  "steps on named dead letters skip those that have changed since",
			Rule:  "DeadLetterStep: Before limits the step to dead letters that last changed before it",
			Check: deadNamedBefore,
		},
		{
			Name:  "steps handle 250 at most",
			Rule:  "DeadLetterStep: Limit: 0 means MaxStep, which is also the maximum",
			Check: deadLimit,
		},
		{
			Name:  "steps keep as many as they are told",
			Rule:  "DeadLetterStep: Keep is how many dead letters a step over all of them leaves at least",
			Check: deadKept,
		},
		{
			Name:  "steps ignore other shards",
			Rule:  "DeadLetterStep: ids of other shards are ignored",
			Check: deadOtherShards,
		},
		{
			Name:  "steps without dead letters or payloads handle nothing",
			Rule:  "DeadLetterStep, DeadLetterRef: an empty list means nothing",
			Check: deadNone,
		},
		{
			Name:  "edit replaces a payload's bytes",
			Rule:  "Edit replaces one dead payload, keeping its Score and Meta; its ChangedAt becomes now",
			Check: editReplaces,
		},
		{
			Name:  "edit merges with equal bytes",
			Rule:  "Edit: if the dead letter has the new bytes already, the two merge",
			Check: editMerges,
		},
		{
			Name:  "edit of a payload that is not there changes nothing",
			Rule:  "Edit: a payload that is not there is not counted",
			Check: editMissing,
		},
		{
			Name:  "edit changes nothing more when it is repeated",
			Rule:  "Edit: repeating it changes nothing more",
			Check: editRepeats,
		},
	}
}

// revived returns the state of a job that is revived now.
func revived(e *env.Env) core.State { return core.Revived("", e.Now()) }

func reviveMakes(e *env.Env) {
	e.BuryAll("a", "b")
	e.Reported("the reply", e.ByRefs(e.Store.Revive, env.Whole("a"), env.Whole("never")), ports.StepReply{
		Handled: 1,
		Reached: 2,
		Now:     e.Now(),
	})
	e.Same("the jobs", e.Jobs(), []core.Job{env.Job("a", revived(e), env.TwoPayloads()...)})
	e.Same("the dead", e.DeadIDs(), []string{"b"})
	e.Same("how many are dead", e.Counts().Dead, int64(1))
}

func reviveMerges(e *env.Env) {
	e.BuryAll("a")
	e.FailAll("a")
	first := e.Now()
	e.Push(env.Entry("a", "q", 1), env.Entry("a", "r", 3))

	e.Clock.Advance(time.Minute)
	e.ByRefs(e.Store.Revive, env.Whole("a"))

	want := revived(e)
	want.FirstPush = first
	e.Same("the job", e.Queued("a"), env.Job("a", want, env.Pay("p", 1), env.Pay("q", 1), env.Pay("r", 3)))
	counts := e.Counts()
	e.Same("fresh and retries", [2]int64{counts.Fresh, counts.Retrying}, [2]int64{1, 0})
}

func reviveKeepsRecoveries(e *env.Env) {
	e.BuryAll("a")
	e.PlaceAlone("a", 10)
	first := e.Queued("a").FirstPush
	e.ByRefs(e.Store.Revive, env.Whole("a"))
	want := revived(e)
	want.Recoveries, want.FirstPush = 2, first
	e.Same("the state", e.Queued("a").State, want)
}

func reviveClaimed(e *env.Env) {
	e.BuryAll("a")
	e.Push(env.Entry("a", "r", 3))
	h := e.Acquire("n1")
	c := h.One()

	e.ByRefs(e.Store.Revive, env.Whole("a"))
	e.Same("the queued job", e.Queued("a"), env.Job("a", revived(e), env.TwoPayloads()...))
	e.Same("the claimed job", e.Claimed("a"), c)

	h.Settle(env.Failed(c, "boom", time.Hour))
	e.Same("after the claimed one failed", e.Queued("a"), env.Job("a", core.State{
		PerformAt: e.Now().Add(time.Hour), FirstPush: c.FirstPush, Failures: env.Failures("boom"),
	}, env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3)))
}

func reviveParts(e *env.Env) {
	e.BuryAll("a")
	before := e.DeadLetter("a")
	e.Reported("how many were revived", e.ByRefs(e.Store.Revive, env.Parts("a", "q", "never")).Handled, 1)
	e.Same("the job", e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2)})
	before.Payloads = before.Payloads[:1]
	e.Same("the rest", e.DeadLetter("a"), before)
	e.ByRefs(e.Store.Revive, env.Parts("a", "p"))
	e.Same("the job with both", e.Queued("a").Payloads, env.TwoPayloads())
	e.Same("the dead", e.DeadIDs(), nil)
}

func reviveRepeats(e *env.Env) {
	e.BuryAll("a")
	e.ByRefs(e.Store.Revive, env.Whole("a"))
	h := e.Acquire("n1")
	h.Settle(env.Done(h.One()))
	e.Unchanged("a repeated Revive", func() {
		e.Reported("how many it revived", e.ByRefs(e.Store.Revive, env.Whole("a")).Handled, 0)
		e.Reported("how many it revived by payload", e.ByRefs(e.Store.Revive, env.Parts("a", "p")).Handled, 0)
		e.Reported("how many it revived of all", e.ByAge(e.Store.Revive, e.Now(), 0).Handled, 0)
	})
}

func purgeRemoves(e *env.Env) {
	e.BuryAll("a", "b", "c")
	before := e.DeadLetter("b")
	reply := e.ByRefs(e.Store.Purge, env.Whole("a"), env.Parts("b", "p"), env.Whole("never"), env.Parts("c", "never"))
	e.Reported("the reply", reply, ports.StepReply{Handled: 2, Reached: 4, Now: e.Now()})
	before.Payloads = before.Payloads[1:]
	e.Same("the rest", e.DeadLetter("b"), before)
	e.Same("the dead", e.DeadIDs(), []string{"b", "c"})
	e.ByRefs(e.Store.Purge, env.Parts("b", "q"))
	e.Same("the dead once the last is gone", e.DeadIDs(), []string{"c"})
	e.Same("the queued jobs", e.Jobs(), nil)
}

func deadInOrder(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		e.BuryAll("z", "y", "x")
		now := e.Now()
		e.Reported("the first step of "+name, e.ByAge(do, now, 2), ports.StepReply{Handled: 2, More: true, Now: now})
		e.Same("the dead", e.DeadIDs(), []string{"x"})
		e.Reported("the second step of "+name, e.ByAge(do, now, 1), ports.StepReply{Handled: 1, Now: now})
		for _, id := range e.QueuedIDs() {
			e.ByIDs(e.Store.Delete, id)
		}
	}
}

func deadBefore(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		e.BuryAll("a", "b", "c")
		before := e.DeadLetter("b").ChangedAt
		e.Reported("what "+name+" handled", e.ByAge(do, before, 0), ports.StepReply{Handled: 1, Now: e.Now()})
		e.Same("the dead", e.DeadIDs(), []string{"b", "c"})
		e.ByAge(e.Store.Purge, e.Now(), 0)
		e.ByIDs(e.Store.Delete, "a")
	}
}

// deadNamedBefore names three dead letters, once as a whole and once by their payloads. The first
// was buried before an instant, the second at that instant, and the third again after it.
func deadNamedBefore(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		for _, payloads := range [][][]byte{nil, {[]byte("p"), []byte("q")}} {
			e.BuryAll("a", "b", "c")
			e.Clock.Advance(time.Second)
			before := e.DeadLetter("b").ChangedAt
			e.BuryAll("c")

			step := ports.DeadLetterStep{Shard: e.Shard, Before: before}
			for _, id := range []string{"b", "a", "c", "none"} {
				step.DeadLetters = append(step.DeadLetters, ports.DeadLetterRef{ID: id, Payloads: payloads})
			}

			reply, err := do(e.Ctx, step)
			e.Must(err, "a step on named dead letters")
			e.Reported("what "+name+" handled", reply, ports.StepReply{Handled: 1, Reached: 4, Now: e.Now()})
			e.Same("the dead", e.DeadIDs(), []string{"b", "c"})

			e.Clock.Advance(time.Second)
			e.ByAge(e.Store.Purge, e.Now(), 0)
			e.ByIDs(e.Store.Delete, "a")
		}
	}
}

func deadLimit(e *env.Env) {
	e.PushMany(ports.MaxStep + 1)
	h := e.Acquire("n1")
	for range 2 {
		h.Settle(env.SettleAll(h.Claim(core.MaxTurnJobs), func(c core.Claim) core.Settlement {
			return env.Buried(c, "no")
		})...)
	}
	e.Clock.Advance(time.Second)
	e.Reported("a step beyond the limit", e.ByAge(e.Store.Purge, e.Now(), 10*ports.MaxStep),
		ports.StepReply{Handled: ports.MaxStep, More: true, Now: e.Now()})
	e.Reported("the rest", e.ByAge(e.Store.Purge, e.Now(), 0), ports.StepReply{Handled: 1, Now: e.Now()})
}

// deadKept repeats steps, as two callers at the same time make them.
func deadKept(e *env.Env) {
	for name, do := range e.DeadLetterSteps() {
		e.BuryAll("a", "b", "c", "d", "e", "f")
		e.Clock.Advance(time.Second)
		before := e.DeadLetter("f").ChangedAt

		for _, step := range []struct {
			before      core.Instant
			limit, keep int
			want        ports.StepReply
			left        []string
		}{
			{e.Now(), 1, 4, ports.StepReply{Handled: 1, More: true}, []string{"b", "c", "d", "e", "f"}},
			{e.Now(), 1, 4, ports.StepReply{Handled: 1}, []string{"c", "d", "e", "f"}},
			{e.Now(), 1, 4, ports.StepReply{}, []string{"c", "d", "e", "f"}},
			{e.Now(), 0, 9, ports.StepReply{}, []string{"c", "d", "e", "f"}},
			{before, 0, 2, ports.StepReply{Handled: 2}, []string{"e", "f"}},
			{before, 0, 1, ports.StepReply{Handled: 1}, []string{"f"}},
			{before, 0, 0, ports.StepReply{}, []string{"f"}},
			{e.Now(), 0, 0, ports.StepReply{Handled: 1}, nil},
		} {
			step.want.Now = e.Now()
			reply, err := do(e.Ctx, ports.DeadLetterStep{
				Shard:  e.Shard,
				Before: step.before,
				Limit:  step.limit,
				Keep:   int64(step.keep),
			})
			e.Must(err, name)
			e.Reported(fmt.Sprintf("a step of %s that keeps %d", name, step.keep), reply, step.want)
			e.Same("the dead", e.DeadIDs(), step.left)
		}

		for _, id := range e.QueuedIDs() {
			e.ByIDs(e.Store.Delete, id)
		}
	}
}

func deadOtherShards(e *env.Env) {
	e.Declare("wide", 2)
	s := core.Shards("wide", 2)
	other := env.IDsOf(s[1], 2, 1)[0]
	e.PushTo("wide", env.Entry(other, "p", 1))
	_, err := e.Store.Bury(e.Ctx, ports.JobStep{Shard: s[1], IDs: []string{other}})
	e.Must(err, "Bury")

	want := e.FindIn("wide", other)
	for name, do := range e.DeadLetterSteps() {
		reply, err := do(e.Ctx, ports.DeadLetterStep{Shard: s[0], DeadLetters: []ports.DeadLetterRef{env.Whole(other)}})
		e.Must(err, name)
		e.Reported("how many "+name+" handled", reply.Handled, 0)
		e.Same("the other shard's dead letter", e.FindIn("wide", other), want)
	}
}

func deadNone(e *env.Env) {
	e.BuryAll("a")
	for name, do := range e.DeadLetterSteps() {
		e.Unchanged(name, func() {
			reply, err := do(e.Ctx, ports.DeadLetterStep{
				Shard:       e.Shard,
				DeadLetters: []ports.DeadLetterRef{},
				Before:      e.Now(),
			})
			e.Must(err, name)
			e.Reported("how many "+name+" handled of no dead letters", reply.Handled, 0)
			e.Reported("how many "+name+" handled of no payloads", e.ByRefs(do, env.Parts("a")).Handled, 0)
		})
	}
}

func editReplaces(e *env.Env) {
	p := core.Payload{Data: []byte("p"), Score: 2, Meta: []byte("meta")}
	e.Push(core.Entry{ID: "a", Payload: p}, env.Entry("a", "o", 2), env.Entry("b", "p", 1))
	h := e.Acquire("n1")
	h.Settle(env.SettleAll(h.Claim(2), func(c core.Claim) core.Settlement { return env.Buried(c, "no use") })...)
	other := e.DeadLetter("b")

	e.Clock.Advance(time.Second)
	e.Reported("how many were edited", e.Edit("a", "p", ""), 1)

	p.Data = nil
	e.Same("the dead letter", e.DeadLetter("a"), core.DeadLetter{
		ID:        "a",
		ChangedAt: e.Now(),
		Failures:  env.Failures("no use"),
		Group:     core.OtherGroup,
		Payloads:  []core.Payload{p, env.Pay("o", 2)},
	})

	e.Same("another dead letter", e.DeadLetter("b"), other)
	e.Same("the dead by time", e.DeadIDs(), []string{"b", "a"})
}

func editMerges(e *env.Env) {
	for _, old := range []string{"p", "q"} {
		other := map[string]string{"p": "q", "q": "p"}[old]
		e.BuryAll("a")
		e.Reported("how many were edited", e.Edit("a", old, other), 1)
		e.Same("the dead letter after "+old+" became "+other,
			e.DeadLetter("a").Payloads, []core.Payload{env.Pay(other, 1)})
		e.ByRefs(e.Store.Purge, env.Whole("a"))
	}
}

func editMissing(e *env.Env) {
	e.BuryAll("a")
	e.Unchanged("Edit of what is not there", func() {
		for _, r := range [][2]string{{"a", "never"}, {"never", "p"}, {"a", ""}} {
			e.Reported(fmt.Sprintf("how many %q of %q were edited", r[1], r[0]), e.Edit(r[0], r[1], "new"), 0)
		}
	})
}

func editRepeats(e *env.Env) {
	e.BuryAll("a")
	e.Edit("a", "p", "new")
	e.Clock.Advance(time.Second)
	e.Unchanged("a repeated Edit", func() { e.Reported("how many it edited", e.Edit("a", "p", "new"), 0) })
	e.Same("the payloads", e.DeadLetter("a").Payloads, []core.Payload{env.Pay("new", 1), env.Pay("q", 2)})
}

package push

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/vectors"
	"github.com/skeinq/skein/ports"
)

const (
	ruleOnce = "RULES 17: an entry with a time whose payload is remembered is a repeat: it changes nothing but counts"
	ruleKept = "RULES 17: a payload is remembered in the step that accepts it, whatever becomes of it"
)

// onceCases are about entries that are accepted once within a time.
func onceCases() []env.Case {
	return []env.Case{
		{Name: "are accepted once within their time", Rule: "RULES 17", Check: onceVectors},
		{Name: "change nothing as repeats", Rule: ruleOnce, Check: onceChangesNothing},
		{Name: "are repeats whatever has become of the first", Rule: ruleKept, Check: onceWhateverBecame},
		{Name: "are repeats of one that was superseded", Rule: ruleKept, Check: onceSuperseded},
		{
			Name:  "merge again after their time",
			Rule:  "RULES 17: a payload is remembered until its time has passed",
			Check: onceAfterwards,
		},
		{
			Name:  "are repeats in one push",
			Rule:  "RULES 17: if one call pushes an equal entry twice, the second one is a repeat",
			Check: onceInOnePush,
		},
		{Name: "are repeats in a large push", Rule: ruleOnce, Check: onceMany},
		{
			Name:  "are no repeats without a time",
			Rule:  "RULES 17: an entry without a time is no repeat and is not remembered",
			Check: onceWithout,
		},
		{
			Name:  "are not remembered if they are refused",
			Rule:  "RULES 17: an entry that is refused is not remembered",
			Check: onceRefused,
		},
		{
			Name:  "are not remembered if they are stale",
			Rule:  "RULES 17: an entry that is stale is dropped as stale, and is not remembered",
			Check: onceStale,
		},
		{
			Name:  "are forgotten with their queue",
			Rule:  "RULES 17: to forget a queue removes what is remembered",
			Check: onceForgotten,
		},
		{
			Name:  "are accepted once of concurrent pushes",
			Rule:  "Push: of concurrent pushes of equal entries one is accepted",
			Check: onceConcurrently,
		},
		{
			Name:  "are remembered beyond what one push removes",
			Rule:  "Push: it removes what is remembered and whose time has passed",
			Check: onceManyEnd,
		},
		{Name: "have a time within the limits", Rule: "Push returns the errors of PushRequest.Validate", Check: onceInvalid},
	}
}

// once returns an entry with a time of a minute.
func once(id, data string, score float64) core.Entry {
	en := env.Entry(id, data, score)
	en.OnceIn = time.Minute
	return en
}

// onceVectors runs the worked cases, each with ids of its own.
func onceVectors(e *env.Env) {
	list, err := vectors.Read[vectors.Once]("once.json")
	e.Must(err, "reading the vectors")

	var repeated int64
	for n, v := range list {
		e.Rule = fmt.Sprintf("RULES 17, once.json, case %d: %s", n, v.About)
		var rule core.MergeRule
		if v.Stamped {
			rule.Same = core.SamePush
		}

		start := e.Clock.Now()
		for i, p := range v.Pushes {
			e.Clock.Advance(start.Add(p.At).Sub(e.Clock.Now()))
			en := core.Entry{ID: fmt.Sprint(n, "/", p.ID), OnceIn: p.OnceIn}
			en.Payload = rule.Stored(core.Payload{Data: []byte(p.Data), Score: float64(i)})
			r := e.PushRequest(env.Orders, en)
			r.Stamped = v.Stamped

			isRepeat := slices.Contains(v.Repeats, i)
			met := pushes(e, r)
			e.Same(fmt.Sprintf("whether push %d is a repeat", i), met.Repeated, int(env.Count(isRepeat)))
			repeated += env.Count(isRepeat)
		}
	}
	e.CountedOnce("how many are repeats", e.Counts().Repeated, repeated)
}

// pushes pushes and returns what the entries met. Without a verdict, since the call was repeated or the
// store can't tell, it ends the case.
func pushes(e *env.Env, r ports.PushRequest) ports.PushReply {
	e.TB.Helper()
	before := e.Repeats.All.Load()
	reply, err := e.Store.Push(e.Ctx, r)
	e.Must(err, "Push")
	if e.Repeats.All.Load() > before || reply == (ports.PushReply{Now: reply.Now}) {
		e.GiveUp()
	}
	return reply
}

func onceChangesNothing(e *env.Env) {
	e.Met("the first push", e.PushRequest(env.Orders, once("a", "p", 5)), ports.PushReply{New: 1})
	e.Push(env.EntryAt("a", "q", 6, e.Now().Add(time.Hour)))
	before := e.Queued("a")

	tagged, lower, urgent := once("a", "p", 5), once("a", "p", 1), once("a", "p", 9)
	tagged.Tags, tagged.Meta = env.Tags("tag"), []byte("meta")
	urgent.When = core.Urgent(time.Hour)
	e.Clock.Advance(time.Second)
	r := e.PushRequest(env.Orders, tagged, lower, urgent)
	r.Rule = core.PushRule{Kind: core.Earliest}
	e.Met("repeats", r, ports.PushReply{Repeated: 3})
	e.Same("the job", e.Queued("a"), before)
	e.CountedOnce("how many are repeats", e.Counts().Repeated, int64(3))

	// A repeat makes no job of another id either, and does not keep others from being stored.
	e.Met("repeats and others", e.PushRequest(env.Orders, once("a", "p", 5), once("b", "p", 1), once("a", "r", 7)),
		ports.PushReply{New: 1, Merged: 1, Repeated: 1})
	e.Same("the queue", e.QueuedIDs(), []string{"a", "b"})
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 5), env.Pay("q", 6), env.Pay("r", 7)})
}

func onceWhateverBecame(e *env.Env) {
	repeat := func(what, id string) {
		e.TB.Helper()
		e.Met("a push after "+what, e.PushRequest(env.Orders, once(id, "p", 1)), ports.PushReply{Repeated: 1})
	}

	e.Push(once("claimed", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	repeat("a claim", "claimed")
	h.Settle(env.Done(c))
	repeat("it was done", "claimed")

	e.Push(once("dead", "p", 1))
	e.ByIDs(e.Store.Bury, "dead")
	repeat("it was buried", "dead")
	e.ByRefs(e.Store.Revive, env.Whole("dead"))
	repeat("it was revived", "dead")

	e.Push(once("deleted", "p", 1))
	e.ByIDs(e.Store.Delete, "deleted")
	repeat("it was deleted", "deleted")

	e.Push(once("failed", "p", 1))
	e.ByIDs(e.Store.Delete, "dead")
	h.Settle(env.Failed(h.One(), "boom", time.Hour))
	repeat("it has failed", "failed")
	e.Same("the queue", e.QueuedIDs(), []string{"failed"})
}

func onceSuperseded(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 1})
	e.Push(once("a", "p", 1))
	e.Push(env.Entry("a", "q", 2))
	e.Met("a push of what was superseded", e.PushRequest(env.Orders, once("a", "p", 3)), ports.PushReply{Repeated: 1})

	e.Met("a push that is superseded at once", e.PushRequest(env.Orders, once("a", "r", 1)),
		ports.PushReply{Superseded: 1})
	e.Met("a push of that", e.PushRequest(env.Orders, once("a", "r", 4)), ports.PushReply{Repeated: 1})
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("q", 2)})
}

func onceAfterwards(e *env.Env) {
	e.Push(once("a", "p", 1))
	e.Clock.Advance(time.Minute)
	e.Met("a push after the time", e.PushRequest(env.Orders, once("a", "p", 0)), ports.PushReply{Duplicate: 1})
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 0)})

	h := e.Acquire("n1")
	h.Settle(env.Done(h.One()))
	e.Clock.Advance(time.Minute)
	e.Met("a push after the next time", e.PushRequest(env.Orders, once("a", "p", 1)), ports.PushReply{New: 1})
}

func onceInOnePush(e *env.Env) {
	shorter := once("a", "p", 2)
	shorter.OnceIn = time.Second
	e.Met("a push of equal entries",
		e.PushRequest(env.Orders, once("a", "p", 1), once("b", "p", 1), shorter, once("a", "q", 3), once("b", "p", 0)),
		ports.PushReply{New: 2, Merged: 1, Repeated: 2})
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 1), env.Pay("q", 3)})

	// The time is that of the first of them.
	e.Clock.Advance(time.Minute - time.Second)
	e.Met("a later push", e.PushRequest(env.Orders, shorter), ports.PushReply{Repeated: 1})
}

// onceMany pushes more entries than a store handles in one step, twice, and of the second push each
// other one is new.
func onceMany(e *env.Env) {
	const n = 2*ports.MaxPush + 1
	var first, second []core.Entry
	for i := range n {
		en := once(fmt.Sprint("id", i%700), fmt.Sprint("p", i), float64(i))
		first = append(first, en)
		if i%2 > 0 {
			en.Data = fmt.Append(en.Data, "x")
		}
		second = append(second, en)
	}
	e.Met("a large push", e.PushRequest(env.Orders, first...), ports.PushReply{New: 700, Merged: n - 700})
	e.Met("another one", e.PushRequest(env.Orders, second...), ports.PushReply{Merged: n / 2, Repeated: n - n/2})
	e.Met("that again", e.PushRequest(env.Orders, second...), ports.PushReply{Repeated: n})
	e.CountedOnce("how many are repeats", e.Counts().Repeated, int64(n-n/2+n))
}

func onceWithout(e *env.Env) {
	e.Push(once("a", "p", 1))
	e.Met("a push without a time", e.PushRequest(env.Orders, env.Entry("a", "p", 1)), ports.PushReply{Duplicate: 1})
	h := e.Acquire("n1")
	h.Settle(env.Done(h.One()))
	e.Met("another one", e.PushRequest(env.Orders, env.Entry("a", "p", 1), env.Entry("b", "p", 1)),
		ports.PushReply{New: 2})
	e.Met("pushes with a time", e.PushRequest(env.Orders, once("a", "p", 1), once("b", "p", 1)),
		ports.PushReply{Duplicate: 1, Repeated: 1})
}

func onceRefused(e *env.Env) {
	_, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, once("a", "p", 1), once("", "p", 1)))
	e.Refused("a push with an invalid entry", err, core.ErrInvalidID)

	r := e.PushRequest(env.Orders, once("a", "p", 1))
	r.Generation++
	_, err = e.Store.Push(e.Ctx, r)
	e.Refused("a push with another generation", err, ports.ErrShardCountMismatch)
	e.Met("the push after that", e.PushRequest(env.Orders, once("a", "p", 1)), ports.PushReply{New: 1})
}

func onceStale(e *env.Env) {
	e.Push(env.EntryAt("a", "q", 5, 0))
	h := e.Acquire("n1")
	x := env.Failed(h.One(), "boom", time.Hour)
	x.Mark = core.MarkAt(5)
	turn := h.Request(0, x)
	turn.Keep = core.KeepPast{Age: 24 * time.Hour}
	h.Send(turn)

	drop := func(what string, want ports.PushReply, entries ...core.Entry) {
		e.TB.Helper()
		r := e.PushRequest(env.Orders, entries...)
		r.DropStale = true
		e.Met(what, r, want)
	}
	drop("a stale push", ports.PushReply{Stale: 1}, once("a", "p", 4))
	drop("a fresh one", ports.PushReply{Merged: 1}, once("a", "p", 6))
	drop("repeats, of which one is stale", ports.PushReply{Stale: 1, Repeated: 2},
		once("a", "p", 7), once("a", "p", 5), once("a", "p", 6))
	counts := e.Counts()
	e.CountedOnce("how many are stale", counts.Stale, int64(2))
	e.CountedOnce("how many are repeats", counts.Repeated, int64(2))
}

func onceForgotten(e *env.Env) {
	e.Push(once("a", "p", 1))
	e.ByIDs(e.Store.Delete, "a")
	e.Forget()
	e.Declare(env.Orders, 1)
	e.Met("a push to the new queue", e.PushRequest(env.Orders, once("a", "p", 1)), ports.PushReply{New: 1})
	e.Same("how many are repeats", e.Counts().Repeated, int64(0))
}

// onceConcurrently pushes equal entries by several handles, some of them with others in two orders.
func onceConcurrently(e *env.Env) {
	const pushers, ids = 6, 20
	before := e.Repeats.All.Load()
	var all sync.WaitGroup
	var mu sync.Mutex
	var sum ports.PushReply
	for n := range pushers {
		var entries []core.Entry
		for i := range ids {
			entries = append(entries, once(fmt.Sprint("id", i), "p", float64(i)))
		}
		if n%2 > 0 {
			slices.Reverse(entries)
		}

		store := e.Open()
		all.Go(func() {
			reply, err := store.Push(e.Ctx, e.PushRequest(env.Orders, entries...))
			mu.Lock()
			defer mu.Unlock()
			if e.Check(err, "Push") {
				sum.Add(reply)
			}
		})
	}
	all.Wait()

	if e.Repeats.All.Load() > before || sum == (ports.PushReply{Now: sum.Now}) {
		e.GiveUp()
	}
	e.Same("what the entries met", sum, ports.PushReply{Now: sum.Now, New: ids, Repeated: (pushers - 1) * ids})
	e.CountedOnce("how many are repeats", e.Counts().Repeated, int64((pushers-1)*ids))
}

// onceManyEnd lets more payloads end than one push removes.
func onceManyEnd(e *env.Env) {
	const n = 2*core.MaxOnceRemoved + 10
	var short, long []core.Entry
	for i := range n {
		long = append(long, once("a", fmt.Sprint("long ", i), float64(i)))
		long[i].OnceIn = time.Hour
		short = append(short, once("a", fmt.Sprint("short ", i), float64(i)))
	}
	e.Push(append(short, long...)...)
	e.Clock.Advance(time.Minute)
	for range 5 {
		e.Met("a push after the time of some", e.PushRequest(env.Orders, once("a", "q", 1), long[0], long[n-1]),
			ports.PushReply{Merged: 1, Repeated: 2})
		e.ByIDs(e.Store.Delete, "a")
		e.Push(env.Entry("a", "z", 1))
		e.Clock.Advance(time.Minute)
	}
	e.Met("the others again", e.PushRequest(env.Orders, append(long, short...)...),
		ports.PushReply{Merged: n, Repeated: n})
}

func onceInvalid(e *env.Env) {
	for _, d := range []time.Duration{-time.Second, core.MinOnce - 1, core.MaxOnce + 1} {
		en := env.Entry("a", "p", 1)
		en.OnceIn = d
		e.Unchanged("a push", func() {
			_, err := e.Store.Push(e.Ctx, e.PushRequest(env.Orders, env.Entry("b", "p", 1), en))
			e.Refused(fmt.Sprint("a push with a time of ", d), err, core.ErrInvalidTime)
		})
	}
}

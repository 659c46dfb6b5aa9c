package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/vectors"
	"github.com/skeinq/skein/ports"
)

const (
	ruleTake = "Take takes grants as core.Rate.Take defines (RULES 12)"
	ruleUse  = "Take uses slots as core.Rate.Use defines, and takes a grant for each that may not be used (RULES 12)"
	ruleStop = "Stop ends all grants of a limiter for a while, as core.Limiter.Stop defines (RULES 12)"
)

func limiterCases() []env.Case {
	return []env.Case{
		{Name: "grants as the worked cases", Rule: ruleTake, Check: limiterVectors},
		{Name: "grants by rates at their bounds", Rule: ruleTake, Check: limiterBounds},
		{Name: "grants nothing at the end of time", Rule: ruleTake, Check: limiterEndOfTime},
		{
			Name:  "takes nothing for a Want of 0",
			Rule:  "Take: a take with a Want and a Use of 0 takes nothing",
			Check: limiterWantsNone,
		},
		{Name: "uses late slots no faster than the rate", Rule: ruleUse, Check: limiterLateSlots},
		{Name: "uses no slot in a stop", Rule: ruleUse, Check: limiterUsesInStop},
		{Name: "counts the uses of all handles", Rule: env.RuleLimiter, Check: limiterUsesOfHandles},
		{Name: "counts the grants of all handles", Rule: env.RuleLimiter, Check: limiterHandles},
		{Name: "stops all handles", Rule: ruleStop, Check: limiterStopsHandles},
		{
			Name:  "keeps a stop that lasts longer",
			Rule:  "Stop: a stop that lasts longer already is not shortened",
			Check: limiterLongerStop,
		},
		{Name: "ends a stop by a stop of no length", Rule: ruleStop, Check: limiterEndsStop},
		{
			Name:  "holds after the clock has stepped back",
			Rule:  "RULES 12: if the clock has stepped back, all times of the limiter are moved back by the difference",
			Check: limiterStepBack,
		},
		{
			Name:  "keeps limiters apart by key and queue",
			Rule:  "Limiter: one for each key of a queue, and one with the empty key for the whole queue",
			Check: limiterKeys,
		},
		{
			Name:  "takes grants of many limiters at once",
			Rule:  "TakeRequest: at most MaxTakes takes; TakeReply: Grants are in the order of the takes",
			Check: limiterMany,
		},
		{Name: "removes limiters that are gone", Rule: "Limiter: removed when core.Limiter.Gone", Check: limiterGone},
		{
			Name:  "lists the limiters that lie ahead",
			Rule:  "Limits: in descending order of (core.Limiter.End, Key)",
			Check: limiterList,
		},
		{
			Name:  "is removed with its queue",
			Rule:  "Limiter: a Forget of the queue removes all its limiters",
			Check: limiterForget,
		},
		{Name: "refuses an unknown queue", Rule: "Limiter: ErrUnknownQueue", Check: limiterUnknown},
		{
			Name:  "takes nothing by an invalid request",
			Rule:  "TakeRequest.Validate, StopRequest.Validate: ErrInvalidRequest, with nothing taken",
			Check: limiterInvalid,
		},
	}
}

// twoAtOnce grants two starts at once, and then one each second.
func twoAtOnce() core.Rate { return core.Rate{Count: 1, Per: time.Second, Burst: 1} }

// takes takes grants of the queue orders. It ends the case without a verdict if the call was
// repeated, since a repeat takes further grants.
func takes(e *env.Env, all ...ports.Take) ports.TakeReply {
	e.TB.Helper()
	since := e.Repeats.Lossy.Load()
	reply := takesAgain(e, all...)
	e.GiveUpIfRepeated(since)
	return reply
}

// takesAgain is takes for a case that finds out by itself whether the call was repeated.
func takesAgain(e *env.Env, all ...ports.Take) ports.TakeReply {
	e.TB.Helper()
	reply, err := e.Store.Take(e.Ctx, ports.TakeRequest{Queue: env.Orders, Takes: all})
	e.Must(err, "Take")
	if len(reply.Grants) != len(all) {
		e.TB.Fatalf("Take of %d limiters returned %d grants", len(all), len(reply.Grants))
	}
	return reply
}

// take takes grants of one limiter by twoAtOnce.
func take(e *env.Env, key string, want int) ports.Grant {
	e.TB.Helper()
	return takes(e, ports.Take{Key: key, Rate: twoAtOnce(), Want: want}).Grants[0]
}

// grantedEach takes grants of limiters by twoAtOnce, and expects as many of each.
func grantedEach(e *env.Env, granted int, keys ...string) {
	e.TB.Helper()
	var all []ports.Take
	for _, key := range keys {
		all = append(all, ports.Take{Key: key, Rate: twoAtOnce(), Want: 9})
	}
	for i, g := range takes(e, all...).Grants {
		e.Same(fmt.Sprintf("the grants of the key %.20q", keys[i]), g.Granted, granted)
	}
}

func granted(e *env.Env, what, key string, want, granted int) {
	e.TB.Helper()
	e.Same(what, take(e, key, want).Granted, granted)
}

// stop stops a limiter of the queue orders.
func stop(e *env.Env, key string, d time.Duration) {
	e.TB.Helper()
	e.Must(e.Store.Stop(e.Ctx, ports.StopRequest{Queue: env.Orders, Key: key, For: d}), "Stop")
}

func limiterVectors(e *env.Env) {
	list, err := vectors.Read[vectors.Rate]("rate.json")
	e.Must(err, "reading the vectors")
	rule := e.Rule
	for n := range list {
		e.Rule = fmt.Sprintf("%s, rate.json: %s", rule, list[n].About)
		for try := 0; !limiterVector(e, fmt.Sprint(n, " ", try), &list[n]); try++ {
			e.Clock.Advance(48 * time.Hour)
		}
		e.Clock.Advance(48 * time.Hour)
	}
}

// limiterVector holds a new limiter to a worked case. It returns false if a take was repeated, so
// that the case must be tried again.
func limiterVector(e *env.Env, key string, v *vectors.Rate) bool {
	e.TB.Helper()
	start, repeats := e.Now(), e.Repeats.Lossy.Load()
	since := func(t core.Instant) int64 { return int64(t - start) }

	for n, step := range v.Steps {
		e.Clock.Set(start.Add(time.Duration(step.At) * time.Microsecond).Time())
		if step.Stop != nil {
			stop(e, key, time.Duration(*step.Stop)*time.Microsecond)
			continue
		}

		rate, err := core.ParseRate(v.RateOf(n))
		e.Must(err, "reading the rate")
		reply := takesAgain(e, ports.Take{
			Key:   key,
			Rate:  rate,
			Use:   step.Use,
			Hold:  time.Duration(step.Hold) * time.Microsecond,
			Want:  step.Want,
			Ahead: time.Duration(step.Ahead) * time.Microsecond,
			Soon:  time.Duration(step.Soon) * time.Microsecond,
		})
		if e.Repeats.Lossy.Load() > repeats {
			return false
		}

		var uses, slots []int64
		g := reply.Grants[0]
		for i := range g.Used {
			uses = append(uses, since(rate.Slot(g.Start, reply.Now, i)))
		}
		for i := range g.Granted {
			slots = append(slots, since(rate.Slot(g.First, reply.Now, i)))
		}
		what := fmt.Sprintf("of call %d", n)
		e.Same("the time "+what, since(reply.Now), step.At)
		e.Same("the used slots "+what, uses, step.Uses)
		e.Same("the slots "+what, slots, step.Slots)
		if g.Granted == 0 {
			e.Same("the next slot "+what, since(rate.Slot(g.First, reply.Now, 0)), step.First)
		}

		stopped := int64(0)
		if g.Stopped != 0 {
			stopped = since(g.Stopped)
		}
		e.Same("the end of the stop "+what, stopped, step.Stopped)
	}
	return true
}

// sameAsCore takes the same grants of new limiters twice, and expects those of core.
func sameAsCore(e *env.Env, all ...ports.Take) {
	e.TB.Helper()
	limiters := make([]core.Limiter, len(all))
	for range 2 {
		reply := takes(e, all...)
		for i, t := range all {
			after, used, start := t.Rate.Use(limiters[i], e.Now(), t.Use, t.Hold)
			next, granted, first := t.Rate.Take(after, e.Now(), t.Want+t.Use-used, t.Ahead, t.Soon)
			e.Same(fmt.Sprintf("what %+v is granted", t), reply.Grants[i],
				ports.Grant{Used: used, Start: start, Granted: granted, First: first})
			limiters[i] = next
		}
	}
}

func limiterBounds(e *env.Env) {
	var all []ports.Take
	for n, rate := range []core.Rate{
		{Count: 1, Per: core.MaxRatePer},
		{Count: core.MaxRateCount, Per: core.MaxRatePer},
		{Count: 100_000, Per: time.Second},
		{Count: 100, Per: core.MinRatePer},
		{Count: 1, Per: core.MaxRatePer / 1000, Burst: 999},
		{Count: 3, Per: time.Second + time.Nanosecond, Burst: 1_000_000},
	} {
		for _, want := range []int{1, 7, ports.MaxWant} {
			for _, ahead := range []time.Duration{0, 1500 * time.Nanosecond, core.MaxAhead} {
				key := fmt.Sprint(n, " ", want, " ", ahead)
				all = append(all,
					ports.Take{Key: key, Rate: rate, Want: want, Ahead: ahead},
					ports.Take{Key: key + " used", Rate: rate, Use: want, Hold: min(ahead, core.MaxHold), Soon: min(ahead, time.Second),
						Want: ports.MaxWant - want, Ahead: ahead})
			}
		}
	}
	sameAsCore(e, all...)
}

func limiterEndOfTime(e *env.Env) {
	slow := core.Rate{Count: 1, Per: core.MaxRatePer / 2, Burst: 1}
	e.Clock.Set(core.MaxInstant.Time().Add(-time.Second))
	sameAsCore(e, ports.Take{Key: "slow", Rate: slow, Want: 9, Ahead: core.MaxAhead},
		ports.Take{Key: "fast", Rate: twoAtOnce(), Want: 9, Ahead: core.MaxAhead},
		ports.Take{Key: "used", Rate: twoAtOnce(), Use: 9, Ahead: core.MaxAhead})

	stop(e, "stopped", core.MaxStop)
	reply := takes(e, ports.Take{Key: "stopped", Rate: slow, Want: 9, Ahead: core.MaxAhead})
	e.Same("what a stopped limiter grants", reply.Grants[0], ports.Grant{
		First:   core.MaxInstant.Add(-slow.Tolerance()),
		Stopped: core.MaxInstant,
	})
}

func limiterWantsNone(e *env.Env) {
	e.Same("a take that wants nothing", take(e, "", 0), ports.Grant{First: e.Now().Add(-time.Second)})
	granted(e, "a take after it", "", 9, 2)
	e.Same("a take that wants nothing", take(e, "", 0), ports.Grant{First: e.Now().Add(time.Second)})
	e.Clock.Advance(time.Second)
	e.Same("a take that wants nothing", take(e, "", 0), ports.Grant{First: e.Now()})
	granted(e, "a take after it", "", 9, 1)

	stop(e, "", time.Minute)
	e.Same("a take that wants nothing of a stopped limiter", take(e, "", 0),
		ports.Grant{First: e.Now().Add(time.Minute), Stopped: e.Now().Add(time.Minute)})
}

// use uses slots of one limiter by twoAtOnce, which may be held for a time, and looks an hour ahead for
// those that may not be used.
func use(e *env.Env, key string, slots int, hold time.Duration) ports.Grant {
	e.TB.Helper()
	return takes(e, ports.Take{Key: key, Rate: twoAtOnce(), Use: slots, Hold: hold, Ahead: time.Hour}).Grants[0]
}

func used(e *env.Env, what, key string, slots, used int) {
	e.TB.Helper()
	e.Same(what, use(e, key, slots, 0).Used, used)
}

func limiterLateSlots(e *env.Env) {
	at := func(s int) core.Instant { return env.Start.Add(time.Duration(s) * time.Second) }
	e.Same("the grants", takes(e, ports.Take{Rate: twoAtOnce(), Want: 9, Ahead: time.Hour}).Grants[0],
		ports.Grant{Granted: 9, First: at(-1)})

	e.Clock.Advance(2 * time.Second)
	e.Same("two slots that have come", use(e, "", 2, 0), ports.Grant{Used: 2, Start: at(1), First: at(8)})
	e.Clock.Advance(8 * time.Second)
	e.Same("five slots, most of them late", use(e, "", 5, time.Second),
		ports.Grant{Used: 3, Start: at(8) + 1, Granted: 2, First: at(11) + 1})
	e.Clock.Advance(2 * time.Second)
	e.Same("a slot that was taken anew", use(e, "", 1, 0), ports.Grant{Used: 1, Start: at(11) + 1, First: at(13) + 1})
	e.Same("a slot too early", use(e, "", 1, 0), ports.Grant{Granted: 1, First: at(13) + 1})
	e.Same("a slot that is held", use(e, "", 1, time.Second), ports.Grant{Used: 1, Start: at(12) + 1, First: at(14) + 1})
}

func limiterUsesInStop(e *env.Env) {
	granted(e, "the grants", "a", 2, 2)
	granted(e, "the grants", "b", 2, 2)
	stop(e, "a", time.Minute)
	e.Clock.Advance(10 * time.Second)

	till := env.Start.Add(time.Minute)
	e.Same("uses in a stop", use(e, "a", 2, 49*time.Second),
		ports.Grant{Granted: 2, First: till, Stopped: till})
	e.Same("uses in a stop without a rate", takes(e, ports.Take{Key: "a", Use: 2}).Grants[0],
		ports.Grant{First: till, Stopped: till})
	used(e, "uses of another limiter", "b", 2, 2)

	e.Clock.Advance(40 * time.Second)
	e.Same("uses that are held until a stop ends", use(e, "a", 2, 10*time.Second),
		ports.Grant{Used: 1, Start: till, Granted: 1, First: till.Add(2 * time.Second), Stopped: till})
	e.Clock.Advance(10 * time.Second)
	used(e, "uses after a stop, without a burst", "a", 9, 0)
	e.Same("uses without a rate", takes(e, ports.Take{Key: "a", Use: 2}).Grants[0],
		ports.Grant{Used: 2, Start: e.Now(), First: e.Now()})
}

func limiterUsesOfHandles(e *env.Env) {
	granted(e, "the grants", "", 9, 2)
	e.Clock.Advance(time.Hour)
	used(e, "the uses of one handle", "", 1, 1)
	granted(e, "the grants of another limiter, which removes some", "other", 1, 1)
	used(e.With(e.Open()), "the uses of a new handle", "", 9, 1)
	used(e, "the uses of the first handle", "", 9, 0)

	e.Clock.Advance(-time.Hour)
	stop(e, "", 0)
	used(e, "the uses after the clock has stepped back", "", 9, 0)
	e.Clock.Advance(time.Second)
	used(e, "the uses a second later", "", 9, 1)
}

func limiterHandles(e *env.Env) {
	granted(e, "the grants of one handle", "", 1, 1)
	granted(e.With(e.Open()), "the grants of a new handle", "", 9, 1)
	granted(e, "the grants of the first handle", "", 9, 0)
	granted(e.With(e.Open()), "the grants of another new handle", "", 9, 0)
	e.Clock.Advance(time.Second)
	granted(e.With(e.Open()), "the grants of a new handle after a second", "", 9, 1)
}

func limiterStopsHandles(e *env.Env) {
	stop(e, "a", time.Minute)
	e.Clock.Advance(59 * time.Second)
	other := e.With(e.Open())
	e.Same("what a new handle is granted in a stop", take(other, "a", 9),
		ports.Grant{First: env.Start.Add(time.Minute), Stopped: env.Start.Add(time.Minute)})
	granted(other, "what another limiter grants", "b", 9, 2)
	granted(other, "what the limiter of the queue grants", "", 9, 2)

	e.Clock.Advance(time.Second)
	granted(other, "the grants at the end of a stop", "a", 9, 1)
}

func limiterLongerStop(e *env.Env) {
	stop(e, "", time.Minute)
	stop(e, "", time.Second)
	e.Same("the end of the stop", take(e, "", 1).Stopped, env.Start.Add(time.Minute))
	stop(e, "", time.Hour)
	e.Same("the end of a longer stop", take(e, "", 1).Stopped, env.Start.Add(time.Hour))
}

func limiterEndsStop(e *env.Env) {
	stop(e, "", time.Minute)
	e.Clock.Advance(time.Second)
	stop(e, "", 0)
	e.Same("what is granted once a stop was ended", take(e, "", 9), ports.Grant{Granted: 1, First: e.Now()})
	stop(e, "new", 0)
	granted(e, "what a limiter grants that was never stopped", "new", 9, 2)
}

func limiterStepBack(e *env.Env) {
	granted(e, "the grants before the step", "", 9, 2)
	stop(e, "stopped", time.Minute)

	e.Clock.Advance(-time.Hour)
	granted(e, "the grants after the step", "", 9, 0)
	e.Same("the end of the stop after the step", take(e, "stopped", 0).Stopped, e.Now().Add(time.Minute))

	e.Clock.Advance(time.Second)
	granted(e, "the grants a second after the step", "", 9, 1)
	e.Clock.Advance(59 * time.Second)
	granted(e, "the grants at the end of the stop", "stopped", 9, 1)
}

func limiterKeys(e *env.Env) {
	e.Declare("mail", 1)
	keys := slices.Concat(env.OddIDs(), []string{
		"", " ", "A", "a", "a ", "a\n", "{a}", "a:b", "'", `"`, `\`, "%", "\x7f", "é", "e\u0301",
		strings.Repeat("k", ports.MaxLimiterKey), strings.Repeat("k", ports.MaxLimiterKey-1) + "l",
	})
	slices.Sort(keys)
	keys = slices.Compact(keys)

	grantedEach(e, 2, keys...)
	grantedEach(e, 0, keys...)

	since := e.Repeats.Lossy.Load()
	reply, err := e.Store.Take(e.Ctx, ports.TakeRequest{
		Queue: "mail",
		Takes: []ports.Take{{Rate: twoAtOnce(), Want: 9}},
	})
	e.Must(err, "Take")
	e.GiveUpIfRepeated(since)
	e.Same("the grants of another queue", reply.Grants, []ports.Grant{{Granted: 2, First: e.Now().Add(-time.Second)}})
}

func limiterMany(e *env.Env) {
	var all []ports.Take
	for n := range ports.MaxTakes {
		all = append(all, ports.Take{
			Key:  fmt.Sprint((n * 7) % ports.MaxTakes),
			Rate: core.Rate{Count: 1, Per: time.Second, Burst: n},
			Want: ports.MaxWant,
		})
	}

	for round, more := range []int{1, 0} {
		reply := takes(e, all...)
		for n, g := range reply.Grants {
			if want := (n + 1) * more; g.Granted != want {
				e.Errorf("round %d: take %d was granted %d, want %d", round, n, g.Granted, want)
			}
		}
	}

	if grants := takes(e).Grants; len(grants) > 0 {
		e.Errorf("a request without takes returned %+v", grants)
	}
}

func limiterGone(e *env.Env) {
	var keys []string
	for n := range 300 {
		keys = append(keys, fmt.Sprint(n))
	}
	grantedEach(e, 2, keys...)
	e.Clock.Advance(time.Hour)
	for range 4 {
		granted(e, "the grants of another limiter", "other", 0, 0)
	}
	grantedEach(e, 2, keys...)
	grantedEach(e, 0, keys...)
}

// limits expects a list of limiters of the queue orders.
func limits(e *env.Env, limit int, want ...ports.LimiterView) {
	e.TB.Helper()
	got, err := e.Store.Limits(e.Ctx, ports.LimitsRequest{Queue: env.Orders, Limit: limit})
	e.Must(err, "Limits")
	e.Same("the time of the list", got.Now, e.Now())
	if len(got.Limits)+len(want) > 0 {
		e.Same("the limiters", got.Limits, want)
	}
}

func limiterList(e *env.Env) {
	limits(e, 0)
	granted(e, "the grants", "", 9, 2)
	granted(e, "the grants", "one", 1, 1)
	granted(e, "the grants", "two", 2, 2)
	stop(e, "stopped", time.Minute)
	stop(e, "two", time.Microsecond)

	queue := ports.LimiterView{Limiter: core.Limiter{
		Next:    env.Start.Add(2 * time.Second),
		Started: env.Start.Add(2 * time.Second),
		Last:    env.Start,
		Changed: env.Start,
	}}
	one, two := queue, queue
	one.Key, two.Key = "one", "two"
	one.Next, two.Stopped = env.Start.Add(time.Second), env.Start.Add(time.Microsecond)
	one.Started = one.Next
	stopped := ports.LimiterView{Key: "stopped", Limiter: core.Limiter{
		Stopped: env.Start.Add(time.Minute),
		Changed: env.Start,
	}}

	limits(e, 0, stopped, two, queue, one)
	limits(e, 2, stopped, two)
	limits(e, ports.MaxPage+1, stopped, two, queue, one)

	e.Clock.Advance(time.Second)
	limits(e, 0, stopped, two, queue)
	e.Clock.Advance(59 * time.Second)
	limits(e, 0)

	used(e, "the uses", "", 2, 2)
	stop(e, "briefly", time.Second)
	queue.Started, queue.Last, queue.Changed = e.Now().Add(time.Second)+1, e.Now(), e.Now()
	limits(e, 1, queue)
	limits(e, 0, queue, ports.LimiterView{Key: "briefly", Limiter: core.Limiter{
		Stopped: e.Now().Add(time.Second),
		Changed: e.Now(),
	}})
}

func limiterForget(e *env.Env) {
	granted(e, "the grants", "a", 9, 2)
	stop(e, "b", time.Minute)
	e.Forget()

	if e.Repeats.All.Load() == 0 {
		_, err := e.Store.Take(e.Ctx, ports.TakeRequest{Queue: env.Orders, Takes: []ports.Take{{Key: "a"}}})
		e.Refused("Take after Forget", err, ports.ErrUnknownQueue)
	}

	e.Declare(env.Orders, 1)
	limits(e, 0)
	granted(e, "the grants of a new queue", "a", 9, 2)
	granted(e, "the grants of a new queue", "b", 9, 2)
}

func limiterUnknown(e *env.Env) {
	for _, queue := range []string{"never", ""} {
		for _, all := range [][]ports.Take{nil, {{Want: 1}}, {{Rate: twoAtOnce()}}} {
			_, err := e.Store.Take(e.Ctx, ports.TakeRequest{Queue: queue, Takes: all})
			e.Refused("Take of an unknown queue", err, ports.ErrUnknownQueue)
		}
		for _, d := range []time.Duration{0, time.Minute} {
			err := e.Store.Stop(e.Ctx, ports.StopRequest{Queue: queue, For: d})
			e.Refused("Stop of an unknown queue", err, ports.ErrUnknownQueue)
		}
		_, err := e.Store.Limits(e.Ctx, ports.LimitsRequest{Queue: queue})
		e.Refused("Limits of an unknown queue", err, ports.ErrUnknownQueue)
	}
}

func limiterInvalid(e *env.Env) {
	good := ports.Take{Key: "good", Rate: twoAtOnce(), Want: 1}
	bad := []ports.Take{
		good,
		{Key: "\xff", Rate: twoAtOnce(), Want: 1},
		{Key: "\x00", Rate: twoAtOnce(), Want: 1},
		{Key: strings.Repeat("k", ports.MaxLimiterKey+1), Rate: twoAtOnce(), Want: 1},
		{Key: "a", Rate: core.Rate{Count: 1}, Want: 1},
		{Key: "a", Rate: twoAtOnce(), Want: -1},
		{Key: "a", Rate: twoAtOnce(), Want: ports.MaxWant + 1},
		{Key: "a", Rate: twoAtOnce(), Use: -1},
		{Key: "a", Rate: twoAtOnce(), Use: 1, Hold: -1},
		{Key: "a", Rate: twoAtOnce(), Want: 1, Soon: -1},
		{Key: "a", Rate: twoAtOnce(), Want: 1, Soon: core.MaxHold + 1},
		{Key: "a", Rate: twoAtOnce(), Use: 1, Hold: core.MaxHold + 1},
		{Key: "a", Rate: twoAtOnce(), Use: 1, Want: ports.MaxWant},
		{Key: "a", Rate: twoAtOnce(), Want: 1, Ahead: -1},
		{Key: "a", Rate: twoAtOnce(), Want: 1, Ahead: core.MaxAhead + 1},
	}
	for _, take := range bad {
		_, err := e.Store.Take(e.Ctx, ports.TakeRequest{Queue: env.Orders, Takes: []ports.Take{good, take}})
		e.Refused(fmt.Sprintf("Take %.100v", fmt.Sprintf("%+v", take)), err, ports.ErrInvalidRequest)
	}

	many := []ports.Take{good}
	for n := range ports.MaxTakes {
		many = append(many, ports.Take{Key: fmt.Sprint(n), Rate: twoAtOnce(), Want: 1})
	}
	_, err := e.Store.Take(e.Ctx, ports.TakeRequest{Queue: env.Orders, Takes: many})
	e.Refused("Take of too many limiters", err, ports.ErrInvalidRequest)

	for _, r := range []ports.StopRequest{
		{For: -1}, {For: 1}, {For: core.MaxStop + 1}, {Key: "\xff", For: time.Second},
		{Key: strings.Repeat("k", ports.MaxLimiterKey+1), For: time.Second},
	} {
		r.Queue = env.Orders
		e.Refused(fmt.Sprintf("Stop for %v", r.For), e.Store.Stop(e.Ctx, r), ports.ErrInvalidRequest)
	}

	limits(e, 0)
	granted(e, "the grants after invalid requests", "good", 9, 2)
}

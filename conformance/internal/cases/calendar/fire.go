package calendar

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleFires = "RULES 10: to fire is to push the payload and to move the schedule to its next tick, in one atomic step"
	ruleTicks = "Ticks returns the earliest Head of the shard's schedules, and the first schedules that are due"
	ruleWakes = "ChangeSchedules: if a push makes the shard's next job earlier, a Notifier sends the shard"
)

func fireCases() []env.Case {
	return []env.Case{
		{Name: "pushes and moves to the next tick", Rule: ruleFires, Check: fireOnce},
		{
			Name:  "does nothing when it is repeated",
			Rule:  "RULES 10: a repeated or a late firing changes nothing",
			Check: fireRepeated,
		},
		{
			Name:  "does nothing after a change or a removal",
			Rule:  "RULES 10: each change of a schedule names the revision that it replaces",
			Check: fireChanged,
		},
		{
			Name:  "merges into the job of the id",
			Rule:  "RULES 10: the push merges as any other by section 2",
			Check: fireMerges,
		},
		{
			Name:  "merges by the queue's rule",
			Rule:  "RULES 10: the push merges as any other by section 2",
			Check: fireByRule,
		},
		{Name: "waits for a claimed job", Rule: "RULES 2: a claimed job is never touched", Check: fireClaimed},
		{
			Name:  "keeps the time of a job in backoff",
			Rule:  "RULES 2, row 1: PerformAt and RetryCount are the queued job's",
			Check: fireBackoff,
		},
		{Name: "pushes all entries of several schedules", Rule: ruleFires, Check: fireMany},
		{
			Name:  "reports what its entries met",
			Rule:  "ChangeSchedulesReply.Met counts what the pushed entries met",
			Check: fireMet,
		},
		{
			Name:  "pushes nothing while its id is busy",
			Rule:  "ScheduleChange.Busy is stored, and no entry is pushed, if the id has a queued or a claimed job",
			Check: fireBusy,
		},
		{
			Name:  "sees the push of an earlier change",
			Rule:  "ChangeSchedules handles the changes in order",
			Check: fireBusyBefore,
		},
		{
			Name:  "does nothing while the queue is paused",
			Rule:  "ChangeSchedules: a firing at a paused queue does nothing",
			Check: firePaused,
		},
		{Name: "handles a large job of its id", Rule: "ChangeSchedules handles at least one change", Check: fireLarge},
		{Name: "is due in order", Rule: ruleTicks, Check: ticksInOrder},
		{Name: "returns as many due schedules as requested", Rule: ruleTicks, Check: ticksLimited},
		{Name: "is due by its head", Rule: ruleTicks, Check: ticksByHead},
		{
			Name:  "returns the ticks of each shard",
			Rule:  "TicksReply.Shards are in the order of the request",
			Check: ticksOfShards,
		},
		{
			Name:  "has no tick in an unknown queue or shard",
			Rule:  "Ticks: ErrUnknownQueue, ErrInvalidRequest",
			Check: ticksElsewhere,
		},
	}
}

func fireOnce(e *env.Env) {
	s := nightly("a", env.Start)
	s.Meta, s.Tags = []byte("trace"), env.Tags("nightly")
	create(e, s)
	e.Clock.Advance(time.Second)
	e.Same("what is due",
		ticks(e, 1), ports.ShardTicks{Now: e.Now(), Head: env.Due(env.Start), Due: []core.Schedule{s}})

	c := firing(e, s)
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	stored(e, "the schedule", *c.Schedule)
	e.Same("the next tick", ticks(e, 1), ports.ShardTicks{Now: e.Now(), Head: c.Schedule.Head()})
	job := e.Queued("a")
	e.Same("the payloads", job.Payloads, []core.Payload{c.Entries[0].Payload})
	want := core.State{PerformAt: env.Start, RetryCount: core.FreshRetryCount, FirstPush: e.Now(), Tags: s.Tags}
	e.Same("the job", job.State, want)
	e.Same("the head of the shard", e.Head(), env.Due(env.Start))
	e.Same("what is claimed", e.Acquire("n1").One().Payloads, job.Payloads)
}

func fireRepeated(e *env.Env) {
	e.By(core.MergeRule{Same: core.SamePush})
	s := nightly("a", env.Start)
	create(e, s)
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	before, jobs := list(e, ports.SchedulesRequest{Queue: env.Orders}), e.Jobs()
	e.Clock.Advance(time.Second)
	e.Same("the results of a repeat", fire(e, s), []ports.ScheduleResult{ports.ScheduleRefused})
	stored(e, "the schedule", before...)
	e.Same("the jobs", e.Jobs(), jobs)

	h := e.Acquire("n1")
	h.Settle(env.Done(h.One()))
	e.Same("the results of a late repeat", fire(e, s), []ports.ScheduleResult{ports.ScheduleRefused})
	e.Same("the jobs", e.Jobs(), nil)
}

func fireChanged(e *env.Env) {
	s := nightly("a", env.Start)
	create(e, s)

	edited := s
	edited.Data, edited.Revision = []byte("other"), 2
	results, _ := change(e, request(e, ports.ScheduleChange{
		ScheduleKey: s.ScheduleKey,
		Revision:    1,
		Schedule:    &edited,
	}))
	e.Same("the result of the change", results, []ports.ScheduleResult{ports.ScheduleChanged})

	e.Same("the result of firing what it was", fire(e, s), []ports.ScheduleResult{ports.ScheduleRefused})
	stored(e, "the schedule", edited)

	results, _ = change(e, request(e, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: 2}))
	e.Same("the result of the removal", results, []ports.ScheduleResult{ports.ScheduleChanged})
	e.Same("the result of firing what is gone", fire(e, edited), []ports.ScheduleResult{ports.ScheduleRefused})
	stored(e, "no schedule")
	e.Same("the jobs", e.Jobs(), nil)
}

func fireMerges(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 5, env.Start.Add(time.Minute)), env.EntryAt("a", "report", 1, env.Start))
	s := nightly("a", env.Start)
	create(e, s)
	e.Clock.Advance(time.Second)
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	job := e.Queued("a")
	e.Same("the job", job.State, env.Fresh(env.Start.Add(time.Minute)))
	e.Same("the payloads", job.Payloads, []core.Payload{env.Pay("report", 1), env.Pay("p", 5)})
}

func fireByRule(e *env.Env) {
	e.By(core.MergeRule{Stays: core.Highest, Keep: 1})
	s := nightly("a", env.Start)
	create(e, s)
	e.Push(env.Entry("a", "p", 5))
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	e.Same("the payloads", e.Queued("a").Payloads, []core.Payload{env.Pay("report", float64(env.Start)/1e6)})
	e.CountedOnce("how many were superseded", e.Counts().Superseded, int64(1))

	e.Push(env.Entry("b", "p", 1e12))
	b := nightly("b", env.Start)
	create(e, b)
	e.Same("the results", fire(e, b), []ports.ScheduleResult{ports.ScheduleChanged})
	e.Same("the payloads", e.Queued("b").Payloads, []core.Payload{env.Pay("p", 1e12)})
}

func fireClaimed(e *env.Env) {
	s := nightly("a", env.Start)
	create(e, s)
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	c := h.One()
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	e.Same("the claimed job", e.Claimed("a"), c)
	e.Same("what else is claimed", len(h.Claim(4)), 0)
	h.Settle(env.Done(c))
	e.Same("what is claimed next", h.One().Payloads, []core.Payload{env.Pay("report", float64(env.Start)/1e6)})
}

func fireBackoff(e *env.Env) {
	s := nightly("a", env.Start)
	create(e, s)
	e.Push(env.Entry("a", "p", 1))
	h := e.Acquire("n1")
	h.Settle(env.Failed(h.One(), "boom", time.Hour))
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	job := e.Queued("a")
	e.Same("the job", job.State, core.State{PerformAt: env.Start.Add(time.Hour), FirstPush: env.Start, Failures: env.Failures("boom")})
	e.Same("how many payloads it has", len(job.Payloads), 2)
}

// fireMany fires two schedules of one id and one of another, each with several entries.
func fireMany(e *env.Env) {
	e.By(core.MergeRule{Same: core.SamePush})
	a, b, c := nightly("a", env.Start), nightly("b", env.Start), nightly("a", env.Start)
	c.Name, c.Data = "weekly", []byte("other")
	for _, s := range []*core.Schedule{&a, &b, &c} {
		s.Catchup.Most = core.MaxFiringEntries
	}
	create(e, a, b, c)

	e.Clock.Advance(2*time.Hour + time.Minute)
	e.Same("the results", fire(e, a, b, c), make([]ports.ScheduleResult, 3))

	e.Same("the ids", e.QueuedIDs(), []string{"a", "b"})
	e.Same("the payloads of two schedules", len(e.Queued("a").Payloads), 6)
	for i, p := range e.Declared[env.Orders].Merge.PushedAll(e.Queued("b").Payloads) {
		tick := env.Start
		if i > 0 { // the ticks are whole hours
			tick = (env.Start/core.Instant(time.Hour/time.Microsecond) + core.Instant(i)) *
				core.Instant(time.Hour/time.Microsecond)
		}
		e.Same(fmt.Sprint("payload ", i), p, env.Pay("report", float64(tick)/1e6))
	}

	for _, s := range list(e, ports.SchedulesRequest{Queue: env.Orders}) {
		e.Same("how many ticks were fired", s.Fired, int64(3))
	}
}

func fireMet(e *env.Env) {
	e.Push(env.Entry("a", "report", 1), env.Entry("b", "p", 1))
	a, b, c := nightly("a", env.Start), nightly("b", env.Start), nightly("c", env.Start)
	create(e, a, b, c)

	r := request(e, firing(e, a), firing(e, b), firing(e, c))
	var met ports.PushReply
	for len(r.Changes) > 0 {
		_, reply := change(e, ports.ChangeSchedulesRequest{
			Shard:      r.Shard,
			Shards:     r.Shards,
			Generation: r.Generation,
			Firing:     true,
			Changes:    r.Changes[:1],
		})
		met.Add(reply.Met)
		r.Changes = r.Changes[1:]
	}

	e.Same("what the entries met", met, ports.PushReply{Now: e.Now(), New: 1, Merged: 1, Duplicate: 1})
}

func fireBusy(e *env.Env) {
	queued, claimed, free := nightly("queued", env.Start), nightly("claimed", env.Start), nightly("free", env.Start)
	for _, s := range []*core.Schedule{&queued, &claimed, &free} {
		s.Skip = true
	}
	create(e, claimed, free, queued)
	e.Push(env.Entry("claimed", "p", 1))
	e.Acquire("n1").One()
	e.Push(env.EntryAt("queued", "p", 1, env.Start.Add(time.Hour)))

	want := []core.Schedule{*firing(e, claimed).Busy, *firing(e, free).Schedule, *firing(e, queued).Busy}
	e.Same("the results", fire(e, queued, claimed, free),
		[]ports.ScheduleResult{ports.ScheduleBusy, ports.ScheduleBusy, ports.ScheduleChanged})
	stored(e, "the schedules", want...)
	e.Same("the queued ids", e.QueuedIDs(), []string{"free", "queued"})
	e.Same("the payloads of the queued job", e.Queued("queued").Payloads, []core.Payload{env.Pay("p", 1)})
	e.Same("the next ticks", ticks(e, 9).Head, want[0].Head())
}

func fireBusyBefore(e *env.Env) {
	a, b := nightly("a", env.Start), nightly("a", env.Start)
	b.Name, b.Data, b.Skip = "weekly", []byte("other"), true
	create(e, a, b)
	e.Same("the results", fire(e, a, b), []ports.ScheduleResult{ports.ScheduleChanged, ports.ScheduleBusy})
	e.Same("the payloads", len(e.Queued("a").Payloads), 1)
}

func firePaused(e *env.Env) {
	s := nightly("a", env.Start)
	s.Skip = true
	create(e, s)

	e.Pause(env.Orders)
	e.Same("what is due", ticks(e, 9), ports.ShardTicks{Now: e.Now()})
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.SchedulePaused})
	stored(e, "the schedule", s)
	e.Same("the jobs", e.Jobs(), nil)

	e.Resume(env.Orders)
	e.Same("what is due",
		ticks(e, 9), ports.ShardTicks{Now: e.Now(), Head: env.Due(env.Start), Due: []core.Schedule{s}})
	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
}

// fireLarge fires a schedule whose id has more payloads and bytes than one call may move.
func fireLarge(e *env.Env) {
	e.By(core.MergeRule{Same: core.SamePush})
	merge := core.MergeRule{Same: core.SamePush}
	for i := range 3 {
		p := merge.Stored(env.Sized(core.MaxStepBytes/2, float64(i)))
		e.PushLarge("a", p)
	}

	s := nightly("a", env.Start)
	s.Catchup.Most = core.MaxFiringEntries
	other := nightly("b", env.Start)

	create(e, s, other)
	e.Clock.Advance(core.MaxFiringEntries * time.Hour)
	e.Same("the results", fire(e, s, other), make([]ports.ScheduleResult, 2))

	found := e.Find("a")
	e.Same("how many payloads the id has", found.Queued.Count, 3+core.MaxFiringEntries)
	e.Same("how many ticks were fired",
		list(e, ports.SchedulesRequest{Queue: env.Orders, ID: "a"})[0].Fired, int64(core.MaxFiringEntries))
	e.Same("the other job", len(e.Queued("b").Payloads), 1)
}

func ticksInOrder(e *env.Env) {
	a, b, c, later := nightly("b", env.Start), nightly("a", env.Start.Add(time.Second)), nightly("b", env.Start),
		nightly("c", env.Start.Add(time.Hour))
	a.Name = "a"
	create(e, b, c, later, a)
	e.Same("what is due at the first tick",
		ticks(e, 9), ports.ShardTicks{Now: e.Now(), Head: env.Due(env.Start), Due: []core.Schedule{a, c}})
	e.Clock.Advance(time.Minute)
	e.Same("what is due later",
		ticks(e, 9), ports.ShardTicks{Now: e.Now(), Head: env.Due(env.Start), Due: []core.Schedule{a, c, b}})
}

func ticksLimited(e *env.Env) {
	all := createMany(e, ports.MaxSchedulesPage+5, env.Start)
	e.Clock.Advance(time.Hour / 2)
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 7: 7, 1000: ports.MaxSchedulesPage} {
		got := ticks(e, limit)
		e.Same(fmt.Sprint("what is due of at most ", limit),
			got, ports.ShardTicks{Now: e.Now(), Head: env.Due(env.Start), Due: all[:want]})
	}
	e.Same("the results",
		fire(e, all[:ports.MaxSchedulesPage]...), make([]ports.ScheduleResult, ports.MaxSchedulesPage))
	remaining := all[ports.MaxSchedulesPage:]
	e.Same("what is left", ticks(e, 9), ports.ShardTicks{Now: e.Now(), Head: env.Due(remaining[0].Next), Due: remaining})
}

func ticksByHead(e *env.Env) {
	late := nightly("a", env.Start)
	late.Jitter = time.Hour
	broken := nightly("b", env.Start)
	broken.Broken, broken.RetryAt = "no such zone", env.Start.Add(time.Minute)
	paused := nightly("c", env.Start)
	paused.Paused = true
	never := nightly("d", core.MaxInstant)

	create(e, late, broken, paused, never)
	e.Same("before any is due", ticks(e, 9), ports.ShardTicks{Now: e.Now(), Head: broken.Head().Earlier(late.Head())})

	e.Clock.Advance(2 * time.Hour)
	want := []core.Schedule{late, broken}
	if broken.Head().Due < late.Head().Due {
		want = []core.Schedule{broken, late}
	}

	e.Same("when both are due", ticks(e, 9).Due, want)
}

func ticksOfShards(e *env.Env) {
	e.Declare("mail", 3)
	shards := core.Shards("mail", 3)

	ids := map[int]string{}
	for i := 0; len(ids) < 2; i++ {
		id := fmt.Sprint(i)
		if at := core.ShardOf(id, 3); at != 1 && ids[at] == "" {
			ids[at] = id
		}
	}

	first, last := nightly(ids[0], env.Start), nightly(ids[2], env.Start.Add(time.Hour))
	createAt(e, shards[0], first)
	createAt(e, shards[2], last)

	reply, err := e.Store.Ticks(e.Ctx, ports.TicksRequest{
		Shards: []core.Shard{shards[2], e.Shard, shards[0], shards[1]},
		Limit:  1,
	})
	e.Must(err, "Ticks")
	e.Same("the ticks of shards", reply.Shards, []ports.ShardTicks{
		{Now: e.Now(), Head: env.Due(last.Next)},
		{Now: e.Now()},
		{Now: e.Now(), Head: env.Due(env.Start), Due: []core.Schedule{first}},
		{Now: e.Now()},
	})

	reply, err = e.Store.Ticks(e.Ctx, ports.TicksRequest{})
	e.Must(err, "Ticks of no shard")
	e.Same("the ticks of no shard", len(reply.Shards), 0)
}

func ticksElsewhere(e *env.Env) {
	_, err := e.Store.Ticks(e.Ctx, ports.TicksRequest{Shards: []core.Shard{e.Shard, {Queue: "nowhere"}}})
	e.Refused("Ticks of an unknown queue", err, ports.ErrUnknownQueue)
	for _, index := range []int{-1, 1} {
		_, err = e.Store.Ticks(e.Ctx, ports.TicksRequest{Shards: []core.Shard{{Queue: env.Orders, Index: index}}})
		e.Refused("Ticks of a shard that is not there", err, ports.ErrInvalidRequest)
	}
}

func fireWakes(e *env.Env) {
	s := nightly("a", env.Start)
	create(e, s)

	ctx, cancel := context.WithCancel(e.Ctx)
	defer cancel()
	wakeups, err := e.Store.(ports.Notifier).Wakeups(ctx, []core.Shard{e.Shard})
	e.Must(err, "Wakeups")

	e.Same("the results", fire(e, s), []ports.ScheduleResult{ports.ScheduleChanged})
	select {
	case woken := <-wakeups:
		e.Same("the shard", woken, e.Shard)
	case <-time.After(time.Minute):
		e.Errorf("no wake-up within a minute")
	}
}

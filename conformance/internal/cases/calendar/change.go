package calendar

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleRevision = "ChangeSchedules: a change whose revision is not the stored one is refused and does nothing"

func changeCases() []env.Case {
	return []env.Case{
		{Name: "stores every field", Rule: "ChangeSchedules stores ScheduleChange.Schedule", Check: changeFields},
		{
			Name:  "keeps nothing that it returns",
			Rule:  "Calendar: schedules in replies belong to the caller",
			Check: changeReturned,
		},
		{Name: "creates what does not exist", Rule: ruleRevision, Check: changeCreates},
		{Name: "replaces the revision that it names", Rule: ruleRevision, Check: changeReplaces},
		{Name: "removes the revision that it names, or any", Rule: ruleRevision, Check: changeRemoves},
		{Name: "applies each change by itself", Rule: "ChangeSchedules: each change is atomic", Check: changeEach},
		{Name: "applies one of several concurrent changes", Rule: ruleRevision, Check: changeConcurrently},
		{
			Name:  "returns when the next schedule is due",
			Rule:  "ChangeSchedulesReply.Head is when the shard's next schedule is due",
			Check: changeHead,
		},
		{
			Name:  "works while the queue is paused",
			Rule:  "ChangeSchedules: only a firing does nothing at a paused queue",
			Check: changePaused,
		},
		{
			Name:  "keeps its queue from being forgotten",
			Rule:  "Forget: the queue must have no schedule",
			Check: changeForgotten,
		},
		{
			Name:  "refuses a bad request",
			Rule:  "ChangeSchedulesRequest.Validate, with nothing changed",
			Check: changeInvalid,
		},
		{
			Name:  "refuses another layout, shard or queue",
			Rule:  "ChangeSchedules: ErrShardCountMismatch, ErrInvalidRequest, ErrUnknownQueue, with nothing changed",
			Check: changeElsewhere,
		},
	}
}

// full returns a schedule with a value in each field.
func full() core.Schedule {
	return core.Schedule{
		ScheduleKey: key("order é 1", "A-z_0.9:x"),
		Recurrence: core.Recurrence{
			Spec:       "cron 0 6 * * 1-5 Europe/Berlin",
			Data:       []byte("\x00\xff\"\\ \u2028"),
			Score:      -1.5,
			FixedScore: true,
			Meta:       []byte{0, 1},
			Tags:       env.Tags("nightly vip"),
			Jitter:     time.Hour + time.Nanosecond,
			Catchup:    core.Catchup{Most: 1, Within: time.Minute},
			Skip:       true,
		},
		SpecSince: env.Start - 1,
		Earlier:   []core.EarlierSpec{{Spec: "every 1m0s 0", Until: env.Start - 1}},
		Next:      env.Start.Add(time.Hour),
		Paused:    true,
		Note:      "bank maintenance – \"ann\"",
		PausedBy:  "bob",
		PausedAt:  env.Start - 2,
		Set:       "billing",
		Version:   1 << 62,
		Edited:    true,
		By:        "ann",
		ChangedAt: env.Start,
		Revision:  int64(core.MaxInstant) - 1,
		Fired:     1,
		Missed:    2,
		Skipped:   3,
		Recent: []core.Tick{
			{Due: 1, Outcome: core.TickMissed},
			{Due: 2, Outcome: core.TickFired, Late: time.Second + time.Nanosecond},
		},
		Backfill: &core.Backfill{From: 1, To: 9, Ticks: 2, By: "ann", At: env.Start},
		Broken:   "unknown time zone \x01",
		RetryAt:  core.MaxInstant,
	}
}

func changeFields(e *env.Env) {
	s := full()
	create(e, s)
	stored(e, "a schedule with all fields", s)
	plain := core.Schedule{
		ScheduleKey: key("a", "b"),
		Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0"},
		Next:        core.MaxInstant, Revision: 1,
	}
	create(e, plain)
	stored(e, "one with few fields beside it", s, plain)
}

func changeReturned(e *env.Env) {
	due := func() core.Schedule {
		s := full()
		s.Next, s.Jitter, s.Paused, s.RetryAt = env.Start, 0, false, 0
		return s
	}
	create(e, due())

	var returned []core.Schedule
	returned = append(returned, list(e, ports.SchedulesRequest{Queue: env.Orders})...)
	returned = append(returned, list(e, ports.SchedulesRequest{Queue: env.Orders, ID: due().ID})...)
	names, err := e.Store.ScheduleNames(e.Ctx, ports.ScheduleNamesRequest{Queue: env.Orders})
	e.Must(err, "ScheduleNames")
	for _, n := range names.Names {
		returned = append(returned, n.First)
	}
	ticks, err := e.Store.Ticks(e.Ctx, ports.TicksRequest{Shards: []core.Shard{e.Shard}, Limit: 1})
	e.Must(err, "Ticks")
	returned = append(returned, ticks.Shards[0].Due...)

	e.Same("the returned schedules", returned, []core.Schedule{due(), due(), due(), due()})
	for i := range returned {
		s := &returned[i]
		s.Earlier[0].Spec, s.Recent[0].Outcome, s.Backfill.Ticks = "never", core.TickSkipped, 0
		stored(e, "the schedule after its caller has changed a reply", due())
	}
}

func changeCreates(e *env.Env) {
	s := nightly("a", env.Start.Add(time.Hour))
	create(e, s)
	other := s
	other.Data, other.Revision = []byte("other"), 9
	results, _ := change(e, request(e, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Schedule: &other}))
	e.Same("the result of a second creation", results, []ports.ScheduleResult{ports.ScheduleRefused})
	stored(e, "the schedule", s)
}

func changeReplaces(e *env.Env) {
	s := nightly("a", env.Start.Add(time.Hour))
	create(e, s)

	next := s
	next.Data, next.Revision, next.Next = []byte("other"), 5, env.Start.Add(time.Minute)

	for _, revision := range []int64{2, 5} {
		next.Revision = revision + 1
		results, _ := change(e, request(e, ports.ScheduleChange{
			ScheduleKey: s.ScheduleKey,
			Revision:    revision,
			Schedule:    &next,
		}))
		e.Same("the result for another revision", results, []ports.ScheduleResult{ports.ScheduleRefused})
	}

	absent := next
	absent.ScheduleKey = key("a", "absent")
	results, _ := change(e, request(e, ports.ScheduleChange{
		ScheduleKey: absent.ScheduleKey,
		Revision:    1,
		Schedule:    &absent,
	}))
	e.Same("the result for an absent schedule", results, []ports.ScheduleResult{ports.ScheduleRefused})
	stored(e, "the schedule", s)

	next.Revision = 5
	results, _ = change(e, request(e, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: 1, Schedule: &next}))
	e.Same("the result for its revision", results, []ports.ScheduleResult{ports.ScheduleChanged})
	stored(e, "the schedule", next)
	e.Same("its tick", ticks(e, 1).Head, env.Due(next.Next))
}

func changeRemoves(e *env.Env) {
	s, other := nightly("a", env.Start), nightly("b", env.Start.Add(time.Hour))
	create(e, s, other)

	remove := func(revision int64) []ports.ScheduleResult {
		results, _ := change(e, request(e, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: revision}))
		return results
	}

	refused, changed := []ports.ScheduleResult{ports.ScheduleRefused}, []ports.ScheduleResult{ports.ScheduleChanged}
	e.Same("the result for another revision", remove(2), refused)
	e.Same("the result for no schedule", remove(0), refused)
	stored(e, "the schedules", s, other)

	e.Same("the result for its revision", remove(1), changed)
	stored(e, "the schedules", other)
	e.Same("the next tick", ticks(e, 1), ports.ShardTicks{Now: e.Now(), Head: env.Due(other.Next)})

	e.Same("the result for any revision of none", remove(ports.AnyRevision), refused)
	create(e, s)
	e.Same("the result for any revision", remove(ports.AnyRevision), changed)
	stored(e, "the schedules", other)
}

func changeEach(e *env.Env) {
	a, b, c := nightly("a", env.Start), nightly("b", env.Start), nightly("c", env.Start)
	create(e, a, c)

	next := a
	next.Revision, next.Next = 2, env.Start.Add(time.Hour)
	again := c
	again.Revision = 9

	results, _ := change(e, request(e,
		ports.ScheduleChange{ScheduleKey: a.ScheduleKey, Revision: 1, Schedule: &next},
		ports.ScheduleChange{ScheduleKey: c.ScheduleKey, Schedule: &again},
		ports.ScheduleChange{ScheduleKey: b.ScheduleKey, Schedule: &b},
	))

	e.Same("the results",
		results, []ports.ScheduleResult{ports.ScheduleChanged, ports.ScheduleRefused, ports.ScheduleChanged})
	stored(e, "the schedules", next, b, c)

	results, _ = change(e, request(e))
	e.Same("the results of no change", results, nil)
}

func changeConcurrently(e *env.Env) {
	s := nightly("a", env.Start)
	race(e, s.ScheduleKey, 0)
	create(e, s)
	race(e, s.ScheduleKey, s.Revision)
	e.Same("how many payloads were pushed", len(e.Queued("a").Payloads), 2)
}

// race lets several handles change one revision of a schedule at once, each with a push. One of
// them succeeds. In the end the schedule is removed.
func race(e *env.Env, k core.ScheduleKey, revision int64) {
	e.TB.Helper()
	const callers = 8

	var applied atomic.Int64
	var wg sync.WaitGroup

	for n := range callers {
		next := nightly(k.ID, env.Start)
		next.Revision = revision + 1 + int64(n)
		r := request(e, ports.ScheduleChange{
			ScheduleKey: k, Revision: revision, Schedule: &next,
			Entries: []core.Entry{env.Entry(k.ID, fmt.Sprint(revision, n), 1)},
		})
		store := e.Open()

		wg.Go(func() {
			reply, err := store.ChangeSchedules(e.Ctx, r)
			if e.Check(err, "ChangeSchedules") && len(reply.Results) == 1 && reply.Results[0] == ports.ScheduleChanged {
				applied.Add(1)
			}
		})
	}

	wg.Wait()
	if e.Repeats.All.Load() > 0 {
		e.GiveUp()
	}

	e.Same("how many changes were applied", applied.Load(), int64(1))
	e.Same("how many schedules there are", len(list(e, ports.SchedulesRequest{Queue: env.Orders})), 1)

	results, _ := change(e, request(e, ports.ScheduleChange{ScheduleKey: k, Revision: ports.AnyRevision}))
	e.Same("the result of the removal", results, []ports.ScheduleResult{ports.ScheduleChanged})
}

func changeHead(e *env.Env) {
	head := func(c ports.ScheduleChange) core.Head {
		_, reply := change(e, request(e, c))
		e.Same("the time", reply.Now, e.Now())
		return reply.Head
	}

	late, soon := nightly("a", env.Start.Add(time.Hour)), nightly("b", env.Start.Add(time.Minute))
	soon.Jitter = time.Hour
	paused := nightly("c", env.Start)
	paused.Paused = true
	never := nightly("d", core.MaxInstant)

	e.Same("after the first",
		head(ports.ScheduleChange{ScheduleKey: late.ScheduleKey, Schedule: &late}), env.Due(late.Next))
	e.Same("after an earlier one",
		head(ports.ScheduleChange{ScheduleKey: soon.ScheduleKey, Schedule: &soon}), late.Head().Earlier(soon.Head()))
	e.Same("after a paused one", head(ports.ScheduleChange{ScheduleKey: paused.ScheduleKey, Schedule: &paused}),
		late.Head().Earlier(soon.Head()))
	e.Same("after one without a tick",
		head(ports.ScheduleChange{ScheduleKey: never.ScheduleKey, Schedule: &never}), late.Head().Earlier(soon.Head()))
	e.Same("after the removal of one",
		head(ports.ScheduleChange{ScheduleKey: late.ScheduleKey, Revision: 1}), soon.Head())
	e.Same("after the removal of both",
		head(ports.ScheduleChange{ScheduleKey: soon.ScheduleKey, Revision: 1}), core.Head{})
}

func changePaused(e *env.Env) {
	e.Pause(env.Orders)
	s := nightly("a", env.Start)
	_, reply := change(e, request(e, ports.ScheduleChange{
		ScheduleKey: s.ScheduleKey,
		Schedule:    &s,
		Entries:     []core.Entry{env.Entry("a", "p", 1)},
	}))
	e.Same("the result", reply.Results, []ports.ScheduleResult{ports.ScheduleChanged})
	e.Same("the head while the queue is paused", reply.Head, core.Head{})
	stored(e, "the schedule", s)
	e.Same("what was pushed", e.Queued("a").Payloads, []core.Payload{env.Pay("p", 1)})
}

func changeForgotten(e *env.Env) {
	s := nightly("a", core.MaxInstant)
	s.Paused = true
	create(e, s)
	e.Refused("Forget", e.Store.Forget(e.Ctx, env.Orders), ports.ErrNotEmpty)
	stored(e, "the schedule", s)
	results, _ := change(e, request(e, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: 1}))
	e.Same("the result of the removal", results, []ports.ScheduleResult{ports.ScheduleChanged})
	e.Forget()
	e.Declare(env.Orders, 1)
	stored(e, "no schedule")
	names(e, ports.ScheduleNamesRequest{Queue: env.Orders})
}

func changeInvalid(e *env.Env) {
	s := nightly("a", env.Start)
	create(e, s)

	next := s
	next.Revision = 2
	bad := func(edit func(c *ports.ScheduleChange)) ports.ScheduleChange {
		kept := next
		c := ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: 1, Schedule: &kept}
		edit(&c)
		return c
	}

	entries := make([]core.Entry, core.MaxFiringEntries+1)
	for i := range entries {
		entries[i] = env.Entry("a", "p", float64(i))
	}

	for name, c := range map[string]ports.ScheduleChange{
		"another key":          bad(func(c *ports.ScheduleChange) { c.Name = "other" }),
		"no higher revision":   bad(func(c *ports.ScheduleChange) { c.Schedule.Revision = 1 }),
		"a revision below any": bad(func(c *ports.ScheduleChange) { c.Revision = -2 }),
		"any revision":         bad(func(c *ports.ScheduleChange) { c.Revision = ports.AnyRevision }),
		"a busy without a key": bad(func(c *ports.ScheduleChange) { c.Busy = &core.Schedule{} }),
		"an entry of another": bad(func(c *ports.ScheduleChange) {
			c.Entries = []core.Entry{env.Entry("b", "p", 1)}
		}),
		"too many entries":      bad(func(c *ports.ScheduleChange) { c.Entries = entries }),
		"a removal that pushes": bad(func(c *ports.ScheduleChange) { c.Schedule, c.Entries = nil, entries[:1] }),
		"no id":                 bad(func(c *ports.ScheduleChange) { c.ID, c.Schedule.ID = "", "" }),
		"a name with a space":   bad(func(c *ports.ScheduleChange) { c.Name, c.Schedule.Name = "a b", "a b" }),
		"no spec":               bad(func(c *ports.ScheduleChange) { c.Schedule.Spec = "" }),
		"a negative jitter":     bad(func(c *ports.ScheduleChange) { c.Schedule.Jitter = -1 }),
	} {
		fine := nightly("fine", env.Start)
		_, err := e.Store.ChangeSchedules(e.Ctx,
			request(e, ports.ScheduleChange{ScheduleKey: fine.ScheduleKey, Schedule: &fine}, c))
		if err == nil {
			e.Errorf("ChangeSchedules with %s returned no error", name)
		}
	}

	c := bad(func(*ports.ScheduleChange) {})
	_, err := e.Store.ChangeSchedules(e.Ctx, request(e, c, c))
	e.Refused("ChangeSchedules of one schedule twice", err, ports.ErrInvalidRequest)
	_, err = e.Store.ChangeSchedules(e.Ctx, request(e, make([]ports.ScheduleChange, ports.MaxScheduleChanges+1)...))
	e.Refused("ChangeSchedules of too many", err, ports.ErrInvalidRequest)

	stored(e, "the schedule", s)
	e.Same("what was pushed", e.QueuedIDs(), nil)
}

func changeElsewhere(e *env.Env) {
	e.Declare("mail", 3)
	s := nightly("a", env.Start)
	at := core.Shard{Queue: "mail", Index: core.ShardOf("a", 3)}
	r := requestAt(e, at, ports.ScheduleChange{
		ScheduleKey: s.ScheduleKey,
		Schedule:    &s,
		Entries:     []core.Entry{env.Entry("a", "p", 1)},
	})

	refuse := func(what string, sentinel error, edit func(r *ports.ChangeSchedulesRequest)) {
		bad := r
		edit(&bad)
		_, err := e.Store.ChangeSchedules(e.Ctx, bad)
		e.Refused("ChangeSchedules "+what, err, sentinel)
	}

	refuse("with another generation", ports.ErrShardCountMismatch, func(r *ports.ChangeSchedulesRequest) {
		r.Generation++
	})
	refuse("with another number of shards", ports.ErrShardCountMismatch, func(r *ports.ChangeSchedulesRequest) {
		r.Shards, r.Shard.Index = 1, 0
	})
	refuse("at another shard", ports.ErrInvalidRequest, func(r *ports.ChangeSchedulesRequest) {
		r.Shard.Index = (at.Index + 1) % 3
	})
	refuse("at a shard that is not there", ports.ErrInvalidRequest, func(r *ports.ChangeSchedulesRequest) {
		r.Shard.Index = 7
	})
	refuse("of an unknown queue", ports.ErrUnknownQueue, func(r *ports.ChangeSchedulesRequest) {
		r.Shard.Queue = "nowhere"
	})

	e.Same("the schedules", list(e, ports.SchedulesRequest{Queue: "mail"}), nil)
	e.Same("what was pushed", e.JobsOf("mail"), nil)
}

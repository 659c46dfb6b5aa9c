// Package calendar has the cases of schedules (docs/rules.md 10).
//
//   - change.go is about the changes of schedules: their revisions, and what is stored.
//   - fire.go is about ticks and the pushes of a firing.
//   - list.go is about the lists of schedules and of their names.
package calendar

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Groups returns the cases of the room. Those of wake-ups are for a [ports.Notifier].
func Groups(store ports.ShardStore) []env.Group {
	fire := fireCases()
	if _, ok := store.(ports.Notifier); ok {
		fire = append(fire, env.Case{Name: "wakes the shard", Rule: ruleWakes, Check: fireWakes})
	}
	return []env.Group{
		{Name: "schedule", Cases: changeCases(), Once: true},
		{Name: "fire", Cases: fire},
		{Name: "schedules", Cases: listCases(), Once: true},
	}
}

// key returns the key of a schedule of an id.
func key(id, name string) core.ScheduleKey { return core.ScheduleKey{ID: id, Name: name} }

// nightly returns a schedule of an hour, whose next tick is at an instant, with revision 1.
func nightly(id string, next core.Instant) core.Schedule {
	return core.Schedule{
		ScheduleKey: key(id, "nightly"),
		Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte("report")},
		Next:        next,
		Revision:    1,
	}
}

// request returns a request for changes of the queue orders.
func request(e *env.Env, changes ...ports.ScheduleChange) ports.ChangeSchedulesRequest {
	return requestAt(e, e.Shard, changes...)
}

func requestAt(e *env.Env, at core.Shard, changes ...ports.ScheduleChange) ports.ChangeSchedulesRequest {
	q := e.Declared[at.Queue]
	return ports.ChangeSchedulesRequest{Shard: at, Shards: q.Shards, Generation: q.Generation, Changes: changes}
}

// change makes changes, and returns the results of all of them. The store may handle them in
// several calls. If a call was repeated, its results have no meaning, and the case has no verdict.
func change(
	e *env.Env,
	r ports.ChangeSchedulesRequest,
) (results []ports.ScheduleResult, last ports.ChangeSchedulesReply) {
	e.TB.Helper()
	before := e.Repeats.All.Load()

	for len(r.Changes) > 0 {
		reply, err := e.Store.ChangeSchedules(e.Ctx, r)
		e.Must(err, "ChangeSchedules")
		if e.Repeats.All.Load() > before {
			e.GiveUp()
		}

		n := len(reply.Results)
		if n == 0 || n > len(r.Changes) {
			e.TB.Fatalf("ChangeSchedules handled %d of %d changes\nthe rule: %s", n, len(r.Changes), e.Rule)
		}

		results, last = append(results, reply.Results...), reply
		r.Changes = r.Changes[n:]
	}
	return results, last
}

// create stores new schedules.
func create(e *env.Env, schedules ...core.Schedule) {
	e.TB.Helper()
	createAt(e, e.Shard, schedules...)
}

func createAt(e *env.Env, at core.Shard, schedules ...core.Schedule) {
	e.TB.Helper()

	for len(schedules) > 0 {
		n := min(len(schedules), ports.MaxScheduleChanges)
		var changes []ports.ScheduleChange
		for i := range schedules[:n] {
			changes = append(changes, ports.ScheduleChange{
				ScheduleKey: schedules[i].ScheduleKey,
				Schedule:    &schedules[i],
			})
		}

		results, _ := change(e, requestAt(e, at, changes...))
		e.Same("the results of new schedules", results, make([]ports.ScheduleResult, n))
		schedules = schedules[n:]
	}
}

// createMany stores n schedules of ids in order, whose ticks are a second apart, the first one at
// an instant. It returns them.
func createMany(e *env.Env, n int, first core.Instant) []core.Schedule {
	e.TB.Helper()
	all := make([]core.Schedule, n)
	for i := range all {
		all[i] = nightly(fmt.Sprintf("%04d", i), first.Add(time.Duration(i)*time.Second))
	}
	create(e, all...)
	return all
}

// firing returns the change of a schedule whose tick is due at the present time.
func firing(e *env.Env, s core.Schedule) ports.ScheduleChange {
	e.TB.Helper()
	spec, err := core.ParseSpec(s.Spec, time.UTC)
	e.Must(err, "ParseSpec")

	f, ok := s.Fire(spec, e.Now())
	if !ok {
		e.TB.Fatalf("schedule %s of id %s is not due", s.Name, s.ID)
	}

	merge := e.Declared[env.Orders].Merge
	for i := range f.Entries {
		f.Entries[i].Payload = merge.Stored(f.Entries[i].Payload)
	}

	return ports.ScheduleChange{
		ScheduleKey: s.ScheduleKey,
		Revision:    s.Revision,
		Schedule:    &f.After,
		Entries:     f.Entries,
		Busy:        f.Busy,
	}
}

// fire fires schedules that are due, and returns the results.
func fire(e *env.Env, schedules ...core.Schedule) []ports.ScheduleResult {
	e.TB.Helper()
	var changes []ports.ScheduleChange
	for _, s := range schedules {
		changes = append(changes, firing(e, s))
	}
	r := request(e, changes...)
	r.Firing = true
	results, _ := change(e, r)
	return results
}

// list returns all schedules of a queue.
func list(e *env.Env, r ports.SchedulesRequest) (all []core.Schedule) {
	e.TB.Helper()
	for {
		page, err := e.Store.Schedules(e.Ctx, r)
		e.Must(err, "Schedules")
		e.Same("the time of a page", page.Now, e.Now())
		all = append(all, page.Schedules...)
		if page.Next == (core.ScheduleKey{}) {
			return all
		}
		r.After = page.Next
	}
}

// stored checks that the queue orders has these schedules, in order of (Name, ID).
func stored(e *env.Env, what string, want ...core.Schedule) {
	e.TB.Helper()
	e.Same(what, list(e, ports.SchedulesRequest{Queue: env.Orders}), want)
}

// ticks returns the ticks of the queue orders.
func ticks(e *env.Env, limit int) ports.ShardTicks {
	e.TB.Helper()
	reply, err := e.Store.Ticks(e.Ctx, ports.TicksRequest{Shards: []core.Shard{e.Shard}, Limit: limit})
	e.Must(err, "Ticks")
	if len(reply.Shards) != 1 {
		e.TB.Fatalf("Ticks of 1 shard returned %d\nthe rule: %s", len(reply.Shards), e.Rule)
	}
	e.Same("the time of the ticks", reply.Shards[0].Now, e.Now())
	return reply.Shards[0]
}

package ticks

import (
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// errUnreached is the error of a look that has not reached a shard.
var errUnreached = errors.New("the shard can't be reached")

// errNothingFired is the error of a look that finds due schedules and can fire none of them. That
// happens if other servers fire them.
var errNothingFired = errors.New("due schedules were not fired, since they changed meanwhile")

// errClock is the error of a look by a clock that has passed all ticks. To fire would end each
// schedule, and one whose spec can't be read would be due again at once.
var errClock = fmt.Errorf(
	"the store's clock is past %v, so nothing is fired; "+
		"correct the clock of the store's server, and the ticks that came meanwhile follow",
	core.MaxInstant.Time().Truncate(time.Second))

// Fire fires the due schedules of a shard, until none is due. It returns when the next one is due,
// by the clock of this process, or the zero time.
func (f *Firer) Fire(s Shard) (next time.Time, err error) {
	var sum total
	defer func() { f.report(s, &sum) }()
	for refused := 0; ; {
		due, now, next, err := f.due(s)
		switch {
		case len(due) == 0:
			return next, err
		case now >= core.MaxInstant:
			return time.Time{}, errClock
		}

		before := sum
		next, err = f.change(s, f.changes(s, due, now), &sum)
		switch {
		case err != nil:
			return time.Time{}, err
		case sum.changed > before.changed:
			refused = 0
		case refused > 0:
			return time.Time{}, errNothingFired
		default:
			refused++
		}
		if next.IsZero() || time.Until(next) > 0 {
			return next, nil
		}
	}
}

// due returns the first schedules of a shard that are due, and the store's time. If there is none,
// it returns when the next one is due, or an error.
func (f *Firer) due(s Shard) (due []core.Schedule, now core.Instant, next time.Time, err error) {
	ctx, cancel := f.cfg.Call()
	defer cancel()
	reply, err := f.cfg.Store.Ticks(ctx, ports.TicksRequest{Shards: []core.Shard{s.ID}, Limit: ports.MaxSchedulesPage})
	switch {
	case err != nil:
		return nil, 0, time.Time{}, err
	case len(reply.Unreached) > 0 || len(reply.Shards) != 1:
		return nil, 0, time.Time{}, errUnreached
	}
	ticks := &reply.Shards[0]
	return ticks.Due, ticks.Now, localTime(ticks.Head, ticks.Now, time.Now()), nil
}

// total is what a shard's firing has done.
type total struct {
	event   ports.TickEvent
	changed int
	// first is a schedule with missed ticks, and broken one whose spec can't be read, because of
	// cause.
	first, broken core.ScheduleKey
	cause         error
}

// firing is the change of one schedule, with what the change does.
type firing struct {
	change ports.ScheduleChange
	before *core.Schedule
	err    error
}

// changes returns the changes that fire schedules, or mark them as broken.
func (f *Firer) changes(s Shard, due []core.Schedule, now core.Instant) []firing {
	firings := make([]firing, 0, len(due))
	for i := range due {
		before := &due[i]
		c := ports.ScheduleChange{ScheduleKey: before.ScheduleKey, Revision: before.Revision}
		spec, err := before.Ticks(f.specs.Parse)
		if err != nil {
			broken := before.Break(err.Error(), now)
			c.Schedule = &broken
			firings = append(firings, firing{c, before, err})
			continue
		}
		fired, ok := before.Fire(spec, now)
		if !ok {
			continue
		}
		c.Schedule, c.Busy, c.Entries = &fired.After, fired.Busy, fired.Entries
		for k := range c.Entries {
			c.Entries[k].Payload = s.Merge.Stored(c.Entries[k].Payload)
		}
		firings = append(firings, firing{c, before, nil})
	}
	return firings
}

// change sends changes of a shard, and returns when its next tick is due.
func (f *Firer) change(s Shard, firings []firing, sum *total) (next time.Time, err error) {
	for len(firings) > 0 {
		r := ports.ChangeSchedulesRequest{Shard: s.ID, Shards: s.Shards, Generation: s.Generation, Firing: true}
		for i := range firings {
			r.Changes = append(r.Changes, firings[i].change)
		}
		reply, err := f.call(r)
		if err == nil {
			err = reply.Check(&r)
		}
		if err != nil {
			return time.Time{}, err
		}

		for i, result := range reply.Results {
			sum.add(&firings[i], result, reply.Now)
		}
		if reply.Met != (ports.PushReply{Now: reply.Met.Now}) {
			f.cfg.Pushed(s.ID)
		}
		firings = firings[len(reply.Results):]
		next = localTime(reply.Head, reply.Now, time.Now())
	}
	return next, nil
}

func (f *Firer) call(r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
	ctx, cancel := f.cfg.Call()
	defer cancel()
	return f.cfg.Store.ChangeSchedules(ctx, r)
}

// add counts what a change has done.
func (t *total) add(f *firing, result ports.ScheduleResult, now core.Instant) {
	after := f.change.Schedule
	switch result {
	case ports.ScheduleBusy:
		after = f.change.Busy
	case ports.ScheduleChanged:
	default:
		return
	}
	t.changed++
	if f.err != nil {
		t.event.Broken++
		t.broken, t.cause = f.change.ScheduleKey, f.err
		return
	}

	t.event.Fired += int(after.Fired - f.before.Fired)
	t.event.Skipped += int(after.Skipped - f.before.Skipped)
	if missed := int(after.Missed - f.before.Missed); missed > 0 {
		t.event.Missed += missed
		t.first = f.change.ScheduleKey
	}
	for i := range f.change.Entries {
		due, _ := f.change.Entries[i].When.Fixed()
		t.event.Late = append(t.event.Late, max(0, now.Sub(due)))
	}
}

// report logs and observes what the firing of a shard has done.
func (f *Firer) report(s Shard, sum *total) {
	if sum.changed == 0 {
		return
	}
	log := f.cfg.Log
	if sum.event.Broken > 0 {
		log.Warn("the spec of a schedule can't be read, so its ticks wait; "+
			"correct the schedule, or this server's zone data",
			"queue", s.ID.Queue,
			"id", sum.broken.ID,
			"schedule", sum.broken.Name,
			"schedules", sum.event.Broken,
			"error", sum.cause)
	}
	if sum.event.Missed > 0 {
		log.Warn("ticks were missed, since no server fired them in time and Catchup does not make up for them",
			"queue", s.ID.Queue,
			"shard", s.ID.String(),
			"ticks", sum.event.Missed,
			"id", sum.first.ID,
			"schedule", sum.first.Name)
	}
	sum.event.Shard = s.ID
	f.cfg.Observer.TicksFired(sum.event)
}

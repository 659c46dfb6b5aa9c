package skein

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// Spec is the rule for the times of a schedule, its ticks (docs/rules.md 9). Make one with [Cron]
// or [Interval]. A Spec that can't be read makes [Queue.Schedule] and Run return
// [ErrInvalidSchedule].
type Spec struct {
	text string
	err  error
}

// Cron returns the [Spec] of a cron expression in a time zone. The expression has five fields:
// minute, hour, day of the month, month and day of the week, with lists, ranges, steps and names,
// or is one of @hourly, @daily, @weekly, @monthly and @yearly. The zone is the name of a location,
// such as "Europe/Berlin" or "UTC".
//
// The times are those of a clock in that zone. If the clock is set forward over a time, its tick
// fires at the first instant after the gap. If the clock is set back, a time that comes twice fires
// at its first occurrence, unless the hour field begins with *.
//
// Every process that declares or fires the schedule needs the zone's data: from the host, or in
// the program, which then imports [time/tzdata].
func Cron(expression, zone string) Spec {
	text, err := core.CronSpec(expression, zone)
	return Spec{text, err}
}

// Interval returns the [Spec] with a tick at each whole interval, at least one second, since 1
// January 1970 UTC. [Spec.From] moves the ticks.
func Interval(every time.Duration) Spec {
	text, err := core.IntervalSpec(every, 0)
	return Spec{text, err}
}

// From returns the interval with ticks at t and at whole intervals before and after it. A Spec made
// by [Cron] is [ErrInvalidSchedule].
func (s Spec) From(t time.Time) Spec {
	if s.err != nil {
		return s
	}
	spec, err := core.ParseSpec(s.text, nil)
	if err != nil {
		return Spec{err: fmt.Errorf("%w: From moves the ticks of an interval, and %s is none", ErrInvalidSchedule, s.text)}
	}
	text, err := core.IntervalSpec(spec.Every(), instantOf(t))
	return Spec{text, err}
}

// String returns the text with which the spec is stored, such as "every 15m0s 0" or "cron 0 6 * *
// 1-5 Europe/Berlin".
func (s Spec) String() string { return s.text }

// ScheduleOption is an option of a schedule: [Catchup], [Jitter], [Skip], [Paused], or one of the
// push options [Score], [Meta] and [Tags], which each push of the schedule then has.
type ScheduleOption interface {
	schedule(s *scheduled)
}

// scheduled is a schedule and the values that its options set.
type scheduled struct {
	optioned
	recurring core.Recurrence
	paused    bool
}

type scheduleOption func(*scheduled)

func (o scheduleOption) schedule(s *scheduled) { o(s) }

// Catchup decides which ticks are fired if several are due at once, for example because no server
// ran or the queue was paused. Ticks older than within are missed; 0 means any age. Of the others
// the newest are fired, as many as most, 1 to 1000. Missed ticks are counted and logged. Default:
// the newest tick, however late.
//
// More than 1 needs a queue that merges by [Every]: otherwise the equal payloads are one.
func Catchup(most int, within time.Duration) ScheduleOption {
	return scheduleOption(func(s *scheduled) { s.recurring.Catchup = core.Catchup{Most: most, Within: within} })
}

// Jitter delays each tick by a time below d, at most 24 hours and at most the interval of an
// [Interval]. The time depends on the id, the name and the tick, so the ticks of many ids are
// spread evenly. Default 0.
func Jitter(d time.Duration) ScheduleOption {
	return scheduleOption(func(s *scheduled) { s.recurring.Jitter = d })
}

// Skip drops a tick while a job of the id is queued or runs. Without Skip, a tick merges into the
// queued job, or runs after the running one.
func Skip() ScheduleOption {
	return scheduleOption(func(s *scheduled) { s.recurring.Skip = true })
}

// Paused makes a new schedule paused, until an operator resumes it. It does not pause a schedule
// that exists.
func Paused() ScheduleOption {
	return scheduleOption(func(s *scheduled) { s.paused = true })
}

// Schedule is a schedule of a queue, as [Queue.NewSchedule] makes it: a push for an id that is
// repeated at each tick of a [Spec].
type Schedule struct {
	target target
	core   core.Declaration
	err    error
}

// NewSchedule returns a schedule for a [ScheduleSet]. Its arguments are those of [Queue.Schedule],
// which stores a schedule at once. It contacts no store and never fails. Run returns an error for
// an invalid schedule.
func (q *Queue[T]) NewSchedule(name string, spec Spec, id string, payload T, options ...ScheduleOption) Schedule {
	if err := q.check(); err != nil {
		return Schedule{err: err}
	}
	s := Schedule{target: q.target()}
	s.core, s.err = q.declaration(name, spec, id, payload, options)
	if s.err != nil {
		s.err = fmt.Errorf("schedule %q of id %q in queue %q: %w", name, id, q.name, s.err)
	}
	return s
}

// Schedule stores a schedule for an id, or changes the one that the id has by this name. The name
// has 1 to 128 ASCII letters, digits and "_-.:". The payload is at most 64 KiB. From then on the
// server that has the id's shard pushes the payload at each tick, once, whatever servers start,
// stop or die. The push merges into the id's job like any other, and two runs of an id never
// overlap. Schedules need no leader and no process of their own. 10,000 schedules in a queue, one
// for each customer, are as usual as one.
//
// To store an equal schedule again writes nothing, so programs may call Schedule at each start. A
// schedule that an operator has paused stays paused. A change that an operator has made to it is
// overwritten; schedules of a [ScheduleSet] keep it.
//
// The payload's score is the time of the tick in seconds, unless [QueueOptions].Score or the option
// [Score] sets another one. The job of a tick can run from the time of the tick on. The queue's
// PushRule and the middleware of the client do not apply to ticks.
//
// Schedule returns [ErrInvalidSchedule], or an error of a push, for an invalid argument. It returns
// [ErrInvalidOptions] for a client whose store keeps no schedules, such as a transaction. After any
// other error the schedule may be stored or not, and calling Schedule again is safe.
func (q *Queue[T]) Schedule(
	ctx context.Context, c *Client, name string, spec Spec, id string, payload T, options ...ScheduleOption,
) error {
	s := q.NewSchedule(name, spec, id, payload, options...)
	if s.err != nil {
		return s.err
	}
	if err := c.check(); err != nil {
		return err
	}
	_, err := c.declareSchedules(ctx, s.target, []core.Declaration{s.core})
	return err
}

// Unschedule removes the schedule that an id has by a name, if there is one. What it has pushed
// stays.
func (q *Queue[T]) Unschedule(ctx context.Context, c *Client, name, id string) error {
	key := core.ScheduleKey{ID: id, Name: name}
	if err := q.check(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	_, err := c.changeSchedules(ctx, q.target(), []ports.ScheduleChange{{ScheduleKey: key, Revision: ports.AnyRevision}})
	return err
}

// declaration encodes and checks a schedule.
func (q *Queue[T]) declaration(
	name string, spec Spec, id string, payload T, options []ScheduleOption,
) (d core.Declaration, err error) {
	var s scheduled
	if err := q.encode(&s.optioned, &Entry[T]{ID: id, Payload: payload}); err != nil {
		return d, err
	}
	s.When, s.scored = core.When{}, q.options.Score != nil
	for i, option := range options {
		if option == nil {
			return d, fmt.Errorf("%w: option %d of the schedule is nil", ErrInvalidOptions, i+1)
		}
		option.schedule(&s)
	}
	switch {
	case spec.err != nil:
		return d, spec.err
	case s.timed || s.urgent || s.once || s.tell != nil:
		return d, fmt.Errorf(
			"%w: At, In, Urgent, OnceIn and Tell are options of a push; the spec decides when a schedule pushes",
			ErrInvalidOptions)
	}

	d = core.Declaration{ScheduleKey: core.ScheduleKey{ID: id, Name: name}, Recurrence: s.recurring, Paused: s.paused}
	r := &d.Recurrence
	r.Spec, r.Data, r.Meta = spec.text, s.Data, s.Meta
	if s.scored {
		r.Score, r.FixedScore = core.NormalScore(s.Score), true
	}
	if r.Tags, err = core.NewTags(s.tags...); err != nil {
		return d, err
	}
	if err := d.ScheduleKey.Validate(); err != nil {
		return d, err
	}
	if err := r.Validate(q.options.Merge); err != nil {
		return d, err
	}
	parsed, err := new(specs.Specs).Parse(r.Spec)
	if err != nil {
		return d, err
	}
	if _, ok := parsed.Next(0); !ok {
		err = fmt.Errorf("%w: %q never has a tick, since it names a day that no month has", ErrInvalidSchedule, r.Spec)
	}
	return d, err
}

package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
)

// ScheduleEdit is a change of schedules by an operator. Fields that are nil stay as they are, in
// each of the schedules.
type ScheduleEdit struct {
	// Cron is another cron expression, as [core.CronSpec] reads it. Zone is the name of another
	// time zone. Without Zone each schedule keeps its own zone, and without Cron its own
	// expression. A schedule with an interval has neither, so it needs both.
	Cron, Zone *string
	// Every is another interval, in place of a cron expression. Its ticks are at From and at whole
	// intervals from it. nil means 1 January 1970 UTC.
	Every *time.Duration
	From  *time.Time
	// Payload is another payload.
	Payload *[]byte
	Jitter  *time.Duration
	// CatchupMost and CatchupWithin are other values of the fields of [core.Catchup].
	CatchupMost   *int
	CatchupWithin *time.Duration
	Skip          *bool
}

// Validate returns [ErrInvalidOptions] for an edit without a change, one with an interval and a
// cron expression or a zone, and one with From alone. It returns [ErrInvalidSchedule] for an
// expression, a zone or an interval that no schedule can have, and for a zone that this process
// can't load.
func (e *ScheduleEdit) Validate() error {
	cron := e.Cron != nil || e.Zone != nil
	switch {
	case *e == (ScheduleEdit{}):
		return fmt.Errorf("%w: the edit changes nothing; set a field of it", ErrInvalidOptions)
	case cron && e.Every != nil:
		return fmt.Errorf("%w: an interval and a cron expression or a zone; give either", ErrInvalidOptions)
	case e.From != nil && e.Every == nil:
		return fmt.Errorf("%w: from without an interval; give every too", ErrInvalidOptions)
	}

	spec, err := e.spec("cron * * * * * UTC")
	if err == nil {
		_, err = new(specs.Specs).Parse(spec)
	}
	return err
}

// String returns the edit as a phrase, such as "cron 0 6 * * * in the zone of each, jitter 1m0s".
// It has the number of bytes of a payload in place of the payload.
func (e *ScheduleEdit) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case e.Cron != nil && e.Zone != nil:
		add("cron %s in %s", *e.Cron, *e.Zone)
	case e.Cron != nil:
		add("cron %s in the zone of each", *e.Cron)
	case e.Zone != nil:
		add("zone %s", *e.Zone)
	case e.Every != nil && e.From != nil:
		add("every %v from %s", *e.Every, e.From.UTC().Format(time.RFC3339Nano))
	case e.Every != nil:
		add("every %v", *e.Every)
	}

	if e.Payload != nil {
		add("a payload of %d bytes", len(*e.Payload))
	}
	if e.Jitter != nil {
		add("jitter %v", *e.Jitter)
	}
	if e.CatchupMost != nil {
		add("catchup %d", max(1, *e.CatchupMost))
	}
	switch within := e.CatchupWithin; {
	case within != nil && *within == 0:
		add("within any age")
	case within != nil:
		add("within %v", *within)
	}
	if e.Skip != nil {
		add("skip %v", *e.Skip)
	}
	return strings.Join(parts, ", ")
}

// apply changes the recurrence of a schedule.
func (e *ScheduleEdit) apply(r *core.Recurrence) (err error) {
	if r.Spec, err = e.spec(r.Spec); err != nil {
		return err
	}

	if e.Payload != nil {
		r.Data = *e.Payload
	}
	if e.Jitter != nil {
		r.Jitter = *e.Jitter
	}
	if e.CatchupMost != nil {
		r.Catchup.Most = *e.CatchupMost
	}
	if e.CatchupWithin != nil {
		r.Catchup.Within = *e.CatchupWithin
	}
	if e.Skip != nil {
		r.Skip = *e.Skip
	}
	return nil
}

// spec returns what the edit makes of the text of a spec.
func (e *ScheduleEdit) spec(stored string) (string, error) {
	switch {
	case e.Every != nil:
		var anchor core.Instant
		if e.From != nil {
			anchor = core.InstantOf(*e.From)
			if anchor.Time().Sub(*e.From).Abs() >= time.Microsecond {
				return "", fmt.Errorf("%w: from %s is no instant; give another tick, between 1970 and 2255",
					ErrInvalidSchedule, e.From.Format(time.RFC3339))
			}
		}
		return core.IntervalSpec(*e.Every, anchor)
	case e.Cron == nil && e.Zone == nil:
		return stored, nil
	}

	cron, zone, ok := specs.Cron(stored)
	if !ok && (e.Cron == nil || e.Zone == nil) {
		return "", fmt.Errorf("%w: its spec %.40q has no cron expression and no zone to keep; give both",
			ErrInvalidSchedule, stored)
	}
	if e.Cron != nil {
		cron = *e.Cron
	}
	if e.Zone != nil {
		zone = *e.Zone
	}
	return core.CronSpec(cron, zone)
}

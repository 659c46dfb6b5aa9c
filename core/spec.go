package core

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrInvalidSchedule reports the rule or another part of a schedule that docs/rules.md 9 refuses.
var ErrInvalidSchedule = errors.New("invalid schedule")

// MinInterval is the shortest interval of a schedule.
const MinInterval = time.Second

// Spec is the rule for the times of a schedule, its ticks: a cron expression in a time zone, or an
// interval (docs/rules.md 9). Make one with [ParseSpec]. The zero value has no tick.
type Spec struct {
	text string
	cron *cron
	zone *time.Location

	every  time.Duration
	anchor Instant

	// earlier has the ticks up to since, if it is not nil.
	earlier *Spec
	since   Instant
}

// CronSpec returns the text of a cron expression in a time zone, as [ParseSpec] reads it and as it
// is stored. The zone is the name of a location, such as "Europe/Berlin" or "UTC". Texts of
// expressions that differ only in spaces, case, names and shorthands such as "@daily" are equal.
//
// It returns [ErrInvalidSchedule] for an expression that is no cron expression, and for an empty
// zone, one with spaces, or one that differs between hosts, such as Local or localtime. It can't
// check that the zone exists.
func CronSpec(expression, zone string) (string, error) {
	c, err := parseCron(expression)
	if err != nil {
		return "", err
	}
	if !namesLocation(zone) {
		return "", fmt.Errorf("%w: the time zone %q, which is no location; give the name of one, "+
			"such as Europe/Berlin or UTC",
			ErrInvalidSchedule, zone)
	}
	return "cron " + c.String() + " " + zone, nil
}

// namesLocation reports whether a zone's name means the same on every host. Local, localtime and
// posixrules are those of a host, and some hosts have copies of all zones below posix and right.
func namesLocation(zone string) bool {
	switch zone {
	case "", "Local", "localtime", "posixrules":
		return false
	}
	return !strings.HasPrefix(zone, "posix/") && !strings.HasPrefix(zone, "right/") &&
		!strings.ContainsFunc(zone, func(r rune) bool { return r <= ' ' })
}

// shortest returns the shortest time between two of the spec's first ticks. 0 means that it has
// fewer than two.
func (s Spec) shortest() time.Duration {
	if s.every > 0 {
		return s.every
	}

	const looked = 200 // every minute of three hours, or each day of half a year
	var shortest time.Duration
	last, _ := s.Next(0)
	for range looked {
		next, ok := s.Next(last)
		if !ok {
			break
		}
		if between := next.Sub(last); shortest == 0 || between < shortest {
			shortest = between
		}
		last = next
	}
	return shortest
}

// IntervalSpec returns the text of an interval, as [ParseSpec] reads it and as it is stored. Its
// ticks are the anchor and all instants that are whole intervals away from it.
//
// It returns [ErrInvalidSchedule] for an interval below [MinInterval] or one that has a fraction of
// a microsecond, and for an anchor below 0 or above [MaxInstant].
func IntervalSpec(every time.Duration, anchor Instant) (string, error) {
	switch {
	case every < MinInterval || every%time.Microsecond != 0:
		return "", fmt.Errorf("%w: the interval %v; give at least %v, in whole microseconds",
			ErrInvalidSchedule, every, MinInterval)
	case anchor < 0 || anchor > MaxInstant:
		return "", fmt.Errorf("%w: the interval's ticks are counted from %v; give a time from %v to %v",
			ErrInvalidSchedule, anchor.Time(), Instant(0).Time(), MaxInstant.Time().Truncate(time.Second))
	}
	return "every " + every.String() + " " + strconv.FormatInt(int64(anchor), 10), nil
}

// SpecZone returns the name of the time zone of a spec's text, or "" for an interval. The caller
// loads that zone for [ParseSpec], since package core opens no file.
func SpecZone(text string) string {
	if !strings.HasPrefix(text, "cron ") {
		return ""
	}
	return text[strings.LastIndexByte(text, ' ')+1:]
}

// ParseSpec reads the text that [CronSpec] or [IntervalSpec] returned. zone is the location that
// [SpecZone] names; it is ignored for an interval. It returns [ErrInvalidSchedule] for any other
// text, and for a cron expression without a zone.
func ParseSpec(text string, zone *time.Location) (Spec, error) {
	fields := strings.Fields(text)
	switch {
	case len(fields) == 7 && fields[0] == "cron":
		c, err := parseCron(strings.Join(fields[1:6], " "))
		if err != nil {
			return Spec{}, err
		}

		if zone == nil {
			return Spec{}, fmt.Errorf("%w: %q has no time zone; load %s", ErrInvalidSchedule, text, fields[6])
		}
		return Spec{text: text, cron: c, zone: zone}, nil
	case len(fields) == 3 && fields[0] == "every":
		every, err := time.ParseDuration(fields[1])
		anchor, notNumber := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || notNumber != nil {
			break
		}

		if _, err := IntervalSpec(every, Instant(anchor)); err != nil {
			return Spec{}, err
		}
		return Spec{text: text, every: every, anchor: Instant(anchor)}, nil
	}

	return Spec{}, fmt.Errorf("%w: %q is neither a cron expression with a zone nor an interval with an anchor; "+
		"make a spec with skein.Cron or skein.Interval",
		ErrInvalidSchedule, text)
}

// Local returns a tick in the spec's time zone, or in UTC for an interval.
func (s Spec) Local(tick Instant) time.Time {
	if s.zone == nil {
		return tick.Time()
	}
	return tick.Time().In(s.zone)
}

// Every returns the interval of the spec, or 0 for a cron expression.
func (s Spec) Every() time.Duration { return s.every }

// String returns the text that the spec was read from.
func (s Spec) String() string { return s.text }

// Next returns the first tick after an instant. ok is false if there is none: the expression names
// a day that no month has, or the tick would be after [MaxInstant].
func (s Spec) Next(after Instant) (tick Instant, ok bool) {
	if s.earlier != nil && after < s.since {
		if tick, ok := s.earlier.Next(after); ok && tick <= s.since {
			return tick, true
		}
		after = s.since
	}
	switch {
	case s.cron != nil:
		return s.nextOfCron(after)
	case s.every > 0:
		return s.nextOfInterval(after)
	}
	return 0, false
}

// after returns the spec with the ticks of another one up to an instant.
func (s Spec) after(earlier Spec, since Instant) Spec {
	s.earlier, s.since = &earlier, since
	return s
}

func (s Spec) nextOfInterval(after Instant) (Instant, bool) {
	step := s.every.Microseconds()
	distance := int64(after - s.anchor)
	steps := distance / step
	if distance >= 0 || distance%step == 0 {
		steps++
	}

	tick := int64(s.anchor) + steps*step
	for tick < 0 { // no instant is before 0
		tick += step
	}
	return Instant(tick), tick <= int64(MaxInstant)
}

// nextOfCron walks the periods in which the zone's offset is constant. Within one of them clock
// times and instants run in parallel.
func (s Spec) nextOfCron(after Instant) (Instant, bool) {
	if !s.cron.possible() {
		return 0, false
	}

	from := max(after, -1) + 1
	for from <= MaxInstant {
		p := periodAt(from, s.zone)
		if tick, ok := s.cron.nextIn(&p, from); ok {
			return tick, true
		}
		from = p.end
	}
	return 0, false
}

// period is a time in which a zone's offset is constant. Offsets are in microseconds.
type period struct {
	// start is the first instant, and end the first one behind it. before is the offset until start.
	start, end     Instant
	before, offset Instant
}

const hour = Instant(time.Hour / time.Microsecond)

// periodAt returns the period of an instant in a zone. The first period begins at instant 0, with
// no other offset before it, and the last one ends behind [MaxInstant].
func periodAt(at Instant, zone *time.Location) period {
	local := at.Time().In(zone)
	offset := offsetOf(local)
	p := period{start: 0, end: MaxInstant + 1, before: offset, offset: offset}

	start, end := local.ZoneBounds()
	if !start.IsZero() && start.UnixMicro() > 0 {
		p.start, p.before = Instant(start.UnixMicro()), offsetOf(start.Add(-time.Microsecond))
	}
	if !end.IsZero() && Instant(end.UnixMicro()) < p.end {
		p.end = Instant(end.UnixMicro())
	}

	// No clock changes on the last day of a leap year, for which ZoneBounds is wrong if it is
	// behind the zone's table.
	if p.start > at || p.end <= at {
		p.start, p.end, p.before = at, at+hour, offset
	}
	return p
}

func offsetOf(local time.Time) Instant {
	_, seconds := local.Zone()
	return Instant(seconds) * Instant(time.Second/time.Microsecond)
}

package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of a [Rate] (docs/rules.md 12).
const (
	// MaxRateCount is the maximum number of starts and of the burst of a Rate.
	MaxRateCount = 1_000_000_000
	// MinRatePer and MaxRatePer are the limits of the period of a Rate.
	MinRatePer = time.Millisecond
	MaxRatePer = 366 * 24 * time.Hour
	// MinRateInterval is the shortest interval of a Rate, so a Rate has at most 100,000 starts a
	// second.
	MinRateInterval = 10 * time.Microsecond
)

const (
	// MaxAhead is how far ahead of the store's clock the slots of a grant may lie.
	MaxAhead = 24 * time.Hour
	// MaxStop is the longest stop of a limiter.
	MaxStop = 24 * time.Hour
	// MaxHold is the longest time for which a server may hold a job whose slot has come; see [Rate.Use].
	MaxHold = time.Minute
	// LimiterKept is how long a limiter is kept after its last slot and its stop have passed. No
	// burst follows a stop that ended less than LimiterKept ago.
	LimiterKept = time.Minute
)

// Rate limits the starts of jobs: at most Count in Per, evenly spread, and Burst more at once. In
// any period of the length Per there are at most Count+Burst+1 starts. The zero value is no limit.
type Rate struct {
	// Count is the number of starts in Per.
	Count int
	// Per is the period.
	Per time.Duration
	// Burst is the number of starts that may come before their time, after a pause.
	Burst int
}

// Interval returns the time between two starts at an even pace, Per/Count, rounded up to whole
// microseconds. It is 0 for the zero Rate.
func (r Rate) Interval() time.Duration {
	if r.Count < 1 {
		return 0
	}
	unit := time.Duration(r.Count) * time.Microsecond
	return (r.Per + unit - 1) / unit * time.Microsecond
}

// Tolerance returns how long before its time a start may come: Burst intervals.
func (r Rate) Tolerance() time.Duration { return time.Duration(r.Burst) * r.Interval() }

// Validate returns [ErrInvalidOptions] for a Rate that is not zero and has a Count outside 1 …
// [MaxRateCount], a Per outside [MinRatePer] … [MaxRatePer], a Burst outside 0 … MaxRateCount, an
// interval below [MinRateInterval], or a burst that takes longer than MaxRatePer to fill.
func (r Rate) Validate() error {
	switch {
	case r == Rate{}:
		return nil
	case r.Count < 1 || r.Count > MaxRateCount:
		return fmt.Errorf("%w: the rate has %d starts; give 1 to %d, or the zero Rate for no limit",
			ErrInvalidOptions, r.Count, MaxRateCount)
	case r.Per < MinRatePer || r.Per > MaxRatePer:
		return fmt.Errorf("%w: the rate is per %v; give %v to %v", ErrInvalidOptions, r.Per, MinRatePer, MaxRatePer)
	case r.Burst < 0 || r.Burst > MaxRateCount:
		return fmt.Errorf("%w: the rate has a burst of %d; give 0 to %d", ErrInvalidOptions, r.Burst, MaxRateCount)
	case r.Per < time.Duration(r.Count)*MinRateInterval:
		return fmt.Errorf("%w: %d starts per %v are more than 100000 a second; lower Count or raise Per",
			ErrInvalidOptions, r.Count, r.Per)
	case time.Duration(r.Burst)+1 > MaxRatePer/r.Interval():
		return fmt.Errorf("%w: a burst of %d at %d starts per %v takes more than %v to fill; lower Burst",
			ErrInvalidOptions, r.Burst, r.Count, r.Per, MaxRatePer)
	}
	return nil
}

// noRate is the text of the zero Rate.
const noRate = "none"

// String returns r in the form that [ParseRate] reads: "10/1m0s", "10/1m0s+5" with a burst of 5, or
// "none".
func (r Rate) String() string {
	switch {
	case r == Rate{}:
		return noRate
	case r.Burst == 0:
		return fmt.Sprintf("%d/%v", r.Count, r.Per)
	}
	return fmt.Sprintf("%d/%v+%d", r.Count, r.Per, r.Burst)
}

// ParseRate reads a Rate: "none", or a count, a slash and a period, and for a burst a plus and its
// count. The period is a duration as [time.ParseDuration] reads it, or one of the units ms, s, m,
// h, d, second, minute, hour and day: "10/1m30s", "50/s", "100/day+20". ParseRate returns
// [ErrInvalidOptions] for any other text, and for a Rate that [Rate.Validate] refuses.
func ParseRate(text string) (Rate, error) {
	if text == noRate {
		return Rate{}, nil
	}

	count, period, ok := strings.Cut(text, "/")
	period, burst, hasBurst := strings.Cut(period, "+")
	if !hasBurst {
		burst = "0"
	}

	var r Rate
	var errs [3]error
	r.Count, errs[0] = strconv.Atoi(count)
	r.Per, errs[1] = parsePeriod(period)
	r.Burst, errs[2] = strconv.Atoi(burst)
	if !ok || errs != [3]error{} {
		return Rate{}, fmt.Errorf(`%w: the rate %.100q can't be read; write it as "10/1m", "50/s" or "100/day+20", `+
			`or "none"`, ErrInvalidOptions, text)
	}

	if r == (Rate{}) {
		return Rate{}, fmt.Errorf(`%w: the rate %.100q allows no start; give a count of at least 1, or "none" for no limit`,
			ErrInvalidOptions, text)
	}
	return r, r.Validate()
}

// parsePeriod reads a unit or a duration.
func parsePeriod(text string) (time.Duration, error) {
	switch text {
	case "ms":
		return time.Millisecond, nil
	case "s", "second":
		return time.Second, nil
	case "m", "minute":
		return time.Minute, nil
	case "h", "hour":
		return time.Hour, nil
	case "d", "day":
		return 24 * time.Hour, nil
	}
	return time.ParseDuration(text)
}

// Limiter is the state of a limiter (docs/rules.md 12). The zero value is a limiter that has
// granted nothing.
type Limiter struct {
	// Next is the time of the next slot at an even pace. The next slot comes up to the tolerance of
	// the rate before Next.
	Next Instant
	// Started is the time of the next start at an even pace. A slot that lay ahead counts from
	// [Rate.Use] on, and any other from its Take on.
	Started Instant
	// Last is the latest slot that was granted, or the latest use of one if that is later.
	Last Instant
	// Stopped is when the last stop ends or ended, and 0 if there was none.
	Stopped Instant
	// Changed is when the limiter was last changed. A clock before Changed has stepped back.
	Changed Instant
}

// End returns the latest of Next, Started and Stopped.
func (l Limiter) End() Instant { return max(l.Next, l.Started, l.Stopped) }

// Gone reports whether the limiter is the same as the zero value for all calls from now on, so that
// it may be removed.
func (l Limiter) Gone(now Instant) bool { return l.End() <= now.Add(-LimiterKept) }

// StoppedAt returns the end of a stop that lasts at the given time, and 0 if none lasts.
func (l Limiter) StoppedAt(now Instant) Instant {
	if l.Stopped > now {
		return l.Stopped
	}
	return 0
}

// Stop returns the limiter with a stop that lasts for d from now. A stop that lasts longer already
// stays as it is. A d of 0 ends a stop that lasts.
func (l Limiter) Stop(now Instant, d time.Duration) Limiter {
	l = l.retimed(now)
	until := max(l.Stopped, now.Add(d))
	if d == 0 {
		until = min(l.Stopped, now)
	}

	if until != l.Stopped {
		l.Stopped, l.Changed = until, now
	}
	return l
}

// retimed returns the limiter by a clock that may have stepped back behind its last change: then
// all its times are moved back by as much.
func (l Limiter) retimed(now Instant) Limiter {
	if l.Changed <= now {
		return l
	}

	step := l.Changed - now
	for _, at := range []*Instant{&l.Next, &l.Started, &l.Last, &l.Stopped} {
		*at = max(0, *at-step)
	}
	l.Changed = now
	return l
}

// Take takes up to want grants of a limiter, with slots up to ahead from now. It returns the state
// that the limiter has then, the number of grants, and first, from which [Rate.Slot] computes the
// slots. The slots of the grants are those with the numbers from 0. Without a grant, the next slot
// has the number 0. Slots up to soon from now count as used.
//
// The zero Rate grants all that is wanted, but no slot before the end of a stop.
func (r Rate) Take(l Limiter, now Instant, want int, ahead, soon time.Duration) (
	next Limiter, granted int, first Instant,
) {
	return r.take(l, now, want, ahead, soon, 0)
}

// take is Take of slots whose even pace may begin up to late before now.
func (r Rate) take(l Limiter, now Instant, want int, ahead, soon time.Duration, late Instant) (
	next Limiter, granted int, first Instant,
) {
	l = l.retimed(now)
	p := r.pace()
	if p.interval == 0 {
		first = max(now, l.StoppedAt(now))
		if first <= now.Add(ahead) {
			granted = want
		}
		return l, granted, first
	}

	base := max(now-late, p.base(l, l.Next, now), p.base(l, l.Started, now))
	first = base - p.tolerance
	granted = p.within(base, now-first+Instant(ahead.Microseconds()), want)
	if granted == 0 {
		return l, 0, first
	}

	if used := p.within(base, now-first+Instant(soon.Microseconds()), granted); used > 0 {
		l.Started = base + Instant(used)*p.interval
	}
	l.Next = base + Instant(granted)*p.interval
	l.Last = max(l.Last, now, first+Instant(granted-1)*p.interval)
	l.Changed = now
	return l, granted, first
}

// Use uses up to a number of slots that were granted ahead and have come. It returns the state that
// the limiter has then, how many may be used, and first, from which [Rate.Slot] computes when: slots
// come at times that are not even, and jobs start at an even pace, so a server holds some of them for
// up to hold. A slot that is late by less than an interval does not delay those after it. In any period
// of the length Per at most Count+Burst+1 slots are used. A slot that may not be used is lost: its
// owner takes another one. If none may be used, first is 0.
//
// The zero Rate allows all uses, but none before the end of a stop.
func (r Rate) Use(l Limiter, now Instant, slots int, hold time.Duration) (next Limiter, used int, first Instant) {
	line := l
	line.Next = l.Started
	line, used, first = r.take(line, now, slots, hold, 0, max(0, r.pace().interval-1))
	l = l.retimed(now)
	if used == 0 {
		return l, 0, 0
	}
	l.Started, l.Last, l.Changed = line.Next, line.Last, line.Changed
	return l, used, first
}

// Slot returns the time of a slot, counted from 0, of a Take at the given time that returned first.
func (r Rate) Slot(first, now Instant, number int) Instant {
	return max(now, first+Instant(number)*r.pace().interval)
}

// pace is a Rate in µs.
type pace struct{ interval, tolerance Instant }

func (r Rate) pace() pace {
	return pace{interval: Instant(r.Interval().Microseconds()), tolerance: Instant(r.Tolerance().Microseconds())}
}

// base returns the tolerance after the next slot of a limiter whose Next, or Started, is at, if that is
// ahead of now. A limiter that an earlier, slower rate has left far ahead goes on after its last slot.
func (p pace) base(l Limiter, at, now Instant) Instant {
	base := min(at, l.Last+p.tolerance+p.interval)
	if l.Stopped > now.Add(-LimiterKept) {
		base = max(base, l.Stopped+p.tolerance)
	}
	return min(base, MaxInstant)
}

// within returns how many of the slots that are wanted lie up to a time after the first, which stands
// at base.
func (p pace) within(base, after Instant, want int) int {
	if after < 0 {
		return 0
	}
	return int(min(Instant(want), after/p.interval+1, (MaxInstant-base)/p.interval))
}

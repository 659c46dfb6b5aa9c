package core

import (
	"fmt"
	"time"
)

// Instant is a point in time in whole microseconds since the Unix epoch, from 0 to [MaxInstant]
// (docs/rules.md 1, PerformAt). The zero value is the epoch itself.
type Instant int64

// MaxInstant is the latest instant that a store can hold: 2^53 µs, in the year 2255. All whole
// numbers up to it are exact as a float64, and so as a score of Redis.
const MaxInstant Instant = 1 << 53

// Forever is the shortest delay that leads to [MaxInstant] from any instant.
const Forever = time.Duration(MaxInstant) * time.Microsecond

// InstantOf returns t as an [Instant], limited to its range. Fractions of a microsecond are
// dropped.
func InstantOf(t time.Time) Instant {
	switch seconds := t.Unix(); { // far outside the range, UnixMicro overflows
	case seconds < 0:
		return 0
	case seconds > int64(MaxInstant/1_000_000):
		return MaxInstant
	}
	return clamp(t.UnixMicro())
}

// Add returns the instant d after t, limited to the range of an Instant. Fractions of a microsecond
// are dropped.
func (t Instant) Add(d time.Duration) Instant {
	return clamp(int64(t) + d.Microseconds())
}

// Sub returns the duration from u to t. It is negative if t is before u. It can't overflow within
// the range of an Instant.
func (t Instant) Sub(u Instant) time.Duration {
	return time.Duration(t-u) * time.Microsecond
}

// Time returns t as a [time.Time] in UTC.
func (t Instant) Time() time.Time {
	return time.UnixMicro(int64(t)).UTC()
}

// Minute returns the start of the minute that t is in.
func (t Instant) Minute() Instant {
	const minute = Instant(time.Minute / time.Microsecond)
	return t - t%minute
}

// Day returns the start of the day of UTC that t is in.
func (t Instant) Day() Instant {
	const day = Instant(24 * time.Hour / time.Microsecond)
	return t - t%day
}

func clamp(us int64) Instant {
	return max(0, min(Instant(us), MaxInstant))
}

// When is the time at which a pushed job may run: an instant, or a delay from the store's now. The
// zero value is the store's now (docs/rules.md 1, PerformAt).
type When struct {
	at     Instant
	in     time.Duration
	fixed  bool
	urgent bool
}

// At returns the [When] of an instant. Validation refuses one outside 0 … [MaxInstant].
func At(t Instant) When { return When{at: t, fixed: true} }

// In returns the [When] that is d after the store's now, by the store's clock. A negative
// d is before it.
func In(d time.Duration) When { return When{in: d} }

// MinUrgency and MaxUrgency are the limits of the duration of [Urgent].
const (
	MinUrgency = time.Millisecond
	MaxUrgency = 24 * time.Hour
)

// Urgent returns the [When] that is d before the store's now. An entry with it merges by
// [Earliest], whatever the rule of its push is (docs/rules.md 2). So its job is claimed before the
// jobs of its shard that became due up to d earlier. Validation refuses a d outside [MinUrgency] …
// [MaxUrgency].
func Urgent(d time.Duration) When { return When{in: -d, urgent: true} }

// Urgent reports whether w was made by [Urgent].
func (w When) Urgent() bool { return w.urgent }

// Rule returns the rule by which an entry with this time merges if its push carries the given rule.
func (w When) Rule(rule PushRule) PushRule {
	if w.urgent {
		return PushRule{Kind: Earliest}
	}
	return rule
}

// Fixed returns the instant of a When that was made by [At]. ok is false for any other When.
func (w When) Fixed() (t Instant, ok bool) { return w.at, w.fixed }

// Delay returns the delay from the store's now. It is 0 if w was made by [At], and negative if w
// was made by [Urgent].
func (w When) Delay() time.Duration { return w.in }

// Resolve returns the instant of w, given the store's now.
func (w When) Resolve(now Instant) Instant {
	if w.fixed {
		return w.at
	}
	return now.Add(w.in)
}

// validate returns [ErrInvalidTime] for an instant or an urgency out of range.
func (w When) validate() error {
	if w.fixed && (w.at < 0 || w.at > MaxInstant) {
		return fmt.Errorf("%w: %v; a job can run at times from %v to %v", ErrInvalidTime,
			w.at.Time(), Instant(0).Time(), MaxInstant.Time().Truncate(time.Second))
	}
	if d := -w.in; w.urgent && (d < MinUrgency || d > MaxUrgency) {
		return fmt.Errorf("%w: an urgency of %v; give %v to %v", ErrInvalidTime, d, MinUrgency, MaxUrgency)
	}
	return nil
}

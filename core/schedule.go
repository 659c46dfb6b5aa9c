package core

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Limits of schedules (docs/rules.md 10).
const (
	// MaxScheduleNameBytes is the maximum size of a schedule's name in bytes.
	MaxScheduleNameBytes = 128
	// MaxScheduleDataBytes is the maximum size in bytes of the payload of a schedule.
	MaxScheduleDataBytes = 64 << 10
	// MaxScheduleNoteBytes is the maximum size in bytes of the note of a pause.
	MaxScheduleNoteBytes = 1 << 10
	// MaxJitter is the maximum Jitter of a schedule.
	MaxJitter = 24 * time.Hour
	// MaxCatchup is the maximum number of missed ticks that a schedule makes up for.
	MaxCatchup = 1000
	// MaxFiringEntries is the maximum number of entries of one [Firing].
	MaxFiringEntries = 100
	// MaxRecentTicks is the number of ticks that a schedule remembers.
	MaxRecentTicks = 12
	// MaxEarlierSpecs is the number of earlier specs that a schedule remembers.
	MaxEarlierSpecs = 10
)

// maxSpecBytes is the maximum size of the text of a spec in bytes.
const maxSpecBytes = 1 << 10

// isSpecText reports whether a spec of any version may have this text.
func isSpecText(text string) bool { return len(text) <= maxSpecBytes && Text(text) == text }

// maxRevision is the largest Revision. All whole numbers up to it are exact as a float64, in which
// a store may read it.
const maxRevision = 1 << 53

// BrokenRetry is how long a server waits before it tries again to read a spec that it could not
// read.
const BrokenRetry = time.Minute

// ScheduleKey identifies a schedule within its queue. Name is unique for the id only.
type ScheduleKey struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Validate returns [ErrInvalidID] as [ValidateID] does, or [ErrInvalidSchedule] unless Name is 1 to
// [MaxScheduleNameBytes] of ASCII letters, digits and "_-.:".
func (k ScheduleKey) Validate() error {
	if err := ValidateID(k.ID); err != nil {
		return err
	}
	switch {
	case k.Name == "":
		return fmt.Errorf("%w: the name is empty; give one, such as nightly", ErrInvalidSchedule)
	case len(k.Name) > MaxScheduleNameBytes:
		return fmt.Errorf("%w: the name has %d bytes, at most %d are allowed; choose a shorter one",
			ErrInvalidSchedule, len(k.Name), MaxScheduleNameBytes)
	case strings.ContainsFunc(k.Name, notInQueueName):
		return fmt.Errorf("%w: the name %q; use letters, digits and _ - . : only", ErrInvalidSchedule, k.Name)
	}
	return nil
}

// Catchup decides which of several ticks that are due at once are fired, for example after a pause
// or while no server ran. The zero value fires the newest one, however late it is.
type Catchup struct {
	// Most is the number of ticks that are fired, the newest. 0 means 1. More than 1 needs a queue
	// whose payloads with equal bytes stay apart: see [MergeRule].
	Most int `json:"most,omitzero"`
	// Within is the age up to which a tick is fired. An older one is missed. 0 means any age.
	Within time.Duration `json:"within_ns,omitzero"`
}

// most returns Most with its default applied.
func (c Catchup) most() int { return max(1, c.Most) }

// Recurrence is what a schedule pushes, and when (docs/rules.md 10).
type Recurrence struct {
	// Spec is the text of a [Spec], as [CronSpec] or [IntervalSpec] returns it.
	Spec string `json:"spec"`
	// Data is the payload, as it is pushed: without the stamp of [MergeRule.Stored].
	Data []byte `json:"data"`
	// Score is the payload's score if FixedScore is true. Otherwise the score of each payload is
	// the time of its tick in seconds.
	Score      float64 `json:"score,omitzero"`
	FixedScore bool    `json:"fixed_score,omitzero"`
	// Meta and Tags are those of each push.
	Meta []byte `json:"meta,omitempty"`
	Tags Tags   `json:"tags,omitzero"`
	// Jitter delays each tick by a time below it, which depends on the id, the name and the tick. So
	// ticks of many ids at one time are spread. 0 means no delay.
	Jitter time.Duration `json:"jitter_ns,omitzero"`
	// Catchup decides which of several due ticks are fired.
	Catchup Catchup `json:"catchup,omitzero"`
	// Skip drops a tick while a job of the id is queued or claimed.
	Skip bool `json:"skip,omitzero"`
}

// Equal reports whether two recurrences push the same at the same times.
func (r *Recurrence) Equal(other *Recurrence) bool {
	return r.Spec == other.Spec &&
		bytes.Equal(r.Data, other.Data) &&
		r.Score == other.Score &&
		r.FixedScore == other.FixedScore &&
		bytes.Equal(r.Meta, other.Meta) &&
		r.Tags == other.Tags &&
		r.Jitter == other.Jitter &&
		r.Catchup == other.Catchup &&
		r.Skip == other.Skip
}

// Validate returns [ErrInvalidSchedule], or another error of package core, for a recurrence that
// docs/rules.md 10 refuses. rule is the merge rule of the queue. It can't check that the zone of a
// cron expression exists.
func (r *Recurrence) Validate(rule MergeRule) error {
	parsed, err := ParseSpec(r.Spec, time.UTC)
	if err != nil {
		return err
	}
	if err := r.validateStored(); err != nil {
		return err
	}

	// Most schedules have no jitter, and need no look at their ticks.
	if r.Jitter > 0 {
		if shortest := parsed.shortest(); shortest > 0 && r.Jitter > shortest {
			return fmt.Errorf(
				"%w: the jitter %v above %v, the shortest time between two ticks, which would make ticks miss; "+
					"give at most that time", ErrInvalidSchedule, r.Jitter, shortest)
		}
	}

	switch {
	case r.Skip && r.Catchup.Most > MaxFiringEntries:
		return fmt.Errorf("%w: catching up on %d ticks that skip an id with a job, and only %d are pushed at once; "+
			"catch up on at most %d, or skip none", ErrInvalidSchedule, r.Catchup.Most, MaxFiringEntries, MaxFiringEntries)
	case r.Catchup.Most > 1 && rule.Same != SamePush:
		return fmt.Errorf(
			"%w: catching up on %d ticks in a queue that merges by %v, where their equal payloads are one; "+
				"use a queue that merges by every, or catch up on 1", ErrInvalidSchedule, r.Catchup.Most, rule)
	case r.Catchup.Most > 1 && r.FixedScore:
		return fmt.Errorf("%w: catching up on %d ticks with a score of its own, which makes their payloads one; "+
			"leave the score to the ticks, or catch up on 1", ErrInvalidSchedule, r.Catchup.Most)
	case r.Distinct(rule, r.Catchup.Most) < r.Catchup.Most:
		return fmt.Errorf("%w: catching up on %d ticks in a queue that merges by %v and keeps %d payloads; "+
			"catch up on at most %d", ErrInvalidSchedule, r.Catchup.Most, rule, rule.Keep, rule.Keep)
	}
	return nil
}

// Distinct returns how many payloads the given number of ticks make in a queue of a merge rule:
// all, or one if their payloads are equal there, or as many as the rule keeps.
func (r *Recurrence) Distinct(rule MergeRule, ticks int) int {
	switch {
	case rule.Same != SamePush || r.FixedScore:
		return min(ticks, 1)
	case rule.Keep > 0:
		return min(ticks, rule.Keep)
	}
	return ticks
}

// validateStored checks what a program of any version can check. It does not read the spec, which
// may be of a newer version.
func (r *Recurrence) validateStored() error {
	entry := Entry{ID: "any", Payload: Payload{Data: r.Data, Score: r.Score, Meta: r.Meta}, Tags: r.Tags}
	if err := entry.Validate(); err != nil {
		return err
	}

	switch {
	case r.Spec == "" || !isSpecText(r.Spec):
		return fmt.Errorf(
			"%w: the spec %.40q; give a text that CronSpec or IntervalSpec returns", ErrInvalidSchedule, r.Spec,
		)
	case len(r.Data) > MaxScheduleDataBytes:
		return fmt.Errorf("%w: the payload has %d bytes, at most %d are allowed; let the handler read the rest",
			ErrInvalidSchedule, len(r.Data), MaxScheduleDataBytes)
	case r.Jitter < 0 || r.Jitter > MaxJitter:
		return fmt.Errorf("%w: the jitter %v; give 0 to %v", ErrInvalidSchedule, r.Jitter, MaxJitter)
	case r.Catchup.Most < 0 || r.Catchup.Most > MaxCatchup:
		return fmt.Errorf("%w: catching up on %d ticks; give 1 to %d, 0 means 1",
			ErrInvalidSchedule, r.Catchup.Most, MaxCatchup)
	case r.Catchup.Within < 0:
		return fmt.Errorf("%w: catching up on ticks of the last %v; give an age, 0 means any age",
			ErrInvalidSchedule, r.Catchup.Within)
	}
	return nil
}

// Schedule is a recurring push for an id (docs/rules.md 10). It lives in the shard of its id.
type Schedule struct {
	ScheduleKey
	Recurrence
	// SpecSince is when the spec was set. Its ticks are those after that.
	SpecSince Instant `json:"spec_since"`
	// Earlier are specs before the present one, at most MaxEarlierSpecs, oldest first. Their ticks had
	// come when the spec was changed, and are not all fired.
	Earlier []EarlierSpec `json:"earlier,omitempty"`
	// Next is the time of the next tick, before its jitter. It is MaxInstant if there is none.
	Next Instant `json:"next"`
	// Paused keeps the schedule from firing. Note is the reason that its operator gave. PausedBy is
	// who paused the schedule, or who gave another Note later, and PausedAt is when it was paused.
	Paused   bool    `json:"paused,omitzero"`
	Note     string  `json:"note,omitzero"`
	PausedBy string  `json:"paused_by,omitzero"`
	PausedAt Instant `json:"paused_at,omitzero"`

	// Set is the name of the declared set that the schedule belongs to, and Version the version of
	// that set. Set is empty for a schedule that belongs to no set.
	Set     string `json:"set,omitzero"`
	Version int64  `json:"version,omitzero"`
	// Edited is true if an operator has changed the recurrence since it was declared.
	Edited bool `json:"edited,omitzero"`
	// By is who changed the schedule last, and ChangedAt is when. Firings don't count.
	By        string  `json:"by,omitzero"`
	ChangedAt Instant `json:"changed_at"`
	// Revision rises with each change, firings included. A change names the revision that it
	// replaces. A new schedule begins at a number that depends on what it is.
	Revision int64 `json:"revision"`

	// Fired, Missed and Skipped count ticks.
	Fired   int64 `json:"fired,omitzero"`
	Missed  int64 `json:"missed,omitzero"`
	Skipped int64 `json:"skipped,omitzero"`
	// Recent are the last ticks, at most MaxRecentTicks, oldest first.
	Recent []Tick `json:"recent,omitempty"`
	// Backfill is the last backfill of the schedule, or nil if there was none. The counts and
	// Recent don't have its ticks.
	Backfill *Backfill `json:"backfill,omitempty"`
	// Broken is why a server could not read the spec. It is empty if the last one could. RetryAt is
	// when a server tries again, or 0.
	Broken  string  `json:"broken,omitzero"`
	RetryAt Instant `json:"retry_at,omitzero"`
}

// EarlierSpec is a spec that a schedule had until a change.
type EarlierSpec struct {
	Spec  string  `json:"spec"`
	Until Instant `json:"until"`
}

// TickOutcome is what became of a tick.
type TickOutcome string

const (
	// TickFired means that the tick's payload was pushed.
	TickFired TickOutcome = "fired"
	// TickMissed means that [Catchup] dropped the tick.
	TickMissed TickOutcome = "missed"
	// TickSkipped means that a job of the id was queued or claimed, and the schedule has Skip.
	TickSkipped TickOutcome = "skipped"
	// TickByHand means that an operator pushed the payload once.
	TickByHand TickOutcome = "by hand"
)

// Tick is a past tick of a schedule.
type Tick struct {
	// Due is the time of the tick, before its jitter.
	Due     Instant     `json:"due"`
	Outcome TickOutcome `json:"outcome"`
	// Late is the time from the tick, with its jitter, to its outcome.
	Late time.Duration `json:"late_ns,omitzero"`
}

// Backfill is a push of the past ticks of a schedule by an operator.
type Backfill struct {
	// From is the begin of the range of the ticks, and To is its end, exclusive.
	From Instant `json:"from"`
	To   Instant `json:"to"`
	// Ticks is the number of ticks that were pushed. A backfill that has failed has pushed only the
	// first ones of the range.
	Ticks int `json:"ticks"`
	// By is the operator, and At is when the backfill began.
	By string  `json:"by,omitzero"`
	At Instant `json:"at"`
}

// Validate returns the error of [ScheduleKey.Validate], that of [Recurrence.Validate] except for
// what a merge rule or a spec forbids, since the spec may be of a newer version, or
// [ErrInvalidSchedule] for a field that no program writes:
//
//   - a Revision above 2^53, the largest whole number that all stores count exactly
//   - a time outside 0 … [MaxInstant], or a negative count of ticks
//   - too many Earlier specs or Recent ticks
//   - the Spec of an earlier spec, or a Note, that is too long or no [Text]
func (s *Schedule) Validate() error {
	if err := s.ScheduleKey.Validate(); err != nil {
		return err
	}
	if err := s.Recurrence.validateStored(); err != nil {
		return err
	}
	if s.Revision > maxRevision {
		return fmt.Errorf(
			"%w: the revision %d above %d, which no change can raise; remove the schedule and create it again",
			ErrInvalidSchedule, s.Revision, int64(maxRevision))
	}
	for _, at := range s.instants() {
		if at < 0 || at > MaxInstant {
			return fmt.Errorf(
				"%w: the time %v; a schedule has times from %v to %v, so correct the store's clock, or the record",
				ErrInvalidSchedule, at.Time(), Instant(0).Time(), MaxInstant.Time().Truncate(time.Second))
		}
	}

	switch {
	case len(s.Earlier) > MaxEarlierSpecs:
		return fmt.Errorf("%w: %d earlier specs; keep the last %d", ErrInvalidSchedule, len(s.Earlier), MaxEarlierSpecs)
	case len(s.Recent) > MaxRecentTicks:
		return fmt.Errorf("%w: %d recent ticks; keep the last %d", ErrInvalidSchedule, len(s.Recent), MaxRecentTicks)
	case s.Fired < 0 || s.Missed < 0 || s.Skipped < 0:
		return fmt.Errorf("%w: %d fired, %d missed and %d skipped ticks; counts are not negative",
			ErrInvalidSchedule, s.Fired, s.Missed, s.Skipped)
	}
	for _, e := range s.Earlier {
		if !isSpecText(e.Spec) {
			return fmt.Errorf("%w: the earlier spec %.40q; give a text that CronSpec or IntervalSpec returns",
				ErrInvalidSchedule, e.Spec)
		}
	}
	if len(s.Note) > MaxScheduleNoteBytes || Text(s.Note) != s.Note {
		return fmt.Errorf("%w: the note %.40q; give at most %d bytes of UTF-8 without NUL",
			ErrInvalidSchedule, s.Note, MaxScheduleNoteBytes)
	}
	return nil
}

// instants returns all times of the schedule.
func (s *Schedule) instants() []Instant {
	all := []Instant{s.Next, s.SpecSince, s.ChangedAt, s.RetryAt, s.PausedAt}
	for _, e := range s.Earlier {
		all = append(all, e.Until)
	}
	for _, t := range s.Recent {
		all = append(all, t.Due)
	}
	if b := s.Backfill; b != nil {
		all = append(all, b.From, b.To, b.At)
	}
	return all
}

// Head returns when a server looks at the schedule next. It is not OK if the schedule is paused or
// has no next tick.
func (s *Schedule) Head() Head {
	if s.Paused || s.Next >= MaxInstant {
		return Head{}
	}
	return Head{Due: max(s.dueAt(s.Next), s.RetryAt), OK: true}
}

// dueAt returns when a tick is due: its time and its jitter.
func (s *Schedule) dueAt(tick Instant) Instant {
	if s.Jitter < time.Microsecond {
		return tick
	}
	h := fnv.New64a()
	text := append([]byte(s.ID), 0)
	text = append(append(text, s.Name...), 0)
	h.Write(binary.BigEndian.AppendUint64(text, uint64(tick)))
	return tick.Add(time.Duration(h.Sum64()%uint64(s.Jitter.Microseconds())) * time.Microsecond)
}

// Recurring returns the schedule with another recurrence at an instant. spec is the recurrence's
// Spec, parsed. If the spec is another one, its ticks after now follow. Ticks of the old spec that
// have come and were not fired stay due.
func (s Schedule) Recurring(r *Recurrence, spec Spec, now Instant) Schedule {
	old, pending := s.Spec, s.Revision > 0 && s.Next <= now
	s.Recurrence = *r
	s.Broken, s.RetryAt = "", 0
	if old == r.Spec {
		return s
	}

	s.SpecSince = now
	if !pending {
		s.Earlier, s.Next = nil, nextOr(spec, now)
		return s
	}
	s.Earlier = append(slices.Clone(s.Earlier), EarlierSpec{old, now})
	if len(s.Earlier) > MaxEarlierSpecs { // the time of the oldest two is then without ticks
		s.Earlier = slices.Delete(s.Earlier, 0, 1)
		s.Earlier[0].Spec = ""
	}
	return s
}

// Ticks returns the spec of the schedule's ticks from Next on: up to SpecSince those of the Earlier
// specs, and after that those of Spec. parse reads the text of a spec, as [ParseSpec], and returns
// the zero Spec with an error. Ticks returns that error for Spec. The other ticks of an earlier
// spec that can't be read are left out.
func (s *Schedule) Ticks(parse func(text string) (Spec, error)) (Spec, error) {
	var earlier Spec
	var until Instant
	for _, e := range s.Earlier {
		spec, _ := parse(e.Spec)
		earlier, until = spec.after(earlier, until), e.Until
	}

	spec, err := parse(s.Spec)
	return spec.after(earlier, s.SpecSince), err
}

// nextOr returns the next tick of a spec, or MaxInstant if there is none.
func nextOr(spec Spec, after Instant) Instant {
	if next, ok := spec.Next(after); ok {
		return next
	}
	return MaxInstant
}

// Pause returns the schedule paused by somebody, with a note. A schedule that is paused keeps its
// PausedAt.
func (s Schedule) Pause(by, note string, now Instant) Schedule {
	if !s.Paused {
		s.PausedAt = now
	}
	s.Paused, s.PausedBy, s.Note = true, by, note
	return s
}

// Resume returns the schedule without its pause.
func (s Schedule) Resume() Schedule {
	s.Paused, s.PausedBy, s.PausedAt, s.Note = false, "", 0, ""
	return s
}

// Changed returns the schedule as a change by somebody: with a new Revision, which no earlier state
// of the schedule had.
func (s Schedule) Changed(by string, now Instant) Schedule {
	s.By, s.ChangedAt = by, now
	return s.revised()
}

// revised returns the schedule with a new Revision. A change raises it by one. A new schedule
// begins at a hash of all that it is, which is below 2^52. So one that is made anew has other
// revisions than the removed one, whatever the clock shows.
func (s Schedule) revised() Schedule {
	if s.Revision > 0 {
		s.Revision++
		return s
	}

	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(s) // a hash takes every text, and a valid schedule has one
	s.Revision = int64(h.Sum64()>>12) + 1
	return s
}

// Declaration is a schedule as a program declares it.
type Declaration struct {
	ScheduleKey
	Recurrence
	// Paused makes a new schedule paused. It does not change one that exists.
	Paused bool
	// Set is the set that the schedule belongs to, and Version is the version of that set. An empty
	// Set means no set.
	Set     string
	Version int64
}

// Apply returns the schedule after the declaration was made, and whether that is a change. The zero
// current is no schedule. Within a set, a declaration of a version below that of current changes
// nothing, and one of the same version leaves the recurrence of an operator as it is. No
// declaration pauses or resumes a schedule that exists (docs/rules.md 10).
func (d *Declaration) Apply(current Schedule, spec Spec, by string, now Instant) (next Schedule, changed bool) {
	exists := current.Revision > 0
	if d.Set != "" && d.Set == current.Set {
		if d.Version < current.Version || d.Version == current.Version && current.Edited {
			return current, false
		}
	}
	sameSet := d.Set == current.Set && d.Version == current.Version
	if sameSet && current.Recurrence.Equal(&d.Recurrence) {
		return current, false
	}

	next = current
	if !exists {
		next.ScheduleKey = d.ScheduleKey
		if d.Paused {
			next = next.Pause(by, "", now)
		}
	}
	next = next.Recurring(&d.Recurrence, spec, now)
	next.Set, next.Version, next.Edited = d.Set, d.Version, false
	return next.Changed(by, now), true
}

// Firing is the change of a schedule whose ticks are due. A store applies it only to the revision
// that it was computed from, so each tick is fired once.
type Firing struct {
	// After is the schedule after the firing.
	After Schedule
	// Entries are the entries that are pushed with it, in order of their ticks, at most
	// MaxFiringEntries. Their Data has no stamp of [MergeRule.Stored].
	Entries []Entry
	// Busy is the schedule after the firing if a job of the id is queued or claimed. Then no entry
	// is pushed. It is nil unless the schedule has Skip.
	Busy *Schedule
}

// ticksInFiring is the number of ticks that one Fire looks at, so that it ends soon after a long
// downtime. The next Fire continues.
const ticksInFiring = 100_000

// Fire returns the firing of the ticks that are due at now. spec is the one that Ticks returns. ok
// is false if no tick is due. If more ticks are due than one firing may have, the first of them are
// fired, and Next is the first of the others.
func (s *Schedule) Fire(spec Spec, now Instant) (f Firing, ok bool) {
	if s.Paused || s.Next >= MaxInstant || s.dueAt(s.Next) > now {
		return Firing{}, false
	}
	after := s.revised()
	after.Broken, after.RetryAt = "", 0
	after.Recent = slices.Clone(s.Recent)
	if spec.earlier == nil {
		spec = spec.after(Spec{}, s.SpecSince)
	}

	// Older ticks than the newest of the window are missed.
	var window []Instant
	tick := s.Next
	for looked := 0; looked < ticksInFiring && tick < MaxInstant && s.dueAt(tick) <= now; looked++ {
		window = append(window, tick)
		if s.tooLate(window[0], now) || len(window) > s.Catchup.most() {
			after.record(window[0], TickMissed, now)
			window = window[1:]
		}
		tick = nextOr(spec, tick)
	}
	if more := tick < MaxInstant && s.dueAt(tick) <= now; more && len(window) > 0 {
		tick, window = window[0], nil // they are the newest of those that were looked at
	}
	if len(window) > MaxFiringEntries {
		tick, window = window[MaxFiringEntries], window[:MaxFiringEntries]
	}
	after.Next = tick
	if tick > s.SpecSince {
		after.Earlier = nil
	}

	f.Entries = s.entriesFor(window)
	if s.Skip {
		busy := after
		busy.Recent = slices.Clone(after.Recent)
		for _, due := range window {
			busy.record(due, TickSkipped, now)
		}
		f.Busy = &busy
	}
	for _, due := range window {
		after.record(due, TickFired, now)
	}
	f.After = after
	return f, true
}

// tooLate reports whether a tick is older than Catchup.Within.
func (s *Schedule) tooLate(tick, now Instant) bool {
	return s.Catchup.Within > 0 && now.Sub(s.dueAt(tick)) > s.Catchup.Within
}

// entriesFor returns the entries of ticks.
func (s *Schedule) entriesFor(ticks []Instant) []Entry {
	entries := make([]Entry, len(ticks))
	for i, tick := range ticks {
		entries[i] = s.Entry(s.dueAt(tick), tick)
	}
	return entries
}

// Entry returns the entry that the schedule pushes for a tick. when is the time of its job.
func (s *Schedule) Entry(when, tick Instant) Entry {
	score := s.Score
	if !s.FixedScore {
		score = float64(tick) / 1e6
	}
	return Entry{
		ID:      s.ID,
		Payload: Payload{Data: s.Data, Score: score, Meta: s.Meta},
		When:    At(when),
		Tags:    s.Tags,
	}
}

// record counts a tick and remembers it as the last one.
func (s *Schedule) record(tick Instant, outcome TickOutcome, now Instant) {
	switch outcome {
	case TickFired, TickByHand:
		s.Fired++
	case TickMissed:
		s.Missed++
	case TickSkipped:
		s.Skipped++
	}

	late := max(0, now.Sub(s.dueAt(tick)))
	s.Recent = append(s.Recent, Tick{Due: tick, Outcome: outcome, Late: late})
	if over := len(s.Recent) - MaxRecentTicks; over > 0 {
		s.Recent = slices.Delete(s.Recent, 0, over)
	}
}

// RunNow returns the firing of one payload by hand at now. Next does not change.
func (s *Schedule) RunNow(by string, now Instant) Firing {
	after := s.Changed(by, now)
	after.Recent = slices.Clone(s.Recent)
	after.record(now, TickByHand, now)
	return Firing{After: after, Entries: []Entry{s.Entry(now, now)}}
}

// Break returns the schedule after a server could not read its spec. Next does not change. A server
// tries again after [BrokenRetry].
func (s Schedule) Break(reason string, now Instant) Schedule {
	s.Broken, s.RetryAt = ErrorText(reason), now.Add(BrokenRetry)
	return s.revised()
}

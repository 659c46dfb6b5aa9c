package wrong

import "time"

// DueTick is the time from which a due tick is overdue. Servers usually fire a tick within their
// poll interval, which is a second by default.
const DueTick = 5 * time.Second

// ScheduleState is what keeps a schedule from firing, or that nothing does. The worst is the least.
type ScheduleState int

// The states of schedules, worst first.
const (
	ScheduleBroken ScheduleState = iota
	ScheduleLate
	ScheduleMissed
	ScheduleDue
	SchedulePaused
	ScheduleQueuePaused
	ScheduleEnded
	ScheduleFine
)

// String returns the name of the state.
func (s ScheduleState) String() string {
	return [...]string{"broken", "late", "missed", "due", "paused", "queue paused", "ended", "fine"}[s]
}

// ScheduleFacts are what the state of a schedule depends on.
type ScheduleFacts struct {
	// Broken is true if its spec can't be read, Missed if its catch-up has dropped its last tick, and
	// Ended if it has no next tick.
	Broken, Missed, Ended bool
	Paused, QueuePaused   bool
	// Late is how long its next tick has been due.
	Late time.Duration
}

// State returns the worst state that holds.
func (f ScheduleFacts) State() ScheduleState {
	stopped := f.Paused || f.QueuePaused
	switch {
	case f.Broken && !f.Paused:
		return ScheduleBroken
	case f.Late >= LateTick && !stopped:
		return ScheduleLate
	case f.Missed && !f.Paused:
		return ScheduleMissed
	case f.Late >= DueTick && !stopped:
		return ScheduleDue
	case f.Paused:
		return SchedulePaused
	case f.QueuePaused:
		return ScheduleQueuePaused
	case f.Ended:
		return ScheduleEnded
	}
	return ScheduleFine
}

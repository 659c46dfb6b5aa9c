package dispatch

import "time"

// LookAhead is how far ahead jobs are claimed: those that will probably start within it.
const LookAhead = 50 * time.Millisecond

// Window is LookAhead, or less where jobs that wait that long are put back: after a poll interval.
func Window(poll time.Duration) time.Duration { return min(LookAhead, poll/2) }

// paceWeight divides the share of the newest value in a [Pace]: that share is 1/paceWeight.
const paceWeight = 8

// Pace is the moving average of how long a job takes. The zero value knows nothing yet.
type Pace struct {
	known   bool
	average time.Duration
}

// Observe takes how long a batch with the given number of jobs took.
func (p *Pace) Observe(took time.Duration, jobs int) {
	each := took / time.Duration(jobs)
	if !p.known {
		p.known, p.average = true, each
		return
	}
	p.average += (each - p.average) / paceWeight
}

// JobsWithin returns how many jobs fit into d, one after another, or 0 if that is unknown.
func (p *Pace) JobsWithin(d time.Duration) int {
	if !p.known {
		return 0
	}
	return int(d / max(p.average, 1))
}

// Recent counts events within a window of time before now. Its window must be set.
type Recent struct {
	Window   time.Duration
	since    time.Time // when the present window began
	now, old int       // in this window, and in the one before
}

// Add adds an event.
func (r *Recent) Add(now time.Time) {
	r.advance(now)
	r.now++
}

// Count returns the number of events, as if those of the previous window had come evenly.
func (r *Recent) Count(now time.Time) int {
	r.advance(now)
	return r.now + int(time.Duration(r.old)*(r.Window-now.Sub(r.since))/r.Window)
}

// advance begins a new window if the present one is over.
func (r *Recent) advance(now time.Time) {
	switch passed := now.Sub(r.since); {
	case passed < r.Window:
	case passed < 2*r.Window:
		r.since, r.old, r.now = r.since.Add(r.Window), r.now, 0
	default:
		r.since, r.old, r.now = now, 0, 0
	}
}

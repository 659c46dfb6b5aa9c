package wrong

import (
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// LateTick is the time from which a due tick is late. Servers fire a tick within their poll
// interval, and a new schedule once within another.
const LateTick = time.Minute

// Ticks has what is known of the schedules of a queue.
type Ticks struct {
	// Since is when the tick was due that has been due longest. It is zero if none was late.
	Since time.Time
	// Broken are names of schedules whose spec servers can't read.
	Broken []string
}

// TicksOf returns what is known of the schedules of a queue from its late tick at a time, and from
// the first page of its schedules' names. Of each name it checks only the first schedule.
func TicksOf(late inspect.LateTick, now time.Time, names []inspect.ScheduleName) (t Ticks) {
	if late.Late >= LateTick {
		t.Since = now.Add(-late.Late)
	}
	for at := range names {
		if n := &names[at]; n.First.Broken != "" && !n.First.Paused {
			t.Broken = append(t.Broken, n.Name)
		}
	}
	return t
}

// schedules adds lines about the schedules of a queue that don't fire. served is true if a server
// runs the queue.
func (r *rules) schedules(s *inspect.QueueStats, served bool) {
	t := r.Ticks[s.Queue.Name]
	if s.Queue.Paused {
		return
	}
	if n := len(t.Broken); n > 0 {
		what := "the schedule"
		if n > 1 {
			what = "schedules:"
		}
		r.of(BrokenSchedule, s, int64(n), time.Time{}, "servers can't read the spec of %s %s", what, someOf(t.Broken))
	}
	if t.Since.IsZero() || !served && (s.Lag > 0 || s.Claimed > 0) { // then another line has the cause
		return
	}

	why := "no server has fired it"
	if !served {
		why = "no server runs this queue"
	}
	late := s.Now.Sub(t.Since)
	r.of(TicksLate, s, int64(late), t.Since, "a tick of its schedules is %s late: %s", figures.Span(late.Round(time.Second)), why)
}

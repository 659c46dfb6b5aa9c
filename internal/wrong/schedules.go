package wrong

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// LateTick is the time from which a due tick is late. Servers fire a tick within their poll
// interval, and a new schedule once within another.
const LateTick = time.Minute

// fullPage is the number of names on a full page; see [inspect.Inspector.ScheduleNames].
const fullPage = 100

// Ticks has what is known of the schedules of a queue.
type Ticks struct {
	// Since is when the tick was due that has been due longest. It is zero if none was late.
	Since time.Time
	// Late is the schedule that has been late longest among those that were checked. It is zero if
	// none of them is late.
	Late core.ScheduleKey
	// Broken are names of schedules whose spec servers can't read, in their order.
	Broken []string
	// Checked is the number of schedules that Late and Broken are known from, and Of is the number
	// of schedules that the queue has at least.
	Checked, Of int64
	// More is true if the queue may have names that were not read.
	More bool
}

// TicksOf returns what is known of the schedules of a queue from its late tick at a time, from the
// first page of its schedules' names, and from some of its schedules. Of each name it checks the
// first schedule, and those among the others.
func TicksOf(late inspect.LateTick, now time.Time, names []inspect.ScheduleName, others ...inspect.Schedule) (t Ticks) {
	if late.Late >= LateTick {
		t.Since = now.Add(-late.Late)
	}

	checked, longest := make(map[core.ScheduleKey]bool, len(names)+len(others)), time.Duration(0)
	check := func(s *inspect.Schedule) {
		checked[s.ScheduleKey] = true
		if s.Late >= LateTick && s.Late > longest {
			t.Late, longest = s.ScheduleKey, s.Late
		}
		if s.Broken != "" && !s.Paused && !slices.Contains(t.Broken, s.Name) {
			t.Broken = append(t.Broken, s.Name)
		}
	}
	for at := range names {
		check(&names[at].First)
		t.Of += names[at].Count
	}
	for at := range others {
		check(&others[at])
	}
	slices.Sort(t.Broken)
	t.Checked, t.More = int64(len(checked)), len(names) >= fullPage
	return t
}

// partly states how many schedules were checked, if those are not all.
func (t *Ticks) partly() string {
	if t.Checked >= t.Of && !t.More {
		return ""
	}
	return " (checked: " + figures.Exact(t.Checked) + " of at least " + figures.Exact(t.Of) + " schedules)"
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
		r.of(BrokenSchedule, s, int64(n), time.Time{},
			"Servers can't read the spec of %s %s%s", what, someOf(t.Broken), t.partly())
	}
	if t.Since.IsZero() || !served && (s.Lag > 0 || s.Claimed > 0) { // then another line has the cause
		return
	}

	why, left := "no server has fired it", owners{}
	if !served {
		why, left = "no server runs this queue", r.leftBy(s)
	}
	late := s.Now.Sub(t.Since)
	r.of(TicksLate, s, int64(late), t.Since,
		"A tick of its schedules is %s late: %s%s", figures.Span(late.Round(time.Second)), why, r.lateOne(s, &t))
	r.blame(&left, 0, 0)
}

// lateOne names a late schedule of a queue, if one is known.
func (r *rules) lateOne(s *inspect.QueueStats, t *Ticks) string {
	if t.Late == (core.ScheduleKey{}) {
		return ""
	}
	return "; the schedule " + t.Late.Name + " of the id " + brief(r.shownID(s.Queue.Name, t.Late.ID)) + " is late"
}

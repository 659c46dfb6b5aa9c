package dashboard

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/wrong"
)

// scheduleRow is a schedule in a table, or the schedules of a name, shown by the first of them.
type scheduleRow struct {
	service.ScheduleRow
	Queue string
	// Count is the number of schedules of the name.
	Count int64
	// Class, Sign and State describe what keeps it from firing, or that nothing does.
	Class, Sign, State string
	When               string
	// Expression is the cron expression or the interval.
	Expression string
	NextAt     when
	NextLocal  string
	// Stopped is true if no tick fires until the schedule or its queue is resumed.
	Stopped bool
	// Overdue is since when the next tick has been due. It is zero if that tick is not overdue.
	Overdue when
	// Changed is when it was changed last. PausedSince is when it was paused, or zero if that is
	// not known.
	Changed, PausedSince when
	Last                 *tickRow
	Marks                []tickMark
	// MarksText describes the marks.
	MarksText string
	// Href is the page of the schedule or, if there are several or if ids are redacted, of the
	// name.
	Href string
	// Acts is true if the row has forms, which name the id.
	Acts  bool
	worst wrong.ScheduleState
}

// tickRow is a past tick.
type tickRow struct {
	At                 when
	Local              string
	Class, Sign, Words string
	Late               time.Duration
	// Job is what became of the job, if that is known.
	Job *tickJob
	// MakeUp is the address of the preview of a backfill of the tick alone, if the tick was missed.
	MakeUp         string
	pushed, missed bool
}

// tickMark is the drawing of a tick.
type tickMark struct{ Class, Path string }

// calendar makes rows of schedules.
type calendar struct {
	now    time.Time
	linked bool
	// paused are the queues that are paused.
	paused map[string]bool
	zones  map[string]*time.Location
}

// linked reports whether pages may link to ids and name them in forms.
func (c *call) linked() bool { return c.o.API.RedactID == nil }

func (c *call) calendar(s *snapshot) *calendar {
	cal := &calendar{
		now:    c.looker.now(),
		linked: c.linked(),
		paused: map[string]bool{},
		zones:  map[string]*time.Location{},
	}

	for at := range s.view.Stats {
		q := &s.view.Stats[at].Queue
		cal.paused[q.Name] = q.Paused
	}
	return cal
}

// zone returns a time zone by its name, or UTC if this process lacks it.
func (cal *calendar) zone(name string) *time.Location {
	loc := cal.zones[name]
	if loc == nil {
		var err error
		if loc, err = time.LoadLocation(name); err != nil {
			loc = time.UTC
		}
		cal.zones[name] = loc
	}
	return loc
}

// local returns a time as a clock of the zone shows it, or in UTC if this process lacks the zone.
func (cal *calendar) local(at time.Time, zone string) string {
	if at.IsZero() {
		return ""
	}

	loc := cal.zone(zone)
	at = at.In(loc)
	layout := "Mon 2 Jan"
	if at.Year() != cal.now.In(loc).Year() {
		layout += " 2006"
	}
	layout += " 15:04"
	if at.Second() != 0 {
		layout += ":05"
	}
	return at.Format(layout + " MST")
}

// row returns the row of a schedule that stands for count schedules of its name.
func (cal *calendar) row(queue string, r *service.ScheduleRow, count int64) scheduleRow {
	row := scheduleRow{
		ScheduleRow: *r,
		Queue:       queue,
		Count:       count,
		When:        capital(cmp.Or(r.Words, r.Broken)),
		Expression:  expression(r.Spec),
		NextAt:      when{r.Next, cal.now},
		NextLocal:   cal.local(r.Next, r.Zone),
		Stopped:     r.Paused || cal.paused[queue],
		Changed:     when{r.ChangedAt, cal.now},
		PausedSince: when{r.PausedAt, cal.now},
		Href:        href("named", "q", queue, "name", r.Name),
		Acts:        cal.linked && count == 1 && r.ID != "",
	}
	if row.Acts {
		row.Href = href("schedule", "q", queue, "name", r.Name, "id", r.ID)
	}

	if late := r.Late; late >= wrong.DueTick && !row.Stopped {
		row.Overdue = when{cal.now.Add(-late), cal.now}
	}
	cal.state(&row)
	if n := len(r.Recent); n > 0 {
		row.Last = cal.tick(&r.Recent[n-1], r.Zone)
	}
	row.Marks, row.MarksText = marksOf(r)
	return row
}

// rows returns the rows of schedules of one queue.
func (cal *calendar) rows(queue string, list []service.Row[service.ScheduleRow]) (rows []scheduleRow) {
	for at := range list {
		rows = append(rows, cal.row(queue, list[at].Value(), 1))
	}
	return rows
}

// names returns the rows of names of one queue.
func (cal *calendar) names(queue string, list []service.Row[service.ScheduleNameRow]) (rows []scheduleRow) {
	for at := range list {
		name := list[at].Value()
		rows = append(rows, cal.row(queue, &name.First, name.Count))
	}
	return rows
}

// scheduleSigns are the class and the sign of each state.
var scheduleSigns = [...]struct{ class, sign string }{
	wrong.ScheduleBroken:      {"bad", "●"},
	wrong.ScheduleLate:        {"bad", "◷"},
	wrong.ScheduleMissed:      {"late", "◷"},
	wrong.ScheduleDue:         {"late", "◷"},
	wrong.SchedulePaused:      {"paused", "‖"},
	wrong.ScheduleQueuePaused: {"paused", "‖"},
	wrong.ScheduleEnded:       {"muted", "◦"},
	wrong.ScheduleFine:        {"good", "✓"},
}

// stateNames returns the names of the states, worst first.
func stateNames() (names []string) {
	for state := range scheduleSigns {
		names = append(names, wrong.ScheduleState(state).String())
	}
	return names
}

// state sets the state of a row.
func (cal *calendar) state(row *scheduleRow) {
	n := len(row.Recent)
	row.worst = wrong.ScheduleFacts{
		Broken:      row.Broken != "",
		Missed:      n > 0 && row.Recent[n-1].Outcome == string(core.TickMissed),
		Ended:       row.Next.IsZero(),
		Paused:      row.Paused,
		QueuePaused: cal.paused[row.Queue],
		Late:        row.Late,
	}.State()
	row.Class, row.Sign, row.State = scheduleSigns[row.worst].class, scheduleSigns[row.worst].sign, row.worst.String()
}

// tick returns the row of a past tick.
func (cal *calendar) tick(t *service.TickRow, zone string) *tickRow {
	row := &tickRow{At: when{t.At, cal.now}, Local: cal.local(t.At, zone), Late: t.Late}
	switch core.TickOutcome(t.Outcome) {
	case core.TickFired:
		row.Class, row.Sign, row.Words, row.pushed = "good", "✓", "fired", true
	case core.TickByHand:
		row.Class, row.Sign, row.Words, row.pushed = "good", "✓", "fired by hand", true
	case core.TickMissed:
		row.Class, row.Sign, row.Words, row.missed = "late", "◷", "missed, dropped by its catch-up", true
	case core.TickSkipped:
		row.Class, row.Sign, row.Words = "muted", "↷", "skipped, the id had a job"
	default:
		row.Class, row.Sign, row.Words = "muted", "?", shown(t.Outcome)
	}
	return row
}

// Distances of marks, and the place of the line between the past and the next tick.
const (
	markPitch = 12
	markLine  = core.MaxRecentTicks*markPitch + 6
)

// marksOf draws the last ticks of a schedule, the newest at the right, and the next tick.
func marksOf(r *service.ScheduleRow) (marks []tickMark, text string) {
	counts := map[string]int{}
	for at, t := range r.Recent {
		x := markLine - 12 - markPitch*(len(r.Recent)-1-at)
		mark := tickMark{"fired", dot(x - 4)}
		switch core.TickOutcome(t.Outcome) {
		case core.TickByHand:
			mark.Class = "hand"
		case core.TickMissed:
			mark.Class = "missed"
		case core.TickSkipped:
			mark = tickMark{"skipped", square(x)}
		}
		marks = append(marks, mark)
		counts[t.Outcome]++
	}

	marks = append(marks, tickMark{"edge", fmt.Sprintf("M%d 1v16", markLine)})
	if !r.Next.IsZero() && !r.Paused {
		marks = append(marks, tickMark{"next", dot(markLine + 8)})
	}

	var texts []string
	for _, outcome := range []core.TickOutcome{core.TickFired, core.TickByHand, core.TickMissed, core.TickSkipped} {
		if n := counts[string(outcome)]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	return marks, cmp.Or(strings.Join(texts, ", "), "no tick yet")
}

// tickKey explains a mark.
type tickKey struct {
	tickMark
	Text string
}

// tickKeys explains the marks of ticks.
func tickKeys() []tickKey {
	return []tickKey{
		{tickMark{"fired", dot(3)}, "fired"},
		{tickMark{"hand", dot(3)}, "fired by hand"},
		{tickMark{"missed", dot(3)}, "missed"},
		{tickMark{"skipped", square(7)}, "skipped"},
		{tickMark{"next", dot(3)}, "to come"},
	}
}

// square draws a square whose middle is at x.
func square(x int) string { return fmt.Sprintf("M%d 6h6v6h-6z", x-3) }

// dot draws a dot whose left side is at x.
func dot(x int) string { return fmt.Sprintf("M%d 9a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x) }

// expression returns the cron expression of a spec, or its interval.
func expression(spec string) string {
	fields := strings.Fields(spec)
	switch {
	case len(fields) == 7 && fields[0] == "cron":
		return strings.Join(fields[1:6], " ")
	case len(fields) == 3 && fields[0] == "every":
		return "every " + fields[1]
	}
	return shown(spec)
}

func capital(text string) string { return strings.TrimSuffix(sentence(text), ".") }

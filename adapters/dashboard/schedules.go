package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/wrong"
)

// Limits of the pages of schedules. The page of all queues asks no further queue once it has enough
// rows, has asked scheduleQueues queues, or has taken as long as a look may. Each call returns at
// most scheduleRows names or schedules. The block on the page of a queue has blockRows.
const (
	scheduleQueues = 50
	enoughRows     = 200
	scheduleRows   = 100
	blockRows      = 10
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
	Last       *tickRow
	Marks      []tickMark
	// MarksText describes the marks.
	MarksText string
	// Href is the page of the schedule or, if there are several or if ids are redacted, of the name.
	Href string
	// Acts is true if the row has forms, which name the id.
	Acts  bool
	worst int
}

// tickRow is a past tick.
type tickRow struct {
	At                 when
	Local              string
	Class, Sign, Words string
	Late               time.Duration
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

// local returns a time as a clock of the zone shows it, or in UTC if this process lacks the zone.
func (cal *calendar) local(at time.Time, zone string) string {
	if at.IsZero() {
		return ""
	}
	loc := cal.zones[zone]
	if loc == nil {
		var err error
		if loc, err = time.LoadLocation(zone); err != nil {
			loc = time.UTC
		}
		cal.zones[zone] = loc
	}

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
		When:        capital(r.Words),
		Expression:  expression(r.Spec),
		NextAt:      when{r.Next, cal.now},
		NextLocal:   cal.local(r.Next, r.Zone),
		Href:        href("named", "q", queue, "name", r.Name),
		Acts:        cal.linked && count == 1,
	}
	if row.Acts {
		row.Href = href("schedule", "q", queue, "name", r.Name, "id", r.ID)
	}
	cal.state(&row)
	if n := len(r.Recent); n > 0 {
		row.Last = cal.tick(&r.Recent[n-1], r.Zone)
	}
	row.Marks, row.MarksText = marksOf(r)
	return row
}

// rows returns the rows of schedules of one queue.
func (cal *calendar) rows(queue string, list []service.ScheduleRow) (rows []scheduleRow) {
	for at := range list {
		rows = append(rows, cal.row(queue, &list[at], 1))
	}
	return rows
}

// names returns the rows of names of one queue.
func (cal *calendar) names(queue string, list []service.ScheduleNameRow) (rows []scheduleRow) {
	for at := range list {
		rows = append(rows, cal.row(queue, &list[at].First, list[at].Count))
	}
	return rows
}

// scheduleState is a state of a schedule, and whether it holds.
type scheduleState struct {
	holds              bool
	class, sign, state string
}

// state sets the state of a row: the worst that holds.
func (cal *calendar) state(row *scheduleRow) {
	states := []scheduleState{
		{row.Broken != "" && !row.Paused, "bad", "●", "broken"},
		{row.Late >= wrong.LateTick.Seconds() && !cal.paused[row.Queue], "bad", "◷", "late"},
		{row.missed(), "late", "◷", "missed"},
		{row.Paused, "paused", "‖", "paused"},
		{cal.paused[row.Queue], "paused", "‖", "queue paused"},
		{row.Next.IsZero(), "muted", "◦", "ended"},
		{true, "good", "✓", "fine"},
	}
	row.worst = slices.IndexFunc(states, func(s scheduleState) bool { return s.holds })
	worst := &states[row.worst]
	row.Class, row.Sign, row.State = worst.class, worst.sign, worst.state
}

// missed reports whether the last tick was missed, unless the schedule is paused.
func (row *scheduleRow) missed() bool {
	n := len(row.Recent)
	return !row.Paused && n > 0 && row.Recent[n-1].Outcome == string(core.TickMissed)
}

// tick returns the row of a past tick.
func (cal *calendar) tick(t *service.TickRow, zone string) *tickRow {
	row := &tickRow{At: when{t.At, cal.now}, Local: cal.local(t.At, zone), Late: inSeconds(t.Late)}
	switch core.TickOutcome(t.Outcome) {
	case core.TickFired:
		row.Class, row.Sign, row.Words = "good", "✓", "fired"
	case core.TickByHand:
		row.Class, row.Sign, row.Words = "good", "✓", "fired by hand"
	case core.TickMissed:
		row.Class, row.Sign, row.Words = "late", "◷", "missed, and not made up for"
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
			mark = tickMark{"skipped", fmt.Sprintf("M%d 6h6v6h-6z", x-3)}
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

// dot draws a dot whose left side is at x.
func dot(x int) string { return fmt.Sprintf("M%d 9a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x) }

// inSeconds returns a number of seconds as a duration.
func inSeconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

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

// scheduleTable is a table of schedules.
type scheduleTable struct {
	Rows []scheduleRow
	// Label names the table. Named is true if rows are of one name, so that they show ids.
	Label string
	Named bool
	// All is true if the table is of all queues. Back is the page to return to after an action, and
	// Stood has its parameters.
	All   bool
	Back  string
	Stood []hiddenField
	May   *rights
}

// schedulesBody is the page of the schedules of all queues or of one queue, a row for each name.
type schedulesBody struct {
	Queue string
	Now   time.Time
	Table scheduleTable
	Sum   string
	// Failed are queues whose schedules can't be read, with the reasons.
	Failed    []string
	Unreached []string
	// Later is true if other names come before the page. Next is the address of the next page, or "".
	Later bool
	Next  string
}

// schedulesPage makes the page of the schedules of all queues or of one queue.
func (c *call) schedulesPage() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}
	b := &schedulesBody{Queue: c.queue, Now: c.looker.now()}
	b.Table = scheduleTable{Label: "Schedules", All: c.queue == "", Back: "schedules", May: c.may()}
	cal := c.calendar(s)
	if c.queue != "" {
		err = c.schedulesOf(b, cal)
	} else {
		c.allSchedules(b, cal, s)
	}
	if err != nil {
		return nil, err
	}

	rows := b.Table.Rows
	slices.SortStableFunc(rows, func(x, y scheduleRow) int {
		return cmp.Or(cmp.Compare(x.worst, y.worst), strings.Compare(x.Name, y.Name), strings.Compare(x.Queue, y.Queue))
	})
	b.Sum = sumOf(rows, b.Now)
	title := "Schedules"
	if c.queue != "" {
		title = c.queue + ": schedules"
	}
	return &view{page: "schedules", title: title, live: true, body: b}, nil
}

// schedulesOf adds a page of the names of one queue.
func (c *call) schedulesOf(b *schedulesBody, cal *calendar) error {
	if _, _, err := c.of(); err != nil {
		return err
	}
	after := c.r.URL.Query().Get("after")
	reply, err := asked(c, service.ScheduleNames, c.queue, &service.ScheduleNamesQuery{After: after, Limit: scheduleRows})
	if err != nil {
		return err
	}
	b.Table.Rows, b.Unreached, b.Later = cal.names(c.queue, reply.Items), reply.Unreached, after != ""
	b.Table.Stood = fields("back.after", after)
	if reply.Next != "" {
		b.Next = href("schedules", "q", c.queue, "after", reply.Next)
	}
	return nil
}

// allSchedules adds the first names of queues, from the queue that the address names on.
func (c *call) allSchedules(b *schedulesBody, cal *calendar, s *snapshot) {
	from, queues := c.r.URL.Query().Get("after"), 0
	b.Later = from != ""
	b.Table.Stood = append(fields("back.after", from), hiddenField{"back.all", "1"})
	for at := range s.view.Stats {
		name := s.view.Stats[at].Queue.Name
		if name < from {
			continue
		}
		if queues++; queues > scheduleQueues || len(b.Table.Rows) >= enoughRows || c.cost > lookTime {
			b.Next = href("schedules", "after", name)
			return
		}
		reply, err := asked(c, service.ScheduleNames, name, &service.ScheduleNamesQuery{Limit: scheduleRows})
		if err != nil {
			b.Failed = append(b.Failed, name+": "+c.errorText(name, "", err.Error()))
			continue
		}
		b.Table.Rows = append(b.Table.Rows, cal.names(name, reply.Items)...)
		b.Unreached = append(b.Unreached, reply.Unreached...)
		if reply.Next != "" {
			b.Failed = append(b.Failed, name+": it has more names; its own page shows them")
		}
	}
}

// plural writes a number of things.
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return figures.Exact(n) + " " + thing + "s"
}

// sumOf describes the rows: their states and the next tick.
func sumOf(rows []scheduleRow, now time.Time) string {
	if len(rows) == 0 {
		return ""
	}
	counts, ids := map[string]int{}, int64(0)
	var next time.Time
	for at := range rows {
		row := &rows[at]
		counts[row.State]++
		ids += row.Count
		if row.Due.After(now) && row.State != "queue paused" && (next.IsZero() || row.Due.Before(next)) {
			next = row.Due
		}
	}

	var texts []string
	for _, state := range []string{"broken", "late", "missed", "paused", "queue paused", "ended", "fine"} {
		if n := counts[state]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := fmt.Sprintf("%s, %s; %s", plural(int64(len(rows)), "name"), plural(ids, "schedule"), strings.Join(texts, ", "))
	if !next.IsZero() {
		text += "; the next tick is " + when{next, now}.Text()
	}
	return text
}

// namedBody is the page of the schedules of one name.
type namedBody struct {
	Queue, Name string
	Table       scheduleTable
	Unreached   []string
	Later       bool
	Next        string
	May         *rights
}

// namedPage lists the ids that have a schedule of a name.
func (c *call) namedPage() (*view, error) {
	s, _, err := c.of()
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	name, after := q.Get("name"), q.Get("after")
	if name == "" {
		return nil, newProblem(http.StatusBadRequest, "No schedule is named", "Start from the list of schedules.")
	}
	query := service.SchedulesQuery{Name: name, After: after, Limit: scheduleRows}
	reply, err := asked(c, service.Schedules, c.queue, &query)
	if err != nil {
		return nil, err
	}

	b := &namedBody{Queue: c.queue, Name: name, Unreached: reply.Unreached, Later: after != "", May: c.may()}
	b.Table = scheduleTable{
		Rows:  c.calendar(s).rows(c.queue, reply.Items),
		Label: "Ids with this schedule",
		Named: true,
		Back:  "named",
		Stood: fields("back.name", name, "back.after", after),
		May:   b.May,
	}
	if reply.Next != "" {
		b.Next = href("named", "q", c.queue, "name", name, "after", reply.Next)
	}
	return &view{page: "named", title: c.queue + ": " + shown(name), live: true, body: b}, nil
}

// scheduleBlock is the block of schedules on the page of a queue or of an id.
type scheduleBlock struct {
	Table scheduleTable
	// More is the address of the page with all of them.
	More string
	// Failed is why they can't be read.
	Failed    string
	Unreached []string
}

// blockOfQueue returns the block of the page of a queue, of the snapshot.
func (c *call) blockOfQueue(s *snapshot) *scheduleBlock {
	b := &scheduleBlock{Table: scheduleTable{Label: "Schedules of the queue", Back: "queue", May: c.may()}}
	d := s.details[c.queue]
	if d == nil {
		return b
	}
	if d.schedulesFailed != nil {
		b.Failed = c.errorText(c.queue, "", d.schedulesFailed.Error())
	}
	if first := d.schedules[:min(len(d.schedules), blockRows)]; len(first) > 0 {
		b.Table.Rows = c.calendar(s).names(c.queue, c.door.Service.ScheduleNameRows(first))
		b.More = href("schedules", "q", c.queue)
	}
	return b
}

// blockOfID returns the block of the page of an id.
func (c *call) blockOfID(s *snapshot, id string) *scheduleBlock {
	b := &scheduleBlock{}
	b.Table = scheduleTable{Label: "Schedules of the id", Back: "id", Stood: fields("back.id", id), May: c.may()}
	reply, err := asked(c, service.Schedules, c.queue, &service.SchedulesQuery{ID: id, Limit: scheduleRows})
	if err != nil {
		b.Failed = c.errorText(c.queue, id, err.Error())
		return b
	}
	b.Table.Rows, b.Unreached = c.calendar(s).rows(c.queue, reply.Items), reply.Unreached
	return b
}

// scheduleBody is the page of a schedule.
type scheduleBody struct {
	Queue, ID string
	Now       time.Time
	Row       scheduleRow
	// Changed is when it was changed last.
	Changed when
	// Job states what became of the last tick's job.
	Job, JobClass string
	Ticks         []*tickRow
	Next          []nextRow
	Unreadable    string
	Payload       *payload
	Hidden        bool // the payload must not be shown
	May           *rights
	// LateFor is how long the next tick has been due.
	LateFor time.Duration
}

// nextRow is a tick to come.
type nextRow struct {
	At    when
	Local string
}

// nextTicks is the number of ticks to come on the page of a schedule.
const nextTicks = 5

// schedulePage makes the page of a schedule.
func (c *call) schedulePage() (*view, error) {
	s, _, err := c.of()
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	b := &scheduleBody{Queue: c.queue, ID: q.Get("id"), Now: c.looker.now(), May: c.may()}
	ask := service.ScheduleQuery{Name: q.Get("name"), ID: b.ID, Ticks: nextTicks, Payloads: 1}
	reply, err := asked(c, service.Schedule, c.queue, &ask)
	if p := problemOf(err); p != nil && p.Name == "forbidden" {
		b.Hidden, ask.Payloads = true, 0
		reply, err = asked(c, service.Schedule, c.queue, &ask)
	}
	if err != nil {
		return nil, err
	}

	cal := c.calendar(s)
	b.Row = cal.row(c.queue, &reply.ScheduleRow, 1)
	b.Changed, b.Unreadable = when{reply.ChangedAt, b.Now}, reply.Unreadable
	b.LateFor = inSeconds(reply.Late)
	if reply.Payload != nil {
		b.Payload = &payload{service.Payload{Octets: reply.Payload.Octets}}
	}
	for at := range slices.Backward(reply.Recent) {
		b.Ticks = append(b.Ticks, cal.tick(&reply.Recent[at], reply.Zone))
	}
	for _, tick := range reply.NextTicks {
		b.Next = append(b.Next, nextRow{when{tick.At, b.Now}, cal.local(tick.At, reply.Zone)})
	}
	if err := c.lastJob(b, &reply.ScheduleRow); err != nil {
		return nil, err
	}
	return &view{page: "schedule", title: shown(b.Row.Name), live: true, body: b}, nil
}

// lastJob states what became of the job of the last tick, by what the queue has of the id now.
func (c *call) lastJob(b *scheduleBody, r *service.ScheduleRow) error {
	n := len(r.Recent)
	if n == 0 {
		return nil
	}
	last := &r.Recent[n-1]
	if o := core.TickOutcome(last.Outcome); o != core.TickFired && o != core.TickByHand {
		b.Job, b.JobClass = "It pushed nothing: "+b.Ticks[0].Words+".", b.Ticks[0].Class
		return nil
	}
	reply, err := asked(c, service.Find, "", &service.FindQuery{Queue: c.queue, ID: b.ID})
	if err != nil {
		return err
	}
	b.Job, b.JobClass = jobNow(&reply.Items[0], last.At, b.Now)
	return nil
}

// gone describes a job that the queue does not have.
const gone = "The queue has nothing of it any more: it is done, or was removed."

// jobNow describes what a queue has of an id whose schedule has fired at a time.
func jobNow(f *service.FoundRow, fired, now time.Time) (text, class string) {
	switch q := f.Queued; {
	case len(f.Damaged) > 0:
		return "A record of the id can't be read.", "late"
	case f.Claimed != nil && f.Claimed.LeaseOver:
		return "The id's job was left by a server that is gone.", "bad"
	case f.Claimed != nil && q != nil:
		return "The id's job runs, and another one waits for its end.", ""
	case f.Claimed != nil:
		return "The id's job runs, or a server has claimed it.", ""
	case q != nil && q.Held:
		return "The id's job is held after its last retry.", "bad"
	case q != nil && q.Retries > 0:
		return "The id's job has failed, and waits for a retry " + when{q.PerformAt, now}.Text() + ".", "late"
	case q != nil && q.PerformAt.After(now):
		return "The id's job waits, and is due " + when{q.PerformAt, now}.Text() + ".", ""
	case q != nil:
		return "The id's job is queued.", ""
	case f.Dead != nil && !f.Dead.ChangedAt.Before(fired):
		return "The id is in the morgue.", "bad"
	case f.Dead != nil:
		return gone + " The dead letter of the id is older.", ""
	}
	return gone, ""
}

// selected returns the schedules that a form names: one, or with the field all those of a name.
func (c *call) selected() (service.ScheduleBody, error) {
	form := c.r.PostForm
	b := service.ScheduleBody{ID: service.Given(form.Get("id")), Name: service.Given(form.Get("name"))}
	if b.Name == "" || (b.ID == "") != (form.Get("all") != "") {
		return b, errForm
	}
	return b, nil
}

// onSchedules completes an action on the schedules that a form names.
func onSchedules(do scheduleAct, of op) op {
	of.ofQueue = true
	of.do = func(c *call) (int, error) {
		b, err := c.selected()
		if err != nil {
			return 0, err
		}
		r, err := do(c, b)
		c.looker.detailAgain(c.queue)
		if err != nil {
			return 0, err
		}
		if len(r.Unreached) > 0 {
			return 0, newProblem(http.StatusServiceUnavailable, "Some schedules could not be reached", fmt.Sprintf(
				"Changed: %d. Shards that can't be reached now: %d. Repeat the action when they can be reached.",
				r.Changed, len(r.Unreached)))
		}
		return r.Changed, nil
	}
	of.question = func(c *call) string {
		form := c.r.PostForm
		if form.Get("all") != "" {
			return fmt.Sprintf("%s all schedules %s of %s?", of.verb, shown(form.Get("name")), c.queue)
		}
		return fmt.Sprintf("%s the schedule %s?", of.verb, shown(form.Get("name")))
	}
	return of
}

// scheduleAct takes an action on the schedules of a selection.
type scheduleAct func(*call, service.ScheduleBody) (*service.ScheduleResult, error)

// selectedBy returns an action that needs only the selection.
func selectedBy(o service.Op[service.ScheduleBody, service.ScheduleResult]) scheduleAct {
	return func(c *call, b service.ScheduleBody) (*service.ScheduleResult, error) {
		return asked(c, o, c.queue, &b)
	}
}

// pauseSchedules pauses schedules. Their note is the reason that the form gives.
func pauseSchedules(c *call, b service.ScheduleBody) (*service.ScheduleResult, error) {
	note := strings.Join(strings.Fields(c.r.PostForm.Get("reason")), " ")
	return asked(c, service.PauseSchedules, c.queue, &service.SchedulePauseBody{ScheduleBody: b, Note: note})
}

package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/wrong"
)

// Limits of the pages of schedules. The page of all queues asks no further queue once it has enough
// rows, has asked scheduleQueues queues, or has taken as long as a look may. Each call returns at
// most scheduleRows names or schedules. Where few of those match a filter, a page makes at most
// filteredCalls calls.
const (
	scheduleQueues = 50
	enoughRows     = 200
	scheduleRows   = 100
	filteredCalls  = 10
)

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
	Queue  string
	Now    time.Time
	Filter scheduleFilter
	Chips  []chip
	Table  scheduleTable
	Sum    string
	// Late is the tick that has been due longest, or nil if no tick is overdue.
	Late *lateTick
	// Read is the number of names whose first id was read, if the filter has a state. Unread are
	// those of them that have other ids and are not in the table, since the first id has another
	// state.
	Read   int
	Unread []unreadName
	// Failed are what can't be read, with the reasons. Unknown is true if schedules are among it.
	Failed    []string
	Unknown   bool
	Unreached []string
	// Longer are the queues that have more names than were read.
	Longer []string
	// First is the address of the first page if this is another one. Next is that of the next page.
	First, Next string
}

// unreadName is a name of which only the first id was read.
type unreadName struct {
	Queue, Name string
	Count       int64
	// Href is the page of the name, with the wanted state.
	Href string
}

// shownUnread is the number of unread names that a page links to.
const shownUnread = 30

// More returns the number of unread names without a link.
func (b *schedulesBody) More() int { return max(0, len(b.Unread)-shownUnread) }

// Links returns the unread names that the page links to.
func (b *schedulesBody) Links() []unreadName { return b.Unread[:min(len(b.Unread), shownUnread)] }

// Empty is what the page says in place of a table without rows.
func (b *schedulesBody) Empty() string {
	switch {
	case b.Unknown || len(b.Unreached) > 0:
		return "Whether there are schedules here is not known: not all could be read."
	case b.Filter.Any() && (b.Next != "" || len(b.Longer) > 0):
		return "None of the schedules read so far match; more follow."
	case len(b.Unread) > 0:
		return "No first id of a name matches."
	case b.Filter.Any():
		return "No schedules match."
	case b.First != "" || b.Next != "":
		return "No schedules here."
	}
	return "No schedules. Queue.Schedule stores one, and ServerOptions.Schedules declares a set."
}

// lateTick is the tick of several queues, or of one, that has been due longest.
type lateTick struct {
	Queue string
	Since when
	// Class is that of the state of its schedule. Href is a list with the schedule.
	Class, Href string
}

// schedulesPage makes the page of the schedules of all queues or of one queue.
func (c *call) schedulesPage() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}
	b := &schedulesBody{Queue: c.queue, Now: c.looker.now(), Filter: c.filter()}
	b.Table = scheduleTable{
		Label: "Schedules",
		All:   c.queue == "",
		Back:  "schedules",
		Stood: fields("back.contains", b.Filter.Name, "back.state", b.Filter.State),
		May:   c.may(),
	}
	b.Chips = append(b.Chips, chipOf("q", c.queue, s.queues()...))
	b.Chips = append(b.Chips, chipOf("state", b.Filter.State, stateNames()...))

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
	if b.Late, err = c.lateTick(s, b.Now); err != nil {
		b.Failed = append(b.Failed, "how late ticks are: "+c.errorText(c.queue, "", err.Error()))
	}

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
	next, err := c.addNames(b, cal, c.queue, after)
	if err != nil {
		return err
	}

	b.Table.Stood = append(b.Table.Stood, fields("back.after", after)...)
	if after != "" {
		b.First = c.with("after", "")
	}
	if next != "" {
		b.Next = c.with("after", next)
	}
	return nil
}

// addNames adds a page of the names of a queue that the filter chooses, and returns where the next
// page begins, or "".
func (c *call) addNames(b *schedulesBody, cal *calendar, queue, after string) (next string, err error) {
	before := len(b.Table.Rows)
	for calls := range filteredCalls {
		if calls > 0 && c.cost > lookTime {
			break
		}
		query := service.ScheduleNamesQuery{After: after, Limit: scheduleRows}
		reply, err := asked(c, service.ScheduleNames, queue, &query)
		if err != nil {
			return "", err
		}

		b.take(cal.names(queue, reply.Items))
		b.Unreached = appendNew(b.Unreached, reply.Unreached)
		after = reply.Next
		if after == "" || len(b.Table.Rows)-before >= scheduleRows {
			break
		}
	}
	return after, nil
}

// take adds the rows of names that the filter chooses. Only the first id of a name is known, so a
// name with several ids is never left out because of a state.
func (b *schedulesBody) take(names []scheduleRow) {
	state := b.Filter.State
	byName := scheduleFilter{Name: b.Filter.Name}
	for _, row := range byName.rows(names) {
		if row.Count > 1 && state != "" {
			row.Href = href("named", "q", row.Queue, "name", row.Name, "state", state)
		}
		switch {
		case state == "" || row.State == state:
			b.Table.Rows = append(b.Table.Rows, row)
		case row.Count > 1:
			b.Unread = append(b.Unread, unreadName{row.Queue, row.Name, row.Count, row.Href})
		}
		b.Read++
	}
}

// lateTick returns the tick that has been due longest, of the page's queue or of all queues. It is
// nil if no tick is overdue, or if the page has taken too long.
func (c *call) lateTick(s *snapshot, now time.Time) (*lateTick, error) {
	if c.cost > lookTime {
		return nil, nil
	}

	var queues []string
	if c.queue != "" {
		queues = []string{c.queue}
	}
	late, err := c.looker.inspector.LateTicks(c.r.Context(), queues...)
	if _, err = service.Partial(err); err != nil {
		return nil, err
	}

	queue := ""
	for name, tick := range late {
		if most := late[queue].Late; tick.Late > most || tick.Late == most && name < queue {
			queue = name
		}
	}
	longest := late[queue].Late
	if longest < wrong.DueTick {
		return nil, nil
	}

	tick := &lateTick{Queue: queue, Since: when{now.Add(-longest), now}, Class: "late"}
	state := "due"
	if longest >= wrong.LateTick {
		tick.Class, state = "bad", "late"
	}
	tick.Href = s.schedulesIn(queue, state)
	return tick, nil
}

// schedulesIn returns the address of a list that has the schedules of a queue in the state "late",
// "due" or "broken": that of the only name that may have them, or else that of all names.
func (s *snapshot) schedulesIn(queue, state string) string {
	all := href("schedules", "q", queue, "state", state)
	d := s.details[queue]
	if d == nil {
		return all
	}

	var several []string
	for at := range d.schedules {
		if d.schedules[at].Count > 1 {
			several = append(several, d.schedules[at].Name)
		}
	}
	names := d.overdue
	if state == "broken" {
		names = d.ticks.Broken
	}
	if len(names) == 0 && !d.ticks.More {
		names = several
	}

	if len(names) != 1 || !slices.Contains(several, names[0]) {
		return all
	}
	return href("named", "q", queue, "name", names[0], "state", state)
}

// appendNew appends the texts that a list lacks.
func appendNew(list, more []string) []string {
	for _, text := range more {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// allSchedules adds the first names of queues, from the queue that the address names on.
func (c *call) allSchedules(b *schedulesBody, cal *calendar, s *snapshot) {
	from, queues := c.r.URL.Query().Get("after"), 0
	b.Table.Stood = append(b.Table.Stood, append(fields("back.after", from), hiddenField{"back.all", "1"})...)
	if from != "" {
		b.First = c.with("after", "")
	}

	for at := range s.view.Stats {
		name := s.view.Stats[at].Queue.Name
		if name < from {
			continue
		}
		if queues++; queues > scheduleQueues || len(b.Table.Rows) >= enoughRows || c.cost > lookTime {
			b.Next = c.with("after", name)
			return
		}

		more, err := c.addNames(b, cal, name, "")
		if err != nil {
			b.Failed, b.Unknown = append(b.Failed, name+": "+c.errorText(name, "", err.Error())), true
			continue
		}

		if more != "" {
			b.Longer = append(b.Longer, name)
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

// sumOf describes the rows: their states and the next tick, both of the first id of each name only.
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
	for _, state := range stateNames() {
		if n := counts[state]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text, of := plural(int64(len(rows)), "name")+", "+plural(ids, "schedule")+"; ", ""
	if ids > int64(len(rows)) {
		text += "the first id of each name: "
		of = " of these ids"
	}
	text += strings.Join(texts, ", ")
	if !next.IsZero() {
		text += "; the next tick" + of + " is " + when{next, now}.Text()
	}
	return text
}

// namedBody is the page of the schedules of one name.
type namedBody struct {
	Queue, Name string
	// State is the state of the schedules to list, or "" for all.
	State     string
	Chip      chip
	Linked    bool
	Table     scheduleTable
	Unreached []string
	// First and Next are as in schedulesBody.
	First, Next string
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

	b := &namedBody{Queue: c.queue, Name: name, State: c.filter().State, Linked: c.linked(), May: c.may()}
	b.Chip = chipOf("state", b.State, stateNames()...)
	b.Table = scheduleTable{
		Label: "Ids with this schedule",
		Named: true,
		Back:  "named",
		Stood: fields("back.name", name, "back.state", b.State, "back.after", after),
		May:   b.May,
	}
	if after != "" {
		b.First = c.with("after", "")
	}

	next, err := c.addIDs(b, c.calendar(s), after)
	if err != nil {
		return nil, err
	}
	if next != "" {
		b.Next = c.with("after", next)
	}
	return &view{page: "named", title: c.queue + ": " + shown(name), live: true, body: b}, nil
}

// addIDs adds a page of the ids whose schedule has the wanted state, and returns where the next
// page begins, or "".
func (c *call) addIDs(b *namedBody, cal *calendar, after string) (next string, err error) {
	filter := scheduleFilter{State: b.State}
	for calls := range filteredCalls {
		if calls > 0 && c.cost > lookTime {
			break
		}
		query := service.SchedulesQuery{Name: b.Name, After: after, Limit: scheduleRows}
		reply, err := asked(c, service.Schedules, c.queue, &query)
		if err != nil {
			return "", err
		}

		b.Table.Rows = append(b.Table.Rows, filter.rows(cal.rows(c.queue, reply.Items))...)
		b.Unreached = appendNew(b.Unreached, reply.Unreached)
		after = reply.Next
		if after == "" || len(b.Table.Rows) >= scheduleRows {
			break
		}
	}
	return after, nil
}

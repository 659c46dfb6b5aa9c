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
)

// Limits of the pages of schedules. The page of all queues asks no further queue once it has enough
// rows, has asked scheduleQueues queues, or has taken as long as a look may. Each call returns at
// most scheduleRows names or schedules.
const (
	scheduleQueues = 50
	enoughRows     = 200
	scheduleRows   = 100
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

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// topFrame is the result of the last look, at a time.
type topFrame struct {
	top
	// now is the present time of this machine's clock.
	now time.Time
}

// The colours of a page, as terminals number them.
const (
	colourBad      = "31"
	colourLate     = "33"
	colourHead     = "1"
	colourFaint    = "2"
	colourSelected = "7"
)

// topSorts are the orders of the queues. The key s switches from one to the next.
var topSorts = []struct {
	name string
	less func(a, b *statLine) int
}{
	{"lag", func(a, b *statLine) int { return cmp.Compare(b.Lag, a.Lag) }},
	{"name", func(a, b *statLine) int { return 0 }},
	{"waiting", func(a, b *statLine) int { return cmp.Compare(b.Waiting(), a.Waiting()) }},
	{"morgue", func(a, b *statLine) int { return cmp.Compare(b.Dead, a.Dead) }},
	{"done", func(a, b *statLine) int { return cmp.Compare(b.done, a.done) }},
}

// topCell is a column of a table of the page.
type topCell[T any] struct {
	name string
	// from is the smallest width of a terminal that shows the column. columns is the width of the
	// column; 0 means the remaining width.
	from, columns int
	left          bool
	text          func(*T) string
}

func (m *topModel) queueCells() []topCell[statLine] {
	count := func(of func(*statLine) int64) func(*statLine) string {
		return func(s *statLine) string {
			if !s.reached() {
				return "-"
			}
			return figures.Count(of(s))
		}
	}

	return []topCell[statLine]{
		{"QUEUE", 0, 0, true, func(s *statLine) string { return quoted(s.Queue.Name) }},
		{"STATE", 0, 8, true, queueState},
		{"WAITING", 0, 7, false, count(func(s *statLine) int64 { return s.Waiting() })},
		{"MORGUE", 0, 6, false, count(func(s *statLine) int64 { return s.Dead })},
		{"LAG", 0, 9, false, func(s *statLine) string {
			if !s.reached() {
				return "-"
			}
			return figures.Span(s.Lag.Round(time.Second))
		}},
		{"RETRYING", 120, 8, false, count(func(s *statLine) int64 { return s.Retrying })},
		{"CLAIMED", 120, 7, false, count(func(s *statLine) int64 { return s.Claimed })},
		{"ORPHANED", 160, 8, false, count(func(s *statLine) int64 { return s.Orphaned })},
		{"DONE/S", 0, 6, false, func(s *statLine) string { return perSecond(s.done) }},
		{"FAILED/S", 100, 8, false, func(s *statLine) string { return perSecond(s.failed) }},
		{"SERVERS", 120, 7, false, func(s *statLine) string { return forPeople(known(s.servers)) }},
		{"DONE", 160, 8, false, count(func(s *statLine) int64 { return s.Processed })},
		{"LAST HOUR", 0, m.sparkColumns(), true, func(s *statLine) string {
			return spark(m.frame.recent[s.Queue.Name], m.frame.seen, m.sparkColumns())
		}},
	}
}

func (m *topModel) nodeCells() []topCell[inspect.Node] {
	return []topCell[inspect.Node]{
		{"SERVER", 0, 0, true, func(n *inspect.Node) string { return quoted(n.Name) }},
		{"STATE", 0, 8, true, func(n *inspect.Node) string { return n.State.String() }},
		{"HOST", 120, 20, true, func(n *inspect.Node) string { return quoted(n.Host) }},
		{"VERSION", 100, 10, true, func(n *inspect.Node) string { return quoted(n.Version) }},
		{"LANES", 0, 5, false, func(n *inspect.Node) string { return fmt.Sprint(n.Lanes) }},
		{"BUSY", 0, 5, false, func(n *inspect.Node) string { return fmt.Sprint(n.Status.Busy) }},
		{"RUNNING", 0, 7, false, func(n *inspect.Node) string { return fmt.Sprint(n.Status.Running) }},
		{"SHARDS", 0, 6, false, func(n *inspect.Node) string { return fmt.Sprint(n.Status.Shards) }},
		{"MEMORY", 120, 9, false, func(n *inspect.Node) string { return figures.Bytes(int64(n.Status.Memory)) }},
		{"UP", 160, 10, false, func(n *inspect.Node) string {
			return figures.Span(m.frame.now.Sub(n.StartedAt).Round(time.Minute))
		}},
	}
}

func (m *topModel) sparkColumns() int {
	switch {
	case m.width >= 160:
		return 60
	case m.width >= 120:
		return 20
	}
	return 12
}

func queueState(s *statLine) string {
	switch {
	case s.Queue.Paused:
		return "paused"
	case s.servers == 0 && s.Waiting() > 0:
		return "unserved"
	}
	return ""
}

func perSecond(rate float64) string {
	switch {
	case rate < 0:
		return "-"
	case rate < 99.95:
		return number(float64(int(rate*10+0.5)) / 10)
	}
	return figures.Count(int64(rate + 0.5))
}

// spark draws a bar for each part of the hour before now. Its height is the number of jobs that
// ended in that part.
func spark(minutes []inspect.MinuteStats, now time.Time, columns int) string {
	const bars = "▁▂▃▄▅▆▇█"
	sums, most := make([]uint64, columns), uint64(0)
	for at := range minutes {
		ago := now.Sub(minutes[at].At)
		if part := columns - 1 - int(ago*time.Duration(columns)/time.Hour); ago >= 0 && part >= 0 {
			sums[part] += minutes[at].Processed + minutes[at].Failed
			most = max(most, sums[part])
		}
	}

	var b strings.Builder
	for _, sum := range sums {
		if sum == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune([]rune(bars)[int(sum*7/most)])
	}
	return b.String()
}

// page returns the lines of the page. No line is wider than the terminal.
func (m *topModel) page() []string {
	if m.helping {
		lines := []string{m.headLine(), ""}
		for _, line := range topHelp {
			lines = append(lines, m.fit(line))
		}
		return m.cutLines(lines)
	}

	lines := []string{m.headLine(), ""}
	lines = append(lines, m.wrongLines()...)

	queues, nodes := m.queues(), m.nodes()
	nodeRows := min(len(nodes), max(3, m.height/4))
	room := max(3, m.height-len(lines)-nodeRows-5)

	lines = append(lines, topTable(m, m.queueCells(), queues, m.paneCursor(paneQueues), room, queueColour)...)
	lines = append(lines, "")
	lines = append(lines, topTable(m, m.nodeCells(), nodes, m.paneCursor(paneNodes), nodeRows, nodeColour)...)

	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	return m.cutLines(append(lines, "", m.footLine()))
}

func (m *topModel) headLine() string {
	age := m.frame.now.Sub(m.frame.seen).Round(time.Second)
	text := fmt.Sprintf("skein top  %s UTC  seen %s ago", m.frame.now.UTC().Format("15:04:05"), figures.Span(age))
	if m.frame.old {
		text += ": the store does not answer"
	}
	text += "  sorted by " + topSorts[m.sorting].name
	if m.filter != "" || m.typing {
		text += "  filter: " + escaped(m.filter)
	}
	if m.frame.old {
		return m.paint(m.fit(text), colourBad)
	}
	return m.paint(m.fit(text), colourHead)
}

func (m *topModel) wrongLines() (lines []string) {
	if len(m.frame.wrong) == 0 {
		return []string{"nothing is wrong", ""}
	}

	for at := range m.frame.wrong[:min(len(m.frame.wrong), mostWrong)] {
		l := &m.frame.wrong[at]
		of := cmp.Or(l.Queue, l.Server, "-")
		since := "-"
		if began := m.frame.since(l); !began.IsZero() {
			since = figures.Span(max(0, m.frame.now.Sub(began)).Round(time.Second))
		}

		lines = append(lines, m.paint(
			m.fit(fmt.Sprintf(
				"%s  %s  %s  %s",
				filled(l.Kind.String(), 14),
				filled(escaped(of), 16),
				filled(since, 10),
				escaped(l.Text),
			)),
			colourBad,
		))
	}

	if more := len(m.frame.wrong) - mostWrong; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return append(lines, "")
}

func (m *topModel) footLine() string {
	switch {
	case m.asking != nil:
		return m.paint(m.fit(m.asking.text+" y yes, any other key no"), colourLate)
	case m.typing:
		return m.fit("type a part of the names; enter ends, esc clears")
	case m.note != "":
		return m.fit(escaped(m.note))
	}
	return m.paint(m.fit("q quit  ? help  s sort  / filter  tab servers  p pause  r resume  d drain"), colourFaint)
}

var topHelp = []string{
	"up, down, k, j   select a queue or a server",
	"tab              go to the servers, and back",
	"s                sort the queues by lag, name, waiting, morgue, done",
	"/                filter queues and servers by a part of their names; esc clears",
	"p, r             pause and resume the selected queue",
	"d, u             drain the selected server, and end its drain",
	"?                this help; any key leaves it",
	"q, ctrl+c        quit",
	"",
	"Actions ask first. WAITING counts queued and orphaned jobs, LAG is how long the",
	"first of them has waited, DONE/S are jobs a second since the last refresh,",
	"and LAST HOUR shows how many jobs ended in each part of the last hour.",
}

// queues returns the queues that match the filter, sorted.
func (m *topModel) queues() []statLine {
	lines := slices.DeleteFunc(slices.Clone(m.frame.lines), func(s statLine) bool { return !m.matches(s.Queue.Name) })
	slices.SortFunc(lines, func(a, b statLine) int {
		return cmp.Or(topSorts[m.sorting].less(&a, &b), cmp.Compare(a.Queue.Name, b.Queue.Name))
	})
	return lines
}

// nodes returns the servers that match the filter.
func (m *topModel) nodes() []inspect.Node {
	return slices.DeleteFunc(slices.Clone(m.frame.nodes), func(n inspect.Node) bool { return !m.matches(n.Name) })
}

func (m *topModel) matches(name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(m.filter))
}

func queueColour(s *statLine) string {
	switch {
	case queueState(s) == "unserved":
		return colourBad
	case s.Queue.Paused || s.Lag > time.Minute:
		return colourLate
	}
	return ""
}

func nodeColour(n *inspect.Node) string {
	switch n.State {
	case inspect.NodeGone:
		return colourBad
	case inspect.NodeDraining:
		return colourLate
	}
	return ""
}

// topTable returns the lines of a table, with at most room rows, among them the selected one.
func topTable[T any](m *topModel, cells []topCell[T], rows []T, selected, room int, colour func(*T) string) []string {
	cells = slices.DeleteFunc(cells, func(c topCell[T]) bool { return c.from > m.width })
	rest := m.width - 1 // one column is for the mark of the selection
	for _, c := range cells {
		if c.columns > 0 {
			rest -= c.columns + 2
		}
	}

	line := func(text func(*topCell[T]) string) string {
		var b strings.Builder
		for at := range cells {
			c := &cells[at]
			width := cmp.Or(c.columns, max(rest, 8))
			if at > 0 {
				b.WriteString("  ")
			}

			cell := cut(text(c), width)
			if c.left {
				b.WriteString(filled(cell, width))
			} else {
				b.WriteString(strings.Repeat(" ", max(0, width-columnsOfText(cell))) + cell)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}

	lines := []string{m.paint(line(func(c *topCell[T]) string { return c.name }), colourHead)}

	first := min(max(0, selected-room+1), max(0, len(rows)-room))
	for at := first; at < min(len(rows), first+room); at++ {
		text := line(func(c *topCell[T]) string { return c.text(&rows[at]) })
		if at == selected {
			lines = append(lines, m.paint(">"+filled(cut(text, m.width-1), m.width-1), colourSelected))
			continue
		}
		lines = append(lines, m.paint(" "+text, colour(&rows[at])))
	}

	// The heading leaves the column of the mark empty.
	lines[0] = " " + lines[0]
	if more := len(rows) - room; more > 0 {
		lines = append(lines, fmt.Sprintf(" and %d more", more))
	}
	return lines
}

// filled returns a text, padded with spaces to a number of columns.
func filled(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-columnsOfText(text)))
}

// cut returns a text, truncated to the given number of columns.
func cut(text string, columns int) string {
	if columnsOfText(text) <= columns {
		return text
	}
	used := 0
	for at, r := range text {
		if used += columnsOfRune(r); used > columns-1 {
			return text[:at] + string(cutSign)
		}
	}
	return text
}

func (m *topModel) fit(text string) string { return cut(text, m.width) }

// cutLines returns the lines that fit the height of the terminal. The last line always stays.
func (m *topModel) cutLines(lines []string) []string {
	if len(lines) > m.height {
		lines = append(lines[:m.height-1:m.height-1], lines[len(lines)-1])
	}
	return lines
}

// paint returns a line in a colour.
func (m *topModel) paint(text, colour string) string {
	if !m.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

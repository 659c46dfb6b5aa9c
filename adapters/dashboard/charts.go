package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/versions"
)

// Sizes of charts, in pixels.
const (
	sparkWidth, sparkHeight = 120, 24
	// A chart is as wide as its page, so only its height is in pixels.
	chartHeight = 164
	// chartTop is the room for the names of versions, chartFoot the room for times.
	chartTop, chartFoot = 18, 20
	chartBase           = chartHeight - chartFoot
)

// chart is some hours of one or two series.
type chart struct {
	Title, Unit string
	Above       string // the largest value, as a text
	Base        float64
	Scale       []tick
	Bars, Lines []drawn
	Slots       []slot
	Points      int // steps of time
	Times       []mark
	Deploys     []deploy
	Rows        []chartRow
	Heads       []string
	// Layout is that of its times, in UTC. Clock is true if these are times of a day, which the page
	// may write in local time. A day is one of UTC in any zone.
	Layout string
	Clock  bool
	// Words describe the time that the chart covers. A chart without data has only them.
	Words string
	Empty bool
}

// Height is that of a chart's plot area. Top is where it begins.
func (*chart) Height() int { return chartBase }

// Top is the room above a chart's plot area.
func (*chart) Top() int { return chartTop }

// drawn is a series. Its paths have one unit of width per step of time. Gaps joins points with
// unknown values in between. Last is the value of the last complete step, empty if that is unknown.
type drawn struct{ Class, Path, Gaps, Name, Last string }

// slot is a step of time, with its figures as text.
type slot struct {
	X    int
	At   time.Time
	Text string
}

// tick is a line of the scale. It has no text if there is no room for it.
type tick struct {
	Y    float64
	Text string
}

// TextY is where the text of a tick stands.
func (t tick) TextY() float64 { return t.Y + 4 }

// mark is a place on the time axis, in percent of its width, and its time.
type mark struct {
	X    float64
	Text string
	At   time.Time
}

// deploy is the start of the first server of a version.
type deploy struct {
	X       float64
	Version string
	At      time.Time
	// Label has the version, and those of marks shortly after. It is empty if a mark shortly before has
	// it. Until is when the last of them started. The label is at the left of the mark, or at its right
	// if there is no room.
	Label string
	Until time.Time
	Right bool
}

// labelChar is the width of a character of a label, in percent of a chart of 560 pixels. Narrow
// windows show no labels.
const labelChar = 1.15

// versionChars is the largest number of characters of a version in a label.
const versionChars = 18

// labelled gives marks their labels. Marks whose labels would overlap share one, at the first of them.
func labelled(marks []deploy) []deploy {
	var versions []string // of the marks that share the next label
	for at := range marks {
		m := &marks[at]
		versions = append(versions, cutName(m.Version, versionChars))
		text := strings.Join(versions, ", ")
		if len(versions) > 2 {
			text = fmt.Sprintf("%d versions", len(versions))
		}

		if at+1 < len(marks) && marks[at+1].X-labelWidth(cutName(marks[at+1].Version, versionChars)) < m.X {
			continue
		}

		first := &marks[at+1-len(versions)]
		first.Label, first.Until, first.Right = text, m.At, first.X < labelWidth(text)
		versions = nil
	}
	return marks
}

// labelWidth is the width of a label with its time, in percent.
func labelWidth(text string) float64 {
	return labelChar * float64(utf8.RuneCountInString(text)+len(", 15:04 "))
}

// cutName cuts the middle of a long name.
func cutName(name string, most int) string {
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return string(runes[:most/2]) + "…" + string(runes[len(runes)-(most-most/2-1):])
}

// chartRow is a part of the time as text.
type chartRow struct {
	At    time.Time
	Cells []string
}

// window is the known history of the last hours, in points of one length.
type window struct {
	from    time.Time
	step    time.Duration
	points  int
	minutes []inspect.MinuteStats
	nodes   []inspect.Node
	now     time.Time
	// words describes the window's length. labels is the time between two labels, and rows the time of
	// one row of the table.
	words       string
	labels, row time.Duration
	// per is the time for which a value is drawn, such as jobs a minute, and unit its name. layout is
	// that of the times.
	per          time.Duration
	unit, layout string
}

// A window of less than a day has times such as 15:04, and a longer one dates.
const clockLayout, dateLayout = "15:04", "2 Jan"

// monthOf is the window of the history by day.
func monthOf(days []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w := &window{
		step:   inspect.Day,
		points: inspect.DaysKept + 1,
		words:  "30 days",
		labels: 5 * inspect.Day,
		row:    inspect.Day,
		per:    inspect.Day,
		unit:   "a day",
		layout: dateLayout,
	}
	return w.of(days, nodes, now)
}

func dayOf(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w := &window{
		step:   quarter,
		points: int(24 * time.Hour / quarter),
		words:  "24 h",
		labels: 4 * time.Hour,
		row:    time.Hour,
		per:    time.Minute,
		unit:   "a minute",
		layout: clockLayout,
	}
	return w.of(minutes, nodes, now)
}

func hourOf(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w := &window{
		step:   time.Minute,
		points: 60,
		words:  "the last hour",
		labels: 10 * time.Minute,
		row:    5 * time.Minute,
		per:    time.Minute,
		unit:   "a minute",
		layout: clockLayout,
	}
	return w.of(minutes, nodes, now)
}

func (w *window) of(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w.from, w.nodes, w.now = now.Truncate(w.step).Add(-(time.Duration(w.points)-1)*w.step), nodes, now
	w.minutes = slices.DeleteFunc(merged(minutes, w.step), func(m inspect.MinuteStats) bool {
		return m.At.Before(w.from)
	})
	return w
}

// merged sums up points that begin within the same step.
func merged(minutes []inspect.MinuteStats, step time.Duration) []inspect.MinuteStats {
	byTime := map[time.Time]*inspect.MinuteStats{}
	var all []*inspect.MinuteStats
	for at := range minutes {
		m := minutes[at]
		m.At = m.At.Truncate(step)

		sum := byTime[m.At]
		if sum == nil {
			byTime[m.At] = &m
			all = append(all, &m)
			continue
		}
		sum.Processed += m.Processed
		sum.Failed += m.Failed
		sum.Wait.Add(&m.Wait)
		sum.Run.Add(&m.Run)
	}

	list := make([]inspect.MinuteStats, len(all))
	for at := range all {
		list[at] = *all[at]
	}
	slices.SortFunc(list, func(a, b inspect.MinuteStats) int { return a.At.Compare(b.At) })
	return list
}

// x returns a time's place on the axis, in percent of its width.
func (w *window) x(t time.Time) float64 {
	x := float64(t.Sub(w.from)) / float64(w.step) / float64(w.points) * 100
	return math.Round(x*100) / 100
}

// slot is the number of the step that a time is in.
func (w *window) slot(t time.Time) int { return int(t.Sub(w.from) / w.step) }

// rate returns the value for the time per, given that of a step.
func (w *window) rate(value float64) float64 { return value / w.parts() }

// text writes the value of a step as one for the time per. A day's is a number of jobs.
func (w *window) text(value float64) string {
	if w.per == inspect.Day {
		return figures.Count(int64(math.Round(w.rate(value))))
	}
	return rate(w.rate(value))
}

// parts is how often a step has the time per.
func (w *window) parts() float64 { return float64(w.step) / float64(w.per) }

// axis adds times and the marks of new versions.
func (w *window) axis(c *chart) *chart {
	for t := w.from.Truncate(w.labels).Add(w.labels); t.Before(w.now); t = t.Add(w.labels) {
		c.Times = append(c.Times, mark{w.x(t), t.UTC().Format(w.layout), t})
	}

	first := versions.Starts{}
	oldest := w.now
	if len(w.minutes) > 0 {
		oldest = w.minutes[0].At.Add(w.step)
	}
	for at := range w.nodes {
		n := &w.nodes[at]
		if n.Version != "" {
			first.Add(n.Version, n.StartedAt)
		}
		if n.StartedAt.Before(oldest) {
			oldest = n.StartedAt
		}
	}

	// A version that was there from the start is not a change.
	for version, at := range first {
		if at.After(w.from) && at.After(oldest) {
			c.Deploys = append(c.Deploys, deploy{X: w.x(at), Version: version, At: at})
		}
	}

	slices.SortFunc(c.Deploys, func(a, b deploy) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Version, b.Version))
	})
	labelled(c.Deploys)
	c.Empty, c.Points = len(w.minutes) == 0, w.points
	c.Words, c.Layout, c.Clock = w.words, w.layout, w.layout == clockLayout
	return c
}

// throughput is the chart of ended jobs: done above a line, failed below it, on one scale with
// figures on both sides.
func (w *window) throughput() *chart {
	done, failed := series(w.minutes, w.from, w.step, w.points)
	up, down := w.rate(slices.Max(done)), w.rate(slices.Max(failed))
	step, above, below := linear(up, down)
	pixels := float64(chartBase-chartTop) / float64(above+below)
	base := math.Round(chartTop + float64(above)*pixels)
	b := barsAt{0, 1, base, pixels / step / w.parts()}

	c := &chart{
		Title: "Done and failed",
		Unit:  w.unit,
		Heads: []string{"done in " + figures.Span(w.row), "failed"},
		Base:  base,
	}
	c.Above = rate(up)
	c.Bars = []drawn{
		{Class: "done", Path: b.strokes(done), Name: "done", Last: w.lastRate(done)},
		{Class: "failed", Path: b.down().strokes(failed), Name: "failed", Last: w.lastRate(failed)},
	}
	for at := above; at >= -below; at-- {
		c.Scale = append(c.Scale, tick{base - float64(at)*pixels, label(math.Abs(float64(at)) * step)})
	}
	c.Scale = spaced(c.Scale)

	for at := range done {
		text := fmt.Sprintf("%s done, %s failed %s", w.text(done[at]), w.text(failed[at]), w.unit)
		c.Slots = append(c.Slots, slot{at, w.from.Add(time.Duration(at) * w.step), text})
	}
	for _, m := range merged(w.minutes, w.row) {
		c.Rows = append(c.Rows, chartRow{m.At, []string{
			figures.Exact(int64(m.Processed)), figures.Exact(int64(m.Failed)),
		}})
	}

	return w.axis(c)
}

// lastRate writes the value of the last step that is over, if the history has that step.
func (w *window) lastRate(values []float64) string {
	at := w.points - 2
	if !slices.ContainsFunc(w.minutes, func(m inspect.MinuteStats) bool { return w.slot(m.At) == at }) {
		return ""
	}
	return w.text(values[at])
}

// maxTicks is the maximum number of steps of a scale.
const maxTicks = 5

// linear returns the step of a scale, and how many steps the scale has above zero and below. The
// step is the least of 1, 2, 5, 10, 20 … hundredths that needs at most maxTicks steps.
func linear(up, down float64) (step float64, above, below int) {
	for power := 0.01; ; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			step = n * power
			above, below = int(math.Ceil(up/step-1e-9)), int(math.Ceil(down/step-1e-9))
			if above+below <= maxTicks {
				return step, max(above, 1), below
			}
		}
	}
}

// label is a figure of a scale.
func label(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
	}
	return figures.Count(int64(math.Round(v)))
}

// waitSteps are the possible marks of the scale of waits.
var waitSteps = []time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond,
	time.Second, 10 * time.Second,
	time.Minute, 10 * time.Minute,
	time.Hour, 10 * time.Hour, 100 * time.Hour, 1000 * time.Hour,
}

// waits is the chart of how long jobs waited. Its scale is logarithmic, so that both a wait of
// milliseconds and one of an hour can be read.
func (w *window) waits() *chart {
	c := &chart{Title: "Wait", Unit: "from due to start", Heads: []string{"p50", "p99"}, Base: chartBase}

	var most time.Duration
	for at := range w.minutes {
		most = max(most, w.minutes[at].Wait.Quantile(0.99))
	}
	c.Above = figures.Span(coarse(most))

	top := 3
	for top < len(waitSteps)-1 && waitSteps[top] < most {
		top++
	}
	height := func(d time.Duration) float64 {
		share := math.Log(float64(max(d, waitSteps[0]))/float64(waitSteps[0])) /
			math.Log(float64(waitSteps[top])/float64(waitSteps[0]))
		return min(share, 1) * (chartBase - chartTop)
	}
	for _, d := range waitSteps[:top+1] {
		c.Scale = append(c.Scale, tick{chartBase - height(d), figures.Span(d)})
	}
	c.Scale = spaced(c.Scale)

	c.Lines = []drawn{w.line("p50", 0.5, height), w.line("p99", 0.99, height)}
	for at := range w.points {
		c.Slots = append(c.Slots, slot{at, w.from.Add(time.Duration(at) * w.step), "nothing started"})
	}
	for at := range w.minutes {
		if m := &w.minutes[at]; m.Wait.Count() > 0 && w.slot(m.At) < w.points {
			c.Slots[w.slot(m.At)].Text = fmt.Sprintf("p50 %s, p99 %s",
				figures.Span(m.Wait.Quantile(0.5)), figures.Span(m.Wait.Quantile(0.99)))
		}
	}

	for _, m := range merged(w.minutes, w.row) {
		c.Rows = append(c.Rows, chartRow{m.At, []string{
			figures.Span(m.Wait.Quantile(0.5)), figures.Span(m.Wait.Quantile(0.99)),
		}})
	}

	return w.axis(c)
}

// spaced leaves out texts of a scale that would overlap; earlier ones stay.
func spaced(scale []tick) []tick {
	const apart = 20
	for at := range scale {
		scale[at].Y = math.Round(scale[at].Y*10) / 10
		for _, before := range scale[:at] {
			if before.Text != "" && math.Abs(before.Y-scale[at].Y) < apart {
				scale[at].Text = ""
			}
		}
	}
	return scale
}

// line draws a quantile as a line from point to point. Steps in which nothing started are bridged
// by the line of gaps.
func (w *window) line(name string, q float64, height func(time.Duration) float64) drawn {
	var path, gaps strings.Builder
	last, lastY := -1, 0.0
	for at := range w.minutes {
		m := &w.minutes[at]
		if m.Wait.Count() == 0 {
			continue
		}

		n, y := w.slot(m.At), math.Round(2*(chartBase-height(m.Wait.Quantile(q))))/2
		if last >= 0 && n == last+1 {
			fmt.Fprintf(&path, "L%g %g", float64(n)+0.5, y)
		} else {
			if last >= 0 {
				fmt.Fprintf(&gaps, "M%g %gL%g %g", float64(last)+0.5, lastY, float64(n)+0.5, y)
			}
			fmt.Fprintf(&path, "M%g %gh0", float64(n)+0.5, y) // a single point is a dot
		}

		last, lastY = n, y
	}
	d := drawn{Class: name, Path: path.String(), Gaps: gaps.String(), Name: name}
	for at := range w.minutes {
		if m := &w.minutes[at]; w.slot(m.At) == w.points-2 && m.Wait.Count() > 0 {
			d.Last = figures.Span(coarse(m.Wait.Quantile(q)))
		}
	}
	return d
}

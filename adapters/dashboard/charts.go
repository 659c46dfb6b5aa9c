package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// Sizes of charts, in pixels.
const (
	sparkWidth, sparkHeight = 120, 24
	chartWidth, chartHeight = 560, 140
	// chartLeft is where figures of a chart begin beside its scale, chartTop below the marks of versions; chartFoot is what times need below it.
	chartLeft, chartTop, chartFoot = 52, 12, 18
	chartBase                      = chartHeight - chartFoot
)

// chart is some hours of one or two series.
type chart struct {
	Title, Unit string
	Above       string // the largest value, as a text
	Base        float64
	Scale       []tick
	Bars, Lines []drawn
	Times       []mark
	Deploys     []mark
	Rows        []chartRow
	Heads       []string
	Empty       bool
}

// drawn is a series.
type drawn struct{ Class, Path, Name string }

// tick is a line of the scale; without a text it has none, for want of room.
type tick struct {
	Y    float64
	Text string
}

// TextY is where the text of a tick stands.
func (t tick) TextY() float64 { return t.Y + 4 }

// mark is a place on the time axis, and when that is.
type mark struct {
	X    float64
	Text string
	At   time.Time
}

// chartRow is a part of the time as text.
type chartRow struct {
	At    time.Time
	Cells []string
}

// window is what is known of the last hours, in points of one length.
type window struct {
	from    time.Time
	step    time.Duration
	points  int
	minutes []inspect.MinuteStats
	nodes   []inspect.Node
	now     time.Time
	// words says how long it is; labels are so far apart, and rows of the table so long.
	words       string
	labels, row time.Duration
}

func dayOf(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w := &window{step: quarter, points: int(24 * time.Hour / quarter), words: "24 h", labels: 4 * time.Hour, row: time.Hour}
	return w.of(minutes, nodes, now)
}

func hourOf(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w := &window{step: time.Minute, points: 60, words: "the last hour", labels: 10 * time.Minute, row: 5 * time.Minute}
	return w.of(minutes, nodes, now)
}

func (w *window) of(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *window {
	w.from, w.nodes, w.now = now.Truncate(w.step).Add(-(time.Duration(w.points)-1)*w.step), nodes, now
	w.minutes = slices.DeleteFunc(merged(minutes, w.step), func(m inspect.MinuteStats) bool { return m.At.Before(w.from) })
	return w
}

// merged sums up what begins within the same step.
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

// width is that of a point.
func (w *window) width() float64 { return float64(chartWidth-chartLeft) / float64(w.points) }

func (w *window) x(t time.Time) float64 {
	x := chartLeft + float64(t.Sub(w.from))/float64(w.step)*w.width()
	return math.Round(x*10) / 10
}

// axis adds times and the marks of new versions.
func (w *window) axis(c *chart) *chart {
	for t := w.from.Truncate(w.labels).Add(w.labels); t.Before(w.now); t = t.Add(w.labels) {
		c.Times = append(c.Times, mark{w.x(t), t.UTC().Format("15:04"), t})
	}
	first := map[string]time.Time{}
	oldest := w.now
	if len(w.minutes) > 0 {
		oldest = w.minutes[0].At.Add(w.step)
	}
	for at := range w.nodes {
		n := &w.nodes[at]
		if was, known := first[n.Version]; n.Version != "" && (!known || n.StartedAt.Before(was)) {
			first[n.Version] = n.StartedAt
		}
		if n.StartedAt.Before(oldest) {
			oldest = n.StartedAt
		}
	}
	for version, at := range first { // what began with the first of all is no change
		if at.After(w.from) && at.After(oldest) {
			c.Deploys = append(c.Deploys, mark{w.x(at), version, at})
		}
	}
	slices.SortFunc(c.Deploys, func(a, b mark) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Text, b.Text)) })
	c.Empty = len(w.minutes) == 0
	return c
}

// throughput is the chart of what ended: done above a line, failed below it, on one scale.
func (w *window) throughput() *chart {
	done, failed := series(w.minutes, w.from, w.step, w.points)
	up, down := slices.Max(done), slices.Max(failed)
	pixels := (chartBase - chartTop) / max(1, up+down)
	b := barsAt{chartLeft, w.width(), chartBase - down*pixels, pixels}
	c := &chart{Title: "Done and failed in " + w.words, Unit: "a minute", Heads: []string{"done", "failed"}, Base: b.base}
	perMinute := func(n float64) string { return rate(n / w.step.Minutes()) }
	c.Above = perMinute(up)
	c.Bars = []drawn{{"done", b.path(done), "done"}, {"failed", b.down().path(failed), "failed"}}
	c.Scale = spaced([]tick{{b.base, "0"}, {b.base - up*pixels, c.Above}, {b.base + down*pixels, perMinute(down)}})
	for _, m := range merged(w.minutes, w.row) {
		c.Rows = append(c.Rows, chartRow{m.At, []string{figures.Exact(int64(m.Processed)), figures.Exact(int64(m.Failed))}})
	}
	return w.axis(c)
}

// waitSteps are what a scale of waits may be marked with.
var waitSteps = []time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 10 * time.Hour, 100 * time.Hour, 1000 * time.Hour,
}

// waits is the chart of how long jobs waited. Its scale is logarithmic: a wait of milliseconds and one of an hour can both be read.
func (w *window) waits() *chart {
	c := &chart{Title: "Wait in " + w.words, Unit: "from due to start", Heads: []string{"p50", "p99"}, Base: chartBase}
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
		share := math.Log(float64(max(d, waitSteps[0]))/float64(waitSteps[0])) / math.Log(float64(waitSteps[top])/float64(waitSteps[0]))
		return min(share, 1) * (chartBase - chartTop)
	}
	for _, d := range waitSteps[:top+1] {
		c.Scale = append(c.Scale, tick{chartBase - height(d), figures.Span(d)})
	}
	c.Scale = spaced(c.Scale)
	c.Lines = []drawn{{"p99", w.steps(0.99, height), "p99"}, {"p50", w.steps(0.5, height), "p50"}}
	for _, m := range merged(w.minutes, w.row) {
		c.Rows = append(c.Rows, chartRow{m.At, []string{figures.Span(m.Wait.Quantile(0.5)), figures.Span(m.Wait.Quantile(0.99))}})
	}
	return w.axis(c)
}

// spaced leaves out texts of a scale that would stand in one another; earlier ones stay.
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

// steps draws a quantile as a line of steps; where nothing ran there is a gap.
func (w *window) steps(q float64, height func(time.Duration) float64) string {
	var b strings.Builder
	var next time.Time
	for at := range w.minutes {
		m := &w.minutes[at]
		if m.Wait.Count() == 0 {
			continue
		}
		y := chartBase - height(m.Wait.Quantile(q))
		if !m.At.Equal(next) {
			fmt.Fprintf(&b, "M%.1f %.1f", w.x(m.At), y)
		} else {
			fmt.Fprintf(&b, "V%.1f", y)
		}
		next = m.At.Add(w.step)
		fmt.Fprintf(&b, "H%.1f", w.x(next))
	}
	return b.String()
}

package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// Sizes of charts, in pixels.
const (
	sparkWidth, sparkHeight = 120, 24
	chartWidth, chartHeight = 560, 112
	// chartTop is where figures of a chart begin below what it says of itself, chartFoot what hours need below it.
	chartTop, chartFoot = 16, 16
)

// spark is an hour by minutes: done above a line, failed below it.
type spark struct {
	Done, Failed string
	Text         string
}

// sparkOf draws the last hour of a queue. nil is unknown.
func sparkOf(minutes []inspect.MinuteStats, now time.Time) *spark {
	const n, up, down = 60, 16, 8
	done, failed := series(minutes, now.Truncate(time.Minute).Add(-(n-1)*time.Minute), time.Minute, n)
	s := &spark{Done: bars(done, sparkWidth/n, up, up, false), Failed: bars(failed, sparkWidth/n, up, down, true)}
	s.Text = fmt.Sprintf("%s done, %s failed within an hour", figures.Count(int64(sum(done))), figures.Count(int64(sum(failed))))
	return s
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// series puts minutes into n steps from a time.
func series(minutes []inspect.MinuteStats, from time.Time, step time.Duration, n int) (done, failed []float64) {
	done, failed = make([]float64, n), make([]float64, n)
	for at := range minutes {
		m := &minutes[at]
		if slot := int(m.At.Sub(from) / step); slot >= 0 && slot < n && !m.At.Before(from) {
			done[slot] += float64(m.Processed)
			failed[slot] += float64(m.Failed)
		}
	}
	return done, failed
}

// bars draws values as one path, from a base line up, or down: the largest has the height, and none that is not zero less than a pixel.
func bars(values []float64, width, base, height float64, down bool) string {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for at, v := range values {
		if v <= 0 {
			continue
		}
		high := -max(1, v/most*height)
		if down {
			high = -high
		}
		fmt.Fprintf(&b, "M%.1f %.0fv%.1fh%.1fv%.1fz", float64(at)*width, base, high, max(1, width-0.4), -high)
	}
	return b.String()
}

// chart is a day of one or two series.
type chart struct {
	Title, Unit string
	Above       string // the largest value, as a text
	Bars        []barsOf
	Lines       []linesOf
	Hours       []mark
	Deploys     []mark
	Rows        []chartRow
	Heads       []string
}

type barsOf struct{ Class, Path, Name string }

type linesOf struct{ Class, Path, Name string }

// mark is a place on the time axis.
type mark struct {
	X    float64
	Text string
}

// chartRow is an hour as text.
type chartRow struct {
	At    time.Time
	Cells []string
}

// day is what is known of the last 24 hours.
type day struct {
	from    time.Time
	points  int
	minutes []inspect.MinuteStats
	nodes   []inspect.Node
	now     time.Time
}

func dayOf(minutes []inspect.MinuteStats, nodes []inspect.Node, now time.Time) *day {
	const points = int(24 * time.Hour / quarter)
	return &day{from: now.Truncate(quarter).Add(-(time.Duration(points) - 1) * quarter), points: points, minutes: merged(minutes), nodes: nodes, now: now}
}

// merged sums up what begins at the same time.
func merged(minutes []inspect.MinuteStats) []inspect.MinuteStats {
	byTime := map[time.Time]*inspect.MinuteStats{}
	var all []*inspect.MinuteStats
	for at := range minutes {
		m := minutes[at]
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

// hours sums the day up by the hour, of those in which something ran.
func (d *day) hours() []inspect.MinuteStats {
	list := slices.Clone(d.minutes)
	for at := range list {
		list[at].At = list[at].At.Truncate(time.Hour)
	}
	return merged(list)
}

func (d *day) x(t time.Time) float64 {
	return float64(t.Sub(d.from)) / float64(quarter) * chartWidth / float64(d.points)
}

// axis adds hours and the marks of new versions.
func (d *day) axis(c *chart) *chart {
	for t := d.from.Truncate(time.Hour).Add(time.Hour); t.Before(d.now); t = t.Add(time.Hour) {
		if t.Hour()%4 == 0 {
			c.Hours = append(c.Hours, mark{d.x(t), t.Format("15:04")})
		}
	}
	first := map[string]time.Time{}
	oldest := d.now
	if len(d.minutes) > 0 {
		oldest = d.minutes[0].At.Add(quarter)
	}
	for at := range d.nodes {
		n := &d.nodes[at]
		if was, known := first[n.Version]; n.Version != "" && (!known || n.StartedAt.Before(was)) {
			first[n.Version] = n.StartedAt
		}
		if n.StartedAt.Before(oldest) {
			oldest = n.StartedAt
		}
	}
	for version, at := range first { // what began with the first of all is no change
		if at.After(d.from) && at.After(oldest) {
			c.Deploys = append(c.Deploys, mark{d.x(at), version})
		}
	}
	slices.SortFunc(c.Deploys, func(a, b mark) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Text, b.Text)) })
	return c
}

// throughput is the chart of what ended.
func (d *day) throughput() *chart {
	done, failed := series(d.minutes, d.from, quarter, d.points)
	const down = 16
	const base = chartHeight - chartFoot - down
	width := chartWidth / float64(d.points)
	c := &chart{Title: "Done and failed in 24 h", Unit: "a minute", Heads: []string{"done", "failed"}}
	most := 0.0
	for at := range done {
		most = max(most, done[at])
	}
	c.Above = rate(most / quarter.Minutes())
	c.Bars = []barsOf{{"done", bars(done, width, base, base-chartTop, false), "done"}, {"failed", bars(failed, width, base, down, true), "failed"}}
	for _, m := range d.hours() {
		c.Rows = append(c.Rows, chartRow{m.At, []string{figures.Exact(int64(m.Processed)), figures.Exact(int64(m.Failed))}})
	}
	return d.axis(c)
}

// waits is the chart of how long jobs waited.
func (d *day) waits() *chart {
	c := &chart{Title: "Wait in 24 h", Unit: "from due to start", Heads: []string{"p50", "p99"}}
	var most time.Duration
	for at := range d.minutes {
		most = max(most, d.minutes[at].Wait.Quantile(0.99))
	}
	c.Above = figures.Span(coarse(most))
	p50, p99 := d.quantiles(0.5, most), d.quantiles(0.99, most)
	c.Lines = []linesOf{{"p99", p99, "p99"}, {"p50", p50, "p50"}}
	for _, m := range d.hours() {
		c.Rows = append(c.Rows, chartRow{m.At, []string{figures.Span(m.Wait.Quantile(0.5)), figures.Span(m.Wait.Quantile(0.99))}})
	}
	return d.axis(c)
}

// quantiles draws steps of a quantile; where nothing ran there is a gap.
func (d *day) quantiles(q float64, most time.Duration) string {
	const base = chartHeight - chartFoot
	width := chartWidth / float64(d.points)
	var b strings.Builder
	for at := range d.minutes {
		m := &d.minutes[at]
		if m.Wait.Count() == 0 || m.At.Before(d.from) {
			continue
		}
		height := float64(m.Wait.Quantile(q)) / float64(max(most, 1)) * (base - chartTop)
		fmt.Fprintf(&b, "M%.1f %.1fh%.1f", d.x(m.At), base-height, width)
	}
	return b.String()
}

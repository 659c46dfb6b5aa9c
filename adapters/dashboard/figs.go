package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/wrong"
)

// fig is a figure at the head of a page: its name, its value in parts of a number and a unit, a
// caption, and its line of 24 h where the history has it.
type fig struct {
	Name    string
	Parts   []figPart
	Caption string
	// Title has the value in full, where the parts are shorter.
	Title string
	// Class is bad or warn if a problem says why, else empty.
	Class string
	// Line is a path in a box of 60 by 20, or empty.
	Line string
}

// figList is a row of figures. Its label is for screen readers.
type figList struct {
	Label string
	Figs  []fig
}

type figPart struct{ Value, Unit string }

// figOf makes a figure of a text of numbers and units, such as "9 min 42 s".
func figOf(name, value, caption string) fig {
	f := fig{Name: name, Caption: caption}
	words := strings.Fields(value)
	for at := 0; at < len(words); at += 2 {
		p := figPart{Value: words[at]}
		if at+1 < len(words) {
			p.Unit = words[at+1]
		}
		f.Parts = append(f.Parts, p)
	}
	return f
}

// countOf makes a figure of a number.
func countOf(name string, n int64, caption string) fig {
	f := figOf(name, figures.Count(n), caption)
	if n >= 100_000 {
		f.Title = figures.Exact(n)
	}
	return f
}

// figLine draws values as a line. Values below 0 are unknown. A line needs two known values.
func figLine(values []float64) string {
	most := 0.0
	known := 0
	for _, v := range values {
		if most = max(most, v); v >= 0 {
			known++
		}
	}
	if known < 2 {
		return ""
	}

	var path strings.Builder
	joined := false
	for at, v := range values {
		if v < 0 {
			joined = false
			continue
		}
		verb := "M"
		if joined {
			verb = "L"
		}
		joined = true
		x, y := 60*float64(at)/float64(len(values)-1), 18-15*v/max(most, 1e-9)
		path.WriteString(verb + short(x) + " " + short(y))
	}
	return path.String()
}

// short writes a number of a path with at most one decimal.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// percent writes a share, or that it is unknown.
func percent(share float64) string {
	switch {
	case share < 0:
		return "–"
	case share == 0:
		return "0 %"
	case share < 0.001:
		return "< 0.1 %"
	case share < 0.0995:
		return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}

// share returns the part of the ended jobs that failed, or unknownRate if none has ended.
func share(done, failed float64) float64 {
	if done < 0 || done+failed <= 0 {
		return unknownRate
	}
	return failed / (done + failed)
}

// lineStep is the time that a point of the line of a figure sums up.
const lineStep = time.Hour

// dayLines returns the ended jobs a second and the share that failed, for the figures' lines of 24 h.
func dayLines(minutes []inspect.MinuteStats, now time.Time) (done, failing []float64) {
	const n = int(24 * time.Hour / lineStep)
	from := now.Truncate(lineStep).Add(lineStep - 24*time.Hour)
	ended, failed := series(minutes, from, lineStep, n)

	first := n // of the points that the history has
	for at := range minutes {
		if m := &minutes[at]; !m.At.Before(from) {
			first = min(first, int(m.At.Sub(from)/lineStep))
		}
	}

	// The last point is not over yet.
	for at := range n - 1 {
		if at < first {
			done, failing = append(done, unknownRate), append(failing, unknownRate)
			continue
		}
		done = append(done, ended[at]/lineStep.Seconds())
		failing = append(failing, max(0, share(ended[at], failed[at])))
	}
	return done, failing
}

// aDayAgo describes the first point of a day's line, if it is known.
func aDayAgo(values []float64, write func(float64) string) string {
	if len(values) == 0 || values[0] < 0 {
		return ""
	}
	return "a day ago " + write(values[0])
}

// class returns the class of a figure that faults of some kinds explain: that of the worst.
func (s *snapshot) class(queue string, kinds ...wrong.Kind) string {
	worst := wrong.Note
	see := func(l *wrong.Line) {
		if (queue == "" || l.Queue == queue) && slices.Contains(kinds, l.Kind) {
			worst = min(worst, l.Kind.Level())
		}
	}
	for at := range s.wrong {
		l := &s.wrong[at]
		see(l)
		for n := range l.Parts {
			see(&l.Parts[n])
		}
	}
	return figClass(worst)
}

func figClass(l wrong.Level) string {
	switch l {
	case wrong.Red:
		return "bad"
	case wrong.Amber:
		return "warn"
	}
	return ""
}

// lagKinds are the kinds of faults that explain why jobs wait.
func lagKinds() []wrong.Kind {
	return []wrong.Kind{
		wrong.NobodyServes, wrong.OwnerGone, wrong.NotMoving, wrong.HotShard, wrong.Late, wrong.Unowned,
	}
}

// figs returns the figures of queues, or of the given one. minutes are their day.
func (s *snapshot) figs(queue string, rows []queueRow, minutes []inspect.MinuteStats) []fig {
	var t totals
	var oldest, retrying, dying *queueRow

	for at := range rows {
		row := &rows[at]
		t.add(row)
		if !row.Paused && (oldest == nil || row.Lag > oldest.Lag) { // its jobs are meant to wait
			oldest = row
		}
		if retrying == nil || row.Retries > retrying.Retries {
			retrying = row
		}
		if dying == nil || s.view.Died[row.Name].Count > s.view.Died[dying.Name].Count {
			dying = row
		}
	}

	done, failing := dayLines(minutes, s.view.Now)
	return []fig{
		s.lagFig(queue, oldest),
		waitingFig(&t, queue),
		s.runningFig(&t, queue),
		s.retryingFig(&t, queue, retrying),
		s.deadFig(&t, queue, dying),
		{
			Name:    "Done",
			Parts:   doneParts(&t, len(rows)),
			Caption: aDayAgo(done, func(v float64) string { return rate(v) + "/s" }),
			Line:    figLine(done),
		},
		failingFig(&t, s.class(queue, wrong.Failing), failing),
	}
}

// doneParts is the rate of done jobs, if that of a queue is known.
func doneParts(t *totals, queues int) []figPart {
	if queues > 0 && !t.known {
		return []figPart{{"–", ""}}
	}
	return []figPart{{rate(t.Done), "/s"}}
}

func (s *snapshot) lagFig(queue string, oldest *queueRow) fig {
	if oldest == nil || oldest.Lag == 0 {
		return figOf("Oldest due job", "0 s", "no job is late")
	}

	name := oldest.Name
	caption := cutName(name, 20)
	if queue != "" {
		caption = "due for so long"
	}
	f := figOf("Oldest due job", figures.Rough(oldest.Lag), caption)
	if f.Class = s.class(name, lagKinds()...); f.Class != "" && oldest.Word != "" && queue == "" {
		f.Caption += ", " + oldest.Word
	}
	f.Title = name
	return f
}

func waitingFig(t *totals, queue string) fig {
	caption := ""
	switch {
	case t.Paused > 0 && queue != "":
		caption = "paused"
	case t.Paused > 0:
		caption = figures.Count(t.Paused) + " of them paused"
	case t.Waiting > 0 && queue == "":
		caption = fmt.Sprintf("in %d queues", t.queues)
		if t.queues == 1 {
			caption = "in 1 queue"
		}
	case t.Waiting > 0:
		caption = "due now or later"
	}
	return countOf("Waiting", t.Waiting, caption)
}

// runningFig is the figure of running jobs, with the longest of those that servers report.
func (s *snapshot) runningFig(t *totals, queue string) fig {
	lanes := 0
	var longest time.Duration
	for at := range s.view.Nodes {
		n := &s.view.Nodes[at]
		if n.State == inspect.NodeGone || queue != "" && !slices.Contains(n.Queues, queue) {
			continue
		}
		lanes += n.Lanes
		for _, j := range n.Status.Longest {
			if queue == "" || j.Shard.Queue == queue {
				longest = max(longest, s.view.Now.Sub(j.Began.Time()))
			}
		}
	}

	f := countOf("Running", t.Running, "")
	if lanes > 0 {
		f.Parts[0].Unit = fmt.Sprintf("of %s lanes", figures.Count(int64(lanes)))
	}
	if longest > 0 && t.Running > 0 {
		f.Caption = "longest " + figures.Rough(longest)
	}
	for _, server := range s.serversOf(queue) {
		if server.MaxRunning > 0 {
			limit := fmt.Sprintf(", MaxRunning %d", server.MaxRunning)
			if set, ok := s.setOf(queue, core.SettingMaxRunning); ok {
				limit += ", set by " + setter(&set)
			}
			f.Caption = strings.TrimPrefix(f.Caption+limit, ", ")
			break
		}
	}
	f.Class = s.class(queue, wrong.Crashes, wrong.RunsLong)
	return f
}

func (s *snapshot) retryingFig(t *totals, queue string, most *queueRow) fig {
	f := countOf("Retrying", t.Retries, "")
	if most != nil && most.Retries > 0 && queue == "" {
		f.Caption = figures.Count(most.Retries) + " in " + cutName(most.Name, 20)
	}
	f.Class = s.class(queue, wrong.Holds, wrong.NearMorgue)
	return f
}

func (s *snapshot) deadFig(t *totals, queue string, most *queueRow) fig {
	f := countOf("Dead", t.Dead, "")
	if most == nil || t.Dead == 0 {
		return f
	}

	if d := s.view.Died[most.Name]; d.Count > 0 {
		f.Caption = "+" + figures.Count(int64(d.Count))
		if d.More {
			f.Caption += " or more"
		}
		f.Caption += " in 1 h"
		if queue == "" {
			f.Caption += ", " + cutName(most.Name, 20)
		}
		f.Class = s.class(queue, wrong.MorgueGrows, wrong.Failing)
	}
	return f
}

func failingFig(t *totals, class string, line []float64) fig {
	f := figOf("Failing", percent(share(t.Done, t.Failed)), aDayAgo(line, percent))
	f.Class, f.Line = class, figLine(line)
	return f
}

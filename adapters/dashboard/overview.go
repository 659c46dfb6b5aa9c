package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// Limits of the overview: the number of lines of what is wrong, the number of them that are not
// folded (openWrong), the number of queues from which queues without trouble are folded, and the
// number of rows of queues unless all are asked for.
const (
	maxWrong   = 50
	openWrong  = 12
	foldQueues = 30
	maxQueues  = 80
)

// overviewBody is the page of all queues.
type overviewBody struct {
	Now         time.Time
	Wrong, Less []wrongLine
	More        int
	Figs        []fig
	Queues      []queueRow
	Folded      []string
	// Cut is the number of all rows if some are not shown, else 0.
	Cut        int
	Sort       string
	Desc       bool
	Find       string
	Done, Wait *chart
	AsOf       time.Time
}

// totals are sums of queues. Paused is the part of Waiting in paused queues.
type totals struct {
	Waiting, Paused, Running, Retries, Dead int64
	Done, Failed                            float64
	// queues is the number of queues in which jobs wait.
	queues int
	// known is true if the rates of one of the queues are.
	known bool
}

// wrongLine is a fault, with the page that helps.
type wrongLine struct {
	wrong.Line
	badge
	// Name is the queue or the server that has the fault, or the number of queues.
	Name       string
	Href, Link string
	Since      when
	// Resume is true if the user may end the pause that the line is about.
	Resume bool
}

// signs are the marks of kinds: a shape and a word. The level gives the colour.
var signs = map[wrong.Kind][2]string{
	wrong.NoAnswer:       {"●", "no answer"},
	wrong.PartAway:       {"●", "unreachable"},
	wrong.CheckFails:     {"●", "check fails"},
	wrong.NobodyServes:   {"▨", "not served"},
	wrong.OwnerGone:      {"●", "owner gone"},
	wrong.Crashes:        {"●", "crashes"},
	wrong.NotMoving:      {"●", "stuck"},
	wrong.Failing:        {"●", "failing"},
	wrong.OtherRule:      {"●", "other rule"},
	wrong.BrokenSchedule: {"●", "broken schedule"},
	wrong.Holds:          {"●", "held"},
	wrong.MorgueGrows:    {"●", "dying"},
	wrong.TicksLate:      {"◷", "ticks late"},
	wrong.HotShard:       {"▲", "hot shard"},
	wrong.Late:           {"▲", "late"},
	wrong.Unowned:        {"▨", "no owner"},
	wrong.NearMorgue:     {"▲", "last retry"},
	wrong.Unreadable:     {"▲", "unreadable"},
	wrong.BrokenSettings: {"▲", "settings"},
	wrong.NotFollowed:    {"▲", "not followed"},
	wrong.RunsLong:       {"▲", "runs long"},
	wrong.CheckWarns:     {"▲", "warning"},
	wrong.ServerGone:     {"▨", "server gone"},
	wrong.Paused:         {"‖", "paused"},
	wrong.Versions:       {"◦", "versions"},
}

// levels are the classes of the levels of faults.
var levels = map[wrong.Level]string{wrong.Red: "b", wrong.Amber: "w", wrong.Hold: "h", wrong.Note: "i"}

// badge is a mark and a word: a class, which gives a colour, a shape and the word.
type badge struct{ Class, Sign, Word string }

// badgeOf is the badge of a kind of fault.
func badgeOf(k wrong.Kind) badge { return badge{levels[k.Level()], signs[k][0], signs[k][1]} }

// wrongLineOf makes a line of a page. Its link does not lead back to that page.
func wrongLineOf(l *wrong.Line, now time.Time, page string) wrongLine {
	w := wrongLine{Line: *l, badge: badgeOf(l.Kind), Name: cmp.Or(l.Queue, l.Server, "store"), Since: when{l.Since, now}}
	if n := len(l.Parts); n > 0 {
		w.Name = fmt.Sprintf("%d queues", n)
	}

	w.Href, w.Link = href("queue", "q", l.Queue), "queue"
	switch l.Kind {
	case wrong.NoAnswer, wrong.PartAway, wrong.CheckFails, wrong.CheckWarns:
		w.Href, w.Link = "store", "store"
	case wrong.NobodyServes, wrong.ServerGone, wrong.OtherRule:
		w.Href, w.Link = "nodes", "servers"
	case wrong.Versions:
		w.Href, w.Link, w.Name = "nodes", "servers", "servers"
	case wrong.OwnerGone, wrong.Crashes:
		w.Href, w.Link = href("busy", "q", l.Queue), "running"
	case wrong.Failing:
		w.Href, w.Link = href("errors", "q", l.Queue), "errors"
	case wrong.NearMorgue:
		w.Href, w.Link = href("jobs", "q", l.Queue, "list", "retries", "sort", "count", "desc", "1"), "retries"
	case wrong.TicksLate, wrong.BrokenSchedule:
		w.Href, w.Link = href("schedules", "q", l.Queue), "schedules"
	case wrong.Holds:
		w.Href, w.Link = href("jobs", "q", l.Queue, "list", "held"), "held jobs"
	case wrong.MorgueGrows:
		w.Href, w.Link = href("morgue", "q", l.Queue), "morgue"
	case wrong.Unreadable:
		w.Href, w.Link = href("unreadable", "q", l.Queue), "records"
	case wrong.BrokenSettings, wrong.NotFollowed:
		if page == "queue" {
			w.Href, w.Link = href("settings", "q", l.Queue), "settings"
		}
	case wrong.HotShard, wrong.Unowned:
		w.Href, w.Link = href("shards", "q", l.Queue), "shards"
	case wrong.NotMoving:
		if page == "queue" {
			w.Href, w.Link = href("busy", "q", l.Queue), "running"
		}
	case wrong.Late, wrong.Paused:
		if page == "queue" {
			w.Href, w.Link = href("jobs", "q", l.Queue), "jobs"
		}
	}

	if len(l.Owners) > 0 { // with what it has left
		w.Href, w.Link = href("server", "node", l.Owners[0]), "server"
	}
	if l.ID != "" {
		w.Href, w.Link = href("busy", "q", l.Queue)+"#"+busyAnchor(l.Queue, l.ID), "running job"
	}
	return w
}

// wrongLine makes a line of a page. The line of schedules links to a list that has them.
func (s *snapshot) wrongLine(l *wrong.Line, page string) wrongLine {
	w := wrongLineOf(l, s.view.Now, page)
	switch l.Kind {
	case wrong.TicksLate:
		w.Href = s.schedulesIn(l.Queue, "late")
	case wrong.BrokenSchedule:
		w.Href = s.schedulesIn(l.Queue, "broken")
	}
	if s.some && (w.Href == "nodes" || w.Href == "store") { // only for users who may see all
		w.Href, w.Link = href("shards", "q", l.Queue), "shards"
		if l.Queue == "" {
			w.Href, w.Link = "./", "overview"
		}
	}
	return w
}

// queueRow is a queue in the table.
type queueRow struct {
	// Its badge has no word if nothing is wrong.
	badge
	Name                            string
	Paused                          bool
	Lag                             time.Duration
	Waiting, Running, Retries, Dead int64
	Orphaned, Quarantined           int64
	Done, Failed                    float64
	// Share is the part of the ended jobs that failed.
	Share                    float64
	P99                      time.Duration
	Bar                      lagBar
	Spark                    *spark
	Cells                    *shardCells
	Shards, Unowned, Servers int
	worst                    int
}

// unknownRate is the rate of a queue whose history has not been read.
const unknownRate = -1

// rateWindow is the time that rates cover.
const rateWindow = 5 * time.Minute

// rates returns the ended jobs a second, and the 99th percentile of the last hour's runs. The
// window is shorter for a queue that has just begun.
func rates(minutes []inspect.MinuteStats, now time.Time) (done, failed float64, p99 time.Duration) {
	var run core.Histogram
	from := now.Truncate(time.Minute).Add(-rateWindow)
	if len(minutes) > 0 && minutes[0].At.After(from) {
		from = minutes[0].At
	}

	for at := range minutes {
		m := &minutes[at]
		run.Add(&m.Run)
		if !m.At.Before(from) {
			done += float64(m.Processed)
			failed += float64(m.Failed)
		}
	}

	window := max(now.Sub(from), time.Second).Seconds()
	return done / window, failed / window, run.Quantile(0.99)
}

// row makes the row of a queue.
func (s *snapshot) row(stats *inspect.QueueStats) queueRow {
	name := stats.Queue.Name
	r := queueRow{
		Name:        name,
		Paused:      stats.Queue.Paused,
		Lag:         stats.Lag,
		Waiting:     stats.Waiting(),
		Running:     stats.Claimed - stats.Orphaned,
		Retries:     stats.Retrying,
		Dead:        stats.Dead,
		Orphaned:    stats.Orphaned,
		Quarantined: stats.Quarantined,
		Shards:      stats.Queue.Shards,
		Unowned:     unowned(stats),
		worst:       int(wrong.Versions) + 1,
		Cells:       cellsOf(stats, ""),
	}
	level := wrong.Note

	if lines := s.wrongOf(name); len(lines) > 0 {
		worst := slices.MinFunc(lines, func(a, b *wrong.Line) int { return cmp.Compare(a.Kind, b.Kind) })
		r.badge, r.worst, level = badgeOf(worst.Kind), int(worst.Kind), worst.Kind.Level()
	}
	if stats.Queue.Paused {
		r.badge, level = badgeOf(wrong.Paused), wrong.Hold
	}
	r.Bar = lagBarOf(stats.Lag, level)

	for at := range s.view.Nodes {
		if n := &s.view.Nodes[at]; n.State == inspect.NodeAlive && slices.Contains(n.Queues, name) {
			r.Servers++
		}
	}

	r.Done, r.Failed, r.Share = unknownRate, unknownRate, unknownRate
	if d := s.details[name]; d != nil && d.whole() {
		r.Done, r.Failed, r.P99 = rates(d.hour, s.view.Now)
		r.Share = share(r.Done, r.Failed)
		r.Spark = sparkOf(d.hour, s.view.Now)
	}

	return r
}

// unowned counts the shards without a lease.
func unowned(stats *inspect.QueueStats) (n int) {
	for at := range stats.Shards {
		if sh := &stats.Shards[at]; sh.Owner == "" || !sh.ExpiresAt.After(stats.Now) {
			n++
		}
	}
	return n
}

// sorts are the orders of the table of queues. The default is worst first; in the others larger
// comes first, except by name.
var sorts = map[string]func(a, b *queueRow) int{
	"": func(a, b *queueRow) int {
		return cmp.Or(cmp.Compare(a.worst, b.worst), cmp.Compare(b.Lag, a.Lag))
	},
	"name":    func(*queueRow, *queueRow) int { return 0 },
	"lag":     func(a, b *queueRow) int { return cmp.Compare(b.Lag, a.Lag) },
	"waiting": func(a, b *queueRow) int { return cmp.Compare(b.Waiting, a.Waiting) },
	"running": func(a, b *queueRow) int { return cmp.Compare(b.Running, a.Running) },
	"retries": func(a, b *queueRow) int { return cmp.Compare(b.Retries, a.Retries) },
	"dead":    func(a, b *queueRow) int { return cmp.Compare(b.Dead, a.Dead) },
	"done":    func(a, b *queueRow) int { return cmp.Compare(b.Done, a.Done) },
	"failed":  func(a, b *queueRow) int { return cmp.Compare(b.Share, a.Share) },
	"p99":     func(a, b *queueRow) int { return cmp.Compare(b.P99, a.P99) },
	"servers": func(a, b *queueRow) int { return cmp.Compare(b.Servers, a.Servers) },
	"unowned": func(a, b *queueRow) int { return cmp.Compare(b.Unowned, a.Unowned) },
}

// overview makes the page of all queues.
func (c *call) overview() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}

	q := c.r.URL.Query()
	b := &overviewBody{Now: s.view.Now, AsOf: s.at, Sort: q.Get("sort"), Find: q.Get("find")}
	order, known := sorts[b.Sort]
	if !known {
		b.Sort, order = "", sorts[""]
	}

	b.say(s, c.may())

	var minutes []inspect.MinuteStats
	var rows []queueRow
	for at := range s.view.Stats {
		row := s.row(&s.view.Stats[at])
		rows = append(rows, row)
		if d := s.details[row.Name]; d != nil && d.failed == nil {
			minutes = append(minutes, d.day...)
		}
		if strings.Contains(strings.ToLower(row.Name), strings.ToLower(b.Find)) {
			b.Queues = append(b.Queues, row)
		}
	}

	slices.SortStableFunc(b.Queues, func(x, y queueRow) int {
		return cmp.Or(order(&x, &y), strings.Compare(x.Name, y.Name))
	})
	b.fold()
	if len(b.Queues) > maxQueues && q.Get("all") == "" {
		b.Cut, b.Queues = len(b.Queues), b.Queues[:maxQueues]
	}

	b.Figs = s.figs("", rows, minutes)
	d := dayOf(minutes, s.view.Nodes, b.Now)
	b.Done, b.Wait = d.throughput(), d.waits()
	return &view{page: "overview", title: "Overview", live: true, body: b}, nil
}

// say adds the faults of a snapshot to the page, worst first.
func (b *overviewBody) say(s *snapshot, may *rights) {
	lines := s.wrong
	b.More = max(0, len(lines)-maxWrong)
	for at := range lines[:len(lines)-b.More] {
		w := s.wrongLine(&lines[at], "overview")
		w.Resume = w.Kind == wrong.Paused && may.On(w.Queue, "resume")
		b.Wrong = append(b.Wrong, w)
	}
	if len(b.Wrong) > openWrong {
		b.Wrong, b.Less = b.Wrong[:openWrong], b.Wrong[openWrong:]
	}
}

// add adds a queue to the sums.
func (t *totals) add(row *queueRow) {
	t.Waiting += row.Waiting
	if row.Waiting > 0 {
		t.queues++
	}
	if row.Paused {
		t.Paused += row.Waiting
	}
	t.Running += row.Running
	t.Retries += row.Retries
	t.Dead += row.Dead
	t.known = t.known || row.Done >= 0
	t.Done += max(0, row.Done)
	t.Failed += max(0, row.Failed)
}

// fold hides queues without news, if there are many queues.
func (b *overviewBody) fold() {
	if len(b.Queues) <= foldQueues || b.Find != "" {
		return
	}
	all := b.Queues
	b.Queues = nil
	for _, row := range all {
		if row.Word == "" && row.Waiting == 0 && row.Running == 0 {
			b.Folded = append(b.Folded, row.Name)
		} else {
			b.Queues = append(b.Queues, row)
		}
	}
}

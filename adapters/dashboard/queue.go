package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// Sizes of tables of shards.
const (
	worstShards = 10
	shardsAPage = 100
)

// queueBody is the page of a queue.
type queueBody struct {
	Now      time.Time
	Row      queueRow
	Stats    *inspect.QueueStats
	Figs     []fig
	Waits    []waitRow
	Settings []queueSetting
	// Set are the settings that operators can change. Last describes their last change, and Following
	// which servers follow it. Removal is the removal of dead letters that is to begin, if any.
	Set             *inspect.QueueSettings
	Last, Following string
	Removal         *removal
	// Shards and Running are the numbers of shards and of servers.
	Shards, Running int64
	Processed       int64
	FailedAll       int64
	Oldest          when
	Wrong           []wrongLine
	Pause           *pauseOf
	Map             *shardMap
	Worst           []shardRow
	Unreached       int
	Servers         []serverOf
	Done            *chart
	Wait            *chart
	Why             string
	Schedules       *scheduleBlock
	Rate            *rateOf
	// Span is the time that the charts show, and Spans are the choices.
	Span  string
	Spans []tab
	May   *rights
}

// shardRow is a shard in a table.
type shardRow struct {
	Index                  int
	Waiting, Running, Dead int64
	Orphaned               int64
	Lag                    time.Duration
	Owner                  string
	// OwnerID is the owner id if the server is listed.
	OwnerID string
	Unowned bool
	Until   when
	Token   int64
}

// pauseOf describes the pause of a queue: the operator, the time and the reason.
type pauseOf struct {
	Since      when
	By, Reason string
}

// rateOf is when the rate of a queue allows the next start, and when a stop of it ends.
type rateOf struct{ Next, Stopped when }

// rate returns the rate of a queue that servers run with one, or nil. A limiter that can't be read is
// left out: the page is about the queue.
func (c *call) rate(servers []serverOf) *rateOf {
	if !slices.ContainsFunc(servers, func(s serverOf) bool { return s.Rate != "" }) {
		return nil
	}
	reply, err := asked(c, service.Rate, c.queue, &service.RateQuery{Limit: inspect.MaxLimiters})
	if err != nil {
		return nil
	}

	rate := reply.Value()
	for _, l := range rate.Limiters {
		if l.Key == "" {
			return &rateOf{when{l.NextSlot, rate.Now}, when{l.Stopped, rate.Now}}
		}
	}
	return nil
}

func shardRowOf(sh *inspect.ShardStats, names map[string]string, now time.Time) shardRow {
	return shardRow{
		Index:    sh.Shard.Index,
		Waiting:  sh.Waiting(),
		Running:  sh.Claimed - sh.Orphaned,
		Orphaned: sh.Orphaned,
		Dead:     sh.Dead,
		Lag:      sh.Lag,
		Owner:    cmp.Or(names[sh.Owner], sh.Owner),
		Unowned:  sh.Owner == "" || !sh.ExpiresAt.After(now),
		Until:    when{sh.ExpiresAt, now},
		Token:    sh.Token,
	}
}

// worse orders shards by lag, the largest first, and then by the number of jobs.
func worse(a, b *inspect.ShardStats) int {
	return cmp.Or(
		cmp.Compare(b.Lag, a.Lag),
		cmp.Compare(b.Waiting(), a.Waiting()),
		cmp.Compare(b.Orphaned, a.Orphaned),
		cmp.Compare(a.Shard.Index, b.Shard.Index),
	)
}

// rows makes rows of the shards of a queue, in an order.
func (s *snapshot) rows(stats *inspect.QueueStats, order func(a, b *inspect.ShardStats) int) []shardRow {
	shards := make([]*inspect.ShardStats, len(stats.Shards))
	for at := range shards {
		shards[at] = &stats.Shards[at]
	}
	slices.SortStableFunc(shards, order)

	names := s.ownerNames()
	rows := make([]shardRow, len(shards))
	for at, sh := range shards {
		rows[at] = shardRowOf(sh, names, stats.Now)
		if names[sh.Owner] != "" {
			rows[at].OwnerID = sh.Owner
		}
	}
	return rows
}

// queuePage makes the page of a queue.
func (c *call) queuePage() (*view, error) {
	s, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	b := &queueBody{
		Now:       stats.Now,
		Row:       s.row(stats),
		Stats:     stats,
		Waits:     waitsOf(stats),
		Shards:    int64(stats.Queue.Shards),
		Processed: stats.Processed,
		FailedAll: stats.Failed,
		Oldest:    when{stats.Oldest, stats.Now},
		Unreached: s.unreachedOf(c.queue),
		Map:       shardMapOf(stats, c.r.URL.Query().Get("by"), s.ownerNames()),
		May:       c.may(),
	}
	b.choose(c)

	if a, known := s.view.Pauses[c.queue]; known {
		b.Pause = &pauseOf{when{a.At, stats.Now}, a.Actor.Name, a.Actor.Reason}
	}

	b.Worst = s.rows(stats, worse)
	b.Worst = b.Worst[:min(worstShards, len(b.Worst))]

	for _, l := range s.wrongOf(c.queue) {
		b.Wrong = append(b.Wrong, s.wrongLine(l, "queue"))
	}

	var day []inspect.MinuteStats
	if d := s.details[c.queue]; d != nil && d.failed == nil {
		day = d.day
	}
	b.Figs, b.Running = s.figs(c.queue, []queueRow{b.Row}, day), int64(b.Row.Servers)
	set := inspect.SettingsOf(&stats.Queue, s.view.Nodes)
	b.Servers, b.Settings = s.serversOf(c.queue), s.settingsOf(stats, &set)
	b.Set, b.Removal = &set, removalOf(&set, s.view.Nodes, stats)
	if set.Version > 0 && !set.Broken {
		b.Last, b.Following = service.Changed(set.By, set.At, stats.Now), service.Following(&set)
	}
	b.Schedules, b.Rate = c.blockOfQueue(s), c.rate(b.Servers)

	if w := c.charted(s, b); w != nil {
		b.Done, b.Wait = w.throughput(), w.waits()
	}
	return &view{page: "queue", title: c.queue, live: true, body: b}, nil
}

// spans are the times that the charts can show, with their values in the page's address.
var spans = [...]struct{ text, value string }{{"1 h", ""}, {"24 h", "24h"}, {monthSpan, "30d"}}

const monthSpan = "30 days"

// choose sets the time that the charts show.
func (b *queueBody) choose(c *call) {
	chosen := c.r.URL.Query().Get("span")
	for _, span := range spans {
		if span.value == chosen {
			b.Span = span.text
		}
	}
	b.Span = cmp.Or(b.Span, spans[0].text)
	for _, span := range spans {
		b.Spans = append(b.Spans, tab{span.text, c.with("span", span.value), span.text == b.Span})
	}
}

// charted returns the history that the charts show, or nil if it is unknown. It sets Why if the
// history can't be read, or lacks the part of a shard.
func (c *call) charted(s *snapshot, b *queueBody) *window {
	d := s.details[c.queue]
	if d == nil {
		return nil
	}
	failed, lacks, known := d.failed, d.lacks, len(d.hour)+len(d.day) > 0
	var month []inspect.MinuteStats
	if b.Span == monthSpan {
		if d.whole() {
			month, lacks, failed = c.days()
		}
		known = len(month) > 0
	}

	switch {
	case failed != nil:
		b.Why = c.errorText(c.queue, "", failed.Error())
		return nil
	case len(lacks) > 0:
		b.Why = fmt.Sprintf("shard %d holds all or part of it and can't be reached", lacks[0].Index)
		if !known {
			return nil
		}
	}

	switch b.Span {
	case "24 h":
		return dayOf(d.day, s.view.Nodes, b.Now)
	case monthSpan:
		return monthOf(month, s.view.Nodes, b.Now)
	}
	return hourOf(d.hour, s.view.Nodes, b.Now)
}

// days reads the history of the queue by day. Only this page shows it, so no snapshot has it.
func (c *call) days() (days []inspect.MinuteStats, lacks []core.Shard, err error) {
	ctx, end := context.WithTimeout(c.r.Context(), lookTime)
	defer end()
	began := time.Now()
	defer func() { c.cost += time.Since(began) }()

	days, err = c.looker.inspector.History(ctx, c.queue, inspect.HistoryOptions{Step: inspect.Day})
	lacks, err = service.Partial(err)
	return days, lacks, err
}

// queueSetting is a setting of a queue: the value that most of its servers have, and the servers that
// have another.
type queueSetting struct {
	Name, Title, Value string
	// Command is the command that changes it, or empty. From describes where the value is from
	// otherwise.
	Command, From string
	Others        []otherSetting
}

type otherSetting struct{ Owner, Name, Value string }

// settingsOf returns the settings that operators can change, those that the running servers of a queue
// announce, and its merge rule.
func (s *snapshot) settingsOf(stats *inspect.QueueStats, set *inspect.QueueSettings) (list []queueSetting) {
	queue := stats.Queue.Name
	by := map[string][]otherSetting{}
	for at := range set.Settings {
		state := &set.Settings[at]
		list = append(list, queueSetting{
			Name:  state.Name,
			Title: state.About,
			Value: service.InForce(state),
			From:  service.SettingOrigin(state, stats.Now),
		})
	}
	own := len(list)
	for at := range s.view.Nodes {
		n := &s.view.Nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}
		for _, set := range settings(&n.Status, queue) {
			if set.Name == maxRunning || set.Name == maxLanes {
				continue // they are among those that operators can change
			}
			by[set.Name] = append(by[set.Name], otherSetting{n.Owner, n.Name, set.Here})
			if len(by[set.Name]) == 1 && set.Name != mergeRule {
				list = append(list, queueSetting{Name: set.Name, Title: set.Title, From: "code"})
			}
		}
	}
	for at := own; at < len(list); at++ {
		list[at].Value = mostCommon(by[list[at].Name])
	}

	list = append(list, queueSetting{
		Name:    mergeRule,
		Title:   "what stays when payloads of an id meet",
		Value:   stats.Queue.Merge.String(),
		Command: "skein queue merge " + queue + " RULE",
	})
	for at := own; at < len(list); at++ {
		for _, other := range by[list[at].Name] {
			if other.Value != list[at].Value {
				list[at].Others = append(list[at].Others, other)
			}
		}
	}
	return list
}

// mostCommon returns the value that most servers have.
func mostCommon(list []otherSetting) (value string) {
	count := map[string]int{}
	for _, other := range list {
		count[other.Value]++
	}
	for v, n := range count {
		if n > count[value] || n == count[value] && v > value {
			value = v
		}
	}
	return value
}

// waitRow is a reason for which jobs of a queue wait. Ends describes when they no longer do, or At has
// the time.
type waitRow struct {
	Class, Text string
	Count       int64
	Ends        string
	At          when
	Href, Link  string
	// Path is its part of a bar of waitWidth pixels.
	Path string
}

// waitWidth is the width of the bar of waits.
const waitWidth = 600

// waitsOf returns what the jobs of a queue wait for, as far as its counts have that.
func waitsOf(stats *inspect.QueueStats) (rows []waitRow) {
	name := stats.Queue.Name
	add := func(n int64, row waitRow) {
		if row.Count = n; n > 0 {
			rows = append(rows, row)
		}
	}

	fresh := waitRow{
		Class: "d",
		Text:  "their time, or a lane",
		At:    when{stats.Oldest, stats.Now},
		Href:  href("jobs", "q", name, "list", "fresh"),
		Link:  "jobs",
	}
	if stats.Queue.Paused {
		fresh.Class, fresh.Text, fresh.Ends = "kh", "the end of the pause", "when the queue is resumed"
	}
	add(stats.Fresh, fresh)
	add(stats.Retrying-stats.Held, waitRow{
		Class: "k3",
		Text:  "their backoff after a failure",
		Ends:  "each at its time",
		Href:  href("jobs", "q", name, "list", "retries"),
		Link:  "retries",
	})
	add(stats.Orphaned, waitRow{
		Class: "k4",
		Text:  "a new owner of their shard: their server is gone",
		Ends:  "when a server takes the shard",
		Href:  href("busy", "q", name),
		Link:  "running",
	})
	add(stats.Held, waitRow{
		Class: "f",
		Text:  "an operator: they are held after their last retry",
		Ends:  "when they are released",
		Href:  href("jobs", "q", name, "list", "held"),
		Link:  "held jobs",
	})

	var total, before int64
	for at := range rows {
		total += rows[at].Count
	}
	for at := range rows {
		from, n := before*waitWidth/total, rows[at].Count
		before += n
		rows[at].Path = fmt.Sprintf("M%d 6h%d", from, max(2, before*waitWidth/total-from-2))
	}
	return rows
}

// shardsBody is the page of all shards of a queue.
type shardsBody struct {
	Now        time.Time
	Rows       []shardRow
	Sort       string
	From, Of   int
	Prev, Next string
	Unreached  int
}

// shardSorts are the orders of the table of shards.
var shardSorts = map[string]func(a, b *inspect.ShardStats) int{
	"":        func(a, b *inspect.ShardStats) int { return cmp.Compare(a.Shard.Index, b.Shard.Index) },
	"lag":     worse,
	"waiting": func(a, b *inspect.ShardStats) int { return cmp.Compare(b.Waiting(), a.Waiting()) },
	"running": func(a, b *inspect.ShardStats) int { return cmp.Compare(b.Claimed, a.Claimed) },
	"dead":    func(a, b *inspect.ShardStats) int { return cmp.Compare(b.Dead, a.Dead) },
	"owner":   func(a, b *inspect.ShardStats) int { return cmp.Compare(a.Owner, b.Owner) },
	"until":   func(a, b *inspect.ShardStats) int { return a.ExpiresAt.Compare(b.ExpiresAt) },
}

// shardsPage lists the shards of a queue.
func (c *call) shardsPage() (*view, error) {
	s, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	q := c.r.URL.Query()
	b := &shardsBody{Now: stats.Now, Sort: q.Get("sort"), Of: len(stats.Shards), Unreached: s.unreachedOf(c.queue)}
	order, known := shardSorts[b.Sort]
	if !known {
		b.Sort, order = "", shardSorts[""]
	}

	b.Rows = s.rows(stats, order)
	from, err := strconv.Atoi(q.Get("from"))
	if err == nil && from > 0 && from < len(b.Rows) {
		b.From = from
		b.Prev = href("shards", "q", c.queue, "sort", b.Sort, "from", strconv.Itoa(max(0, from-shardsAPage)))
	}

	b.Rows = b.Rows[b.From:]
	if len(b.Rows) > shardsAPage {
		b.Rows = b.Rows[:shardsAPage]
		b.Next = href("shards", "q", c.queue, "sort", b.Sort, "from", strconv.Itoa(b.From+shardsAPage))
	}

	return &view{page: "shards", title: c.queue + ": shards", live: true, body: b}, nil
}

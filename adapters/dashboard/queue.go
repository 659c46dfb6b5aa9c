package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/inspect"
)

// Sizes of tables of shards.
const (
	worstShards = 10
	shardsAPage = 100
)

// queueBody is the page of a queue.
type queueBody struct {
	Now       time.Time
	Row       queueRow
	Stats     *inspect.QueueStats
	Fresh     int64
	Processed int64
	FailedAll int64
	Oldest    when
	Wrong     []wrongLine
	Pause     *pauseOf
	Map       *shardMap
	Worst     []shardRow
	Unreached int
	Servers   []serverOf
	Done      *chart
	Wait      *chart
	Why       string
	Schedules *scheduleBlock
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
	Unowned                bool
	Until                  when
	Token                  int64
}

// pauseOf describes the pause of a queue: the operator, the time and the reason.
type pauseOf struct {
	Since      when
	By, Reason string
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
		Fresh:     stats.Fresh,
		Processed: stats.Processed,
		FailedAll: stats.Failed,
		Oldest:    when{stats.Oldest, stats.Now},
		Unreached: s.unreachedOf(c.queue),
		Map:       shardMapOf(stats, c.r.URL.Query().Get("by"), s.ownerNames()),
		May:       c.may(),
		Span:      "1 h",
	}
	if c.r.URL.Query().Get("span") == "24h" {
		b.Span = "24 h"
	}
	for _, span := range []string{"1 h", "24 h"} {
		b.Spans = append(b.Spans, tab{span, c.with("span", map[string]string{"24 h": "24h"}[span]), span == b.Span})
	}

	if a, known := s.view.Pauses[c.queue]; known {
		b.Pause = &pauseOf{when{a.At, stats.Now}, a.Actor.Name, a.Actor.Reason}
	}

	b.Worst = s.rows(stats, worse)
	b.Worst = b.Worst[:min(worstShards, len(b.Worst))]

	for _, l := range s.wrongOf(c.queue) {
		b.Wrong = append(b.Wrong, s.wrongLine(l, "queue"))
	}

	b.Servers = s.serversOf(c.queue)
	b.Schedules = c.blockOfQueue(s)

	if d := s.details[c.queue]; d != nil {
		switch {
		case d.failed != nil:
			b.Why = c.errorText(c.queue, "", d.failed.Error())
		case len(d.lacks) > 0:
			b.Why = fmt.Sprintf("shard %d holds all or part of it and can't be reached", d.lacks[0].Index)
		}

		if d.failed == nil && len(d.hour)+len(d.day) > 0 || d.whole() {
			w := hourOf(d.hour, s.view.Nodes, stats.Now)
			if b.Span == "24 h" {
				w = dayOf(d.day, s.view.Nodes, stats.Now)
			}
			b.Done, b.Wait = w.throughput(), w.waits()
		}
	}

	return &view{page: "queue", title: c.queue, live: true, body: b}, nil
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

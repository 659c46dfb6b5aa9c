package dashboard

import (
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// maxGroups is the maximum number of groups on the page of the morgue.
const maxGroups = 100

// groupRow is a group of dead letters.
type groupRow struct {
	service.GroupRow
	Hour, Day   int64
	First, Last when
	Share       int
	Href        string
	Current     bool
}

// morgueBody is the page of dead letters.
type morgueBody struct {
	Queue         string
	Now           time.Time
	Groups        []groupRow
	GroupsFailed  string
	MoreGroups    int
	Dead          int64
	Hour, Day     int64 // for all groups
	Counted       int   // the number of newest dead letters that Hour and Day cover; 0 means all
	CountFailed   string
	Group, Error  string
	Tag           string
	GroupName     string
	Sort, Prefix  string
	From          string
	Desc          bool
	Sorts         []tab
	Turn          string
	Rows          []service.Row[inspect.DeadLetter]
	Next, First   string
	Unreached     []string
	Linked        bool
	May           *rights
	Hidden        []hiddenField
	All           string
	Revive, Purge string
}

// morguePage lists groups and dead letters.
func (c *call) morguePage() (*view, error) {
	_, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	q := c.r.URL.Query()
	b := &morgueBody{
		Queue:  c.queue,
		Now:    stats.Now,
		Dead:   stats.Dead,
		Group:  q.Get("group"),
		Error:  q.Get("error"),
		Tag:    q.Get("tag"),
		Sort:   "time",
		Prefix: q.Get("prefix"),
		From:   q.Get("from"),
		Desc:   q.Get("asc") == "",
		Linked: c.o.API.RedactID == nil,
		May:    c.may(),
		All:    href("morgue", "q", c.queue),
	}
	if q.Get("sort") == "id" && b.Group == "" {
		b.Sort, b.Desc = "id", q.Get("desc") != ""
	}

	ask := &service.MorgueQuery{
		Sort:  b.Sort,
		From:  b.From,
		Group: b.Group,
		Tag:   b.Tag,
		PageQuery: service.PageQuery{
			After: q.Get("after"), Desc: b.Desc, Limit: pageRows, ErrorBytes: 1000,
		},
	}
	if b.Sort == "id" {
		ask.Prefix = b.Prefix
	}

	reply, err := asked(c, service.Morgue, c.queue, ask)
	if err != nil {
		return nil, err
	}

	b.Rows, b.Unreached = reply.Items, reply.Unreached
	b.groups(c, reply)
	b.links(c, reply.Next)
	return &view{page: "morgue", title: c.queue + ": morgue", live: true, body: b}, nil
}

// Marks reports whether rows can be marked.
func (b *morgueBody) Marks() bool {
	return b.Linked && len(b.Rows) > 0 && b.May.To("revive", "purge")
}

// links makes the addresses of the page.
func (b *morgueBody) links(c *call, next string) {
	q := c.r.URL.Query()
	if next != "" {
		b.Next = c.with("after", next)
	}
	if q.Get("after") != "" {
		b.First = c.with("after", "")
	}

	b.Sorts = []tab{{
		"changed",
		c.with("sort", "", "desc", "", "asc", "", "after", "", "from", "", "prefix", ""),
		b.Sort == "time",
	}}
	if b.Group == "" {
		b.Sorts = append(b.Sorts, tab{
			"id", c.with("sort", "id", "desc", "", "asc", "", "after", "", "from", ""), b.Sort == "id",
		})
	}

	flip := "desc"
	if b.Sort == "time" {
		flip = "asc"
	}
	value := "1"
	if q.Get(flip) != "" {
		value = ""
	}
	b.Turn = c.with(flip, value, "after", "")
	b.Hidden = c.kept("q", "group", "sort", "asc", "desc")

	prefix := ""
	if b.Sort == "id" {
		prefix = b.Prefix
	}
	b.Revive = href("sheet", "op", "revive",
		"q", c.queue, "group", b.Group, "error", b.Error, "tag", b.Tag, "prefix", prefix)
	b.Purge = href("sheet", "op", "purge",
		"q", c.queue, "group", b.Group, "error", b.Error, "tag", b.Tag, "prefix", prefix)
}

// groups reads the groups, and counts the dead letters of the last hour and day. The list may
// begin with the newest dead letters.
func (b *morgueBody) groups(c *call, list *service.List[inspect.DeadLetter]) {
	reply, err := asked(c, service.Groups, c.queue, &service.GroupsQuery{Limit: maxGroups})
	if err != nil {
		b.GroupsFailed = c.errorText(c.queue, "", err.Error())
		return
	}

	b.MoreGroups = reply.Total - len(reply.Items)

	// Only an unfiltered list begins with the newest dead letters.
	if q := c.r.URL.Query(); b.Sort != "time" || !b.Desc || b.Group != "" || b.Tag != "" ||
		q.Get("after") != "" || q.Get("from") != "" {
		list = nil
	}

	recent := c.newest(b.Now, reply, list)
	b.Counted, b.Hour, b.Day = recent.counted, int64(recent.hour.sum.Count), int64(recent.day.sum.Count)
	if recent.failed != nil {
		b.CountFailed = c.errorText(c.queue, "", recent.failed.Error())
	}

	for at := range reply.Items {
		g := reply.Items[at].Value()
		row := groupRow{
			GroupRow: *g,
			Hour:     min(recent.hour.byGroup[g.Key], g.Count),
			Day:      min(recent.day.byGroup[g.Key], g.Count),
			First:    when{g.First, b.Now},
			Last:     when{g.Last, b.Now},
			Share:    int(100 * g.Count / max(reply.Dead, 1)),
			Href:     href("morgue", "q", c.queue, "group", g.Key),
			Current:  g.Key == b.Group,
		}
		if row.Current {
			b.GroupName = g.Name
		}
		b.Groups = append(b.Groups, row)
	}
}

// newest is how many dead letters of a queue were buried within an hour and a day, by group.
type newest struct {
	hour, day *recent
	// counted is how many of the newest dead letters that covers where groups are not enough; 0 is
	// all.
	counted int
	// failed is the reason why the newest could not be read to the end. Then there may be more than
	// were counted.
	failed error
	// until is the time of the next count.
	until time.Time
}

// newest counts the dead letters of the page's queue that were buried lately. It uses the queue's
// groups and, where groups are not enough, the newest dead letters. The list begins with these,
// unless it is nil. To read more of them costs more than the rest of the page, so a count is shown
// again for a while, like the other values that are read less often.
func (c *call) newest(now time.Time, groups *service.GroupsReply, list *service.List[inspect.DeadLetter]) *newest {
	known, acts := c.looker.newestOf(c.queue)
	if known != nil {
		return known
	}

	spans := make([]span, len(groups.Items))
	for at := range groups.Items {
		g := groups.Items[at].Value()
		spans[at] = span{g.Key, g.Count, g.First, g.Last}
	}
	others := groups.Total > len(spans)
	n := &newest{
		hour: recentOf(now.Add(-time.Hour), spans, others),
		day:  recentOf(now.Add(-24*time.Hour), spans, others),
	}
	if !n.hour.open && !n.day.open {
		return n
	}

	began := c.looker.clock()
	if n.failed = c.readNewest(n, list); n.failed != nil {
		return n
	}

	ended := c.looker.clock()
	n.until = ended.Add(service.RestAfter(ended.Sub(began), detailRest, maxDetail))
	c.looker.keepNewest(c.queue, n, acts)
	return n
}

// newestRead is how many are read at a time. A day usually has more than a few, and each read has
// its own cost.
var newestRead = [...]int{100, 900}

// readNewest reads dead letters until they are too old, or enough have been read.
func (c *call) readNewest(n *newest, list *service.List[inspect.DeadLetter]) error {
	read := 0
	ask := &service.MorgueQuery{Sort: "time", PageQuery: service.PageQuery{Desc: true, ErrorBytes: 1}}
	for _, limit := range newestRead {
		if read > 0 || list == nil {
			ask.Limit = limit
			var err error
			if list, err = asked(c, service.Morgue, c.queue, ask); err != nil {
				return err
			}
		}

		if n.letters(list.Items) || list.Next == "" {
			return nil
		}
		read += len(list.Items)
		ask.After = list.Next
	}

	n.counted = read
	return nil
}

// letters counts dead letters, the newest first, and reports whether those behind them are too old.
func (n *newest) letters(rows []service.Row[inspect.DeadLetter]) (old bool) {
	for at := range rows {
		l := rows[at].Value()
		hour, day := n.hour.letter(l.Group, l.ChangedAt), n.day.letter(l.Group, l.ChangedAt)
		if day || hour && !n.day.open {
			return true
		}
	}
	return false
}

// newestOf returns the stored count of a queue's newest dead letters, or nil if they are to be
// counted, and the number of actions so far.
func (l *looker) newestOf(queue string) (n *newest, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.newest[queue]; n != nil && l.clock().Before(n.until) {
		return n, l.acts
	}
	return nil, l.acts
}

// keepNewest keeps a count that began after the given number of actions, unless another action has
// followed: then the count may be out of date.
func (l *looker) keepNewest(queue string, n *newest, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if acts != l.acts {
		return
	}
	if l.newest == nil {
		l.newest = map[string]*newest{}
	}
	l.newest[queue] = n
}

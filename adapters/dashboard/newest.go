package dashboard

import (
	"time"

	"github.com/skeinq/skein/internal/service"
)

// newest is how many dead letters of a queue were buried within an hour and a day, by group.
type newest struct {
	hour, day *recent
	// counted is how many of the newest dead letters that covers where groups are not enough; 0 is
	// all.
	counted int
	// failed is why the newest could not be read to the end. Then there may be more than were counted.
	failed error
	// until is when they are counted anew.
	until time.Time
}

// newest counts those of the page's queue. It uses the queue's groups and, where they are not
// enough, the newest dead letters, with which the list begins unless it is nil. Reading more of
// these costs more than the rest of the page, so a count is shown again for a while, like the
// other values that are read less often.
func (c *call) newest(now time.Time, groups *service.GroupsReply, list *service.List[service.DeadRow]) *newest {
	known, acts := c.looker.newestOf(c.queue)
	if known != nil {
		return known
	}
	spans := make([]span, len(groups.Items))
	for at, g := range groups.Items {
		spans[at] = span{g.Group, g.Count, g.First, g.Last}
	}
	others := groups.Total > len(spans)
	n := &newest{hour: recentOf(now.Add(-time.Hour), spans, others), day: recentOf(now.Add(-24*time.Hour), spans, others)}
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
func (c *call) readNewest(n *newest, list *service.List[service.DeadRow]) error {
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

// letters counts dead letters, the newest first, and returns whether those behind them are too
// old.
func (n *newest) letters(rows []service.DeadRow) (old bool) {
	for at := range rows {
		l := &rows[at]
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

package dashboard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/wrong"
)

// details are the figures of a queue that are read less often.
type details struct {
	// retries is how often servers retry jobs of the queue, by their own announcements at the last
	// read.
	retries int

	at     time.Time
	cost   time.Duration
	failed error
	// hour is by minute, day by a quarter of an hour.
	hour, day []inspect.MinuteStats
	// lacks has the shards that keep a part of the history, or all of it, and can't be reached. Then
	// day is not read, since that would wait for the same server.
	lacks []core.Shard
	died  wrong.Deaths
	last  wrong.LastRetry
	// suspects are the claimed jobs that may crash their servers.
	suspects wrong.Suspects
	ticks    wrong.Ticks
	// schedules are the first names of the queue's schedules. schedulesFailed is why they are missing.
	schedules       []inspect.ScheduleName
	schedulesFailed error
	// overdue are the names, among the schedules that were read, of those with an overdue tick.
	overdue []string
}

// whole reports whether the history is complete, so that rates may be derived from it.
func (d *details) whole() bool { return d.failed == nil && len(d.lacks) == 0 }

// detail reads the history and the newest deaths of queues, beginning with those that were read
// longest ago, until its time is over.
func (l *looker) detail(ctx context.Context, s *snapshot) {
	began := l.clock()
	if s.view.NodesUnknown || len(s.view.Unreached) > 0 {
		brief, end := context.WithTimeout(ctx, awayTime)
		defer end()
		ctx = brief
	}

	queues := make([]int, len(s.view.Stats))
	for at := range queues {
		queues[at] = at
	}

	old, again := s.details, l.takeAgain()
	was := func(at int) time.Time {
		name := s.view.Stats[at].Queue.Name
		if d := old[name]; d != nil && !again[name] {
			return d.at
		}
		return time.Time{}
	}
	slices.SortStableFunc(queues, func(a, b int) int { return was(a).Compare(was(b)) })

	s.details = make(map[string]*details, len(queues))
	s.view.Recent, s.view.Died = map[string][]inspect.MinuteStats{}, map[string]wrong.Deaths{}
	s.view.LastRetries, s.view.Suspects = map[string]wrong.LastRetry{}, map[string]wrong.Suspects{}
	s.view.Ticks = map[string]wrong.Ticks{}

	var total time.Duration
	for _, d := range old {
		total += d.cost
	}
	for _, at := range queues {
		stats := &s.view.Stats[at]
		name := stats.Queue.Name
		d := old[name]
		known, _ := wrong.LastRetryList(stats, s.view.Nodes)
		rested := d == nil || again[name] || d.retries != known.FromRetries ||
			!l.clock().Before(d.at.Add(service.RestAfter(total, detailRest, maxDetail)))
		if rested && l.clock().Sub(began) < detailTime && ctx.Err() == nil {
			d = l.detailsOf(ctx, stats, &s.view)
		}
		if d == nil {
			continue
		}

		s.details[name] = d
		if d.whole() {
			s.view.Recent[name] = d.hour
		}
		if d.failed == nil {
			s.view.Died[name], s.view.LastRetries[name], s.view.Suspects[name], s.view.Ticks[name] =
				d.died, d.last, d.suspects, d.ticks
		}
	}
}

func (l *looker) detailsOf(ctx context.Context, stats *inspect.QueueStats, v *wrong.View) *details {
	queue, began, now := stats.Queue.Name, l.clock(), v.Now
	d := &details{}
	var errDay, errDied, errLast, errSuspects error

	d.hour, d.failed = l.inspector.History(ctx, queue, inspect.HistoryOptions{
		From: now.Add(-time.Hour).Truncate(time.Minute),
	})
	if d.lacks, d.failed = service.Partial(d.failed); len(d.lacks) == 0 {
		d.day, errDay = l.inspector.History(ctx, queue, inspect.HistoryOptions{
			From: now.Add(-24 * time.Hour).Truncate(quarter), Step: quarter,
		})
		d.lacks, errDay = service.Partial(errDay)
	}

	if stats.Dead > 0 {
		d.died, errDied = l.deaths(ctx, stats, now.Add(-time.Hour))
	}
	o, ok := wrong.LastRetryList(stats, v.Nodes)
	if d.retries = o.FromRetries; ok {
		d.last, errLast = wrong.LastRetryOf(o, l.inspector.Jobs(ctx, queue, o))
	}
	if o, ok := wrong.SuspectsList(stats, v.Nodes); ok {
		d.suspects, errSuspects = wrong.SuspectsOf(l.inspector.Claimed(ctx, queue, o))
	}

	l.calendar(ctx, d, stats, now)

	d.failed = cmp.Or(d.failed, errDay, errDied, errLast, errSuspects)
	d.at, d.cost = l.clock(), l.clock().Sub(began)
	return d
}

// calendar reads the first names of a queue's schedules and, if there are any, how late their ticks
// are. If a name has several ids, it also reads a page of the schedules. A failure does not concern
// the queue's other details.
func (l *looker) calendar(ctx context.Context, d *details, stats *inspect.QueueStats, now time.Time) {
	queue := stats.Queue.Name
	names, err := l.inspector.ScheduleNames(ctx, queue, "", 0)
	if _, d.schedulesFailed = service.Partial(err); d.schedulesFailed != nil {
		return
	}
	if d.schedules = names.Names; len(d.schedules) == 0 || stats.Queue.Paused {
		return
	}

	late, err := l.inspector.LateTicks(ctx, queue)
	if _, d.schedulesFailed = service.Partial(err); d.schedulesFailed != nil {
		return
	}

	// The names have the schedule of the first id only.
	var page []inspect.Schedule
	if slices.ContainsFunc(d.schedules, func(n inspect.ScheduleName) bool { return n.Count > 1 }) {
		page, d.schedulesFailed = l.schedules(ctx, queue)
	}
	d.ticks = wrong.TicksOf(late[queue], now, d.schedules, page...)
	d.overdue = overdueNames(d.schedules, page)
}

// overdueNames returns the names of the schedules that have been due for a while.
func overdueNames(names []inspect.ScheduleName, page []inspect.Schedule) (overdue []string) {
	add := func(s *inspect.Schedule) {
		if s.Late >= wrong.DueTick && !slices.Contains(overdue, s.Name) {
			overdue = append(overdue, s.Name)
		}
	}
	for at := range names {
		add(&names[at].First)
	}
	for at := range page {
		add(&page[at])
	}
	return overdue
}

// schedules returns a page of the schedules of a queue, without those of shards that can't be
// reached.
func (l *looker) schedules(ctx context.Context, queue string) (page []inspect.Schedule, err error) {
	for s, err := range l.inspector.Schedules(ctx, queue, inspect.ScheduleOptions{Limit: scheduleRows}) {
		if _, err = service.Partial(err); err != nil {
			return nil, err
		}
		if s.ID != "" {
			page = append(page, s)
		}
	}
	return page, nil
}

// quarter is the length of time that a point of the day's charts sums up.
const quarter = 15 * time.Minute

// deathsRead are the numbers of dead letters that are read at a time, the newest first, to count
// those of the last hour. The first number is small, because it is usually enough.
var deathsRead = [...]int{100, 200, 700}

// allGroups is the largest number of groups that are returned.
const allGroups = 1000

// deaths counts the dead letters of a queue that were buried since a time. For most queues the
// groups are enough; dead letters are read only if the groups are not.
func (l *looker) deaths(ctx context.Context, stats *inspect.QueueStats, since time.Time) (wrong.Deaths, error) {
	groups, err := l.inspector.Groups(ctx, stats.Queue.Name, allGroups)
	if _, err = service.Partial(err); err != nil {
		return wrong.Deaths{}, err
	}

	spans := make([]span, len(groups.Groups))
	for at, g := range groups.Groups {
		spans[at] = span{g.Name, g.Count, g.First, g.Last}
	}
	r := recentOf(since, spans, groups.Total > len(spans) || groups.Dead < stats.Dead)

	o := inspect.ListOptions{Descending: true, ErrorBytes: -1}
	for _, o.Limit = range deathsRead {
		if !r.open {
			break
		}
		if r.open, err = l.read(ctx, r, stats.Queue.Name, &o); err != nil {
			return wrong.Deaths{}, err
		}
	}

	r.sum.More = r.open
	if group, n := r.most(); 2*n > int64(r.sum.Count) {
		r.sum.Error, r.sum.Same = l.shown.ErrorText(stats.Queue.Name, "", group), int(n)
	}
	return r.sum, nil
}

// read counts the next of the newest dead letters. more reports whether there may be others to
// count.
func (l *looker) read(ctx context.Context, r *recent, queue string, o *inspect.ListOptions) (more bool, err error) {
	left := o.Limit
	for letter, err := range l.inspector.Morgue(ctx, queue, *o) {
		if _, err = service.Partial(err); err != nil {
			return false, err
		}
		if letter.ID == "" || r.letter(letter.Group, letter.ChangedAt) {
			return false, nil
		}
		o.After = letter.Cursor
		left--
	}
	return left == 0, nil
}

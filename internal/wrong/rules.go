package wrong

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/versions"
)

// Bounds of faults.
const (
	// late is the lag from which a queue is late. still is for how long no job has ended in a queue
	// that is not moving. unowned is for how long a shard with due jobs has had no owner.
	late    = time.Minute
	still   = 5 * time.Minute
	unowned = 10 * time.Second
	// failingWindow is the time over which failures are counted. A queue is failing if more than
	// failingCount jobs, and more than the share failingShare of all, have failed.
	failingWindow = 10 * time.Minute
	failingShare  = 0.2
	failingCount  = 10
	// knownTime is the length of the past that View.Recent has.
	knownTime = time.Hour
	// A hot shard lags more than hot times the median lag of its queue's shards. Only queues with at
	// least hotShards shards have hot shards.
	hot       = 10
	hotShards = 4
	// mixed is how long servers of two versions may run side by side, as during a deployment.
	mixed = 10 * time.Minute
)

// rules finds the faults in a view.
type rules struct {
	*View
	// answered is when the store last answered.
	answered time.Time
	lags     map[string][]lagAt
	paused   map[string]time.Time
	serving  map[string]int
	// gone are the servers that stopped responding, by their owner id.
	gone  map[string]*inspect.Node
	lines []Line
}

func (r *rules) add(l Line) { r.lines = append(r.lines, l) }

// of adds a line about a queue.
func (r *rules) of(k Kind, s *inspect.QueueStats, weight int64, since time.Time, format string, args ...any) {
	r.add(Line{
		Kind:   k,
		Queue:  s.Queue.Name,
		Shard:  -1,
		Text:   fmt.Sprintf(format, args...),
		Since:  since,
		weight: weight,
	})
}

// store adds lines about the faults of the store.
func (r *rules) store() {
	if r.Silence != "" {
		r.add(Line{Kind: NoAnswer, Shard: -1, Text: "The store does not answer: " + r.Silence, Since: r.answered})
	}

	// The unreached shards of a queue are adjacent, and have one line.
	for start := 0; start < len(r.Unreached); {
		queue, end := r.Unreached[start].Queue, start
		for end < len(r.Unreached) && r.Unreached[end].Queue == queue {
			end++
		}

		n := end - start
		text := fmt.Sprintf("%d shards can't be reached, the first is %d; the figures don't include them",
			n, r.Unreached[start].Index)
		if n == 1 {
			text = fmt.Sprintf("Shard %d can't be reached; the figures don't include it", r.Unreached[start].Index)
		}

		r.add(Line{Kind: PartAway, Queue: queue, Shard: -1, Text: text, weight: int64(n)})
		start = end
	}

	for _, c := range r.Checks {
		kind := CheckFails
		switch c.Status {
		case inspect.CheckWarn:
			kind = CheckWarns
		case inspect.CheckFail:
		default:
			continue
		}

		text := c.Name + ": " + c.Value
		if c.Advice != "" {
			text += ". " + c.Advice
		}
		r.add(Line{
			Kind:   kind,
			Shard:  -1,
			Server: c.Server,
			Text:   text,
			weight: -int64(len(r.lines)), // keeps the checks in their order
		})
	}
}

// queue adds lines about the faults of a queue.
func (r *rules) queue(s *inspect.QueueStats) {
	served := r.NodesUnknown || r.serving[s.Queue.Name] > 0
	due := s.Lag > 0

	switch {
	case !served && (due || s.Claimed > 0) && !s.Queue.Paused:
		r.unserved(s)
	case s.Queue.Paused && s.Waiting() > 0:
		r.of(Paused, s, s.Waiting(), r.Pauses[s.Queue.Name].At, "%s; %s", r.pausedBy(s.Queue.Name), wait(s.Waiting()))
	case s.Length() == 0 && s.Orphaned > 0: // only orphans wait, and they have a line of their own
	default:
		r.moving(s)
		r.unownedShards(s)
	}
	if s.Orphaned > 0 && served {
		r.orphans(s)
	}

	r.crashes(s)
	failing := r.failing(s)
	r.otherRule(s)
	r.schedules(s, served)

	if s.Held > 0 {
		r.of(Holds, s, s.Held, time.Time{},
			"%s held after the last retry, and their ids wait: release them, or bury their first payloads",
			jobs(s.Held))
	}
	if d := r.died(s); d.Count > 0 && !failing {
		r.of(MorgueGrows, s, int64(d.Count), d.First, "%s died within the last hour%s, the newest %s ago",
			d.count(), d.mostly(), figures.Span(max(0, r.Now.Sub(d.Last)).Round(time.Second)))
	}

	if !failing {
		r.lastRetry(s)
	}
	r.settings(s)
	r.runsLong(s)
	if s.Quarantined > 0 {
		r.of(Unreadable, s, s.Quarantined, time.Time{}, "%s can't be read: set aside", plural(s.Quarantined, "record"))
	}
}

// moving adds a line if a queue is not moving, is blocked at its limit or by its rate, has a hot shard,
// or is late: the first that is true.
func (r *rules) moving(s *inspect.QueueStats) {
	if s.Lag < late {
		return
	}

	held, limit := r.held(s)
	rate := ""
	if held == nil {
		rate = r.atRate(s)
	}
	recent, known := r.Recent[s.Queue.Name]
	_, resumed := r.paused[s.Queue.Name] // recently enough to explain why no job has ended

	if s.Lag >= still && known && !resumed && ended(recent, r.Now.Add(-still)) == 0 {
		if rate != "" {
			r.of(NotMoving, s, s.Waiting(), behindSince(s),
				"No job has ended for %s, since %s: %s", figures.Span(still), rate, wait(s.Waiting()))
			return
		}
		if held == nil {
			held, limit = r.longest(s.Queue.Name, -1, still),
				fmt.Sprintf(", and no job has ended for %s", figures.Span(still))
		}
		if held == nil {
			r.of(NotMoving, s, s.Waiting(), behindSince(s),
				"No job has ended for %s: %s", figures.Span(still), wait(s.Waiting()))
			return
		}
		r.blamed(NotMoving, s, s.Waiting(), held, "%s; %s behind it", limit, wait(s.Waiting()))
		return
	}

	if held != nil {
		r.blamed(Late, s, int64(s.Lag), held,
			"%s; %s behind it, the first for %s", limit, wait(s.Waiting()), figures.Span(s.Lag.Round(time.Second)))
		return
	}

	if index, lag, median := hottest(s); rate == "" && lag > hot*median {
		r.hotShard(s, index, lag, median)
		return
	}

	trend := ""
	if past := r.lags[s.Queue.Name]; r.Now.Sub(past[0].at) >= time.Minute { // The lag of this look is one of them.
		switch was := past[0].lag; {
		case s.Lag > was+rising:
			trend = " and growing"
		case s.Lag < was-rising:
			trend = ", catching up"
		}
	}

	cause := ""
	if rate != "" {
		cause = ": " + rate
	}
	r.of(Late, s, int64(s.Lag), behindSince(s), "%s behind%s, %s waiting%s",
		figures.Span(s.Lag.Round(time.Second)), trend, figures.Count(s.Waiting()), cause)
}

// hotShard adds a line about a hot shard, with the job that has run longest in it if that is known.
func (r *rules) hotShard(s *inspect.QueueStats, index int, lag, median time.Duration) {
	l := Line{
		Kind:   HotShard,
		Queue:  s.Queue.Name,
		Shard:  index,
		weight: int64(lag),
		Since:  behindSince(s),
		Text: fmt.Sprintf("Shard %d is %s behind, half of the others %s or less",
			index, figures.Span(lag.Round(time.Second)), figures.Span(median)),
	}

	if job := r.longest(s.Queue.Name, index, longRun); job != nil {
		l.ID = r.shownID(job.queue, job.id)
		l.Text += "; " + r.hasRun(job) + " in it"
	}
	r.add(l)
}

// unownedShards adds a line about shards with due jobs that have had no owner for a while. Shards
// that have only orphans are in the line OwnerGone.
func (r *rules) unownedShards(s *inspect.QueueStats) {
	n, held, since := 0, int64(0), time.Time{}
	var last []*inspect.Node
	for at := range s.Shards {
		sh := &s.Shards[at]
		if sh.Length() == 0 && sh.Orphaned > 0 || sh.Lag < unowned ||
			sh.Owner != "" && sh.ExpiresAt.Add(unowned).After(s.Now) {
			continue
		}

		n++
		held += sh.Waiting()
		last = append(last, r.gone[sh.Owner])
		if sh.Owner != "" && (since.IsZero() || sh.ExpiresAt.Before(since)) {
			since = sh.ExpiresAt
		}
	}
	if n == 0 {
		return
	}

	left := ownersOf(last)
	text := fmt.Sprintf("No server has %d of its %d shards", n, s.Queue.Shards)
	if len(left.names) > 0 {
		text += " since " + someOf(left.names) + " stopped responding"
	}
	r.of(Unowned, s, int64(n), since, "%s: %s there", text, wait(held))
	r.blame(&left, held, 0)
}

// failing adds a line if too many jobs of a queue fail, and reports whether it did. The line has the
// deaths of the last hour, and the jobs that wait for their last retry, since they have the same
// cause.
func (r *rules) failing(s *inspect.QueueStats) bool {
	var done, failed uint64
	var since time.Time
	sinceKnown := false
	recent := r.Recent[s.Queue.Name]

	// Minutes before the window only extend since, back to the first one without too many failures.
	for _, m := range slices.Backward(recent) {
		inWindow := m.At.After(r.Now.Add(-failingWindow))
		if inWindow {
			done, failed = done+m.Processed, failed+m.Failed
		}

		if !inWindow && float64(m.Failed) <= failingShare*float64(m.Failed+m.Processed) {
			sinceKnown = true
			break
		}
		if m.Failed > 0 {
			since = m.At
		}
	}

	if failed <= failingCount || float64(failed) <= failingShare*float64(done+failed) {
		return false
	}

	text := fmt.Sprintf("%d %% of %s failed within %s",
		int(100*failed/(done+failed)), jobs(int64(done+failed)), figures.Span(failingWindow))
	if d := r.died(s); d.Count > 0 {
		text += "; " + d.count() + " died within the hour" + d.mostly()
	}
	if l := r.LastRetries[s.Queue.Name]; l.Count > 0 && s.Retrying > 0 {
		text += "; " + l.count() + " for the last retry"
	}
	r.of(Failing, s, int64(failed), since, "%s%s", text, r.beganWith(s, since))

	// If the queue was failing during the whole hour that is known, it may have failed for longer.
	r.lines[len(r.lines)-1].Seen = !sinceKnown && r.Now.Sub(since) >= knownTime
	return true
}

// died returns the deaths of a queue within the last hour. They are over once nothing is dead.
func (r *rules) died(s *inspect.QueueStats) (d Deaths) {
	if s.Dead > 0 {
		d = r.Died[s.Queue.Name]
	}
	return d
}

// versions adds a line if servers of several versions have run side by side for a while.
func (r *rules) versions() {
	names, began := map[string][]string{}, versions.Starts{}
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if n.State != inspect.NodeAlive || n.Version == "" {
			continue
		}
		began.Add(n.Version, n.StartedAt)
		names[n.Version] = append(names[n.Version], n.Name)
	}
	if len(names) < 2 {
		return
	}

	var since time.Time // when the first server of the newest of them started
	var texts []string
	for version, first := range began {
		if first.After(since) {
			since = first
		}
		slices.Sort(names[version])
		texts = append(texts, version+" on "+someOf(names[version]))
	}

	if r.Now.Sub(since) < mixed {
		return
	}

	slices.Sort(texts)
	text := fmt.Sprintf("%d versions run: %s", len(texts), strings.Join(texts[:min(len(texts), mostNames)], "; "))
	r.add(Line{Kind: Versions, Shard: -1, Text: text, Since: since})
}

package wrong

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

const (
	// longRun is the time from which a running job is named as the cause of a lag.
	longRun = 30 * time.Second
	// hungRun is the time from which a handler may hang, also if nothing waits for its job. The alert
	// SkeinJobRunsLong has the same.
	hungRun = time.Hour
	// mostNames is the largest number of names in a text, and mostOfID the largest number of
	// characters of an id.
	mostNames = 3
	mostOfID  = 60
)

// culprit is a running job that other jobs wait for.
type culprit struct {
	queue, id string
	began     time.Time
}

// longest returns the job of a queue that has run longest, if servers report one that has run for
// the given time or longer. Shard -1 means any shard.
func (r *rules) longest(queue string, shard int, least time.Duration) (job *culprit) {
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}

		for i := range n.Status.Longest {
			j := &n.Status.Longest[i]
			c := &culprit{j.Shard.Queue, j.ID, j.Began.Time()}
			if c.queue == queue && (shard < 0 || j.Shard.Index == shard) &&
				r.ran(c) >= least && (job == nil || c.began.Before(job.began)) {
				job = c
			}
		}
	}
	return job
}

// held returns the longest-running job of a queue that has reached its limit of running batches,
// and a text with the limit. job is nil if the limit is not reached, or if no job has run for
// longRun.
func (r *rules) held(s *inspect.QueueStats) (job *culprit, limit string) {
	most, busy := 0, 0
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}
		for i := range n.Status.Queues {
			if q := &n.Status.Queues[i]; q.Queue == s.Queue.Name {
				most, busy = max(most, q.MaxRunning), busy+q.Busy
			}
		}
	}
	if most == 0 || busy < most {
		return nil, ""
	}

	by := ""
	if set, ok := s.Queue.Settings.Find(core.SettingMaxRunning); ok {
		by = ", set by " + cmp.Or(set.By, "an operator")
	}
	limit = fmt.Sprintf(" and is the only job that may run (MaxRunning 1%s)", by)
	if most > 1 {
		limit = fmt.Sprintf(" and no more than %d may run (MaxRunning%s)", most, by)
	}
	return r.longest(s.Queue.Name, -1, longRun), limit
}

// blamed adds a line that begins with the job that causes the fault.
func (r *rules) blamed(k Kind, s *inspect.QueueStats, weight int64, job *culprit, format string, args ...any) {
	r.of(k, s, weight, behindSince(s), "%s"+format, append([]any{r.hasRun(job)}, args...)...)
	r.lines[len(r.lines)-1].ID = r.shownID(job.queue, job.id)
}

// runsLong adds a line about a job that may hang, unless another line of the queue names it.
func (r *rules) runsLong(s *inspect.QueueStats) {
	job := r.longest(s.Queue.Name, -1, hungRun)
	if job == nil {
		return
	}
	id := r.shownID(job.queue, job.id)
	for at := range r.lines {
		if l := &r.lines[at]; l.Queue == s.Queue.Name && l.ID == id {
			return
		}
	}
	r.of(RunsLong, s, int64(r.ran(job)), job.began, "%s: its handler may hang", r.hasRun(job))
	r.lines[len(r.lines)-1].ID = id
}

// hasRun describes for how long a job has run.
func (r *rules) hasRun(job *culprit) string {
	return fmt.Sprintf("%s has run for %s",
		brief(r.shownID(job.queue, job.id)), figures.Span(r.ran(job).Round(time.Second)))
}

func (r *rules) ran(job *culprit) time.Duration { return max(0, r.Now.Sub(job.began)) }

// shownID returns what may be shown of an id.
func (r *rules) shownID(queue, id string) string {
	if r.ShowID != nil {
		id = r.ShowID(queue, id)
	}
	return strings.ToValidUTF8(id, "\uFFFD")
}

// brief truncates a long id.
func brief(id string) string {
	if utf8.RuneCountInString(id) > mostOfID {
		return string([]rune(id)[:mostOfID]) + "…"
	}
	return id
}

// someOf lists the first names, and how many more there are.
func someOf(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

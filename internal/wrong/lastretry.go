package wrong

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

const (
	// leastRetries is the smallest number of retries of a queue for which jobs at their last retry are
	// reported. With fewer retries, a job is normally at its last retry soon after its first failure.
	leastRetries = 5
	// mostLast is the largest number of jobs that are counted.
	mostLast = 100
)

// LastRetry has the queued jobs of a queue that wait for their last retry. If such a job fails
// again, one of its payloads goes to the morgue, or the job is held.
type LastRetry struct {
	// Count is the number of jobs. More is set if there are more.
	Count int
	More  bool
	// IDs are the ids of the first of them, and Max is the number of retries that the queue allows.
	IDs []string
	Max int
}

// LastRetryList returns options that list the jobs of a queue that wait for their last retry. The
// list is read by an index, and has at most one job more than are counted. ok is false if there is
// nothing to report: no job waits for a retry, or no running server announces 5 or more retries for
// the queue. If servers announce different numbers of retries, the largest counts.
func LastRetryList(s *inspect.QueueStats, nodes []inspect.Node) (o inspect.ListOptions, ok bool) {
	o = inspect.ListOptions{
		SortBy:     inspect.RetryingByCount,
		Limit:      mostLast + 1,
		ErrorBytes: -1,
		MaxCount:   -1,
	}

	for at := range nodes {
		n := &nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}
		for _, q := range n.Status.Queues {
			if q.Queue == s.Queue.Name {
				o.FromRetries = max(o.FromRetries, q.MaxRetries)
			}
		}
	}

	for at := range s.Shards {
		if s.Shards[at].Retrying > 0 {
			o.Shards = append(o.Shards, s.Shards[at].Shard.Index)
		}
	}
	return o, o.FromRetries >= leastRetries && len(o.Shards) > 0
}

// LastRetryOf counts the jobs that [LastRetryList] lists. If some shards can't be reached, it
// counts the jobs of the others.
func LastRetryOf(o inspect.ListOptions, jobs iter.Seq2[inspect.QueuedJob, error]) (l LastRetry, err error) {
	l.Max = o.FromRetries
	for job, err := range jobs {
		if lacks := new(inspect.PartialError); errors.As(err, &lacks) {
			break
		}
		if err != nil {
			return LastRetry{}, err
		}
		if job.Held { // its last retry has failed
			continue
		}

		if l.Count == mostLast {
			l.More = true
			break
		}
		if l.Count++; l.Count <= mostNames {
			l.IDs = append(l.IDs, job.ID)
		}
	}
	return l, nil
}

// lastRetry adds a line if jobs of a queue wait for their last retry.
func (r *rules) lastRetry(s *inspect.QueueStats) {
	l := r.LastRetries[s.Queue.Name]
	if l.Count == 0 || s.Retrying == 0 {
		return
	}

	names := make([]string, len(l.IDs))
	for at, id := range l.IDs {
		names[at] = brief(r.shownID(s.Queue.Name, id))
	}
	which := strings.Join(names, ", ")
	if rest := l.Count - len(names); rest > 0 {
		which += fmt.Sprintf(" and %d more", rest)
	}

	their := "their"
	if l.Count == 1 {
		their = "its"
	}
	r.of(NearMorgue, s, int64(l.Count), time.Time{},
		"%s for the last of %s %d retries; if it fails, a payload goes to the morgue or the job is held: %s",
		l.count(), their, l.Max, which)
}

// count describes how many jobs wait.
func (l *LastRetry) count() string {
	if l.More {
		return fmt.Sprintf("%d or more jobs wait", l.Count)
	}
	return wait(int64(l.Count))
}

package wrong

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// mostClaims is the largest number of claimed jobs of a queue that are searched for suspects.
const mostClaims = 1000

// Suspects has the claimed jobs of a queue that have lost their servers so often that they run
// alone: see [core.AloneRecoveries]. Such a job may crash its process.
type Suspects struct {
	// Count is the number of jobs. ID is the id of the one with the most recoveries, and Recoveries is
	// their number.
	Count      int
	ID         string
	Recoveries int
}

// SuspectsList returns options that list the claimed jobs of a queue among which a suspect may be.
// ok is false if there is nothing to list: no job is claimed, or no server of the queue was lost
// within the time for which the store lists servers that are gone.
func SuspectsList(s *inspect.QueueStats, nodes []inspect.Node) (o inspect.ListOptions, ok bool) {
	o = inspect.ListOptions{Limit: mostClaims, ErrorBytes: -1, MaxCount: -1}
	for at := range s.Shards {
		if s.Shards[at].Claimed > 0 {
			o.Shards = append(o.Shards, s.Shards[at].Shard.Index)
		}
	}

	lost := slices.ContainsFunc(nodes, func(n inspect.Node) bool {
		return n.State == inspect.NodeGone && slices.Contains(n.Queues, s.Queue.Name)
	})
	return o, lost && len(o.Shards) > 0
}

// SuspectsOf finds the suspects among the jobs that [SuspectsList] lists. If some shards can't be
// reached, it finds those of the others.
func SuspectsOf(claims iter.Seq2[inspect.ClaimedJob, error]) (found Suspects, err error) {
	for job, err := range claims {
		if lacks := new(inspect.PartialError); errors.As(err, &lacks) {
			break
		}
		if err != nil {
			return Suspects{}, err
		}
		if job.Recoveries < core.AloneRecoveries {
			continue
		}

		if found.Count++; job.Recoveries > found.Recoveries {
			found.ID, found.Recoveries = job.ID, job.Recoveries
		}
	}
	return found, nil
}

// crashes adds a line if a claimed job of a queue has lost its servers repeatedly.
func (r *rules) crashes(s *inspect.QueueStats) {
	suspects, most := r.Suspects[s.Queue.Name], 0
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}
		allowed := maxRecoveries(n, s.Queue.Name)
		most = max(most, allowed)

		// The list of claimed jobs is older, and is not always read.
		if l := n.Status.LastChance; l.Shard.Queue == s.Queue.Name && l.ID != "" &&
			allowed >= core.AloneRecoveries && suspects.Count == 0 {
			suspects = Suspects{Count: 1, ID: l.ID, Recoveries: allowed}
		}
	}
	if suspects.Count == 0 || s.Claimed == 0 {
		return
	}

	id := r.shownID(s.Queue.Name, suspects.ID)
	text := fmt.Sprintf("%s may crash its server: it has lost its server %d times", brief(id), suspects.Recoveries)
	switch {
	case most > suspects.Recoveries:
		text += fmt.Sprintf(", of %d at most", most)
	case most > 0:
		text += ", and with the next its first payload goes to the morgue or the job is held"
	}
	if others := suspects.Count - 1; others > 0 {
		text += fmt.Sprintf("; so may %s more", figures.Count(int64(others)))
	}

	since := time.Time{} // the end of the last server that it may have crashed, if the store has that
	for _, n := range r.gone {
		if slices.Contains(n.Queues, s.Queue.Name) && n.ExpiresAt.After(since) {
			since = n.ExpiresAt
		}
	}
	r.of(Crashes, s, int64(suspects.Recoveries), since, "%s", text)
	r.lines[len(r.lines)-1].ID = id
}

// maxRecoveries returns the number of times that a job of a queue may lose its process, as a server
// announces it, or 0.
func maxRecoveries(n *inspect.Node, queue string) int {
	for at := range n.Status.Queues {
		if q := &n.Status.Queues[at]; q.Queue == queue {
			return q.MaxRecoveries
		}
	}
	return 0
}

// otherRule adds a line if running servers declare another merge rule for a queue than it has.
func (r *rules) otherRule(s *inspect.QueueStats) {
	var names []string
	var first core.MergeRule
	var since time.Time // when the first of them started
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}
		for i := range n.Status.Queues {
			q := &n.Status.Queues[i]
			if q.Queue != s.Queue.Name || q.Merge == s.Queue.Merge {
				continue
			}
			if len(names) == 0 {
				first = q.Merge
			}
			names = append(names, n.Name)
			if since.IsZero() || n.StartedAt.Before(since) {
				since = n.StartedAt
			}
		}
	}
	if len(names) == 0 {
		return
	}

	declare := "declares"
	if len(names) > 1 {
		declare = "declare"
	}
	slices.Sort(names)
	r.of(OtherRule, s, int64(len(names)), since,
		"The merge rule is %v, but %s %s another, such as %v: "+
			"deploy such programs with the queue's rule, since their next starts are refused",
		s.Queue.Merge, someOf(names), declare, first)
}

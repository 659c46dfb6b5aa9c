package wrong

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// usedShare is the share of what a rate allows that must have ended lately for the rate to be the
// cause of a lag. A rate allows no start for a moment after each start, also if something else delays
// the queue.
const usedShare = 0.5

// RatedQueues returns the queues that lag and that running servers serve with a rate. The caller reads
// how long these rates allow no start.
func RatedQueues(stats []inspect.QueueStats, nodes []inspect.Node) (queues []string) {
	for at := range stats {
		s := &stats[at]
		rated := func(n inspect.Node) bool { return hasRate(&n, s.Queue.Name) }
		if !s.Queue.Paused && s.Lag >= late && slices.ContainsFunc(nodes, rated) {
			queues = append(queues, s.Queue.Name)
		}
	}
	return queues
}

// hasRate reports whether a running server serves a queue with a rate.
func hasRate(n *inspect.Node, queue string) bool {
	for at := range n.Status.Queues {
		if q := &n.Status.Queues[at]; q.Queue == queue && q.Rate != "" {
			return n.State != inspect.NodeGone
		}
	}
	return false
}

// atRate describes the rate that delays a queue, and is empty if none does.
func (r *rules) atRate(s *inspect.QueueStats) string {
	w := r.Rates[s.Queue.Name]
	if w.Stopped > 0 {
		return fmt.Sprintf("its rate is stopped for %s more", figures.Span(w.Stopped.Round(time.Second)))
	}

	recent, known := r.Recent[s.Queue.Name]
	allowed := usedShare * float64(still) / float64(max(w.Rate.Interval(), 1))
	if w.Wait <= 0 || known && float64(ended(recent, r.Now.Add(-still))) < allowed && w.Rate.Interval() < still {
		return ""
	}

	by := ""
	if set, ok := s.Queue.Settings.Find(core.SettingRate); ok {
		by = ", set by " + cmp.Or(set.By, "an operator") + ","
	}
	return fmt.Sprintf("its rate of %v%s allows no more", w.Rate, by)
}

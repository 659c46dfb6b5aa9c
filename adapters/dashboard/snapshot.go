package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// snapshot is the result of a look. It does not change once it is stored.
type snapshot struct {
	view  wrong.View
	wrong []wrong.Line
	// at is the time when it was taken, by this process's clock. answered is when the store answered
	// last, silent is when it was asked in vain first after that.
	at, answered, silent time.Time
	// some is true if it has only the queues that its reader may see.
	some bool
	// failed is the reason why the store could not be read now. Then the figures are the previous
	// ones, or missing.
	failed error
	// checksFailed is the reason why the checks are missing.
	checksFailed error
	details      map[string]*details
	// checked is the time when the checks were done, and cost is how long they took.
	checked time.Time
	// pausesAt is the time when the audit was last searched for the pauses of queues.
	pausesAt time.Time
	cost     time.Duration
}

// seen returns the last snapshot, or the problem of a store that has not answered yet.
func (c *call) seen() (*snapshot, error) {
	s, err := c.look()
	if err != nil {
		return nil, err
	}
	if s.failed != nil && s.view.Stats == nil {
		return nil, c.storeProblem(s.failed)
	}
	return s, nil
}

// of returns the snapshot and the statistics of the call's queue in it.
func (c *call) of() (*snapshot, *inspect.QueueStats, error) {
	s, err := c.look()
	if err != nil {
		return nil, nil, err
	}

	for at := range s.view.Stats {
		if s.view.Stats[at].Queue.Name == c.queue {
			return s, &s.view.Stats[at], nil
		}
	}

	if s.failed != nil {
		return nil, nil, c.storeProblem(s.failed)
	}
	return nil, nil, newProblem(http.StatusNotFound, "There is no such queue",
		"No push and no server has declared it, or it was forgotten.")
}

// queues returns the names of the queues.
func (s *snapshot) queues() []string {
	names := make([]string, len(s.view.Stats))
	for at := range s.view.Stats {
		names[at] = s.view.Stats[at].Queue.Name
	}
	return names
}

// storeProblem is the page for a store without any known state.
func (c *call) storeProblem(err error) error {
	detail := c.sight.failure(c.errorText("", "", err.Error()))
	return newProblem(http.StatusServiceUnavailable, silent,
		cmp.Or(detail, "Users who may see all queues are shown the error."))
}

// wrongOf returns the faults of a queue, worst first. Lines for several queues have the fault of
// each.
func (s *snapshot) wrongOf(queue string) (lines []*wrong.Line) {
	for at := range s.wrong {
		if l := s.wrong[at].Of(queue); l != nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// ownerNames returns the names of servers by their owner ids.
func (s *snapshot) ownerNames() map[string]string {
	names := map[string]string{}
	for at := range s.view.Nodes {
		names[s.view.Nodes[at].Owner] = s.view.Nodes[at].Name
	}
	return names
}

// unreachedOf counts the shards of a queue that can't be reached.
func (s *snapshot) unreachedOf(queue string) (n int) {
	for _, sh := range s.view.Unreached {
		if sh.Queue == queue {
			n++
		}
	}
	return n
}

// serverOf is a server of a queue.
type serverOf struct {
	Owner, Name             string
	State, Version          string
	Shards, Running, Lanes  int
	Busy                    int
	MaxRetries, MaxRunning  int
	MaxLanes, Parallel, Max int
	Rate                    string
}

// serversOf lists the servers of a queue that are not gone.
func (s *snapshot) serversOf(queue string) (list []serverOf) {
	for at := range s.view.Nodes {
		n := &s.view.Nodes[at]
		if n.State == inspect.NodeGone || !slices.Contains(n.Queues, queue) {
			continue
		}

		server := serverOf{Owner: n.Owner, Name: n.Name, State: n.State.String(), Version: n.Version, Lanes: n.Lanes}
		for _, q := range n.Status.Queues {
			if q.Queue == queue {
				server.Shards, server.Running, server.Busy = q.Shards, q.Running, q.Busy
				server.MaxRetries, server.MaxRunning, server.MaxLanes, server.Parallel, server.Max =
					q.MaxRetries, q.MaxRunning, q.MaxLanes, q.Parallel, q.BatchSize
				server.Rate = q.Rate
			}
		}

		list = append(list, server)
	}
	return list
}

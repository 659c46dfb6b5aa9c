package dashboard

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// sight is what the user of a request may see.
type sight struct {
	c *call
	// all is true if it is all queues and all servers.
	all    bool
	queues map[string]bool
}

// sees reports whether the user may see a queue or, for "", all queues. Each queue is asked for once.
func (s *sight) sees(queue string) bool {
	if s.all || queue == "" {
		return s.all
	}
	may, known := s.queues[queue]
	if !known {
		may = s.c.mayView(queue)
		s.queues[queue] = may
	}
	return may
}

// begin decides whether the user may see a page about a queue or, for "", about all. A page that can
// be about some queues is also for users who may not see all of them.
func (s *sight) begin(route *route, queue string) error {
	err := s.c.viewing("")
	s.all = err == nil
	switch {
	case route.whole:
	case queue != "":
		err = s.c.viewing(queue)
	case route.some:
		if p := problemOf(err); p != nil && p.Status == http.StatusForbidden {
			return s.any()
		}
	}
	return refused(err)
}

// any returns nil if the user may see one of the store's queues. As long as the store has not
// answered, its queues are not known.
func (s *sight) any() error {
	looked, err := s.c.looker.look(s.c.r.Context())
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(looked.view.Stats, func(q inspect.QueueStats) bool { return s.sees(q.Queue.Name) }):
		return nil
	case looked.failed != nil && looked.view.Stats == nil:
		return s.c.storeProblem(looked.failed)
	}
	return errNotAllowed
}

// silent is what a user who may not see all queues is told about a store that does not answer.
const silent = "The store does not answer"

// failure returns the text of the error of a look at the whole store, which may name any queue. It
// is "" for a user who may not see all queues.
func (s *sight) failure(text string) string {
	if !s.all {
		return ""
	}
	return text
}

// of returns the part of a snapshot that the user may see: the queues, what is wrong with them, and
// the servers that run them.
func (s *sight) of(whole *snapshot) *snapshot {
	if s.all || whole == nil {
		return whole
	}

	part := *whole
	part.some = true
	part.view.Silence = s.failure(whole.view.Silence)
	part.view.Stats, part.view.Nodes, part.view.Unreached, part.wrong = nil, nil, nil, nil
	for _, q := range whole.view.Stats {
		if s.sees(q.Queue.Name) {
			part.view.Stats = append(part.view.Stats, q)
		}
	}
	for _, n := range whole.view.Nodes {
		if slices.ContainsFunc(n.Queues, s.sees) {
			part.view.Nodes = append(part.view.Nodes, *s.server(&n))
		}
	}
	for _, sh := range whole.view.Unreached {
		if s.sees(sh.Queue) {
			part.view.Unreached = append(part.view.Unreached, sh)
		}
	}
	for _, l := range whole.wrong {
		if l.Kind == wrong.NoAnswer {
			l.Text = cmp.Or(s.failure(l.Text), silent)
			part.wrong = append(part.wrong, l)
		}
		if l.Queue != "" && s.sees(l.Queue) {
			part.wrong = append(part.wrong, l)
		}
		for _, p := range l.Parts { // the line itself counts all its queues
			if s.sees(p.Queue) {
				part.wrong = append(part.wrong, p)
			}
		}
	}
	return &part
}

// server returns what the user may see of a server: its part of the queues that the user may see.
func (s *sight) server(n *inspect.Node) *inspect.Node {
	if s.all {
		return n
	}

	part := *n
	part.Queues = slices.DeleteFunc(slices.Clone(n.Queues), func(q string) bool { return !s.sees(q) })
	st := &part.Status
	st.Shards, st.Running, st.Busy, st.Claimed, st.Queues, st.Longest = 0, 0, 0, 0, nil, nil
	for _, q := range n.Status.Queues {
		if s.sees(q.Queue) {
			st.Queues = append(st.Queues, q)
			st.Shards, st.Running = st.Shards+q.Shards, st.Running+q.Running
			st.Busy, st.Claimed = st.Busy+q.Busy, st.Claimed+q.Claimed
		}
	}
	for _, j := range n.Status.Longest {
		if s.sees(j.Shard.Queue) {
			st.Longest = append(st.Longest, j)
		}
	}
	if !s.sees(st.LastChance.Shard.Queue) {
		st.LastChance = inspect.NodeStatus{}.LastChance
	}
	return &part
}

// look returns the part of the present snapshot that the user may see.
func (c *call) look() (*snapshot, error) {
	s, err := c.looker.look(c.r.Context())
	return c.sight.of(s), err
}

// refused returns the problem of a page that the user may not see.
func refused(err error) error {
	p := problemOf(err)
	if p == nil {
		return nil
	}
	if p.Status == http.StatusUnauthorized {
		return newProblem(p.Status, "Log in", "Name and password are missing or wrong. Reload the page to enter them.")
	}
	return errNotAllowed
}

var errNotAllowed = newProblem(http.StatusForbidden, "Not allowed", "You don't have permission to see this.")

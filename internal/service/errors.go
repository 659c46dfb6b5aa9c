package service

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/versions"
)

// ErrorsQuery chooses groups of errors.
type ErrorsQuery struct {
	Queue   string    `query:"queue" doc:"the queue; by default all queues that the caller may view"`
	State   string    `query:"state" enum:"retrying,held,dead" doc:"only jobs that are retried, held jobs, or dead letters; by default all of them"`
	Since   time.Time `query:"since" doc:"only errors whose last known failure was at this time or later"`
	Tag     string    `query:"tag" doc:"only jobs and dead letters with this tag; all counts are then of those that were read"`
	Text    string    `query:"text" doc:"only errors with this text, also in one of those that were read; refused if errors are redacted"`
	Limit   int       `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of groups, the largest first"`
	Entries int       `query:"entries" max:"100" doc:"the number of jobs and dead letters of each group to show, each with its newest failure"`
	Group   string    `query:"group" doc:"with entries: show those of this group only, by the value of group of its row"`
}

func (q *ErrorsQuery) about(a *Action) { a.Queue = q.Queue }

// ErrorRow is an error, over all queues.
type ErrorRow struct {
	Key string `json:"group" class:"group" doc:"the value of group of this list: a key, encrypted if errors are redacted"`
	inspect.ErrorGroup
	Version string `json:"version,omitempty" class:"public" doc:"the version of a server of its queues that started within the half hour before the first failure; absent if there was none, or if the caller may not view servers"`
}

// ErrorsReply has the errors of queues, by what they say.
type ErrorsReply struct {
	Items     []Row[ErrorRow] `json:"items" doc:"the errors, the most frequent first"`
	Total     int             `json:"total" doc:"the number of errors, also beyond the limit"`
	Retrying  int64           `json:"retrying" doc:"jobs that are retried, of all queues and the state that were asked for"`
	Held      int64           `json:"held" doc:"held jobs, likewise"`
	Dead      int64           `json:"dead" doc:"dead letters, likewise"`
	Read      int64           `json:"read" doc:"the number of jobs and dead letters that were read"`
	Of        int64           `json:"of" doc:"the number that there are; if it is larger, the counts of jobs are of a sample"`
	Unreached []string        `json:"unreached,omitempty" doc:"shards that can't be reached now, whose entries are missing"`
	// ServersUnknown is true if no version could be found.
	ServersUnknown bool      `json:"servers_unknown,omitempty" doc:"whether the servers can't be read now, so that versions are missing"`
	AsOf           time.Time `json:"as_of,omitzero" doc:"the time of the figures, by the store's clock"`
}

// Rows returns the errors.
func (r *ErrorsReply) Rows() any { return r.Items }

// Describe sets headers for the fields that formats without an envelope leave out.
func (r *ErrorsReply) Describe(h http.Header) {
	(&List[ErrorRow]{AsOf: r.AsOf, Unreached: r.Unreached}).Describe(h)
	h.Set("Skein-Read", strconv.FormatInt(r.Read, 10)+" of "+strconv.FormatInt(r.Of, 10))
}

func (c *call) errors(q *ErrorsQuery) (*ErrorsReply, error) {
	if q.Text != "" && c.o.RedactError != nil {
		return nil, ProblemBadRequest.With("errors are redacted here, so they can't be searched; leave out text")
	}
	if q.Tag != "" {
		if err := checkTag(q.Tag); err != nil {
			return nil, err
		}
	}

	o, err := c.errorsOptions(q)
	if err != nil {
		return nil, err
	}
	found, err := c.inspector.Errors(c.ctx, o)
	unreached, err := c.partial(err)
	if err != nil {
		return nil, err
	}

	reply := &ErrorsReply{
		Items:     []Row[ErrorRow]{},
		Total:     found.Total,
		Retrying:  found.Retrying,
		Held:      found.Held,
		Dead:      found.Dead,
		Read:      found.Read,
		Of:        found.Of,
		Unreached: shardNames(unreached),
		AsOf:      found.Now.UTC(),
	}

	starts, err := c.starts(q.Queue == "")
	reply.ServersUnknown = err != nil
	v := view[ErrorRow](c, 0)
	for _, g := range found.Groups {
		reply.Items = append(reply.Items, v.Row(&ErrorRow{g.Name, g, starts.before(&g)}))
	}
	return reply, nil
}

func (c *call) errorsOptions(q *ErrorsQuery) (o inspect.ErrorsOptions, err error) {
	began := time.Now()
	o = inspect.ErrorsOptions{
		Since:   q.Since,
		Text:    q.Text,
		Tag:     q.Tag,
		Limit:   q.Limit,
		Entries: q.Entries,
		Stop:    func() bool { return time.Since(began) >= tagTime },
	}
	if q.State != "" {
		o.States = []inspect.ErrorState{inspect.ErrorState(q.State)}
	}
	if o.Open, err = c.group(q.Group); err != nil {
		return o, err
	}

	switch {
	case q.Queue != "":
		o.Queues = []string{q.Queue}
	case c.refused != nil:
		o.Queues, err = c.viewed()
	}
	return o, err
}

// viewed returns the queues that a caller without the right to all queues may view. It returns a
// problem if there is none.
func (c *call) viewed() ([]string, error) {
	queues, err := c.inspector.Queues(c.ctx)
	if err != nil { // its text may name a queue of others
		return nil, c.ProblemOf("", err).With("the list of queues can't be read; name a queue")
	}

	names := []string{}
	for _, q := range queues {
		if c.who.May(Action{Verb: verbView, Queue: q.Name}) == nil {
			names = append(names, q.Name)
		}
	}
	if len(names) == 0 {
		return nil, c.refused
	}
	return names, nil
}

// starts are the first known starts of servers, by each queue that they serve, and their version.
type starts map[string]versions.Starts

// starts returns the starts of versions on servers that are known now, or none if the caller may not
// view servers. all is true if the request was for all queues.
func (c *call) starts(all bool) (starts, error) {
	if c.refused != nil || !all && c.who.May(Action{Verb: verbView}) != nil {
		return nil, nil
	}
	nodes, err := c.inspector.Nodes(c.ctx)
	if err != nil {
		return nil, err
	}

	return startsOf(nodes), nil
}

func startsOf(nodes []inspect.Node) starts {
	first := starts{}
	for _, n := range nodes {
		for _, queue := range n.Queues {
			if first[queue] == nil {
				first[queue] = versions.Starts{}
			}
			first[queue].Add(n.Version, n.StartedAt)
		}
	}
	return first
}

// startExplains is how long after the start of a version a new error is attributed to it.
const startExplains = 30 * time.Minute

// before returns the version that started last before the first failure of a group, if it started
// shortly before. There is none if the group may be older.
func (first starts) before(g *inspect.ErrorGroup) (version string) {
	if g.Earlier {
		return ""
	}
	var last time.Time
	for _, queue := range g.Queues() {
		for of, at := range first[queue] {
			since := g.First.Sub(at)
			later := cmp.Or(at.Compare(last), cmp.Compare(of, version)) > 0
			if later && since >= 0 && since < startExplains {
				last, version = at, of
			}
		}
	}
	return version
}

package dashboard

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
)

// Limits of the page of running jobs: the number of queues whose claims it reads, and the number of
// claims of each queue. It reads no further queue once it has taken as long as a look may.
const (
	busyQueues = 20
	busyRows   = 200
)

// busyBody is the page of claimed jobs.
type busyBody struct {
	Queue   string
	Now     time.Time
	Servers []busyServer
	Orphans []busyRow
	More    []string // queues that are not shown completely
	Failed  []string
	May     *rights
	Linked  bool
}

// busyServer is a server and its claimed jobs.
type busyServer struct {
	// Owner is its owner id, or empty if the list of servers lacks it.
	Owner            string
	Name, State      string
	Running, Claimed int
	Lanes, Busy      int
	Rows             []busyRow // in handlers, the longest first
	Waiting          []busyRow // claimed, and not known to have begun
}

// busyRow is a claimed job.
type busyRow struct {
	Queue, ID string
	// Owner is the owner id of the server that has claimed it.
	Owner string
	// Shard is its index.
	Shard string
	// Taker is who puts an orphan back. Nobody is true if no server does.
	Taker      string
	Nobody     bool
	Began      when
	Took       time.Duration
	Bar, P99   float64 // in pixels, on the scale of the page
	Slow       bool    // longer than five times the 99th percentile
	Cancelled  string
	Retries    int
	Token      int64
	LeaseUntil when
}

// Anchor is the fragment of the page's address that names the row.
func (r *busyRow) Anchor() string { return busyAnchor(r.Queue, r.ID) }

// busyAnchor names the row of a job. An id may contain characters that an address may not.
func busyAnchor(queue, id string) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, queue+"\x00"+id) // a hash returns no error
	return "job-" + strconv.FormatUint(h.Sum64(), 36)
}

// barWidth is the width of the scale, from 10 ms to a day.
const barWidth = 240

// timeScale are the marks of the scale.
func timeScale() (marks []mark) {
	for _, d := range []time.Duration{time.Second, time.Minute, time.Hour} {
		marks = append(marks, mark{X: onScale(d), Text: figures.Span(d)})
	}
	return marks
}

// A job that runs for slowTimes the 99th percentile of its queue is marked, if that is slowLeast
// or more. In a queue where no job has ended within the hour, a job is marked if it runs for
// slowUnknown.
const (
	slowTimes   = 5
	slowLeast   = time.Second
	slowUnknown = time.Minute
)

func slow(took, p99 time.Duration) bool {
	if p99 == 0 {
		return took > slowUnknown
	}
	return took > max(slowLeast, slowTimes*p99)
}

func onScale(d time.Duration) float64 {
	const from, to = 10 * time.Millisecond, 24 * time.Hour
	share := math.Log(float64(max(d, from))/float64(from)) / math.Log(float64(to)/float64(from))
	return math.Round(min(share, 1) * barWidth)
}

// busyPage shows the running jobs, of all queues or of one.
func (c *call) busyPage() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}

	b := &busyBody{Queue: c.queue, Now: s.view.Now, May: c.may(), Linked: c.o.API.RedactID == nil}
	if c.queue != "" {
		if _, _, err := c.of(); err != nil {
			return nil, err
		}
	}

	began := c.began(s)
	byOwner := map[string]*busyServer{}
	for at := range s.view.Nodes {
		b.server(&s.view.Nodes[at], byOwner)
	}

	asked := 0
	for at := range s.view.Stats {
		stats := &s.view.Stats[at]
		name := stats.Queue.Name
		if c.queue != "" && name != c.queue || stats.Claimed == 0 {
			continue
		}
		if asked++; asked > busyQueues || c.cost > lookTime {
			b.More = append(b.More, name)
			continue
		}
		b.claims(c, s, stats, began, byOwner)
	}

	for at := range s.view.Nodes {
		owner := s.view.Nodes[at].Owner
		n := byOwner[owner]
		delete(byOwner, owner)
		if n == nil || n.State == inspect.NodeGone.String() && len(n.Rows)+len(n.Waiting) == 0 {
			continue
		}
		n.sort()
		b.Servers = append(b.Servers, *n)
	}
	for _, n := range byOwner { // the list of servers lacks these
		n.sort()
		b.Servers = append(b.Servers, *n)
	}

	slices.SortStableFunc(b.Servers, func(x, y busyServer) int { return strings.Compare(x.Name, y.Name) })
	return &view{page: "busy", title: "Busy", live: true, body: b}, nil
}

// claimKey identifies a claim in the way that servers report their running jobs.
type claimKey struct {
	owner, shard, id string
	token            int64
}

// began returns when handlers began, as servers report it for those that have run longest.
func (c *call) began(s *snapshot) map[claimKey]time.Time {
	all := map[claimKey]time.Time{}
	for at := range s.view.Nodes {
		n := &s.view.Nodes[at]
		for _, j := range n.Status.Longest {
			all[claimKey{
				n.Owner, j.Shard.String(), c.door.Service.ID(j.Shard.Queue, j.ID), j.Receipt.Token,
			}] = j.Began.Time()
		}
	}
	return all
}

// server adds a server, with its figures for the page's queue.
func (b *busyBody) server(n *inspect.Node, byOwner map[string]*busyServer) {
	if b.Queue != "" && !slices.Contains(n.Queues, b.Queue) {
		return
	}

	server := &busyServer{
		Owner:   n.Owner,
		Name:    n.Name,
		State:   n.State.String(),
		Running: n.Status.Running,
		Claimed: n.Status.Claimed,
		Lanes:   n.Lanes,
		Busy:    n.Status.Busy,
	}
	for _, q := range n.Status.Queues {
		if b.Queue == q.Queue {
			server.Running, server.Claimed, server.Busy = q.Running, q.Claimed, q.Busy
		}
	}
	byOwner[n.Owner] = server
}

// claims adds the claims of a queue.
func (b *busyBody) claims(
	c *call,
	s *snapshot,
	stats *inspect.QueueStats,
	began map[claimKey]time.Time,
	byOwner map[string]*busyServer,
) {
	queue := stats.Queue.Name
	reply, err := asked(c, service.Claimed, queue, &service.ClaimedQuery{
		PageQuery: service.PageQuery{Limit: busyRows, ErrorBytes: 100},
	})
	if err != nil {
		b.Failed = append(b.Failed, queue+": "+c.errorText(queue, "", err.Error()))
		return
	}
	if reply.Next != "" {
		b.More = append(b.More, queue)
	}

	var run core.Histogram
	if d := s.details[queue]; d != nil {
		for at := range d.hour {
			run.Add(&d.hour[at].Run)
		}
	}
	p99 := run.Quantile(0.99)
	takers := sync.OnceValue(func() *takers { return s.takersOf(stats) }) // most queues have no orphan

	for at := range reply.Items {
		j := reply.Items[at].Value()
		row := busyRow{
			Queue:      queue,
			Shard:      strconv.Itoa(j.Shard.Index),
			ID:         j.ID,
			Owner:      j.Owner,
			Retries:    j.Retries,
			Token:      j.Token,
			LeaseUntil: when{j.LeaseUntil, b.Now},
			P99:        onScale(p99),
			Began:      when{j.Since, b.Now},
		}
		if j.Cancelled {
			row.Cancelled = map[bool]string{true: "to be dropped", false: "to be put back"}[j.Drop]
		}

		since, runs := began[claimKey{j.Owner, j.Shard.String(), j.ID, j.Token}]
		if runs {
			row.Began.At = since
		}
		row.Took = max(0, b.Now.Sub(row.Began.At))
		row.Bar, row.Slow = onScale(row.Took), slow(row.Took, p99)

		switch n := byOwner[j.Owner]; {
		case j.LeaseOver:
			row.Taker, row.Nobody = takers().of(row.Shard)
			b.Orphans = append(b.Orphans, row)
		case n == nil:
			byOwner[j.Owner] = &busyServer{Name: j.Node, State: "unknown", Waiting: []busyRow{row}}
		case runs || j.Begun:
			n.Rows = append(n.Rows, row)
		default:
			n.Waiting = append(n.Waiting, row)
		}
	}
}

// takers are the servers that take over the claims that servers which are gone have left in the
// shards of a queue.
type takers struct {
	// owners are the names of the present owners of shards, by the shard's index.
	owners map[int]string
	// others are the servers that may get a shard without an owner, or a text if no server may.
	others string
	// nobody is true if no server may get it.
	nobody bool
}

// takersOf returns the takers of a queue.
func (s *snapshot) takersOf(stats *inspect.QueueStats) *takers {
	t := &takers{owners: map[int]string{}}
	named := s.ownerNames()
	for at := range stats.Shards {
		if sh := &stats.Shards[at]; sh.Owner != "" && sh.ExpiresAt.After(stats.Now) {
			t.owners[sh.Shard.Index] = cmp.Or(named[sh.Owner], sh.Owner)
		}
	}

	var serve []string
	for _, server := range s.serversOf(stats.Queue.Name) {
		if server.State == inspect.NodeAlive.String() {
			serve = append(serve, server.Name)
		}
	}

	switch {
	case s.view.NodesUnknown:
		t.others = "any server of the queue"
	case len(serve) == 0:
		t.others, t.nobody = "no server runs this queue", true
	case len(serve) == 1:
		t.others = serve[0]
	default:
		t.others = "one of " + names(serve)
	}

	return t
}

// of returns who takes over the claims in a shard, and whether no server does.
func (t *takers) of(index string) (who string, nobody bool) {
	if n, err := strconv.Atoi(index); err == nil && t.owners[n] != "" {
		return t.owners[n], false
	}
	return t.others, t.nobody
}

// sort puts the longest-running job first.
func (n *busyServer) sort() {
	longest := func(x, y busyRow) int { return cmp.Or(x.Began.At.Compare(y.Began.At), strings.Compare(x.ID, y.ID)) }
	slices.SortFunc(n.Rows, longest)
	slices.SortFunc(n.Waiting, longest)
}

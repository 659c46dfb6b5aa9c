package dashboard

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// What the page of what runs shows at most: so many queues' claims, and so many of each.
const (
	busyQueues = 20
	busyRows   = 200
)

// busyBody is what servers have claimed.
type busyBody struct {
	Queue    string
	Now      time.Time
	Servers  []busyServer
	Orphans  []busyRow
	More     []string // queues of which not all is shown
	Failed   []string
	ReadOnly bool
	Linked   bool
}

// busyServer is a server and what it has.
type busyServer struct {
	Name, State      string
	Running, Claimed int
	Lanes, Busy      int
	Rows             []busyRow // in handlers, the longest first
	Waiting          []busyRow // claimed, and not known to have begun
}

// busyRow is a claimed job.
type busyRow struct {
	Queue, Shard, ID string
	claimed          *claimedRow
	Began            when
	Took             time.Duration
	Bar, P99         float64 // on the scale of the page, in pixels
	Slow             bool    // longer than five times the 99th percentile, and a minute
	Cancelled        string
	Retries          int
	Token            int64
	LeaseUntil       when
}

// barWidth is the width of the scale, from 10 ms to a day.
const barWidth = 160

func onScale(d time.Duration) float64 {
	const from, to = 10 * time.Millisecond, 24 * time.Hour
	share := math.Log(float64(max(d, from))/float64(from)) / math.Log(float64(to)/float64(from))
	return math.Round(min(share, 1) * barWidth)
}

// busyPage shows what runs, of all queues or of one.
func (c *call) busyPage() (*view, error) {
	s, err := c.looker.look(c.r.Context())
	if err != nil {
		return nil, err
	}
	b := &busyBody{Queue: c.queue, Now: s.view.Now, ReadOnly: c.o.API.ReadOnly, Linked: c.o.API.RedactID == nil}
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
		if asked++; asked > busyQueues {
			b.More = append(b.More, name)
			continue
		}
		b.claims(c, s, name, began, byOwner)
	}
	for at := range s.view.Nodes {
		n := byOwner[s.view.Nodes[at].Owner]
		if n == nil || n.State == inspect.NodeGone.String() && len(n.Rows)+len(n.Waiting) == 0 {
			continue
		}
		delete(byOwner, s.view.Nodes[at].Owner)
		n.sort()
		b.Servers = append(b.Servers, *n)
	}
	for _, n := range byOwner { // whom the list of servers doesn't have
		n.sort()
		b.Servers = append(b.Servers, *n)
	}
	slices.SortStableFunc(b.Servers, func(x, y busyServer) int { return strings.Compare(x.Name, y.Name) })
	return &view{page: "busy", title: "Busy", live: true, body: b}, nil
}

// claimKey names a claim as servers do that say what they run.
type claimKey struct {
	owner, shard, id string
	token            int64
}

// began returns when handlers began, as servers say of those that run longest.
func (c *call) began(s *snapshot) map[claimKey]time.Time {
	all := map[claimKey]time.Time{}
	for at := range s.view.Nodes {
		n := &s.view.Nodes[at]
		for _, j := range n.Status.Longest {
			id := j.ID
			if redact := c.o.API.RedactID; redact != nil {
				id = redact(j.Shard.Queue, id)
			}
			all[claimKey{n.Owner, j.Shard.String(), strings.ToValidUTF8(id, "\uFFFD"), j.Receipt.Token}] = j.Began.Time()
		}
	}
	return all
}

// server adds a server, with its figures of the page's queue.
func (b *busyBody) server(n *inspect.Node, byOwner map[string]*busyServer) {
	if b.Queue != "" && !slices.Contains(n.Queues, b.Queue) {
		return
	}
	server := &busyServer{Name: n.Name, State: n.State.String(), Running: n.Status.Running, Claimed: n.Status.Claimed, Lanes: n.Lanes, Busy: n.Status.Busy}
	for _, q := range n.Status.Queues {
		if b.Queue == q.Queue {
			server.Running, server.Claimed, server.Busy = q.Running, q.Claimed, q.Busy
		}
	}
	byOwner[n.Owner] = server
}

// claims adds what is claimed of a queue.
func (b *busyBody) claims(c *call, s *snapshot, queue string, began map[claimKey]time.Time, byOwner map[string]*busyServer) {
	var reply listOf[claimedRow]
	if err := c.get(queue, "/claimed", url.Values{"limit": {strconv.Itoa(busyRows)}, "error_bytes": {"100"}}, &reply); err != nil {
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
	for at := range reply.Items {
		j := &reply.Items[at]
		row := busyRow{
			Queue: queue, Shard: j.Shard, ID: j.ID, Retries: j.Retries, Token: j.Token, claimed: j,
			LeaseUntil: when{j.LeaseUntil, b.Now}, P99: onScale(p99), Began: when{j.Since, b.Now},
		}
		if j.Cancelled {
			row.Cancelled = map[bool]string{true: "to be dropped", false: "to be put back"}[j.Drop]
		}
		since, runs := began[claimKey{j.Owner, j.Shard, j.ID, j.Token}]
		if runs {
			row.Began.At = since
		}
		row.Took = max(0, b.Now.Sub(row.Began.At))
		row.Bar, row.Slow = onScale(row.Took), row.Took > max(time.Minute, 5*p99)
		switch n := byOwner[j.Owner]; {
		case j.LeaseOver:
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

// sort puts the longest first.
func (n *busyServer) sort() {
	longest := func(x, y busyRow) int { return cmp.Or(x.Began.At.Compare(y.Began.At), strings.Compare(x.ID, y.ID)) }
	slices.SortFunc(n.Rows, longest)
	slices.SortFunc(n.Waiting, longest)
}

package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/wrong"
)

// serverBody is the page of a server.
type serverBody struct {
	Now  time.Time
	Node *inspect.Node
	// Says is what the page answers first, and Note what follows from it.
	Says, Note     string
	State, Version badge
	Started        when
	Gone, Draining bool
	Facts          []serverFact
	Figs           []fig
	Lanes          *laneBar
	// Running are the jobs in handlers of the server, and Waiting those that it has claimed and that
	// are not known to have begun. Orphans are the jobs that it has left. Busy has what the scan that
	// found them left out.
	Running, Waiting, Orphans []busyRow
	Busy                      *busyBody
	Shards                    []serverShards
	Held, Of                  int
	Settings                  []serverSetting
	All                       bool
	May                       *rights
}

// clockLimit is the difference between a server's clock and the store's from which it is marked. The
// check of clocks has the same.
const clockLimit = time.Second

// serverFact is a condition for a server that works well.
type serverFact struct {
	Name, Value string
	// Class is "no" if the condition is not met, and "unknown" if that is not known.
	Class string
}

// serverShards are the shards of a queue that a server holds, or has left.
type serverShards struct {
	Queue    string
	Held, Of int
	Cells    *shardCells
	Worst    time.Duration
}

// serverSetting is a setting of a server that differs from those of others.
type serverSetting struct {
	Queue, Name, Title, Here, Others string
	// Set is the value that an operator has set, and who, or empty.
	Set string
}

// laneBar draws the lanes of a server: those that run a batch first.
type laneBar struct {
	Width int
	Text  string
	Paths []levelPath
}

// serverPage shows a server, by its owner id or its name.
func (c *call) serverPage() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}
	n := s.server(c.r.URL.Query().Get("node"))
	if n == nil {
		return nil, newProblem(http.StatusNotFound, "There is no such server",
			"It has not announced itself within the last hour, or it has stopped.")
	}

	b := &serverBody{
		Now:      s.view.Now,
		Node:     n,
		Started:  when{n.StartedAt, s.view.Now},
		Gone:     n.State == inspect.NodeGone,
		Draining: n.State == inspect.NodeDraining,
		All:      c.sight.all,
		May:      c.may(),
	}
	b.shards(s)
	b.Settings = s.settingsThatDiffer(n)
	b.describe(s)
	b.claims(c, s)
	b.Figs = b.figs(s)
	b.Lanes = b.lanes(s)
	return &view{page: "server", title: shown(n.Name), live: true, body: b}, nil
}

// server returns the server with an owner id or, if there is none, the last one with a name.
func (s *snapshot) server(node string) (found *inspect.Node) {
	for at := range s.view.Nodes {
		switch n := &s.view.Nodes[at]; {
		case n.Owner == node:
			return n
		case n.Name == node && (found == nil || n.ExpiresAt.After(found.ExpiresAt)):
			found = n
		}
	}
	return found
}

// describe says how the server is, first in a sentence.
func (b *serverBody) describe(s *snapshot) {
	n := b.Node
	others, same := s.otherVersions(n)
	odd := !b.Gone && len(others) > 0 && !same

	b.Version = badge{"i", "◦", n.Version}
	b.Says = n.Name + " works"
	switch b.State = (badge{"o", "✓", "alive"}); n.State {
	case inspect.NodeDraining:
		b.State, b.Says = badge{"h", "‖", "draining"}, n.Name+" drains"
		b.Note = "It finishes what it runs, gives up its shards and takes no others."
	case inspect.NodeGone:
		b.State, b.Says = badge{"b", "▨", "gone"}, n.Name+" stopped responding "+when{n.ExpiresAt, b.Now}.Text()
		b.Note = "It has crashed, or it can't reach the store."
	}
	if odd {
		b.Version = badge{"w", "▲", n.Version}
		b.Says += ", and runs another version than the others"
		b.Note = strings.TrimSpace(b.Note + " The others run " + strings.Join(others, ", ") + ".")
	}

	b.fact("Heartbeat", "valid for "+figures.Rough(n.ExpiresAt.Sub(b.Now)), !b.Gone,
		"ended "+when{n.ExpiresAt, b.Now}.Text())
	b.leases(s)
	switch ahead := n.Status.ClockAhead; {
	case ahead == 0:
		b.Facts = append(b.Facts, serverFact{"Clock", "not known", "unknown"})
	default:
		text := figures.Rough(ahead.Abs().Round(time.Millisecond)) + " off the store's"
		b.fact("Clock", text, ahead.Abs() < clockLimit, text)
	}
	b.fact("Version", cmp.Or(n.Version, "not set"), !odd, n.Version+", others "+strings.Join(others, ", "))
	if b.Gone {
		b.Facts = append(b.Facts, serverFact{"Settings", "not compared", "unknown"})
		return
	}
	b.fact("Settings", "as on the other servers", len(b.Settings) == 0, fmt.Sprintf("%d differ", len(b.Settings)))
}

func (b *serverBody) fact(name, met string, ok bool, unmet string) {
	f := serverFact{name, met, ""}
	if !ok {
		f.Value, f.Class = unmet, "no"
	}
	b.Facts = append(b.Facts, f)
}

// leases adds how long the first of the server's leases is valid.
func (b *serverBody) leases(s *snapshot) {
	var first time.Time
	for at := range s.view.Stats {
		for i := range s.view.Stats[at].Shards {
			if sh := &s.view.Stats[at].Shards[i]; sh.Owner == b.Node.Owner && (first.IsZero() || sh.ExpiresAt.Before(first)) {
				first = sh.ExpiresAt
			}
		}
	}
	if first.IsZero() {
		b.Facts = append(b.Facts, serverFact{"Leases", "none", "unknown"})
		return
	}
	b.fact("Leases", "renewed, "+figures.Rough(first.Sub(b.Now))+" left", first.After(b.Now), "ended "+when{first, b.Now}.Text())
}

// otherVersions returns the versions of the other servers that run, and whether one of them has the
// version of the given server.
func (s *snapshot) otherVersions(n *inspect.Node) (versions []string, same bool) {
	for at := range s.view.Nodes {
		other := &s.view.Nodes[at]
		if other.Owner == n.Owner || other.State == inspect.NodeGone || other.Version == "" {
			continue
		}
		same = same || other.Version == n.Version
		if !slices.Contains(versions, other.Version) {
			versions = append(versions, other.Version)
		}
	}
	slices.Sort(versions)
	return versions, same
}

// shards adds the shards that the server holds, by queue. Of a server that is gone they are those
// that nobody has taken over.
func (b *serverBody) shards(s *snapshot) {
	for at := range s.view.Stats {
		stats := &s.view.Stats[at]
		if !slices.Contains(b.Node.Queues, stats.Queue.Name) {
			continue
		}

		row := serverShards{Queue: stats.Queue.Name, Of: stats.Queue.Shards}
		for i := range stats.Shards {
			if sh := &stats.Shards[i]; sh.Owner == b.Node.Owner {
				row.Held++
				row.Worst = max(row.Worst, sh.Lag)
			}
		}
		row.Cells = cellsOf(stats, b.Node.Owner)
		b.Held, b.Of = b.Held+row.Held, b.Of+row.Of
		b.Shards = append(b.Shards, row)
	}
	slices.SortStableFunc(b.Shards, func(x, y serverShards) int {
		return cmp.Or(cmp.Compare(y.Worst, x.Worst), strings.Compare(x.Queue, y.Queue))
	})
}

// mergeRule is the name of the setting that a queue has itself. maxRunning and maxLanes are those that
// operators can change.
const (
	mergeRule  = "merge rule"
	maxRunning = "max running"
	maxLanes   = "max lanes"
)

// settings are the settings of a queue on a server, or nil if the server does not serve it.
func settings(st *inspect.NodeStatus, queue string) []serverSetting {
	for at := range st.Queues {
		q := &st.Queues[at]
		if q.Queue != queue {
			continue
		}
		return []serverSetting{
			{Name: maxRunning, Title: "batches of the queue over all servers", Here: bound(q.MaxRunning)},
			{Name: maxLanes, Title: "batches of the queue on a server", Here: bound(q.MaxLanes)},
			{Name: "rate", Title: "starts of batches over all servers", Here: cmp.Or(q.Rate, "no limit")},
			{Name: "parallel", Title: "batches of one shard at once", Here: bound(q.Parallel)},
			{Name: "batch", Title: "most jobs in a batch", Here: bound(q.BatchSize)},
			{Name: "retries", Title: "how often a failed job is retried", Here: strconv.Itoa(q.MaxRetries)},
			{Name: "recoveries", Title: "how often a job may lose its server", Here: strconv.Itoa(q.MaxRecoveries)},
			{Name: mergeRule, Title: "what stays when payloads of an id meet", Here: q.Merge.String()},
		}
	}
	return nil
}

// settingsThatDiffer returns the settings of a server that no other running server of the same queue
// has.
func (s *snapshot) settingsThatDiffer(n *inspect.Node) (list []serverSetting) {
	if n.State == inspect.NodeGone {
		return nil
	}

	for _, queue := range n.Queues {
		others := map[string][]string{}
		for at := range s.view.Nodes {
			other := &s.view.Nodes[at]
			if other.Owner == n.Owner || other.State == inspect.NodeGone {
				continue
			}
			for _, set := range settings(&other.Status, queue) {
				if !slices.Contains(others[set.Name], set.Here) {
					others[set.Name] = append(others[set.Name], set.Here)
				}
			}
		}

		for _, set := range settings(&n.Status, queue) {
			if values := others[set.Name]; len(values) > 0 && !slices.Contains(values, set.Here) {
				slices.Sort(values)
				set.Queue, set.Others = queue, strings.Join(values, ", ")
				name := map[string]string{maxRunning: core.SettingMaxRunning, maxLanes: core.SettingMaxLanes}[set.Name]
				if by, ok := s.setOf(queue, name); ok {
					set.Set = by.Value + " was set by " + setter(&by)
				}
				list = append(list, set)
			}
		}
	}
	return list
}

// claims finds the claimed jobs of the server among those of its queues. No list of jobs is by server,
// so the search is bounded, like the page of running jobs.
func (b *serverBody) claims(c *call, s *snapshot) {
	b.Busy = &busyBody{Now: b.Now, May: b.May, Linked: c.o.API.RedactID == nil}
	began := c.began(s)
	byOwner := map[string]*busyServer{}
	for at := range s.view.Nodes {
		byOwner[s.view.Nodes[at].Owner] = &busyServer{}
	}

	read := 0
	for at := range s.view.Stats {
		stats := &s.view.Stats[at]
		if !slices.Contains(b.Node.Queues, stats.Queue.Name) || stats.Claimed == 0 {
			continue
		}
		if read++; read > busyQueues || c.cost > lookTime {
			b.Busy.More = append(b.Busy.More, stats.Queue.Name)
			continue
		}
		b.Busy.claims(c, s, stats, began, byOwner)
	}

	own := byOwner[b.Node.Owner]
	own.sort()
	b.Running, b.Waiting = own.Rows, own.Waiting
	for _, row := range b.Busy.Orphans {
		if row.Owner == b.Node.Owner {
			b.Orphans = append(b.Orphans, row)
		}
	}
}

// figs returns the figures of the server.
func (b *serverBody) figs(s *snapshot) []fig {
	n := b.Node
	st := &n.Status

	busy := countOf("Lanes busy", int64(st.Busy), "")
	busy.Parts[0].Unit = "of " + figures.Count(int64(n.Lanes))
	longest := figOf("Longest", "–", "no job runs")
	if len(st.Longest) > 0 && !b.Gone {
		j := &st.Longest[0]
		longest = figOf("Longest", figures.Rough(max(0, b.Now.Sub(j.Began.Time()))), cutName(j.Shard.Queue, 20))
		longest.Class = s.class(j.Shard.Queue, wrong.NotMoving, wrong.RunsLong, wrong.Crashes)
	}
	memory := figOf("Memory", "–", "not known")
	if st.Memory > 0 {
		memory = figOf("Memory", figures.Bytes(st.Memory), figures.Exact(int64(st.Goroutines))+" goroutines")
	}
	started := figOf("Started", figures.Rough(max(0, b.Now.Sub(n.StartedAt)).Round(time.Second)), b.Started.UTC())
	started.Parts[len(started.Parts)-1].Unit += " ago"

	left := countOf("Orphans", int64(len(b.Orphans)), "left by it, as far as was read")
	if len(b.Orphans) > 0 {
		left.Class = "bad"
	}
	list := []fig{
		busy,
		countOf("Running", int64(st.Running), "jobs in handlers"),
		countOf("Buffered", int64(st.Claimed), "claimed, not started"),
		longest,
		countOf("Shards", int64(b.Held), "of "+figures.Count(int64(b.Of))+" of its queues"),
		memory,
		started,
	}
	if b.Gone {
		list[1] = left
	}
	return list
}

// mostLanes is the largest number of lanes that are drawn one by one.
const mostLanes = 128

// lanes draws the lanes of the server. Those that run the jobs which servers report come first.
func (b *serverBody) lanes(s *snapshot) *laneBar {
	n := b.Node
	if b.Gone || n.Lanes == 0 || n.Lanes > mostLanes {
		return nil
	}

	classes := make([]string, n.Lanes)
	for at := range classes {
		if classes[at] = "k"; at < n.Status.Busy {
			classes[at] = "k2"
		}
	}
	for at, row := range b.Running[:min(len(b.Running), n.Status.Busy, n.Lanes)] {
		if row.Slow {
			classes[at] = "k3"
		}
		if s.class(row.Queue, wrong.NotMoving, wrong.RunsLong) == "bad" && row.Slow {
			classes[at] = "k4"
		}
	}
	return &laneBar{
		Width: n.Lanes * 6,
		Text:  fmt.Sprintf("%d lanes, %d busy", n.Lanes, n.Status.Busy),
		Paths: cellPaths(classes, n.Lanes, 6, false),
	}
}

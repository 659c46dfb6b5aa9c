package wrong

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/versions"
)

// owners are servers that are gone, each once: their names, the last one gone first, and the owner
// ids of all processes with these names.
type owners struct {
	names, ids []string
	nodes      []*inspect.Node
}

// ownersOf returns the owners that these servers are. nil is none.
func ownersOf(nodes []*inspect.Node) (o owners) {
	for _, n := range nodes {
		if n != nil {
			o.nodes = append(o.nodes, n)
		}
	}
	slices.SortStableFunc(o.nodes, func(a, b *inspect.Node) int {
		return cmp.Or(b.ExpiresAt.Compare(a.ExpiresAt), strings.Compare(a.Name, b.Name))
	})

	o.nodes = distinct(o.nodes, func(n *inspect.Node) string { return n.Owner })
	for _, n := range o.nodes {
		o.ids, o.names = append(o.ids, n.Owner), append(o.names, n.Name)
	}
	o.names = distinct(o.names, same)
	return o
}

// distinct keeps the first of the values with the same key, in place.
func distinct[V any](list []V, key func(V) string) []V {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(v V) bool {
		was := seen[key(v)]
		seen[key(v)] = true
		return was
	})
}

func same(text string) string { return text }

// gone returns the servers that stopped responding, by their owner id.
func gone(nodes []inspect.Node) map[string]*inspect.Node {
	by := map[string]*inspect.Node{}
	for at := range nodes {
		if nodes[at].State == inspect.NodeGone {
			by[nodes[at].Owner] = &nodes[at]
		}
	}
	return by
}

// leftBy returns the servers that are gone and that served a queue.
func (r *rules) leftBy(s *inspect.QueueStats) owners {
	var left []*inspect.Node
	for at := range r.Nodes {
		if n := &r.Nodes[at]; n.State == inspect.NodeGone && slices.Contains(n.Queues, s.Queue.Name) {
			left = append(left, n)
		}
	}
	return ownersOf(left)
}

// leavers returns the servers that are gone and have left claimed jobs of a queue, as far as they
// are listed.
func (r *rules) leavers(s *inspect.QueueStats) owners {
	var left []*inspect.Node
	for at := range s.Shards {
		if sh := &s.Shards[at]; sh.Orphaned > 0 {
			left = append(left, r.gone[sh.Owner])
		}
	}
	return ownersOf(left)
}

// stopped names servers that stopped responding.
func (o *owners) stopped() string {
	if len(o.names) == 0 {
		return "a server that stopped responding"
	}
	return someOf(o.names) + ", which stopped responding"
}

// blame makes servers that are gone the cause of the last line, and notes how many jobs wait because
// of it, and how many of them those servers have left.
func (r *rules) blame(left *owners, waiting, orphaned int64) {
	l := &r.lines[len(r.lines)-1]
	l.causes, l.Owners, l.waiting, l.orphaned = left.names, left.ids, waiting, orphaned
}

// unserved adds a line about a queue with due or claimed jobs that no running server serves.
func (r *rules) unserved(s *inspect.QueueStats) {
	left := r.leavers(s)
	all := ownersOf(slices.Concat(r.leftBy(s).nodes, left.nodes))

	// The text names each of the servers once: those that have left jobs at its end.
	text, leavers := "No server runs this queue", left.stopped()
	if len(all.names) > len(left.names) {
		text += " since " + someOf(all.names) + " stopped responding"
		if len(left.names) > 0 {
			leavers = someOf(left.names)
		}
	}
	text += ": " + wait(s.Waiting())
	if claimed := s.Claimed - s.Orphaned; claimed > 0 {
		text += fmt.Sprintf(", %s claimed", figures.Count(claimed))
	}
	if s.Orphaned > 0 {
		text += fmt.Sprintf(", %s of them left by %s", figures.Count(s.Orphaned), leavers)
	}

	r.of(NobodyServes, s, s.Waiting(), r.unservedSince(s), "%s", text)
	r.blame(&all, s.Waiting(), s.Orphaned)
}

// orphans adds a line about the claimed jobs of a served queue whose servers are gone. The lines that
// only say what follows from that become a part of it.
func (r *rules) orphans(s *inspect.QueueStats) {
	left := r.leavers(s)
	text := fmt.Sprintf("%s left by %s: the next owner of the shard recovers them", jobs(s.Orphaned), left.stopped())

	r.lines = slices.DeleteFunc(r.lines, func(l Line) bool {
		follows := l.Queue == s.Queue.Name && l.ID == "" && (l.Kind == Unowned ||
			(l.Kind == Late || l.Kind == HotShard || l.Kind == NotMoving) && abandoned(s, l.Shard))
		if follows {
			text += "; " + lower(l.Text)
		}
		return follows
	})

	r.of(OwnerGone, s, s.Orphaned, orphanedSince(s), "%s", text)
	r.blame(&left, s.Orphaned, s.Orphaned)
}

// abandoned reports whether each shard of a queue that is late, or the given one, has no owner or has
// orphans. Then it is late because a server is gone. Shard -1 means all.
func abandoned(s *inspect.QueueStats, shard int) bool {
	return !slices.ContainsFunc(s.Shards, func(sh inspect.ShardStats) bool {
		return (shard < 0 || sh.Shard.Index == shard) &&
			sh.Lag >= late && sh.Orphaned == 0 && sh.Owner != "" && sh.ExpiresAt.After(s.Now)
	})
}

// lower begins a text that was a sentence as a part of another one. A number or a name stays as it is.
func lower(text string) string {
	for _, first := range []string{"No ", "Shard "} {
		if rest, ok := strings.CutPrefix(text, first); ok {
			return strings.ToLower(first) + rest
		}
	}
	return text
}

// versionStart is the time within which failures that begin after the first server of a version are
// said to have begun with it.
const versionStart = 5 * time.Minute

// beganWith names the version whose first server of a queue started shortly before a time, while
// servers of another version were older.
func (r *rules) beganWith(s *inspect.QueueStats, since time.Time) string {
	first := versions.Starts{}
	for at := range r.Nodes {
		if n := &r.Nodes[at]; n.Version != "" && slices.Contains(n.Queues, s.Queue.Name) {
			first.Add(n.Version, n.StartedAt)
		}
	}

	newest, older := "", false
	for version, began := range first {
		// A minute of history begins before the failure in it.
		recent := !began.After(since.Add(time.Minute)) && since.Sub(began) < versionStart
		older = older || !recent && began.Before(since)
		if recent && (newest == "" || began.After(first[newest])) {
			newest = version
		}
	}
	if newest == "" || !older {
		return ""
	}
	return "; began with " + newest
}

// count describes how many died.
func (d *Deaths) count() string {
	text := figures.Count(int64(d.Count))
	if d.More {
		text += " or more"
	}
	return text
}

// mostly names the error that most of them have, if there is one.
func (d *Deaths) mostly() string {
	if d.Error == "" {
		return ""
	}
	with := " with “"
	if d.More || d.Same < d.Count {
		with = ", most with “"
	}
	return with + brief(strings.Join(strings.Fields(d.Error), " ")) + "”"
}

// servers adds a line for each name of which all servers stopped responding. Lines that name such a
// server as their cause replace it in [rules.fold].
func (r *rules) servers() {
	alive := map[string]bool{}
	for at := range r.Nodes {
		alive[r.Nodes[at].Name] = alive[r.Nodes[at].Name] || r.Nodes[at].State != inspect.NodeGone
	}

	last := map[string][]*inspect.Node{}
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if !alive[n.Name] {
			last[n.Name] = append(last[n.Name], n)
		}
	}

	for name, nodes := range last {
		left := ownersOf(nodes)
		ended := left.nodes[0].ExpiresAt
		r.add(Line{
			Kind:   ServerGone,
			Shard:  -1,
			Server: name,
			Owners: left.ids,
			Text:   "This server stopped responding",
			Since:  ended,
			causes: left.names,
			weight: ended.UnixMicro(),
		})
	}
}

// fold makes one line of the lines that have one cause.
func (r *rules) fold() {
	var groups [][]Line
	var others, unserved, away []Line
	for _, l := range r.lines {
		switch {
		case len(l.causes) > 0:
			groups = joined(groups, l)
		case l.Kind == NobodyServes:
			unserved = append(unserved, l)
		case l.Kind == PartAway:
			away = append(away, l)
		default:
			others = append(others, l)
		}
	}

	for _, group := range groups {
		others = append(others, foldServers(group)...)
	}
	others = append(others, foldUnserved(unserved)...)
	r.lines = append(others, foldAway(away, len(r.Unreached))...)
}

// joined adds a line to the group whose lines share a cause with it. Groups that the line connects
// become one.
func joined(groups [][]Line, l Line) (all [][]Line) {
	group := []Line{l}
	for _, g := range groups {
		if slices.ContainsFunc(g, func(o Line) bool { return shares(&o, &l) }) {
			group = append(g, group...)
		} else {
			all = append(all, g)
		}
	}
	return append(all, group)
}

// shares reports whether two lines have a cause in common.
func shares(a, b *Line) bool {
	return slices.ContainsFunc(a.causes, func(name string) bool { return slices.Contains(b.causes, name) })
}

// foldServers makes one line of the lines of servers that are gone and of what follows from that. The
// line of one queue names the servers already.
func foldServers(group []Line) []Line {
	parts := slices.DeleteFunc(slices.Clone(group), func(l Line) bool { return l.Kind == ServerGone })
	if len(parts) == 0 {
		return group
	}
	if len(parts) == 1 {
		return parts
	}

	var names, ids []string // in the order of the lines
	for at := range group {
		names, ids = append(names, group[at].causes...), append(ids, group[at].Owners...)
	}
	names, ids = distinct(names, same), distinct(ids, same)

	l := folded(parts)
	l.Owners, l.causes = ids, names
	if len(names) == 1 {
		l.Server = names[0]
	}
	l.Text = someOf(names) + " stopped responding: " + l.consequences()
	return []Line{l}
}

// folded returns a line for several lines of queues: of their worst kind, since their beginning.
func folded(parts []Line) Line {
	slices.SortStableFunc(parts, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.weight, a.weight), strings.Compare(a.Queue, b.Queue))
	})

	l := Line{Kind: parts[0].Kind, Shard: -1, Parts: parts}
	for at := range parts {
		p := &parts[at]
		l.waiting, l.orphaned = l.waiting+p.waiting, l.orphaned+p.orphaned
		l.weight += p.weight
		if l.Since.IsZero() || p.Since.Before(l.Since) {
			l.Since, l.Seen = p.Since, p.Seen
		}
	}
	return l
}

// consequences describes what follows for the queues of a line's parts: first those that no server
// runs, then those with jobs left behind, then those with shards that no server has.
func (l *Line) consequences() string {
	var texts []string
	if queues, waiting, orphaned := l.sum(NobodyServes); len(queues) > 0 {
		text := fmt.Sprintf("no server runs %s; %s", queuesOf(queues), wait(waiting))
		if orphaned > 0 {
			text += fmt.Sprintf(", %s of them left behind", figures.Count(orphaned))
		}
		texts = append(texts, text)
	}
	if queues, _, orphaned := l.sum(OwnerGone); len(queues) > 0 {
		texts = append(texts, fmt.Sprintf("%s left in %s, which the next owners of the shards recover",
			jobs(orphaned), queuesOf(queues)))
	}
	if queues, waiting, _ := l.sum(Unowned); len(queues) > 0 {
		texts = append(texts, fmt.Sprintf("no server has taken over all shards of %s; %s there",
			queuesOf(queues), wait(waiting)))
	}
	if queues, _, _ := l.sum(TicksLate); len(queues) > 0 {
		texts = append(texts, "ticks are late in "+queuesOf(queues))
	}
	return strings.Join(texts, "; ")
}

// sum returns the queues of a line's parts of a kind, with the jobs that wait and that are orphaned.
func (l *Line) sum(k Kind) (queues []string, waiting, orphaned int64) {
	for at := range l.Parts {
		if p := &l.Parts[at]; p.Kind == k {
			queues, waiting, orphaned = append(queues, p.Queue), waiting+p.waiting, orphaned+p.orphaned
		}
	}
	return queues, waiting, orphaned
}

// queuesOf counts and names queues: "3 queues (a, b, c)". A single one is only named.
func queuesOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d queues (%s)", len(names), someOf(names))
}

// foldUnserved makes one line of the queues that no server runs, if the servers that did are not
// known.
func foldUnserved(parts []Line) []Line {
	if len(parts) < 2 {
		return parts
	}
	l := folded(parts)
	queues, waiting, orphaned := l.sum(NobodyServes)
	l.Text = fmt.Sprintf("No server runs %s: %s", queuesOf(queues), wait(waiting))
	if orphaned > 0 {
		l.Text += fmt.Sprintf(", %s of them left by servers that stopped responding", figures.Count(orphaned))
	}
	return []Line{l}
}

// foldAway makes one line of the queues with shards that can't be reached.
func foldAway(parts []Line, shards int) []Line {
	if len(parts) < 2 {
		return parts
	}
	l := folded(parts)
	queues, _, _ := l.sum(PartAway)
	l.Text = fmt.Sprintf("%d shards of %s can't be reached; the figures don't include them", shards, queuesOf(queues))
	return []Line{l}
}

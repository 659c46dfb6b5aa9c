package membership

import (
	"cmp"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Members are the nodes that share the queues of one of them, as that node sees them. They are not
// safe for concurrent use.
type Members struct {
	// Owner is that of the node. Interval is how often it announces itself.
	Owner    string
	Interval time.Duration
	Splitter core.Splitter
	Logger   *slog.Logger
	Observer ports.Observer

	// known are the nodes of the last answer. sharing are those that share the shards, in order of
	// owner; this node is included unless it drains. changedAt is when sharing last changed.
	known     []ports.Node
	sharing   []core.SplitNode
	changedAt time.Time
	// mine are the shards that the splitter assigns to this node.
	mine     map[core.Shard]bool
	draining bool
	// saidDraining is set once it is logged that the node drains.
	saidDraining bool
}

// Self is the node itself at a time.
type Self struct {
	core.SplitNode
	// All are the shards of its queues. Shards are those that may be its own, and those of removed
	// queues while they still work.
	All      []core.Shard
	Shards   []Shard
	Stopping bool
}

// Shard is a shard that may be the node's.
type Shard struct {
	core.Shard
	// Assigned is set while the shard is assigned to the node. Removed is set if the node no longer
	// serves the queue.
	Assigned, Removed bool
}

// Split calls a splitter for the shards of self, which all are, among nodes.
func Split(s core.Splitter, all []core.Shard, self core.SplitNode, nodes []core.SplitNode) (core.Split, error) {
	split, err := s.Split(core.SplitRequest{Shards: all, Lanes: self.Lanes, Self: self.ID, Nodes: nodes})
	if err == nil {
		err = split.Check(all)
	}
	return split, err
}

// Share takes the answer to an announcement, or nil if it failed. It splits the shards anew if the
// nodes that share them have changed. It returns the shards to assign to this node and to take from
// it, and how long to wait until the next announcement.
func (m *Members) Share(
	self *Self, answer *ports.AnnounceReply, now time.Time,
) (change ports.AssignEvent, wait time.Duration) {
	wait = m.Interval
	if answer != nil {
		others, lasts := m.take(answer)
		m.share(self, others, now)
		wait = min(wait, lasts)
	} else if m.sharing == nil { // a node always counts itself
		m.share(self, nil, now)
	}
	change, givesUp := m.assign(self, now)
	return change, min(wait, givesUp)
}

// take takes the list of nodes. It returns the other nodes that share the shards, and how long the
// first announcement of another node lasts.
func (m *Members) take(answer *ports.AnnounceReply) (others []core.SplitNode, lasts time.Duration) {
	m.draining, lasts = false, math.MaxInt64
	for _, n := range answer.Nodes {
		if n.Owner == m.Owner {
			m.draining = n.Draining
			continue
		}

		lasts = min(lasts, n.ExpiresAt.Sub(answer.Now))
		if !n.Draining {
			others = append(others, core.SplitNode{ID: n.Owner, Lanes: n.Lanes, Queues: n.Queues})
		}
	}

	m.report(answer.Nodes)
	m.known = answer.Nodes
	return others, lasts
}

// share takes the nodes that share the shards: others, and this node unless it drains.
func (m *Members) share(self *Self, sharing []core.SplitNode, now time.Time) {
	if !m.draining {
		sharing = append(sharing, self.SplitNode)
		slices.SortFunc(sharing, func(a, b core.SplitNode) int { return cmp.Compare(a.ID, b.ID) })
	}
	if slices.EqualFunc(m.sharing, sharing, sameSplitNode) {
		return
	}
	m.sharing, m.changedAt = sharing, now
	m.split(self)
	m.reportShare(self)
}

func sameSplitNode(a, b core.SplitNode) bool {
	return a.ID == b.ID && a.Lanes == b.Lanes && slices.Equal(a.Queues, b.Queues)
}

// split calls the splitter for this node's shards. If that fails, they stay as they are.
func (m *Members) split(self *Self) {
	mine := make(map[core.Shard]bool)
	if !m.draining {
		split, err := Split(m.Splitter, self.All, self.SplitNode, m.sharing)
		if err != nil {
			m.Logger.Error("the splitter failed; this server keeps the shards that it has",
				"nodes", len(m.sharing), "error", err)
			return
		}

		for _, ids := range append(split.Lanes, split.Shared) {
			for _, id := range ids {
				mine[id] = true
			}
		}
	}

	m.mine = mine
}

// assign returns which shards change, and how long until the next one has to be given up, at most
// the interval.
func (m *Members) assign(self *Self, now time.Time) (change ports.AssignEvent, givesUp time.Duration) {
	change.Nodes, givesUp = len(m.sharing), m.Interval
	settles := m.changedAt.Add(m.Interval).Sub(now)

	for _, s := range self.Shards {
		switch mine := m.mine[s.Shard]; {
		case mine == s.Assigned:
		case mine:
			change.Gained = append(change.Gained, s.Shard)
		case m.draining || s.Removed || settles <= 0:
			change.Lost = append(change.Lost, s.Shard)
		default:
			givesUp = settles
		}
	}

	return change, givesUp
}

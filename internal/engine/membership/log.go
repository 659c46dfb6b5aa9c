package membership

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// report notifies the observer of the nodes that came, changed or left.
func (m *Members) report(nodes []ports.Node) {
	before := make(map[string]ports.Node, len(m.known))
	for _, n := range m.known {
		before[n.Owner] = n
	}

	for _, n := range nodes {
		was, known := before[n.Owner]
		delete(before, n.Owner)
		switch {
		case !known:
			m.nodeChanged(n, ports.NodeJoined)
		case n.Draining && !was.Draining:
			m.nodeChanged(n, ports.NodeDrains)
		case was.Draining && !n.Draining:
			m.nodeChanged(n, ports.NodeResumed)
		}
	}

	for _, n := range m.known {
		if _, left := before[n.Owner]; left {
			m.nodeChanged(n, ports.NodeLeft)
		}
	}
}

// nodeChanged logs and reports a change of a node. Readers of the log want to know which other
// servers came and went while this one works.
func (m *Members) nodeChanged(n ports.Node, change ports.NodeChange) {
	level := slog.LevelInfo
	if n.Owner == m.Owner || m.known == nil {
		level = slog.LevelDebug
	}
	m.Logger.Log(
		context.Background(), level, "servers changed",
		"change", change.String(),
		"server", report.NodeName(&n),
		"owner", n.Owner,
		"queues", n.Queues,
		"lanes", n.Lanes,
	)
	m.Observer.NodeChanged(ports.NodeEvent{Node: n, Change: change})
}

// Assigned logs, for each queue, and reports a change of the shards that are assigned to this node,
// which the caller has carried out.
func (m *Members) Assigned(event ports.AssignEvent, self *Self) {
	if len(event.Gained)+len(event.Lost) == 0 {
		return
	}

	level := slog.LevelInfo
	if event.Nodes <= 1 && len(event.Lost) == 0 || self.Stopping { // as expected
		level = slog.LevelDebug
	}

	changed := make(map[string]bool)
	for _, id := range slices.Concat(event.Gained, event.Lost) {
		changed[id.Queue] = true
	}

	for _, queue := range slices.Sorted(maps.Keys(changed)) {
		mine, all := m.countShards(queue, self)
		m.Logger.Log(context.Background(), level, "this server's share of a queue has changed",
			"queue", queue, "shards", mine, "of", all, "servers", m.countServers(queue))
	}

	m.Observer.ShardsAssigned(event)
}

// countShards returns how many shards of a queue are this node's, and how many there are.
func (m *Members) countShards(queue string, self *Self) (mine, all int) {
	for _, s := range self.Shards {
		if s.Queue != queue {
			continue
		}
		all++
		if m.mine[s.Shard] {
			mine++
		}
	}
	return mine, all
}

// countServers returns how many nodes share a queue.
func (m *Members) countServers(queue string) (n int) {
	for i := range m.sharing {
		if slices.Contains(m.sharing[i].Queues, queue) {
			n++
		}
	}
	return n
}

// reportShare logs that the node drains, or works again, and, once for each list of nodes, that it
// has no shard.
func (m *Members) reportShare(self *Self) {
	if m.draining != m.saidDraining && !self.Stopping {
		m.saidDraining = m.draining
		if m.draining {
			m.Logger.Info("an operator drains this server: it gives up its shards")
		} else {
			m.Logger.Info("an operator has ended the drain: this server takes shards again")
		}
	}
	if !m.draining && len(m.mine) == 0 && len(self.Shards) > 0 {
		m.Logger.Info("this server has no shards, because there are more servers than shards; it is a standby",
			"servers", len(m.sharing), "shards", len(self.Shards))
	}
}

package engine

import (
	"context"
	"log/slog"

	"github.com/skeinq/skein/ports"
)

// report notifies the observer of the nodes that came, changed or left.
func (m *membership) report(nodes []ports.Node) {
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

func (m *membership) nodeChanged(n ports.Node, change ports.NodeChange) {
	e := m.engine
	e.log.Debug("skein: node "+change.String(), "node", n.Name, "owner", n.Owner, "host", n.Host, "pid", n.PID, "queues", n.Queues)
	if e.observer != nil {
		e.observer.NodeChanged(ports.NodeEvent{Node: n, Change: change})
	}
}

// reportAssigned logs and reports a change of the shards that are this node's.
func (m *membership) reportAssigned(event ports.AssignEvent) {
	if len(event.Gained)+len(event.Lost) == 0 {
		return
	}
	e := m.engine
	level := slog.LevelInfo
	if event.Nodes <= 1 && len(event.Lost) == 0 || e.stopping() { // as everybody expects
		level = slog.LevelDebug
	}
	e.log.Log(context.Background(), level, "skein: the shards that are this node's have changed", "nodes", event.Nodes, "shards", len(m.mine), "of", len(e.shards()),
		"gained", len(event.Gained), "lost", len(event.Lost))
	if e.observer != nil {
		e.observer.ShardsAssigned(event)
	}
}

// reportShare logs, once for each list of nodes, that no shard is this node's.
func (m *membership) reportShare() {
	e := m.engine
	if m.draining {
		if !e.stopping() {
			e.log.Info("skein: this node drains, as an operator has asked: it gives its shards up")
		}
		return
	}
	if len(m.mine) == 0 && len(e.shards()) > 0 {
		e.log.Info("skein: none of the shards is this node's, since there are more nodes than shards; it stands by", "nodes", len(m.sharing), "shards", len(e.shards()))
	}
}

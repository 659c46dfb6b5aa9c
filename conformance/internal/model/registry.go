package model

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Ping implements ports.Registry.
func (m *Store) Ping(ctx context.Context) error { return ctx.Err() }

// Announce implements ports.Registry.
func (m *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}
	if err := ctx.Err(); err != nil {
		return ports.AnnounceReply{}, fmt.Errorf("announce: %w", err)
	}

	now := m.Now()
	for owner, n := range m.nodes {
		n.ExpiresAt = min(n.ExpiresAt, now.Add(n.ttl))
		m.nodes[owner] = n
	}

	n := node{Node: r.Node, ttl: r.TTL}
	n.Queues = slices.Clone(n.Queues)
	n.StartedAt, n.ExpiresAt = now, now.Add(r.TTL)
	if known := m.nodes[n.Owner]; now < known.ExpiresAt {
		n.StartedAt, n.asked = known.StartedAt, known.asked
	}

	m.nodes[n.Owner] = n
	maps.DeleteFunc(m.nodes, func(_ string, n node) bool { return now.Sub(n.ExpiresAt) > ports.NodeKept })

	reply := ports.AnnounceReply{Now: now}
	for _, n := range m.list(now) {
		n.Status = ports.NodeStatus{}
		if n.State(now) != ports.NodeGone {
			reply.Nodes = append(reply.Nodes, n)
		}
	}
	return reply, nil
}

// Retire implements ports.Registry.
func (m *Store) Retire(ctx context.Context, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	delete(m.nodes, owner)
	return nil
}

// DrainNode implements ports.Registry.
func (m *Store) DrainNode(ctx context.Context, owner string, drain bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drain: %w", err)
	}

	n := m.nodes[owner]
	if n.ExpiresAt <= m.Now() {
		return fmt.Errorf("%w: %q", ports.ErrUnknownNode, owner)
	}

	n.asked = drain
	m.nodes[owner] = n
	return nil
}

// Nodes implements ports.Registry.
func (m *Store) Nodes(ctx context.Context) (ports.NodesReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return ports.NodesReply{}, fmt.Errorf("nodes: %w", err)
	}
	now := m.Now()
	return ports.NodesReply{Now: now, Nodes: m.list(now)}, nil
}

// list returns the servers that run, and those that are gone and still kept.
func (m *Store) list(now core.Instant) []ports.Node {
	var list []ports.Node
	for _, n := range sorted(m.nodes, byName) {
		if now.Sub(n.ExpiresAt) <= ports.NodeKept {
			n.Queues = slices.Clone(n.Queues)
			n.Draining = n.Draining || n.asked
			list = append(list, n.Node)
		}
	}
	return list
}

func byName(a, b node) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
}

// view returns the record of the queue for a caller, who owns it.
func (q *queue) view() ports.Queue {
	v := q.record
	v.Settings.Set = slices.Clone(v.Settings.Set)
	return v
}

// Queues implements ports.Registry.
func (m *Store) Queues(ctx context.Context) ([]ports.Queue, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("queues: %w", err)
	}
	var records []ports.Queue
	for _, q := range m.queues {
		records = append(records, q.view())
	}
	slices.SortFunc(records, func(a, b ports.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return records, nil
}

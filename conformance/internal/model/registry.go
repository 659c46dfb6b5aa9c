package model

import (
	"cmp"
	"context"
	"fmt"
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
	node := r.Node
	node.Queues = slices.Clone(node.Queues)
	node.StartedAt, node.ExpiresAt = now, now.Add(r.TTL)
	if known, ok := m.nodes[node.Owner]; ok && now < known.ExpiresAt {
		node.StartedAt = known.StartedAt
	}
	m.nodes[node.Owner] = node
	return ports.AnnounceReply{Now: now, Nodes: m.alive(now)}, nil
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

// Nodes implements ports.Registry.
func (m *Store) Nodes(ctx context.Context) ([]ports.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return m.alive(m.Now()), nil
}

func (m *Store) alive(now core.Instant) []ports.Node {
	var nodes []ports.Node
	for _, n := range sorted(m.nodes, byName) {
		if now < n.ExpiresAt {
			n.Queues = slices.Clone(n.Queues)
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func byName(a, b ports.Node) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
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
		records = append(records, q.record)
	}
	slices.SortFunc(records, func(a, b ports.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return records, nil
}

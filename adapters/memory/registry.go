package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// node is the backend's record of a node.
type node struct {
	// Node is its last announcement.
	ports.Node
	// ttl is how long the announcement lasts.
	ttl time.Duration
	// asked is true while an operator has requested that it drains.
	asked bool
}

// view returns the node as callers see it.
func (n node) view() ports.Node {
	v := n.Node
	v.Queues = slices.Clone(v.Queues)
	v.Status.Queues, v.Status.Longest = slices.Clone(v.Status.Queues), slices.Clone(v.Status.Longest)
	for i := range v.Status.Queues {
		q := &v.Status.Queues[i]
		q.LaneBusy, q.Code = slices.Clone(q.LaneBusy), maps.Clone(q.Code)
	}
	v.Draining = v.Draining || n.asked
	return v
}

// Ping implements [ports.Registry]. Memory is always available.
func (s *Store) Ping(ctx context.Context) error { return checkContext(ctx) }

// Announce implements [ports.Registry].
func (s *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}
	if err := checkContext(ctx); err != nil {
		return ports.AnnounceReply{}, err
	}

	s.b.mu.Lock()
	defer s.b.mu.Unlock()

	now := s.b.now()
	maps.DeleteFunc(s.b.nodes, func(_ string, known node) bool {
		return known.ExpiresAt.Add(ports.NodeKept) < now
	})
	for owner, known := range s.b.nodes { // the clock may have stepped back
		known.ExpiresAt = min(known.ExpiresAt, now.Add(known.ttl))
		s.b.nodes[owner] = known
	}

	next := node{Node: r.Node, ttl: r.TTL}
	next.Node = next.view() // a copy; no operator wants it to drain
	next.StartedAt, next.ExpiresAt = now, now.Add(r.TTL)
	known, ok := s.b.nodes[next.Owner]
	if ok = ok && known.ExpiresAt > now; ok {
		next.StartedAt, next.asked = known.StartedAt, known.asked
	}

	s.b.nodes[next.Owner] = next
	if !ok || !alike(known.view(), next.view()) {
		nodeList{s.b}.wake()
	}
	return ports.AnnounceReply{Now: now, Nodes: s.b.liveNodes(now)}, nil
}

// alike reports whether a node's announcements are the same to other nodes.
func alike(a, b ports.Node) bool {
	return a.Draining == b.Draining && a.Lanes == b.Lanes && slices.Equal(a.Queues, b.Queues)
}

// Retire implements [ports.Registry].
func (s *Store) Retire(ctx context.Context, owner string) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if _, known := s.b.nodes[owner]; known {
		delete(s.b.nodes, owner)
		nodeList{s.b}.wake()
	}
	return nil
}

// DrainNode implements [ports.Registry].
func (s *Store) DrainNode(ctx context.Context, owner string, drain bool) error {
	if err := checkContext(ctx); err != nil {
		return err
	}

	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	n, ok := s.b.nodes[owner]
	if !ok || n.ExpiresAt <= s.b.now() {
		return storekit.UnknownNode(owner)
	}

	if n.asked != drain {
		n.asked = drain
		s.b.nodes[owner] = n
		nodeList{s.b}.wake()
	}
	return nil
}

// Nodes implements [ports.Registry].
func (s *Store) Nodes(ctx context.Context) (ports.NodesReply, error) {
	if err := checkContext(ctx); err != nil {
		return ports.NodesReply{}, err
	}
	s.b.mu.RLock()
	defer s.b.mu.RUnlock()
	now := s.b.now()
	return ports.NodesReply{Now: now, Nodes: s.b.nodesSince(now.Add(-ports.NodeKept))}, nil
}

// liveNodes lists the nodes whose announcement lasts, without their status. It needs the
// backend's lock.
func (b *backend) liveNodes(now core.Instant) []ports.Node {
	live := b.nodesSince(now + 1)
	for i := range live {
		live[i].Status = ports.NodeStatus{}
	}
	return live
}

// nodesSince lists the nodes whose announcement lasts until then or longer. It needs the
// backend's lock.
func (b *backend) nodesSince(then core.Instant) []ports.Node {
	var list []ports.Node
	for _, n := range b.nodes {
		if n.ExpiresAt >= then {
			list = append(list, n.view())
		}
	}
	slices.SortFunc(list, func(a, b ports.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
	return list
}

// Queues implements [ports.Registry].
func (s *Store) Queues(ctx context.Context) ([]ports.Queue, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	s.b.mu.RLock()
	defer s.b.mu.RUnlock()
	queues := make([]ports.Queue, 0, len(s.b.queues))
	for _, q := range s.b.queues {
		queues = append(queues, q.view())
	}
	slices.SortFunc(queues, func(a, b ports.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues, nil
}

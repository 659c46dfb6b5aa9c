package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// nodeKept is how long a node is kept after its announcement ran out, in case the clock
// steps back.
const nodeKept = time.Hour

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
	maps.DeleteFunc(s.b.nodes, func(_ string, known ports.Node) bool {
		return known.ExpiresAt.Add(nodeKept) < now
	})
	node := r.Node
	node.Queues = slices.Clone(node.Queues)
	node.StartedAt, node.ExpiresAt = now, now.Add(r.TTL)
	if known, ok := s.b.nodes[node.Owner]; ok && known.ExpiresAt > now {
		node.StartedAt = known.StartedAt
	}
	s.b.nodes[node.Owner] = node
	return ports.AnnounceReply{Now: now, Nodes: s.b.liveNodes(now)}, nil
}

// Retire implements [ports.Registry].
func (s *Store) Retire(ctx context.Context, owner string) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.nodes, owner)
	return nil
}

// Nodes implements [ports.Registry].
func (s *Store) Nodes(ctx context.Context) ([]ports.Node, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	s.b.mu.RLock()
	defer s.b.mu.RUnlock()
	return s.b.liveNodes(s.b.now()), nil
}

// liveNodes lists the nodes whose announcement lasts. It needs the backend's lock.
func (b *backend) liveNodes(now core.Instant) []ports.Node {
	var live []ports.Node
	for _, n := range b.nodes {
		if n.ExpiresAt > now {
			n.Queues = slices.Clone(n.Queues)
			live = append(live, n)
		}
	}
	slices.SortFunc(live, func(a, b ports.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
	return live
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

package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// showsNodes changes the list of nodes before it is returned.
func showsNodes(s full, change func(*ports.NodesReply)) full {
	return intercept(s, "Nodes", func(ctx context.Context, call storekit.Call) error {
		reply, err := s.Nodes(ctx)
		change(&reply)
		*call.Reply.(*ports.NodesReply) = reply
		return err
	})
}

// beforeAnnounce does something else first.
func beforeAnnounce(s full, do func(ctx context.Context, owner string) error) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		if err := do(ctx, r.Node.Owner); err != nil {
			return ports.AnnounceReply{}, err
		}
		return s.Announce(ctx, r)
	})
}

func hidesGoneNodes(s full) full {
	return showsNodes(s, func(r *ports.NodesReply) {
		r.Nodes = slices.DeleteFunc(r.Nodes, func(n ports.Node) bool { return n.State(r.Now) == ports.NodeGone })
	})
}

// remembersNodes goes on to list what it has once listed.
func remembersNodes(s full) full {
	var seen []ports.Node
	return showsNodes(s, func(r *ports.NodesReply) {
		for _, n := range seen {
			if !slices.ContainsFunc(r.Nodes, func(o ports.Node) bool { return o.Owner == n.Owner }) {
				r.Nodes = slices.Insert(r.Nodes, 0, n)
			}
		}
		seen = slices.Clone(r.Nodes)
	})
}

// stretchesNodes has each announcement end when it did at first.
func stretchesNodes(s full) full {
	ends := make(map[string]core.Instant)
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		reply, err := s.Announce(ctx, r)
		for i, n := range reply.Nodes {
			if n.Owner == r.Node.Owner {
				ends[n.Owner] = n.ExpiresAt
			}
			reply.Nodes[i].ExpiresAt = ends[n.Owner]
		}
		return reply, err
	})
}

func tellsNodesTheStatus(s full) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		reply, err := s.Announce(ctx, r)
		if err == nil {
			reply.Nodes[0].Status = r.Node.Status
		}
		return reply, err
	})
}

func forgetsBoundsOfNodes(s full) full {
	return showsNodes(s, func(r *ports.NodesReply) {
		for _, n := range r.Nodes {
			for i := range n.Status.Queues {
				n.Status.Queues[i].MaxLanes, n.Status.Queues[i].Parallel = 0, 0
			}
		}
	})
}

func endsDrainsByRenewal(s full) full {
	return beforeAnnounce(s, func(ctx context.Context, owner string) error {
		if err := s.DrainNode(ctx, owner, false); !errors.Is(err, ports.ErrUnknownNode) {
			return err
		}
		return nil
	})
}

// remembersDrains asks a node to drain that was asked before it was gone.
func remembersDrains(s full) full {
	asked := map[string]bool{}
	drains := replaceErr(s, "DrainNode", func(ctx context.Context, r storekit.DrainNodeRequest) error {
		asked[r.Owner] = r.Drain
		return s.DrainNode(ctx, r.Owner, r.Drain)
	})
	return replace(drains, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		r.Node.Draining = r.Node.Draining || asked[r.Node.Owner]
		return s.Announce(ctx, r)
	})
}

// overrulesNodes lists a node that an operator has working as alive, though it stops.
func overrulesNodes(s full) full {
	asked := map[string]bool{}
	drains := replaceErr(s, "DrainNode", func(ctx context.Context, r storekit.DrainNodeRequest) error {
		asked[r.Owner] = r.Drain
		return s.DrainNode(ctx, r.Owner, r.Drain)
	})
	return showsNodes(drains, func(r *ports.NodesReply) {
		for i := range r.Nodes {
			if drain, known := asked[r.Nodes[i].Owner]; known {
				r.Nodes[i].Draining = drain
			}
		}
	})
}

func drainsAnybody(s full) full {
	return replaceErr(s, "DrainNode", func(ctx context.Context, r storekit.DrainNodeRequest) error {
		if err := s.DrainNode(ctx, r.Owner, r.Drain); !errors.Is(err, ports.ErrUnknownNode) {
			return err
		}
		return nil
	})
}

// wakesAtRenewals takes each announcement for that of a new node.
func wakesAtRenewals(s full) full { return beforeAnnounce(s, s.Retire) }

func changesNodesSilently(s full) full {
	return withoutWakeups(s, func(_ context.Context, shard core.Shard) bool { return shard == core.Shard{} })
}

// wakesEverybodyForNodes asks for the list of nodes on behalf of everybody.
func wakesEverybodyForNodes(s full) full {
	return replace(s, "Wakeups", func(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
		return s.Wakeups(ctx, append(slices.Clone(shards), core.Shard{}))
	})
}

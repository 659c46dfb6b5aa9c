package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// NodeState is the state of a server: [NodeAlive], [NodeDraining] or [NodeGone]. Its String is
// "alive", "draining" or "gone".
type NodeState = ports.NodeState

// States of a server.
const (
	// NodeAlive is a server that runs and takes its share of the shards.
	NodeAlive = ports.NodeAlive
	// NodeDraining is a server that runs, releases its shards and takes no new ones, because it
	// stops or an operator requested it.
	NodeDraining = ports.NodeDraining
	// NodeGone is a server whose announcement has run out: it has crashed, or it can't reach the
	// store. It is listed for an hour.
	NodeGone = ports.NodeGone
)

// NodeStatus is the state of a server at its last announcement. A server announces itself at each
// third of its LeaseTTL. The state has the number of shards whose lease the server held (Shards),
// of jobs in batches that ran (Running), of lanes that ran a batch (Busy), and of jobs that were
// claimed and not started (Claimed).
type NodeStatus = ports.NodeStatus

// Node is a server that runs, or that ran a short while ago.
type Node struct {
	// Owner is the server's id, drawn at each start. It is the owner of the server's leases.
	Owner string
	// Name is ServerOptions.Name. Several servers may share it.
	Name string
	// Host and PID are the host and the process id.
	Host string
	PID  int
	// Lanes is the maximum number of batches that it runs at once.
	Lanes int
	// Queues are the names of the queues that it serves, in order of its handlers.
	Queues []string
	// Version is the version of its program.
	Version string
	// State is the state of the server, by the store's clock.
	State NodeState
	// Status is what the server was doing at its last announcement.
	Status NodeStatus
	// StartedAt is when the server started. For a server that does not announce that, it is when the
	// server first announced itself, or announced itself again after its announcement had run out.
	// ExpiresAt is when it counts as gone unless it announces itself again.
	StartedAt time.Time
	ExpiresAt time.Time
}

// Nodes lists the servers in order of name. It includes, for an hour, the servers whose
// announcement has run out: their State is [NodeGone].
func (i *Inspector) Nodes(ctx context.Context) ([]Node, error) {
	reply, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(ctx) })
	return convert(reply.Nodes, func(n *ports.Node) Node { return nodeOf(n, reply.Now) }), err
}

// Drain asks a server to release its shards and take no new ones or, if drain is false, to work
// again. A draining server claims no job, lets its handlers finish, and releases its shards; other
// servers take them over. It drains until Drain asks it to work again. The request also ends with
// the process, and if the server can't announce itself for its LeaseTTL. Drain stops no process. A
// server that is started again works.
//
// node is the [Node].Owner of the server, or its Name if only one server of that name runs. A
// repeated call changes nothing.
//
// Drain returns [ErrUnknownNode] if no such server runs. If several servers have the name, it
// returns [ErrInvalidOptions] with a list of their owners.
func (i *Inspector) Drain(ctx context.Context, node string, drain bool) error {
	d := i.begin(ctx, drainVerb(drain), "", []string{node}).start(ctx)
	_, err := persist(ctx, i, func(s Store) (struct{}, error) {
		owner, err := ownerOf(ctx, s, node)
		if err == nil {
			err = s.DrainNode(ctx, owner, drain)
		}
		return struct{}{}, err
	})
	d.end(ctx, 0, err)
	if err != nil {
		return fmt.Errorf("drain %q: %w", node, err)
	}
	return nil
}

func drainVerb(drain bool) string {
	if drain {
		return "drain"
	}
	return "end drain"
}

// ownerOf returns the owner of the running server that has this owner id or name.
func ownerOf(ctx context.Context, s Store, node string) (string, error) {
	reply, err := s.Nodes(ctx)
	if err != nil {
		return "", err
	}

	var named []string
	for _, n := range reply.Nodes {
		switch {
		case n.State(reply.Now) == NodeGone:
		case n.Owner == node:
			return node, nil
		case n.Name == node:
			named = append(named, n.Owner)
		}
	}

	switch len(named) {
	case 0:
		return "", ErrUnknownNode
	case 1:
		return named[0], nil
	}
	return "", fmt.Errorf("%w: %d servers have this name; use one of their owner ids: %s",
		ErrInvalidOptions, len(named), strings.Join(named, ", "))
}

func nodeOf(n *ports.Node, now core.Instant) Node {
	started := n.StartedAt
	if announced := n.Status.StartedAt; announced != 0 {
		started = announced
	}
	return Node{
		Owner:     n.Owner,
		Name:      n.Name,
		Host:      n.Host,
		PID:       n.PID,
		Lanes:     n.Lanes,
		Queues:    n.Queues,
		Version:   n.Version,
		State:     n.State(now),
		Status:    n.Status,
		StartedAt: started.Time(),
		ExpiresAt: n.ExpiresAt.Time(),
	}
}

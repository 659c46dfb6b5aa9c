package ports

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Registry knows which nodes run and which queues exist.
type Registry interface {
	// Ping asks whether the store answers and can be used: its version, schema,
	// settings and rights, as far as they can be seen without writing. It is for
	// health checks and costs one exchange or two.
	//
	// Errors: ErrUnusable for what no waiting cures.
	Ping(ctx context.Context) error

	// Announce records that a node runs, for the TTL from now, in place of what
	// its Owner announced before. Repeating it renews. What an operator has asked
	// by DrainNode stays while the node is known: until it is retired or its
	// announcement has run out. What ran out more than [NodeKept] ago is removed.
	// An announcement of another node that ends further away than its own TTL, because
	// the clock stepped back, is cut to end that TTL from now: a node that is dead must
	// not seem to run for as long as the clock stepped.
	//
	// Errors: ErrInvalidRequest for an owner that is empty, an owner, name, host, version or queue that is no
	// [core.Text], a TTL below 1 ms, or a status of more than [MaxLongest] running jobs or [MaxLaneBusy] shards of a queue.
	Announce(ctx context.Context, r AnnounceRequest) (AnnounceReply, error)

	// Retire forgets a node at once. A node that is not known is not an error.
	Retire(ctx context.Context, owner string) error

	// Nodes lists the nodes whose announcement lasts or ran out at most [NodeKept]
	// ago, in order of (Name, Owner).
	Nodes(ctx context.Context) (NodesReply, error)

	// DrainNode asks a node to drain, or takes that back: its Draining is true while
	// the node says so itself or an operator asks for it. Repeating it changes
	// nothing.
	//
	// Errors: ErrUnknownNode if no announcement of that owner lasts.
	DrainNode(ctx context.Context, owner string, drain bool) error

	// Record stores what an owner has counted of queues, by minute, for [Inspector.History]. A record
	// has all that its owner has counted so far of its queue in its minute: records of
	// one owner, queue and minute replace one another, and the one that has counted
	// more (core.Stats.Counted) stays. So a call may be repeated and may arrive late, and
	// counts nothing twice. The owner needs no announcement and no lease.
	//
	// Ignored are records of queues that were not declared, of minutes that began more than
	// [HistoryKept] before the present one, and of minutes that begin more than an hour
	// from now, as a clock that stepped back leaves them. A record that counted nothing may be.
	//
	// Errors: ErrInvalidRequest, as RecordRequest.Validate has it. After another error some of the
	// records may be stored.
	Record(ctx context.Context, r RecordRequest) error

	// Queues lists the declared queues in order of name. A store in several parts may answer with the list as
	// it has seen it last, while the part that has it can't be reached.
	Queues(ctx context.Context) ([]Queue, error)
}

// NodeKept is how long a store lists a node as gone after its announcement has run out.
const NodeKept = time.Hour

// Node is a server process that runs, or ran a short while ago.
type Node struct {
	// Owner is the node's id, drawn at its start: the owner of its leases.
	Owner string
	// Name is for people; several nodes may share it.
	Name string
	// Host and PID say where it runs.
	Host string
	PID  int
	// Lanes is how many batches it runs at once.
	Lanes int
	// Queues are the names of those it serves, in order of declaration.
	Queues []string
	// Version is that of the program that it runs, for people.
	Version string
	// Draining reports that the node gives its shards up and takes none: because it
	// stops, or because an operator has asked it to by DrainNode. In a request it only
	// says that the node stops. Of a node that is gone it is what held last.
	Draining bool
	// Status is what the node was doing at its last announcement. Only Nodes returns
	// it; in the reply of Announce it is zero.
	Status NodeStatus
	// StartedAt is when the node announced itself after it was not known, at its
	// start, after a Retire or an expiry, by the store's clock; the store sets it
	// and ignores it in a request.
	StartedAt core.Instant
	// ExpiresAt is when the announcement runs out; the store sets it too.
	ExpiresAt core.Instant
}

// NodeState is whether a node runs.
type NodeState uint8

// States of a node.
const (
	// NodeAlive is a node that runs and takes its part of the shards.
	NodeAlive NodeState = iota
	// NodeDraining is a node that runs, gives its shards up and takes none.
	NodeDraining
	// NodeGone is a node whose announcement has run out: it has crashed, or can't
	// reach the store.
	NodeGone
)

// String returns "alive", "draining" or "gone".
func (s NodeState) String() string {
	switch s {
	case NodeAlive:
		return "alive"
	case NodeDraining:
		return "draining"
	case NodeGone:
		return "gone"
	}
	return fmt.Sprintf("NodeState(%d)", uint8(s))
}

// State returns whether the node ran at an instant of the store's clock: the Now of the
// reply that it came with.
func (n Node) State(now core.Instant) NodeState {
	switch {
	case n.ExpiresAt <= now:
		return NodeGone
	case n.Draining:
		return NodeDraining
	}
	return NodeAlive
}

// AnnounceRequest is the announcement that a node runs.
type AnnounceRequest struct {
	Node Node
	// TTL is how long it counts, at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for an owner that is empty, an owner, name, host, version or queue that is no
// [core.Text], a TTL below 1 ms, or more than [MaxLongest] running jobs in the status.
func (r *AnnounceRequest) Validate() error {
	if r.Node.Owner == "" {
		return errNoOwner
	}
	n := &r.Node
	if err := cmp.Or(validateTexts("the node has", n.Owner, n.Name, n.Host, n.Version), validateTexts("the queue", n.Queues...)); err != nil {
		return err
	}
	if n := len(n.Status.Longest); n > MaxLongest {
		return fmt.Errorf("%w: the status names %d running jobs; %d is the most", ErrInvalidRequest, n, MaxLongest)
	}
	for i := range n.Status.Queues {
		if busy := len(n.Status.Queues[i].LaneBusy); busy > MaxLaneBusy {
			return fmt.Errorf("%w: the status names %d shards of %q whose lane is busy; %d is the most", ErrInvalidRequest, busy, n.Status.Queues[i].Queue, MaxLaneBusy)
		}
	}
	return validateTTL(r.TTL)
}

// AnnounceReply is what Announce returns.
type AnnounceReply struct {
	Now core.Instant
	// Nodes are those whose announcement lasts, this one included, without their
	// Status, in order of (Name, Owner).
	Nodes []Node
}

// NodesReply is what Nodes returns.
type NodesReply struct {
	// Now is the store's clock.
	Now core.Instant
	// Nodes are those that run and those that are gone; see [Node.State].
	Nodes []Node
}

// Queue is the record of a declared queue.
type Queue struct {
	Name       string
	Shards     int
	Generation int64
	IndexIDs   bool
	Paused     bool
}

package ports

import (
	"context"
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
	// its Owner announced before. Repeating it renews.
	//
	// Errors: ErrInvalidRequest for an empty owner or a TTL below 1 ms.
	Announce(ctx context.Context, r AnnounceRequest) (AnnounceReply, error)

	// Retire forgets a node at once. A node that is not known is not an error.
	Retire(ctx context.Context, owner string) error

	// Nodes lists the nodes whose announcement lasts, in order of (Name, Owner).
	Nodes(ctx context.Context) ([]Node, error)

	// Queues lists the declared queues in order of name.
	Queues(ctx context.Context) ([]Queue, error)
}

// Node is a running server process.
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
	// StartedAt is when the node announced itself after it was not known, at its
	// start, after a Retire or an expiry, by the store's clock; the store sets it
	// and ignores it in a request.
	StartedAt core.Instant
	// ExpiresAt is when the announcement runs out; the store sets it too.
	ExpiresAt core.Instant
}

// AnnounceRequest is the announcement that a node runs.
type AnnounceRequest struct {
	Node Node
	// TTL is how long it counts, at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for an empty owner or a TTL below 1 ms.
func (r *AnnounceRequest) Validate() error {
	if r.Node.Owner == "" {
		return errNoOwner
	}
	return validateTTL(r.TTL)
}

// AnnounceReply is what Announce returns.
type AnnounceReply struct {
	Now core.Instant
	// Nodes are as Nodes lists them, this one included.
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

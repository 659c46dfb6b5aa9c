package ports

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Registry keeps the list of servers, the list of queues, and the statistics of servers.
type Registry interface {
	// Ping checks whether the store answers and can be used: its version, schema, settings and
	// rights, as far as a read can check them. It is for health checks and costs one or two round
	// trips.
	//
	// Errors: ErrUnusable for a state that does not end by waiting.
	Ping(ctx context.Context) error

	// Announce records that a server runs, for the TTL from now. It replaces the last announcement
	// of the same Owner. A repeated call renews it. A request by DrainNode stays in force until the
	// server is retired or its announcement has run out. Announcements that ran out more than
	// [NodeKept] ago are removed. If the clock stepped back, the end of another server's
	// announcement can be further away than its own TTL. The announcement is then shortened to end
	// that TTL from now, so that a dead server is not listed as alive for as long as the clock
	// stepped back.
	//
	// Errors: ErrInvalidRequest for an owner that is empty, an owner, name, host, version or queue
	// that is not a [core.Text], a TTL below 1 ms, or a status of more than [MaxLongest] running
	// jobs or [MaxLaneBusy] shards of a queue.
	Announce(ctx context.Context, r AnnounceRequest) (AnnounceReply, error)

	// Retire removes a server from the list at once. If the server is not known, Retire returns no
	// error.
	Retire(ctx context.Context, owner string) error

	// Nodes lists the servers whose announcement lasts, or ran out at most [NodeKept] ago, in order
	// of (Name, Owner).
	Nodes(ctx context.Context) (NodesReply, error)

	// DrainNode asks a server to drain or, if drain is false, withdraws that request. Draining of a
	// Node is true while the server itself announces it or this request is in force. A repeated
	// call changes nothing.
	//
	// Errors: ErrUnknownNode if no announcement of that owner lasts.
	DrainNode(ctx context.Context, owner string, drain bool) error

	// Record stores the statistics that an owner has counted, by queue and minute, for
	// [Inspector.History]. A record has the totals that its owner has counted so far for its queue
	// in its minute. Of the records of one owner, queue and minute, the one that has counted most
	// (core.Stats.Counted) stays. So a call may be repeated and may arrive late, and nothing is
	// counted twice. The owner needs no announcement and no lease.
	//
	// Each minute counts in its day of UTC, in the same step: the day is the sum of its minutes, each
	// with the record that stays. If the clock has jumped ahead so far that the store has removed a
	// minute, and back, then the store ignores later records of that minute, which would count
	// twice in the day. It may also ignore those of the same hour.
	//
	// Record ignores records of queues that were not declared, of minutes that began more than
	// [HistoryKept] before the present one, and of minutes that begin more than an hour from now,
	// which occur if the clock stepped back. It may ignore a record that has counted nothing.
	//
	// Errors: ErrInvalidRequest, as RecordRequest.Validate returns it. After another error some of
	// the records may be stored.
	Record(ctx context.Context, r RecordRequest) error

	// Queues lists the declared queues in order of name. While the part of the store that has the
	// list can't be reached, the store may return the list that it read last.
	Queues(ctx context.Context) ([]Queue, error)
}

// NodeKept is how long a store lists a server as gone after its announcement has run out.
const NodeKept = time.Hour

// Node is a server process that runs, or that ran a short while ago.
type Node struct {
	// Owner is the server's id, drawn at its start. It is the owner of the server's leases.
	Owner string
	// Name is the server's name, for people. Several servers may share it.
	Name string
	// Host and PID are the host and the process id.
	Host string
	PID  int
	// Lanes is the number of batches that it runs at once.
	Lanes int
	// Queues are the names of the queues that it serves, in order of declaration.
	Queues []string
	// Version is the version of its program, for people.
	Version string
	// Draining is true if the server releases its shards and takes no new ones, because it stops,
	// or because an operator requested it by DrainNode. In an AnnounceRequest it is true only if
	// the server stops. For a server that is gone it is the last value.
	Draining bool
	// Status is the state of the server at its last announcement. Only Nodes returns it; in the
	// reply of Announce it is zero.
	Status NodeStatus
	// StartedAt is when the server announced itself first: at its start, or after it was retired or
	// its announcement had run out. The store sets it by its own clock and ignores it in a request.
	StartedAt core.Instant
	// ExpiresAt is when the announcement runs out. The store sets it by its own clock and ignores
	// it in a request.
	ExpiresAt core.Instant
}

// NodeState is the state of a server: alive, draining or gone.
type NodeState uint8

// States of a server.
const (
	// NodeAlive is a server that runs and takes its share of the shards.
	NodeAlive NodeState = iota
	// NodeDraining is a server that runs, releases its shards and takes no new ones.
	NodeDraining
	// NodeGone is a server whose announcement has run out: it has crashed, or it can't reach the
	// store.
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

// State returns the state of the server at the given time of the store's clock, usually the Now of
// the reply that has the Node.
func (n Node) State(now core.Instant) NodeState {
	switch {
	case n.ExpiresAt <= now:
		return NodeGone
	case n.Draining:
		return NodeDraining
	}
	return NodeAlive
}

// AnnounceRequest is the announcement that a server runs.
type AnnounceRequest struct {
	Node Node
	// TTL is how long the announcement lasts, at least 1 ms.
	TTL time.Duration
}

// Validate returns [ErrInvalidRequest] for an owner that is empty, an owner, name, host, version or
// queue that is not a [core.Text], a TTL below 1 ms, or a status of more than [MaxLongest] running
// jobs or [MaxLaneBusy] shards of a queue.
func (r *AnnounceRequest) Validate() error {
	if r.Node.Owner == "" {
		return errNoOwner
	}

	n := &r.Node
	if err := cmp.Or(
		validateTexts("the text of the server", n.Owner, n.Name, n.Host, n.Version),
		validateTexts("the name of the queue", n.Queues...),
	); err != nil {
		return err
	}

	if n := len(n.Status.Longest); n > MaxLongest {
		return fmt.Errorf("%w: the status names %d running jobs; the maximum is %d", ErrInvalidRequest, n, MaxLongest)
	}
	for i := range n.Status.Queues {
		if busy := len(n.Status.Queues[i].LaneBusy); busy > MaxLaneBusy {
			return fmt.Errorf("%w: the status names %d shards of %q whose lane is busy; the maximum is %d",
				ErrInvalidRequest, busy, n.Status.Queues[i].Queue, MaxLaneBusy)
		}
	}

	return validateTTL(r.TTL)
}

// AnnounceReply is the result of Announce.
type AnnounceReply struct {
	// Now is the store's clock.
	Now core.Instant
	// Nodes are the servers whose announcement lasts, including this one, without their Status, in
	// order of (Name, Owner).
	Nodes []Node
}

// NodesReply is the result of Nodes.
type NodesReply struct {
	// Now is the store's clock.
	Now core.Instant
	// Nodes are the servers that run and those that are gone, in order of (Name, Owner); see
	// [Node.State].
	Nodes []Node
}

// Queue is the record of a declared queue.
type Queue struct {
	// Name is the queue's name. Shards is its shard count.
	Name   string
	Shards int
	// Generation is the number of its layout, from 1; see DeclareReply.
	Generation int64
	// IndexIDs is true if its queued jobs can be listed by id; see DeclareRequest.
	IndexIDs bool
	// Merge is its merge rule; see DeclareRequest.
	Merge core.MergeRule
	// Paused is true after a Pause, until a Resume.
	Paused bool
	// Settings are what operators have set; see Operator.Configure. Settings that the store can't
	// read are Broken, with their Version if that can be read. The caller owns the slice.
	Settings core.Settings
}

package core

import (
	"errors"
	"fmt"
	"slices"
)

// ErrSplit reports a splitter with invalid settings, or an invalid split: see [Split.Check].
var ErrSplit = errors.New("bad split")

// Split assigns shards to this server and its lanes. This server's shards are either in Lanes or in
// Shared.
type Split struct {
	// Lanes are the shards of each lane of this server, in the order in which the scheduler of the
	// lane sees them. A lane without shards is not started.
	Lanes [][]Shard
	// Shared are the shards that all lanes of this server share, in the order in which their
	// scheduler sees them.
	Shared []Shard
	// Elsewhere are the shards that other servers own.
	Elsewhere []Shard
}

// SplitRequest is the argument of a [Splitter], which must not change it.
type SplitRequest struct {
	// Shards are all shards of the queues that this server serves, queue by queue in order of
	// declaration.
	Shards []Shard
	// Lanes is the number of lanes of this server.
	Lanes int
	// Self is the ID of this server in Nodes.
	Self string
	// Nodes are the servers that are alive and do not drain, in order of ID. They always include
	// this server.
	Nodes []SplitNode
}

// SplitNode is a server as a [Splitter] sees it.
type SplitNode struct {
	// ID is the id of the owner of the server's leases. It is drawn anew at each start of the
	// server.
	ID string
	// Lanes is the number of lanes of the server.
	Lanes int
	// Queues are the names of the queues that the server serves.
	Queues []string
}

// Splitter decides which shards this server owns, and which of its lanes may run them
// (docs/rules.md 6). It is called again whenever Nodes change. Its result must depend only on the
// request, so that all servers agree, and it must be safe for concurrent use.
//
// If it pins shards to lanes, the result must not depend on Nodes, since the lanes are made only
// once, when the server starts. If a Splitter returns an error while the server starts, the server
// ends with that error. Later an error is logged, and the last split stays in force.
type Splitter interface {
	// Split returns the shards of this server.
	Split(r SplitRequest) (Split, error)
}

// SpreadSplitter spreads the shards of each queue over the servers that serve it, in proportion to
// their lanes. Any lane of a server runs batches of any of its shards, also several batches of one
// shard at once, on different ids. When a server joins or leaves, few shards move except its own.
// It is the default.
type SpreadSplitter struct{}

// Split implements [Splitter]. It returns [ErrSplit] for less than one lane. It assumes that this
// server serves the queues of all Shards with r.Lanes lanes, and ignores the element of Nodes for
// this server.
func (SpreadSplitter) Split(r SplitRequest) (Split, error) {
	if err := checkLanes(r.Lanes); err != nil {
		return Split{}, err
	}

	var split Split
	for remaining := r.Shards; len(remaining) > 0; {
		queue, count := remaining[0].Queue, 1
		for count < len(remaining) && remaining[count].Queue == queue {
			count++
		}

		for i, at := range assign(queue, count, r.members(queue)) {
			if at == 0 {
				split.Shared = append(split.Shared, remaining[i])
			} else {
				split.Elsewhere = append(split.Elsewhere, remaining[i])
			}
		}

		remaining = remaining[count:]
	}

	return split, nil
}

// members returns the servers that serve the queue, this one first.
func (r *SplitRequest) members(queue string) []member {
	members := []member{{ID: r.Self, Weight: r.Lanes}}
	for _, n := range r.Nodes {
		if n.ID != r.Self && slices.Contains(n.Queues, queue) {
			members = append(members, member{ID: n.ID, Weight: n.Lanes})
		}
	}
	return members
}

// checkLanes returns ErrSplit for less than one lane.
func checkLanes(lanes int) error {
	if lanes < 1 {
		return fmt.Errorf("%w: %d lanes; a server has at least one", ErrSplit, lanes)
	}
	return nil
}

// LaneSplitter pins shard i to lane i mod lanes, as Lowkiq does. At most one batch of a shard runs
// at a time, and a shard waits while its lane runs a batch of another shard. It is for a server
// that works alone: it ignores the other servers.
type LaneSplitter struct{}

// Split implements [Splitter]. It returns [ErrSplit] for less than one lane.
func (LaneSplitter) Split(r SplitRequest) (Split, error) {
	if err := checkLanes(r.Lanes); err != nil {
		return Split{}, err
	}
	dealt := make([][]Shard, min(r.Lanes, len(r.Shards)))
	for i, s := range r.Shards {
		dealt[i%r.Lanes] = append(dealt[i%r.Lanes], s)
	}
	return Split{Lanes: dealt}, nil
}

// NodeSplitter assigns shard i to node i mod Nodes. It pins a node's shards to its lanes as
// [LaneSplitter] does; with Share all lanes share them. It uses only these numbers and not the list
// of live servers, so no server runs the shards of a node that is down.
type NodeSplitter struct {
	// Nodes is the number of nodes.
	Nodes int
	// Node is the number of this node, from 0.
	Node int
	// Share is true if any lane of the node may run batches of any of the node's shards. If it is
	// false, each shard is pinned to a lane.
	Share bool
}

// Split implements [Splitter]. It returns [ErrSplit] for a Node outside 0 … Nodes-1
// or less than one lane.
func (n NodeSplitter) Split(r SplitRequest) (Split, error) {
	if n.Node < 0 || n.Node >= n.Nodes {
		return Split{}, fmt.Errorf("%w: node %d of %d; nodes count from 0", ErrSplit, n.Node, n.Nodes)
	}
	if err := checkLanes(r.Lanes); err != nil {
		return Split{}, err
	}

	var mine, others []Shard
	for i, s := range r.Shards {
		if i%n.Nodes == n.Node {
			mine = append(mine, s)
		} else {
			others = append(others, s)
		}
	}

	if n.Share {
		return Split{Shared: mine, Elsewhere: others}, nil
	}
	split, err := LaneSplitter{}.Split(SplitRequest{Shards: mine, Lanes: r.Lanes})
	split.Elsewhere = others
	return split, err
}

// Check returns [ErrSplit], with the names of the shards, unless the split has each of the given
// shards exactly once and no other shard. It also returns [ErrSplit] if shards are both in Lanes
// and in Shared.
func (s Split) Check(shards []Shard) error {
	pinned := slices.Concat(s.Lanes...)
	dealt := slices.Concat(pinned, s.Shared, s.Elsewhere)
	count := make(map[Shard]int, len(dealt))
	for _, shard := range dealt {
		count[shard]++
	}

	var errs []error
	if len(pinned) > 0 && len(s.Shared) > 0 {
		errs = append(errs, fmt.Errorf(
			"%w: %d shards are pinned to lanes and %d are shared by them; put all shards of a server in Lanes, "+
				"or all in Shared",
			ErrSplit, len(pinned), len(s.Shared),
		))
	}

	for _, shard := range shards {
		switch n := count[shard]; {
		case n == 0:
			errs = append(errs, fmt.Errorf("%w: shard %v is assigned to no server", ErrSplit, shard))
		case n > 1:
			errs = append(errs, fmt.Errorf("%w: shard %v is assigned %d times", ErrSplit, shard, n))
		}
		delete(count, shard)
	}

	// A shard that is still counted is not one of the given shards.
	for _, shard := range dealt {
		if _, stray := count[shard]; stray {
			errs = append(errs, fmt.Errorf("%w: shard %v does not exist", ErrSplit, shard))
			delete(count, shard)
		}
	}

	return errors.Join(errs...)
}

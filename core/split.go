package core

import (
	"errors"
	"fmt"
	"slices"
)

// ErrSplit is the error of a splitter with invalid settings, or of one that assigned a
// shard twice or to nobody.
var ErrSplit = errors.New("bad split")

// Split says who works which shard. This node's shards are either in Lanes or in Shared.
type Split struct {
	// Lanes are the shards of each of this node's lanes, in the order its
	// scheduler sees them. A lane without shards is dropped.
	Lanes [][]Shard
	// Shared are the shards that all lanes of this node work together, in the order
	// their scheduler sees them.
	Shared []Shard
	// Elsewhere are the shards that other nodes work.
	Elsewhere []Shard
}

// SplitRequest is what a node knows when it asks a [Splitter]. The splitter only reads it.
type SplitRequest struct {
	// Shards are all shards of the queues that this node serves, queue by queue in order of
	// declaration.
	Shards []Shard
	// Lanes is how many lanes this node has.
	Lanes int
	// Self is the ID of this node.
	Self string
	// Nodes are the nodes that are alive and do not drain, in order of ID. This node is always
	// one of them.
	Nodes []SplitNode
}

// SplitNode is a node as a [Splitter] sees it.
type SplitNode struct {
	// ID is the owner of the node's leases. It is drawn anew whenever the node starts.
	ID string
	// Lanes is how many lanes the node has.
	Lanes int
	// Queues are the names of the queues that the node serves.
	Queues []string
}

// Splitter says which shards are this node's, and which of its lanes may work them (RULES 6). It
// is asked again whenever Nodes change. It must be a pure function of the request,
// so that all nodes agree, and safe for concurrent use.
//
// What it pins to a lane, and to which, must not depend on Nodes: Lanes of the [Split] are
// made once. An error ends a server that starts; later it is logged, and the last split stays.
type Splitter interface {
	Split(r SplitRequest) (Split, error)
}

// SpreadSplitter spreads the shards of each queue over the nodes that serve it, in proportion to
// their lanes: each has its exact share, rounded down or up. Any lane of a node runs batches of
// any of the node's shards, several of a shard at once, on different ids. When a node comes or
// goes, few shards but its own move. It is the default.
type SpreadSplitter struct{}

// Split implements [Splitter]. It returns [ErrSplit] for less than one lane. This node
// counts as one that serves the queues of all Shards with its Lanes, whatever Nodes say of it.
func (SpreadSplitter) Split(r SplitRequest) (Split, error) {
	if err := checkLanes(r.Lanes); err != nil {
		return Split{}, err
	}
	var split Split
	for rest := r.Shards; len(rest) > 0; {
		queue, count := rest[0].Queue, 1
		for count < len(rest) && rest[count].Queue == queue {
			count++
		}
		for i, at := range assign(queue, count, r.members(queue)) {
			if at == 0 {
				split.Shared = append(split.Shared, rest[i])
			} else {
				split.Elsewhere = append(split.Elsewhere, rest[i])
			}
		}
		rest = rest[count:]
	}
	return split, nil
}

// members returns the nodes that serve the queue, this one first.
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
		return fmt.Errorf("%w: %d lanes; a node has at least one", ErrSplit, lanes)
	}
	return nil
}

// LaneSplitter pins shard i to lane i mod lanes, as Lowkiq does: a shard runs one batch at a
// time, and waits while its lane is busy with another. It is for a node that works alone: it
// ignores the other nodes.
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

// NodeSplitter assigns shard i to node i mod Nodes, and a node's shards to its lanes
// as [LaneSplitter] does, or with Share to all of them. It goes by these numbers alone, so the
// shards of a node that is down are worked by nobody.
type NodeSplitter struct {
	// Nodes is how many nodes there are.
	Nodes int
	// Node is the number of this node, from 0.
	Node int
	// Share lets any lane of the node run batches of any of the node's shards. Default:
	// each shard is pinned to a lane.
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

// Check returns [ErrSplit], naming the shards, unless each of the given shards is
// dealt exactly once and nothing else is. It returns [ErrSplit] as well if shards are both in
// Lanes and in Shared.
func (s Split) Check(shards []Shard) error {
	pinned := slices.Concat(s.Lanes...)
	dealt := slices.Concat(pinned, s.Shared, s.Elsewhere)
	count := make(map[Shard]int, len(dealt))
	for _, shard := range dealt {
		count[shard]++
	}
	var errs []error
	if len(pinned) > 0 && len(s.Shared) > 0 {
		errs = append(errs, fmt.Errorf("%w: %d shards are pinned to lanes and %d are shared by them; a node's shards are all in Lanes or all in Shared",
			ErrSplit, len(pinned), len(s.Shared)))
	}
	for _, shard := range shards {
		switch n := count[shard]; {
		case n == 0:
			errs = append(errs, fmt.Errorf("%w: shard %v is dealt to nobody", ErrSplit, shard))
		case n > 1:
			errs = append(errs, fmt.Errorf("%w: shard %v is dealt %d times", ErrSplit, shard, n))
		}
		delete(count, shard)
	}
	for _, shard := range dealt {
		if _, stray := count[shard]; stray {
			errs = append(errs, fmt.Errorf("%w: shard %v does not exist", ErrSplit, shard))
			delete(count, shard)
		}
	}
	return errors.Join(errs...)
}

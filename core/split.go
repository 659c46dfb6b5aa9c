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

// Splitter assigns shards to nodes and their lanes (RULES 6). The shards are listed queue by queue in
// order of declaration. It must be a pure function, so that all nodes agree, and safe
// for concurrent use.
type Splitter interface {
	Split(shards []Shard, lanes int) (Split, error)
}

// SharedSplitter assigns all shards to all lanes of the node: any lane runs batches of any
// shard, and a shard runs several at once, on different ids. It is the default.
type SharedSplitter struct{}

// Split implements [Splitter]. It returns [ErrSplit] for less than one lane.
func (SharedSplitter) Split(shards []Shard, lanes int) (Split, error) {
	if err := checkLanes(lanes); err != nil {
		return Split{}, err
	}
	return Split{Shared: slices.Clone(shards)}, nil
}

// checkLanes returns ErrSplit for less than one lane.
func checkLanes(lanes int) error {
	if lanes < 1 {
		return fmt.Errorf("%w: %d lanes; a node has at least one", ErrSplit, lanes)
	}
	return nil
}

// LaneSplitter pins shard i to lane i mod lanes, as Lowkiq does: a shard runs one batch at a
// time, and waits while its lane is busy with another. It is for a node that works alone.
type LaneSplitter struct{}

// Split implements [Splitter]. It returns [ErrSplit] for less than one lane.
func (LaneSplitter) Split(shards []Shard, lanes int) (Split, error) {
	if err := checkLanes(lanes); err != nil {
		return Split{}, err
	}
	dealt := make([][]Shard, min(lanes, len(shards)))
	for i, s := range shards {
		dealt[i%lanes] = append(dealt[i%lanes], s)
	}
	return Split{Lanes: dealt}, nil
}

// NodeSplitter assigns shard i to node i mod Nodes, and a node's shards to its lanes
// as [LaneSplitter] does, or with Share as [SharedSplitter] does. The shards of a node that
// is down are worked by nobody.
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
func (n NodeSplitter) Split(shards []Shard, lanes int) (Split, error) {
	if n.Node < 0 || n.Node >= n.Nodes {
		return Split{}, fmt.Errorf("%w: node %d of %d; nodes count from 0", ErrSplit, n.Node, n.Nodes)
	}
	var mine, others []Shard
	for i, s := range shards {
		if i%n.Nodes == n.Node {
			mine = append(mine, s)
		} else {
			others = append(others, s)
		}
	}
	var within Splitter = LaneSplitter{}
	if n.Share {
		within = SharedSplitter{}
	}
	split, err := within.Split(mine, lanes)
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

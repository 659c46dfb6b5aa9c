package core

import (
	"errors"
	"fmt"
	"slices"
)

// ErrSplit is the error of a splitter with invalid settings, or of one that assigned a
// shard twice or to nobody.
var ErrSplit = errors.New("bad split")

// Split says who works which shard.
type Split struct {
	// Lanes are the shards of each of this node's lanes, in the order its
	// scheduler sees them. A lane without shards is dropped.
	Lanes [][]Shard
	// Elsewhere are the shards that other nodes work.
	Elsewhere []Shard
}

// Splitter assigns shards to lanes (RULES 6). The shards are listed queue by queue in
// order of declaration. It must be a pure function, so that all nodes agree, and safe
// for concurrent use.
type Splitter interface {
	Split(shards []Shard, lanes int) (Split, error)
}

// LaneSplitter assigns shard i to lane i mod lanes. It is the default, for a node that
// works alone.
type LaneSplitter struct{}

// Split implements [Splitter]. It returns [ErrSplit] for less than one lane.
func (LaneSplitter) Split(shards []Shard, lanes int) (Split, error) {
	if lanes < 1 {
		return Split{}, fmt.Errorf("%w: %d lanes; a node has at least one", ErrSplit, lanes)
	}
	dealt := make([][]Shard, min(lanes, len(shards)))
	for i, s := range shards {
		dealt[i%lanes] = append(dealt[i%lanes], s)
	}
	return Split{Lanes: dealt}, nil
}

// NodeSplitter assigns shard i to node i mod Nodes, and a node's shards to its lanes
// as [LaneSplitter] does. The shards of a node that is down are worked by nobody.
type NodeSplitter struct {
	// Nodes is how many nodes there are.
	Nodes int
	// Node is the number of this node, from 0.
	Node int
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
	split, err := LaneSplitter{}.Split(mine, lanes)
	split.Elsewhere = others
	return split, err
}

// Check returns [ErrSplit], naming the shards, unless each of the given shards is
// dealt exactly once and nothing else is.
func (s Split) Check(shards []Shard) error {
	dealt := append(slices.Concat(s.Lanes...), s.Elsewhere...)
	count := make(map[Shard]int, len(dealt))
	for _, shard := range dealt {
		count[shard]++
	}
	var errs []error
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

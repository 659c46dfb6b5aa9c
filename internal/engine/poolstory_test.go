package engine_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
)

// TestPoolStories is about nodes of a thousand lanes that share all shards, which two nodes either
// contend for or have dealt out.
func TestPoolStories(t *testing.T) {
	runStories(t, tier.Count(15, 100), storyKind{
		ids:   1300,
		first: 1000,
		steps: 25,
		step:  3 * time.Second,
		burst: 80,
		long:  30 * time.Second,
		lanes: func(s *story) int { return []int{1000, 1000, 1000, 10 + s.n(50)}[s.n(4)] },
		splitter: func(s *story, node int) core.Splitter {
			if s.seed%2 == 0 {
				return core.NodeSplitter{Nodes: storyNodes, Node: node, Share: true}
			}
			return core.SpreadSplitter{}
		},
	})
}

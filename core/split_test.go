package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

type splitVector struct {
	Queues [][2]any
	Lanes  int
	Nodes  int
	Node   int
	Split  [][]string
}

func (v *splitVector) shards() []core.Shard {
	var shards []core.Shard
	for _, q := range v.Queues {
		shards = append(shards, core.Shards(q[0].(string), int(q[1].(float64)))...)
	}
	return shards
}

func (v *splitVector) splitter() core.Splitter {
	if v.Nodes > 0 {
		return core.NodeSplitter{Nodes: v.Nodes, Node: v.Node}
	}
	return core.LaneSplitter{}
}

func TestSplitterVectors(t *testing.T) {
	for i, v := range vectors[splitVector](t, "splitters.json") {
		t.Run(fmt.Sprintf("%d_node_%d_of_%d_%d_lanes", i, v.Node, v.Nodes, v.Lanes), func(t *testing.T) {
			split, err := v.splitter().Split(core.SplitRequest{Shards: v.shards(), Lanes: v.Lanes})
			if err != nil {
				t.Fatal(err)
			}

			var got [][]string
			for _, lane := range split.Lanes {
				var names []string
				for _, s := range lane {
					names = append(names, fmt.Sprint(s.Queue, s.Index))
				}
				got = append(got, names)
			}

			if len(v.Split) == 0 {
				v.Split = nil
			}
			equal(t, "lanes", v.Split, got)
			if err := split.Check(v.shards()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNodesShareTheShardsWithoutOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := core.Shards("orders", rapid.IntRange(0, 40).Draw(t, "shards"))
		nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
		all := core.Split{}
		for node := range nodes {
			split, err := core.NodeSplitter{Nodes: nodes, Node: node}.Split(core.SplitRequest{
				Shards: shards,
				Lanes:  rapid.IntRange(1, 8).Draw(t, "lanes"),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := split.Check(shards); err != nil {
				t.Fatalf("node %d: %v", node, err)
			}
			for _, lane := range split.Lanes {
				if len(lane) == 0 {
					t.Fatalf("node %d has a lane without shards", node)
				}
			}
			all.Lanes = append(all.Lanes, split.Lanes...)
		}

		if err := all.Check(shards); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSharedShardsAreThoseThatWouldBePinned has each node share the shards that it would deal to
// its lanes.
func TestSharedShardsAreThoseThatWouldBePinned(t *testing.T) {
	shards := append(core.Shards("orders", 5), core.Shards("mails", 2)...)
	for _, pair := range []struct {
		name           string
		pinned, shared core.Splitter
	}{
		{"one node", core.LaneSplitter{}, core.SpreadSplitter{}},
		{"the first of three", core.NodeSplitter{Nodes: 3}, core.NodeSplitter{Nodes: 3, Share: true}},
		{"the last of three", core.NodeSplitter{Nodes: 3, Node: 2}, core.NodeSplitter{Nodes: 3, Node: 2, Share: true}},
		{"the last of eight", core.NodeSplitter{Nodes: 8, Node: 7}, core.NodeSplitter{Nodes: 8, Node: 7, Share: true}},
	} {
		t.Run(pair.name, func(t *testing.T) {
			pinned, err := pair.pinned.Split(core.SplitRequest{Shards: shards, Lanes: 1})
			if err != nil {
				t.Fatal(err)
			}

			for _, lanes := range []int{1, 4} {
				shared, err := pair.shared.Split(core.SplitRequest{Shards: shards, Lanes: lanes})
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "shared", slices.Concat(pinned.Lanes...), shared.Shared)
				equal(t, "elsewhere", pinned.Elsewhere, shared.Elsewhere)
				if len(shared.Lanes) != 0 {
					t.Errorf("%v are pinned as well", shared.Lanes)
				}
				if err := shared.Check(shards); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestSplittersRefuseImpossibleSettings(t *testing.T) {
	tests := []struct {
		name     string
		splitter core.Splitter
		lanes    int
	}{
		{"no lanes", core.LaneSplitter{}, 0},
		{"no lanes to share", core.SpreadSplitter{}, 0},
		{"no lanes of a node to share", core.NodeSplitter{Nodes: 2, Share: true}, 0},
		{"negative lanes", core.LaneSplitter{}, -1},
		{"no lanes of a node", core.NodeSplitter{Nodes: 2, Node: 1}, 0},
		{"no nodes", core.NodeSplitter{}, 1},
		{"a node below 0", core.NodeSplitter{Nodes: 2, Node: -1}, 1},
		{"a node past the last", core.NodeSplitter{Nodes: 2, Node: 2}, 1},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.splitter.Split(core.SplitRequest{
				Shards: core.Shards("orders", 3),
				Lanes:  tt.lanes,
			}); !errors.Is(err, core.ErrSplit) {
				t.Errorf("got %v, want ErrSplit", err)
			}
		})
	}
}

func TestSplitCheckNamesEveryShardThatIsDealtWrongly(t *testing.T) {
	shards := core.Shards("orders", 4)
	stray := core.Shards("strays", 2)
	split := core.Split{
		Lanes:     [][]core.Shard{{shards[0], shards[1], stray[1]}, {shards[1], stray[0]}},
		Elsewhere: []core.Shard{shards[3]},
	}
	err := split.Check(shards)
	if !errors.Is(err, core.ErrSplit) {
		t.Fatalf("got %v, want ErrSplit", err)
	}
	want := []string{
		"bad split: shard orders/1 is assigned 2 times",
		"bad split: shard orders/2 is assigned to no server",
		"bad split: shard strays/1 does not exist",
		"bad split: shard strays/0 does not exist",
	}
	equal(t, "report", want, strings.Split(err.Error(), "\n"))
}

func TestSplitCheckKnowsSharedShards(t *testing.T) {
	shards := core.Shards("orders", 3)
	for _, c := range []struct {
		name  string
		split core.Split
		want  string
	}{
		{"lost", core.Split{Shared: shards[:2]}, "bad split: shard orders/2 is assigned to no server"},
		{"shared twice", core.Split{Shared: slices.Concat(shards, shards[1:2])},
			"bad split: shard orders/1 is assigned 2 times"},
		{"shared and elsewhere", core.Split{Shared: shards, Elsewhere: shards[:1]},
			"bad split: shard orders/0 is assigned 2 times"},
		{"stray", core.Split{Shared: core.Shards("orders", 4)}, "bad split: shard orders/3 does not exist"},
		{"some pinned, some shared", core.Split{Lanes: [][]core.Shard{shards[:1]}, Shared: shards[1:]},
			"bad split: 1 shards are pinned to lanes and 2 are shared by them; put all shards of a server in Lanes, " +
				"or all in Shared"},
		{"lanes without shards", core.Split{Lanes: [][]core.Shard{nil, {}}, Shared: shards}, ""},
		{"shared and elsewhere in part", core.Split{Shared: shards[:1], Elsewhere: shards[1:]}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.split.Check(shards)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, core.ErrSplit) || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestLiveNodesSpreadTheShards has each of some nodes request its part of its queues, by a list
// that is the same for all.
func TestLiveNodesSpreadTheShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := map[string]int{"orders": 7, "mails": 24, "invoices": 5}
		queues := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"orders", "mails", "invoices"}), 1, 3,
			rapid.ID[string])

		var nodes []core.SplitNode
		members := map[string][]core.Member{}
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			n := core.SplitNode{
				ID:     fmt.Sprint("node-", i),
				Lanes:  rapid.IntRange(1, 40).Draw(t, "lanes"),
				Queues: queues.Draw(t, "queues"),
			}
			nodes = append(nodes, n)
			for _, q := range n.Queues {
				members[q] = append(members[q], core.Member{ID: n.ID, Weight: n.Lanes})
			}
		}

		got := map[core.Shard]string{}
		for _, n := range nodes {
			var mine []core.Shard
			for _, q := range n.Queues {
				mine = append(mine, core.Shards(q, counts[q])...)
			}

			split, err := core.SpreadSplitter{}.Split(core.SplitRequest{
				Shards: mine,
				Lanes:  n.Lanes,
				Self:   n.ID,
				Nodes:  nodes,
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := split.Check(mine); err != nil || len(split.Lanes) != 0 {
				t.Fatalf("%s: %d lanes have shards, %v; want all shared", n.ID, len(split.Lanes), err)
			}

			for _, s := range split.Shared {
				if got[s] != "" {
					t.Fatalf("%v belongs to %s and to %s", s, got[s], n.ID)
				}
				got[s] = n.ID
			}
		}

		for q, m := range members {
			for shard, owner := range core.Assign(q, counts[q], m) {
				if s := (core.Shard{Queue: q, Index: shard}); got[s] != m[owner].ID {
					t.Fatalf("%v belongs to %q, want %q", s, got[s], m[owner].ID)
				}
			}
		}
	})
}

func TestANodeCountsItselfWhateverTheListSays(t *testing.T) {
	shards := slices.Concat(core.Shards("orders", 4), core.Shards("mails", 3))
	other := core.SplitNode{ID: "other", Lanes: 2, Queues: []string{"orders", "mails"}}
	self := core.SplitNode{ID: "self", Lanes: 3, Queues: []string{"mails", "orders"}}
	want, err := core.SpreadSplitter{}.Split(core.SplitRequest{
		Shards: shards,
		Lanes:  3,
		Self:   "self",
		Nodes:  []core.SplitNode{other, self},
	})
	if err != nil || len(want.Shared) == 0 || len(want.Elsewhere) == 0 {
		t.Fatalf("Split = %v, %v; want some here and some elsewhere", want, err)
	}

	for name, nodes := range map[string][]core.SplitNode{
		"not in the list":       {other},
		"with no queue":         {other, {ID: "self", Lanes: 3}},
		"with an earlier count": {other, {ID: "self", Lanes: 20, Queues: self.Queues}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := core.SpreadSplitter{}.Split(core.SplitRequest{
				Shards: shards,
				Lanes:  3,
				Self:   "self",
				Nodes:  nodes,
			})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "split", want, got)
		})
	}

	alone, err := core.SpreadSplitter{}.Split(core.SplitRequest{Shards: shards, Lanes: 1, Self: "self"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "split of one that is alone", core.Split{Shared: shards}, alone)
}

package membership_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/membership"
	"github.com/skeinq/skein/ports"
)

const interval = 10 * time.Second

var began = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// node is a node "a" of the test, and the shards that are assigned to it.
type node struct {
	membership.Members
	self membership.Self
}

func newNode(splitter core.Splitter, shards int) *node {
	n := &node{Members: membership.Members{
		Owner:    "a",
		Interval: interval,
		Splitter: splitter,
		Logger:   slog.New(slog.DiscardHandler),
		Observer: ports.NopObserver{},
	}}
	n.self = membership.Self{SplitNode: splitNode("a"), All: core.Shards("orders", shards)}
	for _, id := range n.self.All {
		n.self.Shards = append(n.self.Shards, membership.Shard{Shard: id})
	}
	return n
}

func splitNode(owner string) core.SplitNode {
	return core.SplitNode{ID: owner, Lanes: 1, Queues: []string{"orders"}}
}

// share lets the node work at a time after the beginning, and returns how many shards it gains and
// loses, and when it looks again.
func (n *node) share(at time.Duration, answer *ports.AnnounceReply) [3]int {
	change, wait := n.Share(&n.self, answer, began.Add(at))
	for i := range n.self.Shards {
		s := &n.self.Shards[i]
		for _, id := range change.Gained {
			s.Assigned = s.Assigned || s.Shard == id
		}
		for _, id := range change.Lost {
			s.Assigned = s.Assigned && s.Shard != id
		}
	}
	return [3]int{len(change.Gained), len(change.Lost), int((at + wait) / time.Second)}
}

// list is an answer with some nodes, whose announcements last for three intervals.
func list(owners ...string) *ports.AnnounceReply {
	answer := &ports.AnnounceReply{Now: 1}
	for _, owner := range owners {
		answer.Nodes = append(answer.Nodes, ports.Node{
			Owner: owner, Name: owner, Lanes: 1, Queues: []string{"orders"}, ExpiresAt: answer.Now.Add(3 * interval),
		})
	}
	return answer
}

func TestShardsAreGainedAtOnceAndLostAfterAnIntervalWithoutChange(t *testing.T) {
	n := newNode(core.SpreadSplitter{}, 4)
	draining := list("a", "b")
	draining.Nodes[0].Draining = true
	ending := list("a", "b")
	ending.Nodes[1].ExpiresAt = ending.Now.Add(3 * time.Second)
	for _, step := range []struct {
		name   string
		at     time.Duration
		answer *ports.AnnounceReply
		want   [3]int // gained, lost, second of the next look
	}{
		{"a node without an answer counts itself", 0, nil, [3]int{4, 0, 10}},
		{"the list changes", 5 * time.Second, list("a", "b"), [3]int{0, 0, 15}},
		{"no answer changes nothing", 10 * time.Second, nil, [3]int{0, 0, 15}},
		{"the interval is over", 15 * time.Second, list("a", "b"), [3]int{0, 2, 25}},
		{"an announcement ends soon", 25 * time.Second, ending, [3]int{0, 0, 28}},
		{"the other is gone", 28 * time.Second, list("a"), [3]int{2, 0, 38}},
		{"this node drains", 38 * time.Second, draining, [3]int{0, 4, 48}},
		{"it works again", 48 * time.Second, list("a"), [3]int{4, 0, 58}},
	} {
		if diff := cmp.Diff(step.want, n.share(step.at, step.answer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// broken is a splitter that can fail.
type broken struct{ err error }

func (b *broken) Split(r core.SplitRequest) (core.Split, error) {
	return core.Split{Shared: r.Shards}, b.err
}

func TestShardsOfRemovedQueuesGoAtOnceAndABrokenSplitterChangesNothing(t *testing.T) {
	splitter := &broken{}
	n := newNode(splitter, 3)
	if got := n.share(0, list("a")); got != [3]int{3, 0, 10} {
		t.Errorf("alone: %v", got)
	}
	splitter.err = errors.New("boom")
	if got := n.share(time.Second, list("a", "b")); got != [3]int{0, 0, 11} {
		t.Errorf("the splitter fails: %v", got)
	}
	splitter.err = nil
	n.self.All, n.self.Queues = nil, nil
	for i := range n.self.Shards {
		n.self.Shards[i].Removed = true
	}
	if got := n.share(2*time.Second, list("a", "b")); got != [3]int{0, 3, 12} {
		t.Errorf("the queue is removed: %v", got)
	}
}

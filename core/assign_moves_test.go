package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
)

// cluster is nodes that join and leave at random, and the owner of each shard of each queue.
type cluster struct {
	*testing.T
	random  *rand.Rand
	most    int // of a weight
	members []core.Member
	owners  map[string][]string // IDs by queue and shard
}

func (c *cluster) join() {
	c.members = append(c.members, core.Member{
		ID:     fmt.Sprintf("%016x", c.random.Uint64()),
		Weight: 1 + c.random.IntN(c.most),
	})
}

// step lets one node join or leave. There are always 2 to 12 nodes.
func (c *cluster) step() {
	if n := len(c.members); n == 2 || n < 12 && c.random.IntN(2) == 0 {
		c.join()
	} else {
		i := c.random.IntN(n)
		c.members = slices.Delete(c.members, i, i+1)
	}
}

// assign deals a queue's shards anew. It returns the number of shards that moved, and the smallest
// number that had to move. It fails the test if a member does not have its exact share, rounded
// down or up.
func (c *cluster) assign(queue string, shards int) (moved, least int) {
	owners := core.Assign(queue, shards, c.members)
	want := sharesOf(shards, c.members)
	for i, n := range loads(c, owners, len(c.members)) {
		if n < want.low[i] || n > want.high[i] {
			c.Fatalf("%s: member %d of %+v has %d shards, want %d to %d",
				queue, i, c.members, n, want.low[i], want.high[i])
		}
	}
	before := c.owners[queue]
	c.owners[queue] = make([]string, shards)
	for shard, owner := range owners {
		c.owners[queue][shard] = c.members[owner].ID
		if before != nil && before[shard] != c.members[owner].ID {
			moved++
		}
	}
	if before == nil {
		return 0, 0
	}
	return moved, leastMoves(before, c.members, want)
}

// leastMoves returns the smallest number of shards that must move from these owners so that the
// members have their shares. It assumes that the shards to move, and the members whose share is
// rounded up, can be chosen freely. Each member keeps at most its share rounded down. Of the
// members that have more now, some keep one more: as many as may have a share rounded up.
func leastMoves(before []string, members []core.Member, s shares) int {
	had := map[string]int{}
	for _, id := range before {
		had[id]++
	}
	stay, more := 0, 0
	for i, m := range members {
		stay += min(had[m.ID], s.low[i])
		if s.high[i] > s.low[i] && had[m.ID] > s.low[i] {
			more++
		}
	}
	return len(before) - stay - min(more, s.extra)
}

// TestFewShardsMove lets nodes join and leave thousands of times. It compares the number of shards
// that move in all steps with the sum of the smallest numbers that had to move in each step. An
// assignment that remembers the last one would need no more moves. But nodes agree only by the list
// that they see now, so some shards move without need. That is a greater part if most nodes have
// one shard or no shard.
func TestFewShardsMove(t *testing.T) {
	steps := tier.Count(4000, 10_000)
	for _, tt := range []struct {
		name         string
		shards, most int
		limit        float64
	}{
		{"24 shards, equal weights", 24, 1, 1.6},
		{"24 shards, weights to 3", 24, 3, 1.6},
		{"24 shards, weights to 100", 24, 100, 1.6},
		{"8 shards, equal weights", 8, 1, 1.8},
		{"8 shards, weights to 100", 8, 100, 1.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &cluster{T: t, random: rand.New(rand.NewPCG(14, 24)), most: tt.most, owners: map[string][]string{}}
			for range 6 {
				c.join()
			}

			var moves, least int
			for range steps {
				for _, queue := range []string{"orders", "mails", "invoices"} {
					moved, must := c.assign(queue, tt.shards)
					moves, least = moves+moved, least+must
				}
				c.step()
			}

			ratio := float64(moves) / float64(least)
			t.Logf("%d shards moved in %d steps, the least possible is %d: %.3f times that", moves, steps, least, ratio)
			if ratio > tt.limit {
				t.Errorf("%.3f times as many shards moved as must, want %.1f at most", ratio, tt.limit)
			}
		})
	}
}

// BenchmarkAssign assigns queues of three sizes. The largest queue that there may be takes about
// 12 ms of a processor's time among 100 nodes.
func BenchmarkAssign(b *testing.B) {
	for _, size := range []struct{ shards, members int }{{24, 12}, {1000, 16}, {core.MaxShards, 100}} {
		b.Run(fmt.Sprintf("%d shards %d members", size.shards, size.members), func(b *testing.B) {
			var members []core.Member
			for i := range size.members {
				members = append(members, core.Member{ID: fmt.Sprint("node-", i), Weight: 1 + i%50})
			}
			b.ReportAllocs()
			for b.Loop() {
				core.Assign("orders", size.shards, members)
			}
		})
	}
}

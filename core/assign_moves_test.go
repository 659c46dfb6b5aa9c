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
	c.members = append(c.members, core.Member{ID: fmt.Sprintf("%016x", c.random.Uint64()), Weight: 1 + c.random.IntN(c.most)})
}

// step has one node join or leave, such that there are 2 to 12.
func (c *cluster) step() {
	if n := len(c.members); n == 2 || n < 12 && c.random.IntN(2) == 0 {
		c.join()
	} else {
		i := c.random.IntN(n)
		c.members = slices.Delete(c.members, i, i+1)
	}
}

// assign deals a queue's shards anew. It returns how many moved, and how many had to. It fails
// the test if a member has not its exact share, rounded down or up.
func (c *cluster) assign(queue string, shards int) (moved, least int) {
	owners := core.Assign(queue, shards, c.members)
	want := sharesOf(shards, c.members)
	for i, n := range loads(c, owners, len(c.members)) {
		if n < want.low[i] || n > want.high[i] {
			c.Fatalf("%s: member %d of %+v has %d shards, want %d to %d", queue, i, c.members, n, want.low[i], want.high[i])
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

// leastMoves returns how many shards must move from these owners for members to have their shares,
// if one could choose which, and who of those with a fraction gets a shard more: all but those
// that can stay. A member can keep its share rounded down, and as many of those that have more by
// now can keep one more as members may have one more.
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

// TestFewShardsMove has nodes join and leave thousands of times. All shards that move in all steps
// are compared with the least possible of each step, from what the step before has left. Who could
// remember would need no more; but nodes agree without a word by what they see now, so a newcomer
// must get shards by chance that it had no need of. Where most nodes have one shard or none, that
// is a greater part.
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

// BenchmarkAssign deals for the largest queue that there may be among 100 nodes: about 12 ms of a
// processor's time.
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

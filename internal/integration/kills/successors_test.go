package kills_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

// successorsWithin is how long after a killed node's lease is over its shards are worked
// again, on a quiet machine.
const successorsWithin = time.Second

// Nodes are killed one after another, and each is started again at once. Soon after the end of its
// lease the jobs of its shards run again, those that it had claimed and those that had
// waited behind them.
func TestSuccessorsStartSoonAfterAKill(t *testing.T) {
	tier.Long(t, "kills processes at length")
	kills := kit.FromVariable(t, killsVariable, 3)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func() time.Duration { return killOwners(t, open(t), kills) })
		})
	}
}

// killOwners returns how much later than allowed a job of a dead node's shard began.
func killOwners(t *testing.T, url string, kills int) (late time.Duration) {
	f := newFlow(t, url)
	nodes, start := f.startAll("flow-short", 2)
	var next, unclaimed kit.Spread
	for range kills {
		f.during(rand.N(flowShortTTL))
		victim := nodes[0]
		shards, seen, killed := f.ownedBy(victim), len(f.lines), time.Now()
		victim.kill(t)
		nodes = []*process{nodes[1], f.start("flow-short")}
		for _, shard := range shards {
			next = append(next, f.awaitSuccessor(shard, victim, seen, false).Sub(killed))
			unclaimed = append(unclaimed, f.awaitSuccessor(shard, victim, seen, true).Sub(killed))
		}
		f.awaitSharing(nodes)
	}
	f.finish(nodes)
	may := flowShortTTL + scaled(successorsWithin, start, flowStart)
	t.Logf("a job done %v after the start; %d kills with a TTL of %v, %v allowed; "+
		"time until a job of each shard began: %v; until one that was not recovered: %v",
		start, kills, flowShortTTL, may, next, unclaimed)
	return max(next.At(99), unclaimed.At(99)) - may
}

// awaitSuccessor returns when the first job of a shard began on another node than the dead one, by
// lines that were not seen before its death; or the first that was not recovered.
func (f *flow) awaitSuccessor(shard int, dead *process, seen int, unclaimed bool) (at time.Time) {
	f.t.Helper()
	f.until("a killed node's shard is worked again", func() bool {
		for ; seen < len(f.lines); seen++ {
			l := f.lines[seen]
			if l.what == lineBegan && l.pid != dead.pid() && core.ShardOf(l.id, flowShards) == shard &&
				(!unclaimed || l.recoveries == 0) {
				at = l.at
				return true
			}
		}
		return false
	})
	return at
}

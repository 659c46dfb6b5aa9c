package kills_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

const (
	// stopsVariable is how many nodes are stopped one after another, and redeploysVariable how
	// often all nodes are replaced, by default a few times.
	stopsVariable     = "SKEIN_TEST_STOPS"
	redeploysVariable = "SKEIN_TEST_REDEPLOYS"

	// handOverWithin is the longest time from the end of a shard's last job on one node until its
	// first job on the next node begins. flowGap is the longest time in which no job of a shard
	// begins, or, if all nodes are replaced, in which no job ends. Both are for a quiet machine.
	handOverWithin = 300 * time.Millisecond
	flowGap        = time.Second
)

// A node that is stopped under load hands its shards over, and so does one that another joins.
func TestStoppedNodesHandTheirShardsOverUnderLoad(t *testing.T) {
	tier.Long(t, "replaces processes at length")
	stops := kit.FromVariable(t, stopsVariable, 4)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func() time.Duration { return stopNodes(t, open(t), stops) })
		})
	}
}

// stopNodes returns how much longer than allowed a hand-over or a gap took.
func stopNodes(t *testing.T, url string, stops int) (late time.Duration) {
	f := newFlow(t, url)
	nodes, start := f.startAll("flow", 2)
	stopped := map[int]time.Time{}
	for range stops {
		stopped[nodes[0].pid()] = time.Now()
		f.stop(nodes[0])
		f.awaitSharing(nodes[1:])
		nodes = []*process{nodes[1], f.start("flow")}
		f.awaitSharing(nodes)
	}
	lines := f.lines
	f.checkOnce(nodes)
	ofStopped, ofOthers, gaps := handOversIn(lines, stopped)
	t.Logf("a job done %v after the start; %d clean stops; hand-overs of a shard by a stopped node: %v; "+
		"by one that continues: %v; between two jobs of a shard: %v",
		start, stops, ofStopped, ofOthers, gaps)
	return max(ofStopped.At(99)-scaled(handOverWithin, start, flowStart),
		gaps.At(100)-scaled(flowGap, start, flowStart))
}

// handOversIn returns the times from the end of a shard's last job on one node until its first job
// on the next one begins: those of nodes that had been stopped, and those of other nodes. gaps are
// the times between the beginnings of two jobs of a shard.
func handOversIn(lines []journalLine, stopped map[int]time.Time) (ofStopped, ofOthers, gaps kit.Spread) {
	var began, ended [flowShards]journalLine
	for _, l := range lines {
		if l.what != lineBegan && l.what != lineEnded {
			continue
		}
		shard := core.ShardOf(l.id, flowShards)
		if l.what == lineEnded {
			ended[shard] = l
			continue
		}
		last, end := began[shard], ended[shard]
		began[shard] = l
		if last.pid == 0 {
			continue
		}
		gaps = append(gaps, l.at.Sub(last.at))
		switch {
		case last.pid == l.pid || end.pid != last.pid:
		case !stopped[last.pid].IsZero() && l.at.After(stopped[last.pid]):
			ofStopped = append(ofStopped, l.at.Sub(end.at))
		default:
			ofOthers = append(ofOthers, l.at.Sub(end.at))
		}
	}
	return ofStopped, ofOthers, gaps
}

// Four nodes are replaced one by one under load, whether the new one starts before or after
// the old one stops. No second passes without a job that is done, and no execution is repeated.
func TestRedeploysUnderLoadRepeatNothing(t *testing.T) {
	tier.Long(t, "replaces processes at length")
	rounds := kit.FromVariable(t, redeploysVariable, 1)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for order, newFirst := range map[string]bool{"new first": true, "old first": false} {
				t.Run(order, func(t *testing.T) {
					inTime(t, func() time.Duration { return redeploy(t, open(t), rounds, newFirst) })
				})
			}
		})
	}
}

// redeploy returns how much longer than allowed no job ended.
func redeploy(t *testing.T, url string, rounds int, newFirst bool) (late time.Duration) {
	f := newFlow(t, url)
	nodes, start := f.startAll("flow", 4)
	seen, began := len(f.lines), time.Now()
	for range rounds {
		f.during(rand.N(4 * time.Second)) // so that the nodes may or may not have agreed on the shards
		for i, old := range nodes {
			if !newFirst {
				f.stop(old)
			}
			nodes[i] = f.start("flow")
			f.awaitReady(nodes[i])
			if newFirst {
				f.stop(old)
			}
		}
	}
	took := time.Since(began)
	var gaps kit.Spread
	var last time.Time
	for _, l := range f.lines[seen:] {
		if l.what != lineEnded {
			continue
		}
		if !last.IsZero() {
			gaps = append(gaps, l.at.Sub(last))
		}
		last = l.at
	}
	f.checkOnce(nodes)
	t.Logf("%d times 4 nodes were replaced in %v; between two jobs that were done: %v",
		rounds, took.Round(time.Second), gaps)
	return gaps.At(100) - scaled(flowGap, start, flowStart)
}

// checkOnce lets the nodes do all jobs and checks that each ran once.
func (f *flow) checkOnce(nodes []*process) {
	f.t.Helper()
	for id, e := range f.finish(nodes) {
		if e.began > 1 {
			f.t.Errorf("%s ran %d times", id, e.began)
		}
	}
}

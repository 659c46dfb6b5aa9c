package core_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
)

// TestWeightedIsRoundRobinWithEqualWeights lets work come and go at random. No shard that
// has work may see another chosen twice while it waits.
func TestWeightedIsRoundRobinWithEqualWeights(t *testing.T) {
	cases := map[string]map[string]int{
		"no weights":    nil,
		"equal weights": {"A": 3, "B": 3, "C": 3, "D": 3, "E": 3, "F": 3, "G": 3, "H": 3, "I": 3, "J": 3},
		"large weights": {
			"A": 1 << 50, "B": 1 << 50, "C": 1 << 50, "D": 1 << 50, "E": 1 << 50,
			"F": 1 << 50, "G": 1 << 50, "H": 1 << 50, "I": 1 << 50, "J": 1 << 50,
		},
	}
	for name, weights := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				if fault := roundRobinFault(weights, rand.New(rand.NewPCG(seed, 0))); fault != "" {
					t.Fatalf("seed %d: %s", seed, fault)
				}
			}
		})
	}
}

// roundRobinFault runs one scheduler, and returns its first fault, or "".
func roundRobinFault(weights map[string]int, r *rand.Rand) string {
	const turns = 300
	shards := queueEach(2 + r.IntN(9))
	lane := core.WeightedBy(weights)(core.SchedulerConfig{Shards: shards})
	heads := make([]core.Head, len(shards))

	// passed[i] are the shards that ran since shard i has waited with work.
	passed := make([]map[int]bool, len(shards))
	flicker := 1 + r.IntN(10)

	for turn := range turns {
		for i := range heads {
			if r.IntN(flicker) == 0 {
				heads[i] = core.Head{OK: r.IntN(3) > 0}
			}
			if !heads[i].OK || passed[i] == nil {
				passed[i] = make(map[int]bool)
			}
		}

		chosen := lane.Next(10, heads).Index
		if chosen < 0 {
			continue
		}
		lane.Ran(chosen, true)
		passed[chosen] = make(map[int]bool)

		for i := range heads {
			if i == chosen || !heads[i].OK {
				continue
			}
			if passed[i][chosen] {
				return fmt.Sprintf("turn %d: shard %d has work, and %d runs for the second time before it",
					turn, i, chosen)
			}
			passed[i][chosen] = true
		}
	}

	return ""
}

func TestSchedulersNameTheirQueues(t *testing.T) {
	for _, c := range []struct {
		scheduler core.SchedulerFunc
		want      []string
	}{
		{core.StrictBy("B", "A", "B"), []string{"B", "A"}},
		{core.WeightedBy(map[string]int{"B": 2, "A": 1}), []string{"A", "B"}},
		{core.WeightedBy(nil), nil},
	} {
		named, ok := c.scheduler(core.SchedulerConfig{}).(interface{ QueueNames() []string })
		if !ok || fmt.Sprint(named.QueueNames()) != fmt.Sprint(c.want) {
			t.Errorf("QueueNames of %v = %v, want %v", named, named.QueueNames(), c.want)
		}
	}
}

// Weights too large for a common multiple are shared nearly as they should be.
func TestHugeWeightsAreSharedInProportion(t *testing.T) {
	for b, want := range map[int]int{999_999_937: 3000, 1_999_999_943: 2400} { // of 4000
		lane := core.WeightedBy(map[string]int{"A": 3_000_000_019, "B": b})(core.SchedulerConfig{Shards: queueEach(2)})
		var turns [2]int
		for range 4000 {
			turns[lane.Next(10, []core.Head{{OK: true}, {OK: true}}).Index]++
		}
		if turns[0] < want-10 || turns[0] > want+10 {
			t.Errorf("turns %v of weights 3000000019 and %d, want about %d of the first", turns, b, want)
		}
	}
}

// Weights and charges beyond all bounds count as the highest that there are.
func TestWeightsAndChargesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		weights map[string]int
		charge  int // of shard 1 after its first turn
		want    string
	}{
		"weights above the longest turn": {map[string]int{"A": 1 << 50, "B": 1 << 39}, 0, "ABAABAABAA"},
		"the highest charge":             {nil, math.MaxInt, "ABAAAAAAAA"},
	} {
		s := core.WeightedBy(c.weights)(core.SchedulerConfig{Shards: queueEach(2)}).(core.HeadScheduler)
		got := ""

		for len(got) < len(c.want) {
			s.SetHead(0, core.Head{OK: true})
			s.SetHead(1, core.Head{OK: true})
			chosen := s.Choose(10).Index
			if got += string(rune('A' + chosen)); chosen == 1 && strings.Count(got, "B") == 1 {
				s.Charge(1, c.charge)
			}
		}

		if got != c.want {
			t.Errorf("%s: chose %s, want %s", name, got, c.want)
		}
	}
}

package core_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// TestNothingStarves checks the schedulers by the bounds in their comments, whatever jobs become
// due meanwhile.
func TestNothingStarves(t *testing.T) {
	weights := map[string]int{"A": 2, "B": 5, "C": 3, "D": 1, "E": 9}
	weight := func(s core.Shard) int { return weights[s.Queue] }
	for name, c := range map[string]struct {
		build core.SchedulerFunc
		// bound is the maximum number of times that other is chosen while one waits.
		bound func(shards []core.Shard, one, other int) int
	}{
		"Seq":            {core.Seq, func([]core.Shard, int, int) int { return 1 }},
		"Weighted alike": {core.WeightedBy(nil), func([]core.Shard, int, int) int { return 1 }},
		"Weighted": {core.WeightedBy(weights), func(shards []core.Shard, one, other int) int {
			least := weight(shards[one])
			for _, s := range shards {
				least = min(least, weight(s))
			}
			v, w := weight(shards[other]), weight(shards[one])
			return (v*least + v*w) / (w * least)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkStarvation(t, c.build, c.bound) })
		})
	}
}

func checkStarvation(t *rapid.T, build core.SchedulerFunc, bound func(shards []core.Shard, one, other int) int) {
	shards := drawShards(t)
	s := build(core.SchedulerConfig{Shards: shards, PollInterval: pollInterval}).(core.HeadScheduler)
	waits := make([]bool, len(shards))
	by := make([]map[int]int, len(shards))
	busy := rapid.IntRange(1, 9).Draw(t, "busy")
	set := func(i int) {
		due := rapid.IntRange(0, 9).Draw(t, "due") <= busy
		s.SetHead(i, core.Head{OK: due})
		if !due || !waits[i] {
			by[i] = make(map[int]int)
		}
		waits[i] = due
	}
	for i := range shards {
		set(i)
	}
	for range rapid.IntRange(1, 300).Draw(t, "choices") {
		chosen := s.Choose(10).Index
		if chosen >= 0 {
			waits[chosen] = false
			s.Ran(chosen, rapid.Bool().Draw(t, "ok"))
			for i := range shards {
				if by[i][chosen]++; waits[i] && by[i][chosen] > bound(shards, i, chosen) {
					t.Fatalf("while shard %d waits, shard %d is chosen %d times", i, chosen, by[i][chosen])
				}
			}
			set(chosen)
		}
		set(rapid.IntRange(0, len(shards)-1).Draw(t, "index"))
	}
}

// TestLagLetsNobodyWaitForWhatCameLater checks Lag, and Strict within a queue, by their bounds.
func TestLagLetsNobodyWaitForWhatCameLater(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{"Lag": core.Lag, "Strict": core.StrictBy("orders")} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				shards := core.Shards("orders", rapid.IntRange(1, 40).Draw(t, "shards"))
				s := build(core.SchedulerConfig{Shards: shards}).(core.HeadScheduler)
				heads := make([]core.Head, len(shards))
				atOnce := make([]map[int]bool, len(shards))
				set := func(i int) {
					heads[i] = core.Head{Due: core.Instant(rapid.IntRange(0, 5).Draw(t, "due")), OK: true}
					atOnce[i] = make(map[int]bool)
					s.SetHead(i, heads[i])
				}
				for i := range shards {
					set(i)
				}
				for range rapid.IntRange(1, 100).Draw(t, "choices") {
					chosen := s.Choose(10).Index
					for i := range shards {
						switch due := heads[i].Due; {
						case i == chosen || due > heads[chosen].Due:
						case due < heads[chosen].Due || atOnce[i][chosen]:
							t.Fatalf("%d, due at %d, is chosen before %d, due at %d", chosen, heads[chosen].Due, i, due)
						default:
							atOnce[i][chosen] = true
						}
					}
					set(chosen)
				}
			})
		})
	}
}

// TestSeqGoesOnWhateverRuns lets batches run for any time: due shards are visited at once while
// one runs, and after at most one sleep if none does.
func TestSeqGoesOnWhateverRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := core.Shards("orders", rapid.IntRange(1, 20).Draw(t, "shards"))
		s := core.Seq(core.SchedulerConfig{Shards: shards, PollInterval: pollInterval}).(core.HeadScheduler)
		due := make([]bool, len(shards))
		running, slept := 0, false
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(shards)-1).Draw(t, "index")
			due[i] = rapid.Bool().Draw(t, "due")
			s.SetHead(i, core.Head{OK: due[i]})
			if running > 0 && rapid.Bool().Draw(t, "ends") {
				s.Ran(i, rapid.Bool().Draw(t, "ok"))
				running--
			}
			work := fmt.Sprint(due) != fmt.Sprint(make([]bool, len(due)))
			c := s.Choose(10)
			switch {
			case c.Index >= 0:
				due[c.Index] = false
				running, slept = running+1, false
			case c.Sleep && (running > 0 || slept && work):
				t.Fatalf("it sleeps, with %d batches running; it slept just before: %v", running, slept)
			case !c.Sleep && work:
				t.Fatal("it waits although a shard is due")
			default:
				slept = c.Sleep
			}
		}
	})
}

// Next goes by the heads as they are at now, also if the clock's estimate has gone back.
func TestNextTakesNoHeadThatIsNotDueNow(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{
		"Lag": core.Lag, "StrictBy": core.StrictBy("A"), "WeightedBy": core.WeightedBy(nil),
	} {
		s := build(core.SchedulerConfig{Shards: queueEach(2), PollInterval: pollInterval})
		s.Next(10, []core.Head{{Due: 10, OK: true}, {Due: 10, OK: true}})
		if got := s.Next(9, []core.Head{{}, {Due: 10, OK: true}}); got.Index >= 0 {
			t.Errorf("%s chose shard %d before its head was due", name, got.Index)
		}
	}
}

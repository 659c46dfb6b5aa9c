package core_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// schedulerCase is a scheduler and its rule.
type schedulerCase struct {
	build core.SchedulerFunc
	rule  func(shards []core.Shard, p *naivePool) rule
}

func schedulerCases() map[string]schedulerCase {
	ranks := map[string]int{"C": 0, "A": 1}
	weights := map[string]int{"A": 3, "B": 5, "C": 7, "D": -1}
	huge := map[string]int{"A": 3_000_000_019, "B": 999_999_937}
	return map[string]schedulerCase{
		"Lag": {core.Lag, func(_ []core.Shard, p *naivePool) rule {
			return oldest(p, func(int) int { return 0 })
		}},
		"Strict": {core.StrictBy("C", "A"), func(shards []core.Shard, p *naivePool) rule {
			return oldest(p, func(i int) int {
				if rank, named := ranks[shards[i].Queue]; named {
					return rank
				}
				return len(ranks)
			})
		}},
		"Seq": {core.Seq, func(shards []core.Shard, _ *naivePool) rule {
			return &visitRule{shards: len(shards), poll: pollInterval}
		}},
		"Weighted alike": {core.WeightedBy(nil), func(shards []core.Shard, _ *naivePool) rule {
			return weighing(shards, 1, nil)
		}},
		"Weighted": {core.WeightedBy(weights), func(shards []core.Shard, _ *naivePool) rule {
			return weighing(shards, multipleOf(shards, weights), weights)
		}},
		"Weighted hugely": {core.WeightedBy(huge), func(shards []core.Shard, _ *naivePool) rule {
			return weighing(shards, multipleOf(shards, huge), huge)
		}},
	}
}

func oldest(p *naivePool, rank func(int) int) rule {
	return &oldestRule{rank, func(i int) core.Head { return p.heads[i] }, make(map[int]int)}
}

// multipleOf is the least common multiple of the weights of all shards, at most 1<<40.
func multipleOf(shards []core.Shard, weights map[string]int) int64 {
	whole, most := big.NewInt(1), big.NewInt(1<<40)
	for _, s := range shards {
		w := big.NewInt(int64(max(1, weights[s.Queue])))
		divisor := new(big.Int).GCD(nil, nil, whole, w)
		whole.Mul(whole, w.Div(w, divisor))
		if whole.Cmp(most) > 0 {
			whole.Set(most)
		}
	}
	return whole.Int64()
}

func weighing(shards []core.Shard, whole int64, weights map[string]int) rule {
	w := &weightRule{
		lasts:  make([]int64, len(shards)),
		begins: make([]int64, len(shards)),
		chosen: make([]int, len(shards)),
	}
	for i, s := range shards {
		w.lasts[i] = whole / int64(max(1, weights[s.Queue]))
	}
	return w
}

func drawShards(t *rapid.T) []core.Shard {
	var shards []core.Shard
	count := rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(1, 300)).Draw(t, "shards")
	queues := rapid.IntRange(1, 5).Draw(t, "queues")
	for i := range count {
		shards = append(shards, core.Shard{Queue: string(rune('A' + i%queues)), Index: i / queues})
	}
	return shards
}

// drawHead draws the head of a shard at now: due or soon, often at the same time as another, or
// none.
func drawHead(t *rapid.T, now core.Instant) core.Head {
	kind := rapid.IntRange(0, 9).Draw(t, "head")
	return core.Head{OK: kind > 1, Due: max(0, now+core.Instant(kind-7))}
}

// TestHeadSchedulersChooseAsTheirRulesRead lets heads, choices, ends of batches and charges come
// in any order.
func TestHeadSchedulersChooseAsTheirRulesRead(t *testing.T) {
	for name, c := range schedulerCases() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkRule(t, c) })
		})
	}
}

func checkRule(t *rapid.T, c schedulerCase) {
	shards := drawShards(t)
	s := c.build(core.SchedulerConfig{Shards: shards, PollInterval: pollInterval}).(core.HeadScheduler)
	naive := newNaivePool(len(shards), nil)
	naive.rule = c.rule(shards, naive)
	now := core.Instant(100)
	index := rapid.IntRange(0, len(shards)-1)
	setHead := func(i int) {
		h := drawHead(t, now)
		s.SetHead(i, h)
		naive.setHead(i, h)
	}
	for i := range shards {
		setHead(i)
	}
	var running []int
	for range rapid.IntRange(1, 150).Draw(t, "steps") {
		switch rapid.IntRange(0, 6).Draw(t, "step") {
		case 0, 1:
			setHead(index.Draw(t, "index"))
		case 2:
			if len(running) > 0 {
				n := rapid.IntRange(0, len(running)-1).Draw(t, "visit")
				ok := rapid.Bool().Draw(t, "ok")
				s.Ran(running[n], ok)
				naive.ran(ok)
				running = append(running[:n], running[n+1:]...)
			}
		case 3:
			i, n := index.Draw(t, "index"), rapid.IntRange(-300, 1<<17).Draw(t, "batches")
			s.Charge(i, n)
			naive.charge(i, n)
		default:
			now = max(0, now+core.Instant(rapid.IntRange(-3, 5).Draw(t, "passed")))
			got, want := s.Choose(now), naive.choose(now)
			if got != want {
				t.Fatalf("chose %+v, want %+v", got, want)
			}
			if got, want := s.NextDue(), naive.nextDue(); got != want {
				t.Fatalf("the next is due at %+v, want %+v", got, want)
			}
			if got.Index >= 0 {
				running = append(running, got.Index)
				if rapid.Bool().Draw(t, "answered") {
					setHead(got.Index)
				}
			}
		}
	}
}

// TestOneLaneSeesNoHeapInSeqAndWeighted compares the first schedulers, which had no heap, with
// those of today: given all heads, and given only the heads that changed. A lane runs one batch at
// a time.
func TestOneLaneSeesNoHeapInSeqAndWeighted(t *testing.T) {
	weights := map[string]int{"A": 3, "B": 5, "C": 7, "D": -1}
	first := map[string]func(shards []core.Shard) core.Scheduler{
		"Seq": func([]core.Shard) core.Scheduler { return &firstSeq{poll: pollInterval} },
		"Weighted": func(shards []core.Shard) core.Scheduler {
			w := &firstWeighted{begins: make([]int64, len(shards)), ran: make([]int64, len(shards))}
			for _, s := range shards {
				w.lasts = append(w.lasts, 105/int64(max(1, weights[s.Queue])))
			}
			return w
		},
	}
	for name, build := range map[string]core.SchedulerFunc{"Seq": core.Seq, "Weighted": core.WeightedBy(weights)} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkOneLane(t, build, first[name]) })
		})
	}
}

func checkOneLane(t *rapid.T, build core.SchedulerFunc, first func([]core.Shard) core.Scheduler) {
	shards := drawShards(t)
	config := core.SchedulerConfig{Shards: shards, PollInterval: pollInterval}
	was, byAll, byChange := first(shards), build(config), build(config).(core.HeadScheduler)
	heads := make([]core.Head, len(shards))
	now := core.Instant(100)
	for range rapid.IntRange(1, 60).Draw(t, "rounds") {
		now += core.Instant(rapid.IntRange(0, 3).Draw(t, "passed"))
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			i := rapid.IntRange(0, len(shards)-1).Draw(t, "index")
			heads[i] = drawHead(t, now)
			byChange.SetHead(i, heads[i])
		}
		want := was.Next(now, heads)
		if got := byAll.Next(now, heads); got != want {
			t.Fatalf("Next chose %+v, want %+v", got, want)
		}
		if got := byChange.Choose(now); got != want {
			t.Fatalf("Choose chose %+v, want %+v", got, want)
		}
		if i := want.Index; i >= 0 {
			ok := rapid.Bool().Draw(t, "ok")
			for _, s := range []core.Scheduler{was, byAll, byChange} {
				s.Ran(i, ok)
			}
			byChange.SetHead(i, heads[i])
		}
	}
}

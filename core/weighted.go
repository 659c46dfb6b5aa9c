package core

import (
	"cmp"
	"maps"
	"slices"
)

// weighted is weighted fair queueing of turns. Each shard has a virtual time at which
// its next turn begins; it lasts the shorter the heavier the shard is, and the shard
// whose next turn ends first is next. Times are relative to the earliest of a shard
// with work, so a shard that was idle is at 0 when its work comes: it neither saves
// turns up nor pays for those that it had alone.
type weighted struct {
	named []string
	// lasts is how long a turn of each shard is.
	lasts []int64
	// begins is when the next one begins.
	begins []int64
	// ran is the turn in which the shard was last chosen, of turns so far.
	ran   []int64
	turns int64
}

// WeightedBy returns a [SchedulerFunc] whose schedulers share turns among the shards that
// have work, in proportion to the weights of their queues. A queue that is not named, or whose weight is below
// 1, weighs 1. Turns are spread smoothly: with 3 to 1 the order is A A B A, not A A A B. With
// equal weights it is round robin: no shard that has work is passed over twice in a
// row for one that ran.
func WeightedBy(weights map[string]int) SchedulerFunc {
	weights = maps.Clone(weights)
	named := slices.Sorted(maps.Keys(weights))
	return func(c SchedulerConfig) Scheduler {
		n := len(c.Shards)
		w := &weighted{named: named, lasts: make([]int64, n), begins: make([]int64, n), ran: make([]int64, n)}
		whole := int64(1)
		for i, s := range c.Shards {
			w.lasts[i] = int64(max(1, weights[s.Queue]))
			whole = multiple(whole, w.lasts[i])
		}
		for i := range w.lasts {
			w.lasts[i] = max(1, whole/w.lasts[i])
		}
		return w
	}
}

// longest bounds the virtual time of a turn.
const longest = 1 << 40

// multiple is the least common multiple of two numbers, or longest if that is less. Of
// the multiple of all weights each divides into whole turns, so that nothing is
// rounded.
func multiple(a, b int64) int64 {
	divisor, rest := a, b
	for rest != 0 {
		divisor, rest = rest, divisor%rest
	}
	if a /= divisor; a > longest/b {
		return longest
	}
	return a * b
}

// Next implements Scheduler.
func (w *weighted) Next(now Instant, heads []Head) Choice {
	best := -1
	for i, h := range heads {
		if h.DueBy(now) && (best < 0 || w.before(i, best)) {
			best = i
		}
	}
	if best < 0 {
		return idle
	}
	w.turns++
	w.begins[best] += w.lasts[best]
	w.ran[best] = w.turns
	earliest := w.begins[best]
	for i, h := range heads {
		if h.DueBy(now) {
			earliest = min(earliest, w.begins[i])
		}
	}
	for i := range w.begins {
		w.begins[i] = max(0, w.begins[i]-earliest)
	}
	return Choice{Index: best}
}

// before reports whether shard a comes before b: if its turn ends earlier, or at the
// same time and it has not run for longer.
func (w *weighted) before(a, b int) bool {
	return cmp.Or(
		cmp.Compare(w.begins[a]+w.lasts[a], w.begins[b]+w.lasts[b]),
		cmp.Compare(w.ran[a], w.ran[b]),
	) < 0
}

// Ran implements Scheduler.
func (*weighted) Ran(int, bool) {}

// QueueNames implements QueueNamer.
func (w *weighted) QueueNames() []string { return slices.Clone(w.named) }

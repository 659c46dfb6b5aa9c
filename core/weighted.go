package core

import (
	"cmp"
	"maps"
	"slices"
)

// weighted is weighted fair queueing of turns. Each shard has a virtual time at which its next turn
// begins. The larger the weight of a shard, the shorter its turns. The shard whose next turn ends
// first is chosen. When a shard that was idle gets work, its next turn begins at the earliest begin
// of the shards with work. So it has neither saved turns while it was idle, nor does it pay for
// turns that it had alone.
type weighted struct {
	headQueue
	named []string
	// lasts has the length of a turn of each shard, in virtual time.
	lasts []int64
	// begins has the virtual time at which the next turn of each shard begins. That of an idle
	// shard may be before start.
	begins []int64
	// start is the smallest of begins among the shards that had work at the last choice.
	start int64
	// active has the shards that are ready, or that were taken and whose heads were not set since,
	// by begins.
	active indexHeap
}

// WeightedBy returns a [SchedulerFunc] whose schedulers share turns among the shards with work, in
// proportion to the weights of their queues. A queue that is not named, or whose weight is below 1,
// has weight 1. Turns are spread smoothly: with weights 3 and 1 the order is A A B A, not A A A B.
// With equal weights the order is round robin: while a shard with work is skipped, no other shard
// runs twice.
//
// No shard starves: while a shard of weight w has a due job, another shard of weight v is chosen
// before it at most v/w + v/m times, where m is the smallest weight. If all weights are equal, the
// other shard is chosen at most once. A choice that stands for n batches counts as n turns.
func WeightedBy(weights map[string]int) SchedulerFunc {
	weights = maps.Clone(weights)
	named := slices.Sorted(maps.Keys(weights))
	return func(c SchedulerConfig) Scheduler {
		n := len(c.Shards)
		w := &weighted{named: named, lasts: make([]int64, n), begins: make([]int64, n)}
		w.init(n, func(a, b int) int { return cmp.Compare(w.begins[a]+w.lasts[a], w.begins[b]+w.lasts[b]) })
		w.active = newIndexHeap(n, func(a, b int) bool { return w.begins[a] < w.begins[b] })

		// The lengths of turns are whole numbers, in inverse proportion to the weights.
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

// Bounds of virtual times, so that these stay within 1<<62: a turn lasts at most longest, times are
// from -farthest to start+farthest, and start is at most farthest.
const (
	longest   = 1 << 40
	mostTurns = 1 << 20
	farthest  = mostTurns * longest
)

// multiple returns the least common multiple of two numbers, or longest if that is less. The length
// of a turn is the multiple of all weights divided by the shard's weight, so nothing is rounded
// unless the multiple is longest.
func multiple(a, b int64) int64 {
	divisor, remaining := a, b
	for remaining != 0 {
		divisor, remaining = remaining, divisor%remaining
	}
	if a /= divisor; a > longest/b {
		return longest
	}
	return a * b
}

// SetHead implements HeadScheduler.
func (w *weighted) SetHead(index int, h Head) {
	w.headQueue.SetHead(index, h)
	w.active.remove(index)
}

// Choose implements HeadScheduler.
func (w *weighted) Choose(now Instant) Choice {
	for i := range w.due(now) {
		w.begins[i] = max(w.begins[i], w.start)
		w.ready.put(i)
		w.active.put(i)
	}

	i := w.take()
	if i < 0 {
		return idle
	}

	w.begins[i] = min(w.begins[i]+w.lasts[i], w.start+farthest)
	w.active.fix(i)
	w.start = w.begins[w.active.first()]
	w.rebase()

	return Choice{Index: i}
}

// rebase makes all times relative to start if they have become large.
func (w *weighted) rebase() {
	if w.start <= farthest {
		return
	}
	for i := range w.begins {
		w.begins[i] = max(-farthest, w.begins[i]-w.start)
	}
	w.start = 0
}

// Charge implements HeadScheduler.
func (w *weighted) Charge(index, n int) {
	turns := int64(max(-mostTurns, min(n, mostTurns)))
	earliest := int64(-farthest)
	if w.active.has(index) {
		earliest = w.start
	}
	w.begins[index] = max(earliest, min(w.begins[index]+turns*w.lasts[index], w.start+farthest))
	w.active.fix(index)
	w.ready.fix(index)
}

// Next implements Scheduler.
func (w *weighted) Next(now Instant, heads []Head) Choice { return next(w, &w.headQueue, now, heads) }

// Ran implements Scheduler.
func (*weighted) Ran(int, bool) {}

// QueueNames returns the names of the queues that have a weight, sorted.
func (w *weighted) QueueNames() []string { return slices.Clone(w.named) }

package core

import (
	"cmp"
	"maps"
	"slices"
)

// weighted is weighted fair queueing of turns. Each shard has a virtual time at which
// its next turn begins; it lasts the shorter the heavier the shard is, and the shard
// whose next turn ends first is next. A shard that was idle begins where the earliest of
// those with work does when its own work comes: it neither saves turns up nor pays for
// those that it had alone.
type weighted struct {
	headQueue
	named []string
	// lasts is how long a turn of each shard is.
	lasts []int64
	// begins is when the next one begins. That of an idle shard may be before start.
	begins []int64
	// start is the least of begins, of the shards that had work at the last choice.
	start int64
	// active are the shards that are ready, or taken and not set since, by begins.
	active indexHeap
}

// WeightedBy returns a [SchedulerFunc] whose schedulers share turns among the shards with work, in
// proportion to the weights of their queues. A queue that is not named, or whose weight is below 1,
// has weight 1. Turns are spread smoothly: with weights 3 and 1 the order is A A B A, not A A A B.
// Equal weights are round robin: no shard with work is skipped twice in a row for a shard that ran.
//
// No shard starves: while a shard of weight w has a due job, a shard of weight v is chosen before
// it at most v/w + v/m times, where m is the smallest weight. If all weights are equal, it is
// chosen at most once. A choice that stands for n batches counts as n turns.
func WeightedBy(weights map[string]int) SchedulerFunc {
	weights = maps.Clone(weights)
	named := slices.Sorted(maps.Keys(weights))
	return func(c SchedulerConfig) Scheduler {
		n := len(c.Shards)
		w := &weighted{named: named, lasts: make([]int64, n), begins: make([]int64, n)}
		w.init(n, func(a, b int) int { return cmp.Compare(w.begins[a]+w.lasts[a], w.begins[b]+w.lasts[b]) })
		w.active = newIndexHeap(n, func(a, b int) bool { return w.begins[a] < w.begins[b] })
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

// Virtual times stay within 1<<62: a turn lasts at most longest, times are between -farthest and
// farthest after start, and start is at most farthest.
const (
	longest   = 1 << 40
	mostTurns = 1 << 20
	farthest  = mostTurns * longest
)

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

// SetHead implements headScheduler.
func (w *weighted) SetHead(index int, h Head) {
	w.headQueue.SetHead(index, h)
	w.active.remove(index)
}

// Choose implements headScheduler.
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

// Charge implements headScheduler.
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

// QueueNames lists the queues that have a place in the order.
func (w *weighted) QueueNames() []string { return slices.Clone(w.named) }

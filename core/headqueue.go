package core

import (
	"cmp"
	"iter"
)

// HeadScheduler is a [Scheduler] that keeps the heads, so that a choice among many shards does not
// look at each of them. All schedulers that this package builds are HeadSchedulers and take
// O(log shards) for SetHead and Choose. A server calls one under a lock, one call at a time; a
// method must not block.
type HeadScheduler interface {
	Scheduler
	// SetHead sets the head of a shard. At first no head is OK.
	SetHead(index int, h Head)
	// Choose is Next by the heads that were set. It takes the head of the shard that it returns:
	// the shard is not chosen again before SetHead, and until then it counts as one that has work.
	// now may be earlier than at the last call, since clocks are estimates: a head that was due
	// stays due until SetHead.
	//
	// Only Choose takes a shard, and it accounts for it: a server runs or grants nothing else.
	Choose(now Instant) Choice
	// NextDue returns the earliest of the heads that no Choose has found due yet. It is not OK if
	// there is none.
	NextDue() Head
	// Charge reports that the last choice of the shard stood for n batches more than the one that
	// Choose has counted, or for fewer if n is negative. It is for schedulers that share turns,
	// such as those of [WeightedBy]; the others ignore it.
	Charge(index, n int)
}

// headQueue is the common part of the built-in schedulers. It has the heads of all shards: ready
// has the shards that were found due, in the scheduler's order, and waiting has the others, by
// time. A shard that was taken is in neither until its head is set again.
type headQueue struct {
	heads   []Head
	waiting indexHeap
	ready   indexHeap
	// chosen has, for each shard, the number of the choice by which it was taken last. choices is
	// the number of choices so far.
	chosen  []int64
	choices int64
}

// init prepares the queue for the given number of shards, which have no head yet. compare orders
// the due shards: it returns a negative number if shard a comes before b. If it returns 0, the
// shard that was taken longer ago comes first.
func (q *headQueue) init(shards int, compare func(a, b int) int) {
	q.heads = make([]Head, shards)
	q.chosen = make([]int64, shards)
	q.waiting = newIndexHeap(shards, func(a, b int) bool {
		return q.heads[a].Due < q.heads[b].Due
	})
	q.ready = newIndexHeap(shards, func(a, b int) bool {
		return cmp.Or(compare(a, b), cmp.Compare(q.chosen[a], q.chosen[b]), a-b) < 0
	})
}

// SetHead implements HeadScheduler.
func (q *headQueue) SetHead(index int, h Head) {
	q.ready.remove(index)
	q.waiting.remove(index)
	q.heads[index] = h
	if h.OK {
		q.waiting.put(index)
	}
}

// due removes the shards that are due at now from waiting and yields them to the caller's loop,
// which calls ready.put.
func (q *headQueue) due(now Instant) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := q.waiting.first(); i >= 0 && q.heads[i].Due <= now; i = q.waiting.first() {
			q.waiting.remove(i)
			if !yield(i) {
				return
			}
		}
	}
}

// take removes the first shard from ready and returns it. It returns -1 if ready is empty.
func (q *headQueue) take() int {
	i := q.ready.first()
	if i < 0 {
		return -1
	}
	q.ready.remove(i)
	q.choices++
	q.chosen[i] = q.choices
	return i
}

// NextDue implements HeadScheduler.
func (q *headQueue) NextDue() Head {
	if i := q.waiting.first(); i >= 0 {
		return q.heads[i]
	}
	return Head{}
}

// knows reports whether a call of SetHead with this head would change nothing for a choice at now.
func (q *headQueue) knows(index int, h Head, now Instant) bool {
	if h != q.heads[index] {
		return false
	}
	return !h.OK || q.waiting.has(index) || q.ready.has(index) && h.Due <= now
}

// next implements Scheduler.Next for a scheduler whose heads are in q.
func next(s HeadScheduler, q *headQueue, now Instant, heads []Head) Choice {
	for i, h := range heads {
		if !q.knows(i, h, now) {
			s.SetHead(i, h)
		}
	}
	return s.Choose(now)
}

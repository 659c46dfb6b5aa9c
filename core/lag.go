package core

import (
	"cmp"
	"slices"
)

// lag takes the shard with the lowest rank. Among shards of equal rank it takes the one with the
// oldest head, and then the one that was taken longest ago.
type lag struct {
	headQueue
}

func newLag(shards int, rank func(index int) int) *lag {
	l := &lag{}
	l.init(shards, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(l.heads[a].Due, l.heads[b].Due))
	})
	return l
}

// Lag returns a [Scheduler] that chooses the shard whose next job became due first, and waits if no
// job is due. It is the default. If jobs became due at the same time, it chooses the shard that was
// chosen longest ago.
//
// No shard starves: while a shard has a due job, another shard is chosen only for a job that became
// due before it or, at most once, at the same time.
func Lag(c SchedulerConfig) Scheduler {
	return newLag(len(c.Shards), func(int) int { return 0 })
}

// Choose implements HeadScheduler.
func (l *lag) Choose(now Instant) Choice {
	l.admit(now)
	return Choice{Index: l.take()}
}

// admit moves the shards that are due at now to ready.
func (l *lag) admit(now Instant) {
	for i := range l.due(now) {
		l.ready.put(i)
	}
}

// Next implements Scheduler.
func (l *lag) Next(now Instant, heads []Head) Choice { return next(l, &l.headQueue, now, heads) }

// Ran implements Scheduler.
func (*lag) Ran(int, bool) {}

// Charge implements HeadScheduler.
func (*lag) Charge(int, int) {}

// strict is a lag whose ranks are the priorities of queues.
type strict struct {
	*lag
	named []string
	ranks []int
	// taken has the shards that were chosen and whose heads were not set since, by rank.
	taken indexHeap
}

// StrictBy returns a [SchedulerFunc] whose schedulers choose a shard of the first of the named
// queues that has a due job. Queues that are not named come last, all with the same priority. Among
// shards of one queue, or of queues that are not named, the order is that of [Lag]. While the head
// of a chosen shard is not set, queues of lower priority are not chosen, since that shard may have
// more work.
//
// Within a queue no shard starves, as with [Lag]. A queue waits as long as a queue of higher
// priority has work. To limit that wait, use [WeightedBy].
func StrictBy(queues ...string) SchedulerFunc {
	var named []string
	for _, q := range queues {
		if !slices.Contains(named, q) {
			named = append(named, q)
		}
	}

	return func(c SchedulerConfig) Scheduler {
		ranks := make([]int, len(c.Shards))
		for i, s := range c.Shards {
			if ranks[i] = slices.Index(named, s.Queue); ranks[i] < 0 {
				ranks[i] = len(named)
			}
		}

		return &strict{
			lag:   newLag(len(ranks), func(i int) int { return ranks[i] }),
			named: named,
			ranks: ranks,
			taken: newIndexHeap(len(ranks), func(a, b int) bool { return ranks[a] < ranks[b] }),
		}
	}
}

// SetHead implements HeadScheduler.
func (s *strict) SetHead(index int, h Head) {
	s.lag.SetHead(index, h)
	s.taken.remove(index)
}

// Choose implements HeadScheduler.
func (s *strict) Choose(now Instant) Choice {
	s.admit(now)
	first, taken := s.ready.first(), s.taken.first()
	if first < 0 || taken >= 0 && s.ranks[taken] < s.ranks[first] {
		return idle
	}
	s.taken.put(first)
	return Choice{Index: s.take()}
}

// Next implements Scheduler.
func (s *strict) Next(now Instant, heads []Head) Choice { return next(s, &s.headQueue, now, heads) }

// QueueNames returns the named queues, in their order.
func (s *strict) QueueNames() []string { return slices.Clone(s.named) }

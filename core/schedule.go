package core

import (
	"cmp"
	"slices"
	"time"
)

// Head is when the next job of a shard could be claimed, if nothing were pushed or
// settled.
type Head struct {
	// Due is the PerformAt of the next job.
	Due Instant
	// OK is false if the shard has no such job.
	OK bool
}

// DueBy reports whether there is a job and it may run at now.
func (h Head) DueBy(now Instant) bool { return h.OK && h.Due <= now }

// Lag returns how long the shard's next job has been due (RULES 6); 0 if no job is due.
func (h Head) Lag(now Instant) time.Duration {
	if !h.DueBy(now) {
		return 0
	}
	return now.Sub(h.Due)
}

// Earlier returns the earlier of h and o.
func (h Head) Earlier(o Head) Head {
	if !h.OK || o.OK && o.Due < h.Due {
		return o
	}
	return h
}

// Choice is what a lane does next: run a batch of a shard, or wait.
type Choice struct {
	// Index is the shard to run a batch of, or -1 to wait.
	Index int
	// Wait is how long to wait at most; 0 is until a head changes or is due.
	Wait time.Duration
	// Sleep makes the lane wait the whole time, whatever becomes due meanwhile.
	Sleep bool
}

// idle is the choice to wait for work.
var idle = Choice{Index: -1}

// Scheduler chooses which shard a lane works next (RULES 6). A lane has one of
// its own and calls it from one goroutine; heads[i] is always the same shard.
type Scheduler interface {
	// Next returns what to do, by the heads as they are at now.
	Next(now Instant, heads []Head) Choice
	// Ran reports how the batch of the chosen shard ended: ok is true if one of its
	// jobs succeeded, and false also if the shard turned out to have no job.
	Ran(index int, ok bool)
}

// QueueNamer is a [Scheduler] that knows queues by name, such as those of [StrictBy] and
// [WeightedBy]. A server that does not serve each of these queues refuses to run.
type QueueNamer interface {
	// QueueNames lists the names, each once.
	QueueNames() []string
}

// SchedulerConfig is what a scheduler is built from.
type SchedulerConfig struct {
	// Shards are the shards of the lane, in the order of the heads.
	Shards []Shard
	// PollInterval is the poll interval of the server.
	PollInterval time.Duration
}

// SchedulerFunc builds the scheduler of one lane: Lag, [Seq], or what [StrictBy] and
// [WeightedBy] return.
type SchedulerFunc func(SchedulerConfig) Scheduler

type lag struct{}

// Lag returns a scheduler that takes the shard whose next due job is the oldest, and
// waits if no job is due. It is the default.
func Lag(SchedulerConfig) Scheduler { return lag{} }

func (lag) Next(now Instant, heads []Head) Choice {
	best := -1
	for i, h := range heads {
		if h.DueBy(now) && (best < 0 || h.Due < heads[best].Due) {
			best = i
		}
	}
	return Choice{Index: best}
}

func (lag) Ran(int, bool) {}

type seq struct {
	poll   time.Duration
	next   int
	misses int
}

// Seq returns a scheduler that visits its shards one after another, and waits one poll
// interval after a round without a batch that succeeded.
func Seq(c SchedulerConfig) Scheduler { return &seq{poll: c.PollInterval} }

func (s *seq) Next(now Instant, heads []Head) Choice {
	for s.misses < len(heads) {
		i := s.next % len(heads)
		if heads[i].DueBy(now) {
			return Choice{Index: i}
		}
		s.next, s.misses = i+1, s.misses+1
	}
	s.misses = 0
	return Choice{Index: -1, Wait: s.poll, Sleep: true}
}

func (s *seq) Ran(index int, ok bool) {
	s.next = index + 1
	s.misses++
	if ok {
		s.misses = 0
	}
}

type strict struct {
	order []int
	named []string
}

// StrictBy returns a [SchedulerFunc] whose schedulers take the first shard that has work,
// in the order of the named queues. Shards of queues that are not named come last, in
// their own order.
func StrictBy(queues ...string) SchedulerFunc {
	var named []string
	for _, q := range queues {
		if !slices.Contains(named, q) {
			named = append(named, q)
		}
	}
	return func(c SchedulerConfig) Scheduler {
		return &strict{named: named, order: byRank(c.Shards, func(q string) int {
			if rank := slices.Index(named, q); rank >= 0 {
				return rank
			}
			return len(named)
		})}
	}
}

func (s *strict) Next(now Instant, heads []Head) Choice {
	for _, i := range s.order {
		if heads[i].DueBy(now) {
			return Choice{Index: i}
		}
	}
	return idle
}

func (*strict) Ran(int, bool) {}

// QueueNames implements QueueNamer.
func (s *strict) QueueNames() []string { return slices.Clone(s.named) }

// byRank returns the positions of the shards in order of their queues' ranks; those of
// equal rank keep their order.
func byRank(shards []Shard, rank func(queue string) int) []int {
	order := make([]int, len(shards))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(rank(shards[a].Queue), rank(shards[b].Queue))
	})
	return order
}

package core

import (
	"cmp"
	"slices"
	"time"
)

// Head is when a shard could next give a job, if nothing were pushed or settled.
type Head struct {
	// Due is the PerformAt of the next job.
	Due Instant
	// OK is false if there is none.
	OK bool
}

// DueBy reports whether there is a job and it may run at now.
func (h Head) DueBy(now Instant) bool { return h.OK && h.Due <= now }

// Lag is how long the shard's next job has been due (RULES 6); 0 if none is.
func (h Head) Lag(now Instant) time.Duration {
	if !h.DueBy(now) {
		return 0
	}
	return now.Sub(h.Due)
}

// Earlier is h, or o if that comes first.
func (h Head) Earlier(o Head) Head {
	if !h.OK || o.OK && o.Due < h.Due {
		return o
	}
	return h
}

// Choice is what a lane does next.
type Choice struct {
	// Index is the shard to run a batch of, or -1 to wait.
	Index int
	// Wait is how long to wait at most; 0 is until a head changes or is due.
	// With Sleep set nothing but the time ends the wait.
	Wait  time.Duration
	Sleep bool
}

// idle waits for work.
var idle = Choice{Index: -1}

// Scheduler chooses which shard a lane works next (RULES 6). A lane has one of
// its own and calls it from one goroutine; heads[i] is always the same shard.
type Scheduler interface {
	// Next chooses by the heads as they are at now.
	Next(now Instant, heads []Head) Choice
	// Ran says how the batch of the chosen shard went: ok if a job of it
	// succeeded. A shard that had nothing to give after all is not ok.
	Ran(index int, ok bool)
}

// QueueNamer is a Scheduler that was given names of queues, as by StrictBy and
// WeightedBy. A server that does not serve each of them refuses it.
type QueueNamer interface {
	// QueueNames lists the names, each once.
	QueueNames() []string
}

// SchedulerConfig is what a scheduler is built from.
type SchedulerConfig struct {
	// Shards are the lane's, in the order of the heads.
	Shards []Shard
	// PollInterval is the server's.
	PollInterval time.Duration
}

// SchedulerFunc builds the scheduler of one lane. Lag and Seq are such, and
// what StrictBy and WeightedBy return.
type SchedulerFunc func(SchedulerConfig) Scheduler

type lag struct{}

// Lag takes the shard whose next due job is the oldest; if none is due, it
// waits. It is the default.
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

// Seq visits its shards in turn; if a whole round had no batch that
// succeeded, it waits one poll interval.
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

// StrictBy takes the first shard that has work, in the order of the named
// queues; shards of queues that are not named come last, in their own order.
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

// byRank lists the positions of the shards by rank of their queue, stable.
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

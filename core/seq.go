package core

import (
	"cmp"
	"time"
)

// seq visits places 0, 1, 2 … without end. The shard at a place is the place modulo the number of
// shards.
type seq struct {
	headQueue
	poll time.Duration
	// visit has, for each shard in ready, the place at which it is visited next.
	visit []int64
	// place is the next place to visit.
	place int64
	// fruitless is the first of the places that were visited or skipped since the last success or
	// the last sleep.
	fruitless int64
	// running is the number of visits for which Ran was not called yet.
	running int
}

// Seq returns a [Scheduler] that visits its shards one after another and skips those without a
// due job. It waits one poll interval after a round in which no batch succeeded. A round is over
// when its batches have ended. While a batch of the round runs, the visits continue; if no job is
// due, it waits for a head.
//
// No shard starves: while a shard has a due job, each other shard is visited at most once before
// it.
func Seq(c SchedulerConfig) Scheduler {
	s := &seq{poll: c.PollInterval, visit: make([]int64, len(c.Shards))}
	s.init(len(c.Shards), func(a, b int) int { return cmp.Compare(s.visit[a], s.visit[b]) })
	return s
}

// Choose implements HeadScheduler.
func (s *seq) Choose(now Instant) Choice {
	shards := int64(len(s.visit))
	for i := range s.due(now) {
		s.visit[i] = s.place + (int64(i)+shards-s.place%shards)%shards
		s.ready.put(i)
	}

	roundEnd := s.fruitless + shards
	if i := s.ready.first(); i >= 0 && (s.running > 0 || s.visit[i] < roundEnd) {
		s.place = s.visit[i] + 1
		s.running++
		return Choice{Index: s.take()}
	}

	if s.running > 0 {
		return idle
	}

	// The round is over and no batch has succeeded.
	s.place = max(s.place, roundEnd)
	s.fruitless = s.place
	return Choice{Index: -1, Wait: s.poll, Sleep: true}
}

// Ran implements Scheduler.
func (s *seq) Ran(_ int, ok bool) {
	s.running--
	if ok {
		s.fruitless = s.place
	}
}

// Next implements Scheduler.
func (s *seq) Next(now Instant, heads []Head) Choice { return next(s, &s.headQueue, now, heads) }

// Charge implements HeadScheduler.
func (*seq) Charge(int, int) {}

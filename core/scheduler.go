package core

import "time"

// Head is when the next job of a shard can be claimed, if no push and no settlement comes before.
type Head struct {
	// Due is the PerformAt of the next job.
	Due Instant
	// OK is true if the shard has a job that can be claimed at some time.
	OK bool
}

// DueBy reports whether the shard has a job that can be claimed at now.
func (h Head) DueBy(now Instant) bool { return h.OK && h.Due <= now }

// Lag returns how long the shard's next job has been due, or 0 if no job is due. For an urgent job
// that includes the urgency, unlike the wait from [State.WaitsFrom] (docs/rules.md 6).
func (h Head) Lag(now Instant) time.Duration {
	if !h.DueBy(now) {
		return 0
	}
	return now.Sub(h.Due)
}

// Earlier returns the earlier of h and o. A Head that is not OK is later than any other.
func (h Head) Earlier(o Head) Head {
	if !h.OK || o.OK && o.Due < h.Due {
		return o
	}
	return h
}

// Choice is the next action of a lane: to run a batch of a shard, or to wait.
type Choice struct {
	// Index is the index of the shard whose batch the lane runs. -1 means that the lane waits.
	Index int
	// Wait is the maximum time to wait, if Index is -1. A lane also stops waiting when a head
	// changes or becomes due. 0 means no maximum.
	Wait time.Duration
	// Sleep makes the lane wait for the whole Wait, even if a job becomes due meanwhile.
	Sleep bool
}

// idle is the choice to wait for work.
var idle = Choice{Index: -1}

// Scheduler chooses the shard of the next batch (docs/rules.md 6). It belongs to a pool: the lanes
// that share the same shards. Without a [Splitter] that pins shards to lanes, the pool has all
// lanes of a server. A Scheduler is called by one lane at a time and needs no lock.
type Scheduler interface {
	// Next returns the next action of a lane at now. heads[i] is always the head of the shard at
	// index i of SchedulerConfig.Shards. Next must neither change nor keep heads.
	Next(now Instant, heads []Head) Choice
	// Ran notifies the scheduler of the end of a batch of a chosen shard. ok is true if one of its
	// jobs succeeded. It is false if no job succeeded, or if the shard turned out to have no job.
	// Ran is called once for each choice of a shard. If several lanes share the shards, Next may be
	// called again before that, and may choose the same shard again. The calls of Ran are in the
	// order in which the batches end.
	Ran(index int, ok bool)
}

// SchedulerConfig is the argument of a [SchedulerFunc].
type SchedulerConfig struct {
	// Shards are the shards of the pool, in the order of heads.
	Shards []Shard
	// PollInterval is the poll interval of the server.
	PollInterval time.Duration
}

// SchedulerFunc builds the scheduler of one pool. [Lag] and [Seq] are SchedulerFuncs; [StrictBy]
// and [WeightedBy] return one. It may be called more than once for a pool, so the results must not
// share state.
type SchedulerFunc func(SchedulerConfig) Scheduler

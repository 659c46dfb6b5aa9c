package core

import "time"

// Head is when the next job of a shard could be claimed, if no push and no settlement came.
type Head struct {
	// Due is the PerformAt of the next job.
	Due Instant
	// OK is true if the shard has such a job.
	OK bool
}

// DueBy reports whether the shard has a job that may run at now.
func (h Head) DueBy(now Instant) bool { return h.OK && h.Due <= now }

// Lag returns how long the shard's next job has been due, or 0 if none is due. It includes the
// urgency of an urgent job, which [State.WaitsFrom] does not (docs/rules.md 6).
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

// Choice is the next action of a lane: run a batch of a shard, or wait.
type Choice struct {
	// Index is the index of the shard to run a batch of. -1 means to wait.
	Index int
	// Wait is the maximum time to wait. 0 means to wait until a head changes or is due.
	Wait time.Duration
	// Sleep makes the lane wait the whole time, even if a job becomes due meanwhile.
	Sleep bool
}

// idle is the choice to wait for work.
var idle = Choice{Index: -1}

// Scheduler chooses the shard of the next batch (docs/rules.md 6). It belongs to a pool, which is
// the lanes that share these shards. Without a [Splitter] that pins shards to lanes, the pool is
// all lanes of a server. A Scheduler is called by one lane at a time and needs no lock. heads[i] is
// always the head of the same shard.
type Scheduler interface {
	// Next returns the next action, given the heads at now.
	Next(now Instant, heads []Head) Choice
	// Ran reports how the batch of a chosen shard ended. ok is true if one of its jobs succeeded.
	// It is false if no job succeeded, and if the shard turned out to have no job. Ran is called
	// once for each choice of a shard. If several lanes share the shards, further choices may come
	// before it, even of the same shard, and the calls come in the order in which the batches end.
	Ran(index int, ok bool)
}

// SchedulerConfig is the argument of a [SchedulerFunc].
type SchedulerConfig struct {
	// Shards are the shards of the pool, in the order of the heads.
	Shards []Shard
	// PollInterval is the poll interval of the server.
	PollInterval time.Duration
}

// SchedulerFunc builds the scheduler of one pool. [Lag] and [Seq] are SchedulerFuncs; [StrictBy]
// and [WeightedBy] return one. It may be called more than once for a pool, so the results must not
// share state.
type SchedulerFunc func(SchedulerConfig) Scheduler

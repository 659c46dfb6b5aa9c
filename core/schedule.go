package core

import "time"

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

// Scheduler chooses which shard the next batch is of (RULES 6). It belongs to a pool: the
// lanes that share these shards, all lanes of a server unless its [Splitter] pins shards
// to lanes. It is called by one lane at a time and needs no lock; heads[i] is always
// the same shard.
type Scheduler interface {
	// Next returns what to do, by the heads as they are at now.
	Next(now Instant, heads []Head) Choice
	// Ran reports how the batch of a chosen shard ended: ok is true if one of its jobs
	// succeeded, and false also if the shard turned out to have no job. It is called
	// once for each choice of a shard. Where several lanes share the shards, further
	// choices come before it, also of the same shard, and the calls come in the order
	// in which the batches end.
	Ran(index int, ok bool)
}

// SchedulerConfig is what a scheduler is built from.
type SchedulerConfig struct {
	// Shards are the shards of the pool, in the order of the heads.
	Shards []Shard
	// PollInterval is the poll interval of the server.
	PollInterval time.Duration
}

// SchedulerFunc builds the scheduler of one pool: [Lag], [Seq], or what [StrictBy] and
// [WeightedBy] return. It may be called more than once for a pool, so what it returns must not
// share what changes.
type SchedulerFunc func(SchedulerConfig) Scheduler

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

// HeadScheduler is a [Scheduler] that keeps the heads, so that a choice among many shards
// does not look at each of them. All that this package builds are such, and take
// O(log shards) for SetHead and Choose. It is called under a lock of the server, one
// call at a time, and must not block.
type HeadScheduler interface {
	Scheduler
	// SetHead sets the head of a shard. At first no head is OK.
	SetHead(index int, h Head)
	// Choose is Next by the heads that were set. It takes the head of the shard that it
	// returns: the shard is not chosen again before SetHead, and until then it
	// counts as one that has work. now may be earlier than at the last call, since
	// clocks are estimates: a head that was due stays due until SetHead.
	Choose(now Instant) Choice
	// NextDue returns the earliest of the heads that no Choose has found due yet. It is
	// not OK if there is none.
	NextDue() Head
	// Charge says that the last choice of the shard stood for n batches more than the
	// one that Choose has counted, or for fewer if n is negative. It is for schedulers
	// that share turns, such as those of [WeightedBy]; the others ignore it.
	Charge(index, n int)
}

// QueueNamer is a [Scheduler] that knows queues by name, such as those of [StrictBy] and
// [WeightedBy]. A server that does not serve each of these queues refuses to run.
type QueueNamer interface {
	// QueueNames lists the names, each once.
	QueueNames() []string
}

// SchedulerConfig is what a scheduler is built from.
type SchedulerConfig struct {
	// Shards are the shards of the pool, in the order of the heads.
	Shards []Shard
	// PollInterval is the poll interval of the server.
	PollInterval time.Duration
}

// SchedulerFunc builds the scheduler of one pool: [Lag], [Seq], or what [StrictBy] and
// [WeightedBy] return. It may be called more than once for a pool: where it builds a
// [HeadScheduler], one chooses from which shard to claim, and is the one that is called
// with Ran and Charge, and another of which shard a claimed job starts next. So what it
// returns must not share what changes.
type SchedulerFunc func(SchedulerConfig) Scheduler

package core

import "fmt"

// Reason is why the job of an id does not run, or that it does.
type Reason uint8

// Reasons.
const (
	// NothingQueued is an id of which nothing is queued or claimed, nor dead.
	NothingQueued Reason = iota
	// Unreadable is an id of which the store can't read what it has: it is about to be set aside, and does not run.
	Unreadable
	// OnlyDead is an id that is in the morgue alone.
	OnlyDead
	// RunsNow is a job whose handler runs.
	RunsNow
	// OwnerGone is a job that was claimed under a lease that is over: the shard's next owner
	// recovers it. What is queued of its id waits for that.
	OwnerGone
	// InBuffer is a job that a node has claimed and not begun, or of which it is not known
	// whether it has begun.
	InBuffer
	// PredecessorRuns is a queued job whose id is claimed: it runs after that.
	PredecessorRuns
	// QueuePaused is a job of a queue that is paused.
	QueuePaused
	// BacksOff is a job that has failed and is not due yet.
	BacksOff
	// NotDueYet is a job that has not failed and is not due yet.
	NotDueYet
	// NobodyServes is a job of a queue that no live node serves.
	NobodyServes
	// ShardUnowned is a job of a shard that nobody has leased now, though nodes serve its queue.
	ShardUnowned
	// WaitsForAlone is a job behind one that runs alone: see [AloneRecoveries].
	WaitsForAlone
	// RunsAlone is a job that must run alone, while others of its shard are claimed.
	RunsAlone
	// AtLimit is a due job of a queue of which as many batches run over all nodes as may.
	AtLimit
	// OwnerDrains is a job of a shard whose owner gives its shards up: it claims nothing more, and
	// another node takes the shard when what runs there has ended.
	OwnerDrains
	// LanesFull is a due job of a queue of which the shard's owner runs as many batches as it may.
	LanesFull
	// ShardFull is a due job of a shard of which as many batches are claimed as its owner may run at once.
	ShardFull
	// LanesBusy is a due job of a shard whose owner has no free lane, or has pinned it to one that is not.
	LanesBusy
	// BehindOthers is a job with due jobs of its shard in front.
	BehindOthers
	// IsNext is a due job with nothing in front: its shard's owner claims it next.
	IsNext
)

var reasonNames = [...]string{
	NothingQueued: "nothing queued", Unreadable: "damaged", OnlyDead: "dead", RunsNow: "running", OwnerGone: "owner gone", InBuffer: "claimed",
	PredecessorRuns: "predecessor runs", QueuePaused: "paused", BacksOff: "backoff", NotDueYet: "not due",
	NobodyServes: "nobody serves", ShardUnowned: "no owner", WaitsForAlone: "behind a job that runs alone",
	RunsAlone: "runs alone", AtLimit: "limit", OwnerDrains: "owner drains", LanesFull: "lane limit", ShardFull: "shard limit", LanesBusy: "lanes busy", BehindOthers: "behind others", IsNext: "next",
}

// String returns the reason in a few words.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Facts are what decides whether and when the job of an id runs, at one instant of the store's clock.
// The zero value is an id that is nowhere.
type Facts struct {
	// Now is the store's clock.
	Now Instant
	// Queued, Claimed and Dead say where the id is.
	Queued, Claimed, Dead bool
	// Damaged says that the store has something of the id that it can't read.
	Damaged bool
	// State is the queued job's.
	State State
	// Running says that the claimed job's handler is known to run.
	Running bool
	// LeaseOver says that the lease is over under which it was claimed.
	LeaseOver bool
	// Paused says that the queue is paused.
	Paused bool
	// Served is how many live nodes serve the queue, drained ones left out.
	Served int
	// Owned says that a lease of the shard lasts.
	Owned bool
	// Ahead is how many due jobs of the shard are in front of the queued one.
	Ahead int
	// BehindAlone says that another job of the shard, which runs alone, is claimed or first.
	BehindAlone bool
	// LimitReached says that as many batches of the queue run over all nodes as may.
	LimitReached bool
	// ShardClaims is how many jobs of the shard are claimed.
	ShardClaims int
	// Owner is what the shard's owner has said of itself.
	Owner OwnerFacts
}

// OwnerFacts are what the node whose lease of a shard lasts has announced last. The zero value is a node
// of which nothing is known.
type OwnerFacts struct {
	// Draining says that it gives its shards up and claims nothing more.
	Draining bool
	// Lanes is how many batches it runs at once, and Busy how many it does.
	Lanes, Busy int
	// MaxLanes is how many batches of the queue it runs at once, and QueueBusy how many it does.
	// A MaxLanes of 0 is no bound.
	MaxLanes, QueueBusy int
	// Parallel is how many batches of a shard of the queue it runs at once, of BatchSize jobs at most.
	// A Parallel of 0 is no bound.
	Parallel, BatchSize int
	// LaneBusy says that the one lane to which a splitter pins the shard runs a batch.
	LaneBusy bool
}

// ShardFull reports whether so many claimed jobs of a shard are as many batches as may run at once, or more.
func (o *OwnerFacts) ShardFull(claimed int) bool {
	size := max(1, o.BatchSize)
	return o.Parallel > 0 && (claimed+size-1)/size >= o.Parallel
}

// whyTable has a line for each reason: the first whose condition holds is the answer.
var whyTable = [...]struct {
	reason Reason
	holds  func(*Facts) bool
}{
	{RunsNow, func(f *Facts) bool { return f.Claimed && f.Running && !f.LeaseOver && !f.Queued }},
	{OwnerGone, func(f *Facts) bool { return f.Claimed && f.LeaseOver }},
	{InBuffer, func(f *Facts) bool { return f.Claimed && !f.Queued }},
	{PredecessorRuns, func(f *Facts) bool { return f.Claimed }},
	{Unreadable, func(f *Facts) bool { return !f.Queued && f.Damaged }},
	{OnlyDead, func(f *Facts) bool { return !f.Queued && f.Dead }},
	{NothingQueued, func(f *Facts) bool { return !f.Queued }},
	{QueuePaused, func(f *Facts) bool { return f.Paused }},
	{BacksOff, func(f *Facts) bool { return f.State.PerformAt > f.Now && !f.State.Fresh() }},
	{NotDueYet, func(f *Facts) bool { return f.State.PerformAt > f.Now }},
	{NobodyServes, func(f *Facts) bool { return f.Served == 0 }},
	{ShardUnowned, func(f *Facts) bool { return !f.Owned }},
	{OwnerDrains, func(f *Facts) bool { return f.Owner.Draining }},
	{WaitsForAlone, func(f *Facts) bool { return f.BehindAlone }},
	{RunsAlone, func(f *Facts) bool { return f.State.Alone() && f.ShardClaims > 0 && f.Ahead == 0 }},
	{AtLimit, func(f *Facts) bool { return f.LimitReached }},
	{LanesFull, func(f *Facts) bool { return f.Owner.MaxLanes > 0 && f.Owner.QueueBusy >= f.Owner.MaxLanes }},
	{ShardFull, func(f *Facts) bool { return f.Owner.ShardFull(f.ShardClaims) }},
	{LanesBusy, func(f *Facts) bool { return f.Owner.LaneBusy || f.Owner.Lanes > 0 && f.Owner.Busy >= f.Owner.Lanes }},
	{BehindOthers, func(f *Facts) bool { return f.Ahead > 0 }},
	{IsNext, func(*Facts) bool { return true }},
}

// Why returns why the job of an id does not run, or that it does. What is queued behind a claim of
// its own id is what is asked about then. It is pure, and a table: the first reason that holds.
func Why(f Facts) Reason {
	for i := range whyTable {
		if whyTable[i].holds(&f) {
			return whyTable[i].reason
		}
	}
	return IsNext
}

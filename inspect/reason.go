package inspect

import (
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Reason is the reason why the job of an id does not run, or the information that it runs.
type Reason uint8

// Reasons.
const (
	// NothingQueued is an id without a queued job, a claimed job, a dead letter or a schedule. If the
	// queue keeps the record of its last run that was done, the text has it.
	NothingQueued Reason = iota
	// Scheduled is an id without a queued job, a claimed job or a dead letter that has a schedule.
	Scheduled
	// Unreadable is an id whose record the store can't read. The record does not run, and will be
	// set aside.
	Unreadable
	// OnlyDead is an id that has a dead letter, perhaps schedules, and no job.
	OnlyDead
	// RunsNow is a job whose handler runs.
	RunsNow
	// OwnerGone is a job that was claimed under a lease that is over. The shard's next owner
	// recovers it. The queued job of its id waits for that.
	OwnerGone
	// InBuffer is a job that a server has claimed. Whether its handler has begun is unknown.
	InBuffer
	// PredecessorRuns is a queued job whose id is claimed: it runs after the claimed job.
	PredecessorRuns
	// Held is a job that used up its retries or its recoveries and is held: see QueuedJob.Held.
	Held
	// QueuePaused is a job of a paused queue.
	QueuePaused
	// BacksOff is a job that has failed and is not due yet.
	BacksOff
	// NotDueYet is a job that has not failed and is not due yet. It was pushed for later, or merged
	// with such a job, or its handler returned Snooze or Await, or the rate of its key has no slot for
	// it yet. Stores don't keep which of these.
	NotDueYet
	// NobodyServes is a due job of a queue that no server serves, except servers that drain or are
	// gone.
	NobodyServes
	// ShardUnowned is a due job of a shard without a lease, although servers serve its queue.
	ShardUnowned
	// WaitsForAlone is a due job behind one that must run alone: see [core.AloneRecoveries].
	WaitsForAlone
	// RunsAlone is a due job that must run alone and waits while other jobs of its shard are
	// claimed.
	RunsAlone
	// BehindLastChance is a due or claimed job on its last chance, while another such job runs on the
	// server that owns its shard: at most one runs in a process at a time (docs/rules.md 4).
	BehindLastChance
	// AtLimit is a due job of a queue with as many running batches over all servers as its limit
	// allows.
	AtLimit
	// AtRate is a due job of a queue whose rate allows no start now, or whose rate is stopped.
	AtRate
	// AtKeyRate is a job that waits for a slot of the rate of its key: see QueueOptions.RateBy.
	AtKeyRate
	// OwnerDrains is a due job of a shard whose owner drains. The owner claims no more jobs, and
	// another server takes the shard when the running handlers have returned.
	OwnerDrains
	// LanesFull is a due job of a queue with as many batches running on the shard's owner as the
	// owner's limit for the queue allows.
	LanesFull
	// ShardFull is a due job of a shard with as many claimed batches as its owner may run at once.
	ShardFull
	// LanesBusy is a due job of a shard whose owner has no free lane, or whose one lane is busy if
	// the splitter pins the shard to it.
	LanesBusy
	// BehindOthers is a due job behind other due jobs of its shard.
	BehindOthers
	// IsNext is a due job with no job ahead: its shard's owner claims it next.
	IsNext
)

// reasons has the name of each reason, and whether its job waits.
var reasons = [...]struct {
	name  string
	waits bool
}{
	NothingQueued:    {"nothing queued", false},
	Scheduled:        {"scheduled", false},
	Unreadable:       {"damaged", false},
	OnlyDead:         {"dead", false},
	RunsNow:          {"running", false},
	OwnerGone:        {"owner gone", true},
	InBuffer:         {"claimed", false},
	PredecessorRuns:  {"predecessor runs", true},
	Held:             {"held", true},
	QueuePaused:      {"paused", true},
	BacksOff:         {"backoff", true},
	NotDueYet:        {"not due", true},
	NobodyServes:     {"nobody serves", true},
	ShardUnowned:     {"no owner", true},
	WaitsForAlone:    {"behind a job that runs alone", true},
	RunsAlone:        {"runs alone", true},
	BehindLastChance: {"behind a last chance", true},
	AtLimit:          {"limit", true},
	AtRate:           {"rate", true},
	AtKeyRate:        {"key rate", true},
	OwnerDrains:      {"owner drains", true},
	LanesFull:        {"lane limit", true},
	ShardFull:        {"shard limit", true},
	LanesBusy:        {"lanes busy", true},
	BehindOthers:     {"behind others", true},
	IsNext:           {"next", false},
}

// String returns the reason in a few words.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r].name
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Waits reports whether the id has a job that waits, other than for its turn to be claimed next.
func (r Reason) Waits() bool { return int(r) < len(reasons) && reasons[r].waits }

// facts are the facts that decide whether and when the job of an id runs, at one instant of the
// store's clock. The zero value is that of an id for which the queue holds nothing.
type facts struct {
	// Now is the store's clock.
	Now core.Instant
	// Queued, Claimed and Dead are true if the id has a queued job, a claimed job and a dead
	// letter.
	Queued, Claimed, Dead bool
	// Scheduled is true if the id has a schedule. It is looked up only if the id has no job.
	Scheduled bool
	// Damaged is true if the store has a record of the id that it can't read.
	Damaged bool
	// State is the queued job's state.
	State core.State
	// Running is true if the claimed job's handler is known to run.
	Running bool
	// LeaseOver is true if the lease under which the job was claimed is over.
	LeaseOver bool
	// Paused is true if the queue is paused.
	Paused bool
	// Served is the number of live servers that serve the queue, without those that drain.
	Served int
	// Owned is true if the shard has a lease that lasts.
	Owned bool
	// Ahead is the number of due jobs of the shard that are ahead of the queued one.
	Ahead int
	// BehindAlone is true if another job of the shard, which runs alone, is claimed or is the first
	// of the jobs ahead.
	BehindAlone bool
	// LimitReached is true if as many batches of the queue run over all servers as its limit
	// allows.
	LimitReached bool
	// RateWaits is true if the queue has a rate whose next slot lies ahead.
	RateWaits bool
	// ShardClaims is the number of claimed jobs of the shard.
	ShardClaims int
	// BehindLastChance is true if the job is on its last chance, and the shard's owner runs another
	// such job.
	BehindLastChance bool
	// Owner is what the shard's owner last announced.
	Owner OwnerFacts
}

// OwnerFacts are facts about the server that holds the lease of a shard, as it announced them last.
// The zero value means that nothing is known.
type OwnerFacts struct {
	// Draining is true if it drains and claims no more jobs.
	Draining bool
	// Lanes is the number of its lanes, and Busy the number of those that run a batch.
	Lanes, Busy int
	// MaxLanes is the maximum number of batches of the queue that it runs at once, and QueueBusy
	// the number that run. A MaxLanes of 0 means no limit.
	MaxLanes, QueueBusy int
	// Parallel is the maximum number of batches of one shard of the queue that it runs at once,
	// each of at most BatchSize jobs. A Parallel of 0 means no limit.
	Parallel, BatchSize int
	// LaneBusy is true if a splitter pins the shard to a lane and that lane runs a batch.
	LaneBusy bool
	// MaxRecoveries is the number of recoveries from which a job of the queue is on its last chance
	// there; 0 means that no job is, or unknown. LastChance is the job on its last chance that the
	// server runs, of any queue.
	MaxRecoveries int
	LastChance    ports.LastChance
}

// behindLastChance reports whether a job of a shard waits for another job on its last chance.
func (o *OwnerFacts) behindLastChance(shard core.Shard, id string, st *core.State) bool {
	other := o.LastChance != ports.LastChance{} && o.LastChance != ports.LastChance{Shard: shard, ID: id}
	return other && o.MaxRecoveries > 0 && st.Recoveries >= o.MaxRecoveries
}

// lanesBusy reports whether all lanes of the server run a batch.
func (o *OwnerFacts) lanesBusy() bool { return o.Lanes > 0 && o.Busy >= o.Lanes }

// lanesFull reports whether the queue has as many lanes of the server as it may have.
func (o *OwnerFacts) lanesFull() bool { return o.MaxLanes > 0 && o.QueueBusy >= o.MaxLanes }

// shardFull reports whether the given number of claimed jobs of a shard makes at least as many
// batches as may run at once.
func (o *OwnerFacts) shardFull(claimed int) bool {
	size := max(1, o.BatchSize)
	return o.Parallel > 0 && (claimed+size-1)/size >= o.Parallel
}

// whyTable has a line for each reason. The first reason whose condition holds is the answer.
var whyTable = [...]struct {
	reason Reason
	holds  func(*facts) bool
}{
	{RunsNow, func(f *facts) bool { return f.Claimed && f.Running && !f.LeaseOver && !f.Queued }},
	{OwnerGone, func(f *facts) bool { return f.Claimed && f.LeaseOver }},
	{BehindLastChance, func(f *facts) bool { return f.Claimed && !f.Queued && f.BehindLastChance }},
	{InBuffer, func(f *facts) bool { return f.Claimed && !f.Queued }},
	{PredecessorRuns, func(f *facts) bool { return f.Claimed }},
	{Unreadable, func(f *facts) bool { return !f.Queued && f.Damaged }},
	{OnlyDead, func(f *facts) bool { return !f.Queued && f.Dead }},
	{Scheduled, func(f *facts) bool { return !f.Queued && f.Scheduled }},
	{NothingQueued, func(f *facts) bool { return !f.Queued }},
	{Held, func(f *facts) bool { return f.State.Held() }},
	{QueuePaused, func(f *facts) bool { return f.Paused }},
	{AtKeyRate, func(f *facts) bool { return f.State.PerformAt > f.Now && f.State.Slot != "" }},
	{BacksOff, func(f *facts) bool { return f.State.PerformAt > f.Now && !f.State.Fresh() }},
	{NotDueYet, func(f *facts) bool { return f.State.PerformAt > f.Now }},
	{NobodyServes, func(f *facts) bool { return f.Served == 0 }},
	{ShardUnowned, func(f *facts) bool { return !f.Owned }},
	{OwnerDrains, func(f *facts) bool { return f.Owner.Draining }},
	{WaitsForAlone, func(f *facts) bool { return f.BehindAlone }},
	{RunsAlone, func(f *facts) bool { return f.State.Alone() && f.ShardClaims > 0 && f.Ahead == 0 }},
	{BehindLastChance, func(f *facts) bool { return f.BehindLastChance && f.Ahead == 0 }},
	{AtLimit, func(f *facts) bool { return f.LimitReached }},
	{AtRate, func(f *facts) bool { return f.RateWaits }},
	{LanesFull, func(f *facts) bool { return f.Owner.lanesFull() }},
	{ShardFull, func(f *facts) bool { return f.Owner.shardFull(f.ShardClaims) }},
	{LanesBusy, func(f *facts) bool { return f.Owner.LaneBusy || f.Owner.lanesBusy() }},
	{BehindOthers, func(f *facts) bool { return f.Ahead > 0 }},
	{IsNext, func(*facts) bool { return true }},
}

// reasonOf returns the first reason of whyTable that applies. If a job is queued behind a claim of
// its own id, the reason is that of the queued job. It is a pure function.
func reasonOf(f *facts) Reason {
	for i := range whyTable {
		if whyTable[i].holds(f) {
			return whyTable[i].reason
		}
	}
	return IsNext
}

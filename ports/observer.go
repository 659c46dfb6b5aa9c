package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Observer receives events of clients and servers, for metrics and traces. The methods are called
// while jobs are processed, from many goroutines at once, and must be quick. A method that blocks
// delays the lane or the shard that called it, and other lanes that wait for jobs of that shard. If
// TurnEnd blocks for longer than a lease lasts, the lease is lost.
//
// No method is called under a lock, so a method may call the server and the store. A panic of a
// method affects only the measurements; the first panic of each method is logged. If no Observer is
// set, nothing is measured. Embed [NopObserver], so that your Observer still compiles when methods
// are added.
type Observer interface {
	// Pushed is called after each push of a client.
	Pushed(ctx context.Context, e PushEvent)
	// BatchStart is called before a handler. The handler gets the returned context, which must be
	// derived from ctx. If the result is nil, or if BatchStart panics, the handler gets ctx.
	BatchStart(ctx context.Context, e BatchEvent) context.Context
	// BatchEnd is called after the handler, with the context that BatchStart returned.
	BatchEnd(ctx context.Context, e BatchEvent)
	// TurnEnd is called after each turn, including failed ones.
	TurnEnd(e TurnEvent)
	// JobsEnded is called after the store has confirmed how jobs of a shard ended, or after the
	// server has lost the lease before that. It reports each execution of a job at most once.
	JobsEnded(e EndEvent)
	// TicksFired is called after a server has fired schedules of a shard, with the sums of what it
	// has done. It is not called for a server that found nothing to fire.
	TicksFired(e TickEvent)
	// DeadLettersExpired is called after a server has removed dead letters of a queue because the
	// queue keeps only some.
	DeadLettersExpired(e ExpiryEvent)
	// SlotsTaken is called after a server has asked for slots of the rate of a queue, and got an
	// answer.
	SlotsTaken(e SlotEvent)
	// QueueSlowed is called after a server has stopped the rate of a queue, because a handler has
	// returned SlowDown.
	QueueSlowed(e SlowEvent)
	// HandlerOverran is called, once for a batch, if its handler still runs a minute after its
	// context has ended. Such a handler keeps its lane busy.
	HandlerOverran(e OverrunEvent)
	// StoreFailed is called after a failed call of a server to the store, if the server will repeat
	// the call, or gives the call up because other calls do the same work.
	StoreFailed(e FailureEvent)
	// LeaseChanged is called after a lease starts or ends.
	LeaseChanged(e LeaseEvent)
	// NodeChanged is called after a server has learned that a server joined, drains, works again or
	// left. That server may be the calling server itself. At its start it reports each server that
	// it finds as joined.
	NodeChanged(e NodeEvent)
	// ShardsAssigned is called after the shards that belong to a server have changed. The server
	// acquires the gained shards as soon as their owners release them. It releases the lost shards
	// as soon as their handlers have returned. LeaseChanged reports both.
	ShardsAssigned(e AssignEvent)
}

// PushEvent is one push: its queue, its number of entries, its duration and its error.
type PushEvent struct {
	Queue   string
	Entries int
	Took    time.Duration
	Err     error
	// New, Merged, Duplicate, Superseded, Stale and Repeated are the sums of those in each
	// [PushReply] of this push. Entries that none of them counts were not stored, or their result
	// is unknown. For a push in a caller's transaction all of them are 0. If Err is then nil, the
	// entries are stored if the transaction commits, and the Observer is not notified of the
	// commit.
	New, Merged, Duplicate, Superseded, Stale, Repeated int
}

// BatchEvent is the start or the end of a batch.
type BatchEvent struct {
	Shard core.Shard
	Lane  int
	// Now is the store's clock when the batch began, as the server estimates it from the store's
	// replies. It is the same at the start and at the end.
	Now core.Instant
	// Claims are the jobs of the batch. They are read-only. Payloads are as they are stored:
	// core.MergeRule.Pushed of the queue's rule returns one as it was pushed.
	Claims []core.Claim
	// Outcomes are the outcomes of Claims, in the same order, at the end of the batch. They are nil
	// at its start. For a job that the handler settled in a transaction, the outcome is the one
	// with which the handler returned, whether or not the transaction commits.
	Outcomes []core.Outcome
	// Took is how long the handler ran. It is 0 at the start.
	Took time.Duration
}

// Wait returns how long the job of Claims[i] had waited when the batch began, by the store's clock:
// since it was due, or since its first push if that was later. It returns 0 if the batch began
// before that, which can happen if the store's clock steps back.
func (e *BatchEvent) Wait(i int) time.Duration { return max(0, e.Now.Sub(e.Claims[i].WaitsFrom())) }

// TurnEvent is one turn: the numbers of settled and claimed jobs, its duration and its error.
type TurnEvent struct {
	Shard   core.Shard
	Settled int
	Claimed int
	// Recovered is the number of jobs of earlier leases that the turn handed over because the
	// acquire could not: they did not fit, or the store could not reach them.
	Recovered int
	// Woken is true if this turn was to claim jobs and a wake-up of the shard had arrived since the
	// last turn that was to claim jobs. If such a turn claims no job, the wake-up was spurious, or
	// it announced another change: another turn had already claimed the job, the job had moved to a
	// later time, or a job was cancelled.
	Woken bool
	Took  time.Duration
	Err   error
}

// LeaseChange is the kind of a [LeaseEvent].
type LeaseChange uint8

const (
	// LeaseAcquired is the start of a lease.
	LeaseAcquired LeaseChange = iota
	// LeaseReleased is the end of a lease that its owner released.
	LeaseReleased
	// LeaseDropped is the end of a lease that ran out, passed to another owner, or could not be
	// released.
	LeaseDropped
)

// String returns the change in one word, for example for logs.
func (c LeaseChange) String() string {
	switch c {
	case LeaseAcquired:
		return "acquired"
	case LeaseReleased:
		return "released"
	case LeaseDropped:
		return "dropped"
	}
	return fmt.Sprintf("LeaseChange(%d)", uint8(c))
}

// LeaseEvent is the start or the end of a lease, with its fencing token.
type LeaseEvent struct {
	Shard  core.Shard
	Change LeaseChange
	Token  int64
	// Orphans is the number of claimed jobs of earlier leases that the Acquire handed over. If
	// there are more than one call may return, later turns hand over the others: see [TurnEvent].
	Orphans int
	// Err is the reason why a lease was dropped.
	Err error
}

// NodeChange is the kind of a [NodeEvent].
type NodeChange uint8

const (
	// NodeJoined is a server that was not known before.
	NodeJoined NodeChange = iota
	// NodeDrains is a server that releases its shards.
	NodeDrains
	// NodeResumed is a server that drained and works again.
	NodeResumed
	// NodeLeft is a server that retired, or whose announcement ran out.
	NodeLeft
)

// String returns the change in one word, for example for logs.
func (c NodeChange) String() string {
	switch c {
	case NodeJoined:
		return "joined"
	case NodeDrains:
		return "drains"
	case NodeResumed:
		return "resumed"
	case NodeLeft:
		return "left"
	}
	return fmt.Sprintf("NodeChange(%d)", uint8(c))
}

// NodeEvent is a change of a server.
type NodeEvent struct {
	Change NodeChange
	// Node is the server as it is listed now, or as it was before it left. Its Status is empty.
	Node Node
}

// AssignEvent is a change of the shards that belong to a server.
type AssignEvent struct {
	// Gained are the shards that now belong to the server and did not before. Lost are the shards
	// that no longer belong to it.
	Gained, Lost []core.Shard
	// Nodes is the number of servers that share the shards. It includes this server unless it
	// drains.
	Nodes int
}

// NopObserver is an [Observer] that does nothing, for embedding.
type NopObserver struct{}

// Pushed implements [Observer].
func (NopObserver) Pushed(context.Context, PushEvent) {}

// BatchStart implements [Observer].
func (NopObserver) BatchStart(ctx context.Context, _ BatchEvent) context.Context { return ctx }

// BatchEnd implements [Observer].
func (NopObserver) BatchEnd(context.Context, BatchEvent) {}

// TurnEnd implements [Observer].
func (NopObserver) TurnEnd(TurnEvent) {}

// JobsEnded implements [Observer].
func (NopObserver) JobsEnded(EndEvent) {}

// TicksFired implements [Observer].
func (NopObserver) TicksFired(TickEvent) {}

// DeadLettersExpired implements [Observer].
func (NopObserver) DeadLettersExpired(ExpiryEvent) {}

// SlotsTaken implements [Observer].
func (NopObserver) SlotsTaken(SlotEvent) {}

// QueueSlowed implements [Observer].
func (NopObserver) QueueSlowed(SlowEvent) {}

// HandlerOverran implements [Observer].
func (NopObserver) HandlerOverran(OverrunEvent) {}

// StoreFailed implements [Observer].
func (NopObserver) StoreFailed(FailureEvent) {}

// LeaseChanged implements [Observer].
func (NopObserver) LeaseChanged(LeaseEvent) {}

// NodeChanged implements [Observer].
func (NopObserver) NodeChanged(NodeEvent) {}

// ShardsAssigned implements [Observer].
func (NopObserver) ShardsAssigned(AssignEvent) {}

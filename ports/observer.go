package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Observer is notified of what clients and servers do, for metrics and traces. Every method is
// called on the path of the work, from many goroutines at once, and must be
// quick: one that blocks keeps up the lane, or the shard, that called it, and others where lanes wait for what that shard
// was to bring; a TurnEnd that blocks for longer than a lease lasts loses it. No method is called under a lock, so that it may ask the server and the store back. A panic harms nothing but what is measured; the first of each method is in the log. Without an
// observer nothing is measured.
// Embed [NopObserver] to keep compiling when methods are added.
type Observer interface {
	// Pushed is called after each push of a client.
	Pushed(ctx context.Context, e PushEvent)
	// BatchStart is called before a handler. The context that it returns is the
	// handler's, and must derive from ctx.
	BatchStart(ctx context.Context, e BatchEvent) context.Context
	// BatchEnd is called after the handler, with the context that BatchStart returned.
	BatchEnd(ctx context.Context, e BatchEvent)
	// TurnEnd is called after each turn, also a failed one.
	TurnEnd(e TurnEvent)
	// JobsEnded is called after the store has kept how jobs of a shard ended, or the server has lost
	// the lease before it did: at most once for each execution of a job.
	JobsEnded(e EndEvent)
	// HandlerOverran is called, once a batch, for a handler that goes on a minute after its context has
	// ended: it keeps its lane.
	HandlerOverran(e OverrunEvent)
	// StoreFailed is called after each call of a server to the store that has failed and is made again, or
	// given up where others do what it would have done.
	StoreFailed(e FailureEvent)
	// LeaseChanged is called after a lease starts or ends.
	LeaseChanged(e LeaseEvent)
	// NodeChanged is called after a server has learnt that a node joined, drains, works
	// again or left, also of itself and of those that it finds at its start.
	NodeChanged(e NodeEvent)
	// ShardsAssigned is called after the shards that are a server's to work have changed. Those that
	// it gained it acquires as soon as their owners release them, and those that it lost it
	// releases as soon as their handlers have returned, which LeaseChanged reports.
	ShardsAssigned(e AssignEvent)
}

// PushEvent is one push.
type PushEvent struct {
	Queue   string
	Entries int
	Took    time.Duration
	Err     error
	// New, Merged and Duplicate are those of [PushReply], of all calls of this push. Entries that are in none of
	// them were not stored, or nobody knows what they met. All are 0, with an Err of nil, for a push in a
	// caller's transaction: it is stored if that commits, which nobody tells the Observer.
	New, Merged, Duplicate int
}

// BatchEvent is a batch at its start or end.
type BatchEvent struct {
	Shard core.Shard
	Lane  int
	// Now is the store's clock when the batch began, as far as the server knows it from the store's
	// replies.
	Now core.Instant
	// Claims are the jobs, read-only.
	Claims []core.Claim
	// Outcomes are those of the Claims, at the end; nil at the start. That of a
	// job settled in a transaction is as the handler left it, whether or not the
	// transaction commits.
	Outcomes []core.Outcome
	// Took is how long the handler ran, at the end.
	Took time.Duration
}

// Wait returns how long the job of Claims[i] had been due when the batch began, by the store's clock; 0 if
// it was claimed before it was due, which the store's clock allows that steps back.
func (e *BatchEvent) Wait(i int) time.Duration { return max(0, e.Now.Sub(e.Claims[i].PerformAt)) }

// TurnEvent is one turn.
type TurnEvent struct {
	Shard   core.Shard
	Settled int
	Claimed int
	// Recovered is how many jobs of earlier leases it has brought that the acquire had no room for.
	Recovered int
	// Woken says that a wake-up of the shard came before the turn and since its last one that was to claim. If
	// such a turn claims nothing, the wake-up was spurious: another turn had claimed the job already, or it was
	// one that moves a job's time or cancels a job.
	Woken bool
	Took  time.Duration
	Err   error
}

// LeaseChange is what happened to a lease.
type LeaseChange uint8

const (
	// LeaseAcquired is the start of a lease.
	LeaseAcquired LeaseChange = iota
	// LeaseReleased is the end of a lease that its owner released.
	LeaseReleased
	// LeaseDropped is the end of a lease that ran out or passed to another owner.
	LeaseDropped
)

// String returns the change in a word, such as for logs.
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

// LeaseEvent is the start or the end of a lease.
type LeaseEvent struct {
	Shard  core.Shard
	Change LeaseChange
	Token  int64
	// Orphans is how many claimed jobs an acquired lease took over at once. If earlier
	// leases left more than one call may carry, turns bring the others.
	Orphans int
	// Err is why a lease was dropped.
	Err error
}

// NodeChange is what happened to a node.
type NodeChange uint8

const (
	// NodeJoined is a node that was not known.
	NodeJoined NodeChange = iota
	// NodeDrains is a node that gives its shards up.
	NodeDrains
	// NodeResumed is a node that drained and works again.
	NodeResumed
	// NodeLeft is a node that retired, or whose announcement ran out.
	NodeLeft
)

// String returns the change in a word, such as for logs.
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

// NodeEvent is a change of a node.
type NodeEvent struct {
	Change NodeChange
	// Node is the node as it is listed now, or was before it left. Its Status is empty.
	Node Node
}

// AssignEvent is a change of the shards that are a node's to work.
type AssignEvent struct {
	Gained, Lost []core.Shard
	// Nodes is how many nodes share the shards, this one included unless it drains.
	Nodes int
}

// NopObserver does nothing, for embedding.
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

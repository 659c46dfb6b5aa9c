package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/clock"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// node is what all parts of an engine share: its configuration, the store and its state, and the
// contexts and signals of its end.
type node struct {
	store      Store
	cfg        Config
	log        *slog.Logger
	jobLog     *report.Jobs
	ending     ending
	observer   ports.Observer
	clock      *clock.Clock
	roundTrips roundTrips
	outages    *report.Outages
	// poolChecked is done once a handler has settled in a transaction.
	poolChecked sync.Once
	tallies     tallies
	// attempts is the number of the last acquire of any shard. A shard of a queue that was removed and
	// added again continues to count, since the store may know its last attempt.
	attempts atomic.Int64

	// nodes are those that the last announcement returned, and nodesChanged asks for the next one.
	nodes        atomic.Pointer[[]ports.Node]
	nodesChanged chan struct{}

	// handlerCtx carries the values of Run's context but not its end.
	handlerCtx context.Context
	// runCtx is Run's context. Once it has ended, the node starts nothing more.
	runCtx context.Context
	// storeCtx is the context of all calls to the store until the node has drained.
	// cancelCalls ends it.
	storeCtx    context.Context
	cancelCalls context.CancelFunc
	// stop is closed when the node is to stop.
	stop chan struct{}
	// stoppedAt is when Run closed stop. It is read only after that.
	stoppedAt time.Time
	// tickNow wakes the tick: a shard waits for time to pass.
	tickNow chan struct{}

	// pooling guards the states of all pools and permits of the node. dispatcher is what these states
	// share.
	pooling    sync.Mutex
	dispatcher dispatch.Node
	// permits are those of the queues with MaxRunning, and permitsNow wakes the loop that maintains
	// them.
	permits    []*permits
	permitsNow chan struct{}
	// slotsNow wakes the loop that takes slots of queues with a rate.
	slotsNow chan struct{}
	// ticksNow asks for a look at schedules: a lease was acquired.
	ticksNow chan struct{}
	// turnSlots bound the turns in flight, and hangs counts those that recently began to take too
	// long.
	turnSlots turnSlots
	hangs     hangs
	// pollNow asks for a poll before its time.
	pollNow chan struct{}
	// listening is set while the subscription to wake-ups stands.
	listening atomic.Bool

	lastChance lastChance
	hooks      report.Hooks
	batches    execution.Server

	lanesRunning sync.WaitGroup
	laneNumbers  atomic.Int32
	renewals     sync.WaitGroup
	fatal        sync.Once
}

// shardInfo is the part of a shard that never changes on this node.
type shardInfo struct {
	execution.Shard
	node  *node
	queue *Queue
}

// makeContexts makes the contexts of handlers and of calls to the store from that of Run.
func (n *node) makeContexts(ctx context.Context) {
	n.runCtx, n.handlerCtx = ctx, context.WithoutCancel(ctx)
	n.storeCtx, n.cancelCalls = context.WithCancel(n.handlerCtx)
	n.outages = report.NewOutages(n.storeCtx, n.log, n.observer)
	n.hooks.Start(n.handlerCtx, ctx, n.cfg.ShutdownTimeout, execution.ErrShutdown)
	n.batches = execution.Server{
		Handlers: n.handlerCtx, Stop: ctx, Clock: n.clock, Node: n.cfg.Node, Logger: n.log, Jobs: n.jobLog, Jitter: n.cfg.Jitter,
		CheckPool: n.checkPool, Observed: n.cfg.Observer != nil,
	}
}

// callStarted calls Config.Started.
func (n *node) callStarted(ctx context.Context) error {
	if n.cfg.Started == nil {
		return nil
	}
	return guard.Call(func() error { return n.cfg.Started(ctx) })
}

// stopping reports whether the node is to stop.
func (n *node) stopping() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// callContext returns the context of one call to the store, which may take a third of the TTL.
func (n *node) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.storeCtx, n.cfg.LeaseTTL/3)
}

// lastContext is callContext for a call by which the node gives something back at its end, or
// tells others what they must know. What it can't give back expires by itself.
func (n *node) lastContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.handlerCtx, min(n.cfg.LeaseTTL/3, 2*time.Second))
}

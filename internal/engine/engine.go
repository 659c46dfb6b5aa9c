package engine

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/clock"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/internal/engine/membership"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/internal/logs"
	"github.com/skeinq/skein/ports"
)

// Engine is one node. Make it with New, and call Run or RunDue once.
type Engine struct {
	node
	pools []*pool
	// served is what the node serves now. A caller that replaces it holds reconfiguring.
	served        atomic.Pointer[served]
	reconfiguring sync.Mutex
	// recording is held while the records of queues are read and applied.
	recording sync.Mutex
	// leavingQueues are the names of removed queues whose shards still work.
	leavingQueues map[string]bool
	// serving is set while the loops of the shards run. turnLoops is their group.
	serving   bool
	turnLoops sync.WaitGroup
	// resubscribe makes the node subscribe to wake-ups anew. It is nil before it listens.
	resubscribe atomic.Pointer[context.CancelFunc]
	// pollFailed is when a poll last failed. Only the poll's loop uses it.
	pollFailed time.Time
}

// New returns an engine for a checked Config.
func New(store Store, cfg Config) *Engine {
	log := logs.New(cfg.Logger)
	jobLog := report.NewJobs(log)
	return &Engine{
		node: node{
			store:    store,
			cfg:      cfg,
			log:      log,
			jobLog:   jobLog,
			observer: cmp.Or(guard.Observer(cfg.Observer, log), ports.Observer(ports.NopObserver{})),
			clock:    clock.New(),
			hooks:    report.Hooks{Hook: cfg.Buried, Jobs: jobLog},
			stop:     make(chan struct{}),
			tickNow:  make(chan struct{}, 1),
			pollNow:  make(chan struct{}, 1),

			nodesChanged: make(chan struct{}, 1),
			permitsNow:   make(chan struct{}, 1),
			slotsNow:     make(chan struct{}, 1),
			ticksNow:     make(chan struct{}, 1),

			dispatcher: dispatch.Node{Config: dispatch.Config{
				Owner: cfg.Owner, PollInterval: cfg.PollInterval, LeaseTTL: cfg.LeaseTTL, Prefetch: cfg.Prefetch,
			}},
			turnSlots: newTurnSlots(store),
			hangs:     hangs{recent: dispatch.Recent{Window: hangsWindow}},
		},
		leavingQueues: make(map[string]bool),
	}
}

// Run works until ctx ends, then shuts down: it claims nothing more, lets handlers finish, settles
// what finished, puts back what never started, and releases its leases. It returns once every
// handler has returned.
//
// A store that can't be reached does not end it. Run returns an error, having done nothing, if a
// queue's declaration is refused, if the store is ports.ErrUnusable, if the splitter's result is
// invalid, or if the scheduler or Config.Started fails.
func (e *Engine) Run(ctx context.Context) error {
	e.makeContexts(ctx)
	defer e.cancelCalls()
	defer e.hooks.Close()

	if err := e.makePools(); err != nil {
		return err
	}
	if len(e.shards()) == 0 {
		e.log.Warn("the splitter assigns no shard to this server, so it runs no jobs", "queues", len(e.cfg.Queues))
	}

	if err := e.declareAll(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := e.readRecords(e.cfg.Queues); err != nil {
		e.log.Warn("the settings of queues can't be read, so the program's values apply until they can", "error", err)
	}
	if err := e.callStarted(ctx); err != nil {
		return err
	}

	e.logStarted()
	e.serve(ctx)

	e.hooks.Wait()
	e.leave()
	e.jobLog.FlushAll()
	e.logStopped()

	return nil
}

// makePools makes the pools of this node. They have the shards that the splitter assigns to it
// when it is alone. Which of these it works is decided while it runs.
func (e *Engine) makePools() error {
	now := newServed(e.cfg.Queues, e.cfg.Lanes)
	for _, q := range now.queues {
		e.followCode(q)
	}

	split, err := e.split(now)
	if err != nil {
		return err
	}

	pinned, lanes := split.Lanes, 1
	if len(split.Shared) > 0 {
		pinned, lanes = [][]core.Shard{split.Shared}, now.lanes
	}

	for _, ids := range pinned {
		if len(ids) == 0 {
			continue
		}
		p := newPool(&e.node, lanes)
		p.shared = len(split.Shared) > 0
		e.pools = append(e.pools, p)
		shards := e.newShards(now, ids)
		if err := p.setShards(shards, e.cfg.Scheduler, now.byName()); err != nil {
			return err
		}
		now.shards = append(now.shards, shards...)
	}

	e.served.Store(now)
	return nil
}

// newShards returns shards of queues that the node serves.
func (e *Engine) newShards(now *served, ids []core.Shard) (shards []*shard) {
	queues := now.byName()
	for _, id := range ids {
		shards = append(shards, newShard(&e.node, id, queues[id.Queue]))
	}
	return shards
}

// split calls the splitter as if this node were alone.
func (e *Engine) split(now *served) (core.Split, error) {
	self := e.splitNode(now)
	return membership.Split(e.cfg.Splitter, now.all, self, []core.SplitNode{self})
}

// splitNode is this node in the splitter's terms.
func (e *Engine) splitNode(now *served) core.SplitNode {
	n := core.SplitNode{ID: e.cfg.Owner, Lanes: now.lanes}
	for _, q := range now.queues {
		n.Queues = append(n.Queues, q.Name)
	}
	return n
}

// serve runs all loops until ctx ends and the node has drained.
func (e *Engine) serve(ctx context.Context) {
	endLoops := e.startLoops(
		e.maintainLeases,
		e.maintainPermits,
		e.takeSlots,
		e.shareShards,
		e.recordAll,
		func(<-chan struct{}) { e.checkSettings() },
		e.tickAll,
		e.watch,
		e.followRecords,
		e.fireTicks,
		e.expireDeadLetters,
		func(<-chan struct{}) { e.recoverOrphans() },
		func(<-chan struct{}) { e.pollAll(e.stop) },
		func(<-chan struct{}) { e.listen(ctx) },
	)

	e.reconfiguring.Lock()
	e.serving = true
	e.startShards(e.shards())
	for _, p := range e.pools {
		p.startLanes(p.lanes)
	}
	e.reconfiguring.Unlock()

	<-ctx.Done()
	e.drain()
	endLoops()
}

// startShards starts the loops of shards.
func (e *Engine) startShards(shards []*shard) {
	for _, s := range shards {
		s.queue.loops.Add(1)
		e.start(&e.turnLoops, func() {
			defer s.queue.loops.Done()
			s.run()
		})
	}
}

// drain ends the lanes, then the turn loops of the shards.
func (e *Engine) drain() {
	e.reconfiguring.Lock() // no shard is added any more
	e.serving, e.stoppedAt = false, time.Now()
	close(e.stop)
	e.reconfiguring.Unlock()
	e.logDraining()
	e.wakeAll()
	signal(e.nodesChanged) // to announce that it drains
	timeout := time.AfterFunc(e.cfg.ShutdownTimeout, func() { e.interruptAll() })
	e.lanesRunning.Wait()
	timeout.Stop()
	e.wakeAll()
	e.turnLoops.Wait()
}

// wakeAll wakes all lanes and turn loops of a node that stops.
func (e *Engine) wakeAll() {
	signal(e.permitsNow)
	for _, s := range e.shards() {
		signal(s.wake)
	}
	for _, p := range e.pools {
		p.stop()
	}
}

// interruptAll cancels the running handlers.
func (e *Engine) interruptAll() {
	for _, s := range e.shards() {
		if n := s.interrupt(execution.ErrShutdown); n > 0 {
			e.ending.overdue.Add(int64(n))
			e.log.Warn("cancelling batches that outlast the shutdown timeout", "shard", s.ID.String(), "batches", n)
		}
	}
}

package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// Engine is one node. Make it with New, and call Run or RunDue once.
type Engine struct {
	node
	// all are the shards of the node's queues, in order of declaration, and shards those that it
	// may be assigned.
	all    []core.Shard
	shards []*shard
	lanes  []*lane
	// pollFailed is when a poll last failed. It belongs to the poll's loop.
	pollFailed time.Time
}

// New returns an engine for a checked Config.
func New(store Store, cfg Config) *Engine {
	return &Engine{
		node: node{
			store:    store,
			cfg:      cfg,
			log:      cfg.Logger,
			observer: cfg.Observer,
			clock:    newStoreClock(),
			outages:  outageLog{log: cfg.Logger, byLoop: make(map[string]*outage)},
			stop:     make(chan struct{}),
			tickNow:  make(chan struct{}, 1),
			pollNow:  make(chan struct{}, 1),

			nodesChanged: make(chan struct{}, 1),

			turnSlots: newTurnSlots(store),
		},
	}
}

// Run works until ctx ends, then drains: it claims nothing more, lets handlers finish, settles
// what finished, puts back what never started, and releases its leases. It returns once every
// handler has returned.
//
// A store that can't be reached does not end it. Run returns an error, having done nothing, if a
// queue's declaration is refused, if the store is ports.ErrUnusable, if the splitter's result is
// invalid, or if the scheduler or Config.Started fails.
func (e *Engine) Run(ctx context.Context) error {
	e.makeContexts(ctx)
	defer e.cancelCalls()
	defer e.hooks.close()
	if err := e.makePools(); err != nil {
		return err
	}
	if len(e.shards) == 0 {
		e.log.Warn("skein: the splitter assigns no shard to this node; it works nothing", "queues", len(e.cfg.Queues))
	}
	if err := e.declareAll(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := e.callStarted(ctx); err != nil {
		return err
	}
	e.serve(ctx)
	e.hooks.wait()
	e.retire()
	return nil
}

// makePools makes the pools of this node, of the shards that the splitter assigns to it when it is alone:
// which of them are its to work is decided while it runs.
func (e *Engine) makePools() error {
	queues := make(map[string]*Queue, len(e.cfg.Queues))
	for _, q := range e.cfg.Queues {
		queues[q.Name] = q
		q.limit = newLaneLimit(q.MaxLanes)
		e.all = append(e.all, core.Shards(q.Name, q.Shards)...)
	}
	split, err := e.split([]core.SplitNode{e.splitNode()})
	if err != nil {
		return err
	}
	for _, ids := range split.Lanes {
		if err := e.addPool(1, ids, queues); err != nil {
			return err
		}
	}
	if len(split.Shared) == 0 {
		return nil
	}
	return e.addPool(e.cfg.Lanes, split.Shared, queues)
}

// split asks the splitter who works which shard among nodes.
func (e *Engine) split(nodes []core.SplitNode) (core.Split, error) {
	split, err := e.cfg.Splitter.Split(core.SplitRequest{Shards: e.all, Lanes: e.cfg.Lanes, Self: e.cfg.Owner, Nodes: nodes})
	if err == nil {
		err = split.Check(e.all)
	}
	return split, err
}

// splitNode is this node, as the splitter sees it.
func (e *Engine) splitNode() core.SplitNode {
	n := core.SplitNode{ID: e.cfg.Owner, Lanes: e.cfg.Lanes}
	for _, q := range e.cfg.Queues {
		n.Queues = append(n.Queues, q.Name)
	}
	return n
}

// addPool adds a pool of so many lanes for shards.
func (e *Engine) addPool(lanes int, ids []core.Shard, queues map[string]*Queue) error {
	if len(ids) == 0 {
		return nil
	}
	p := newPool(&e.node)
	for range lanes {
		l := newLane(p, len(e.lanes))
		p.lanes, e.lanes = append(p.lanes, l), append(e.lanes, l)
	}
	for _, id := range ids {
		s := newShard(&e.node, id, queues[id.Queue])
		p.add(s)
		e.shards = append(e.shards, s)
	}
	var scheduler core.Scheduler
	p.chooser, scheduler = newChooser(p, e.cfg.Scheduler)
	return checkScheduler(scheduler, queues)
}

// serve runs all loops until ctx ends and the node has drained.
func (e *Engine) serve(ctx context.Context) {
	endLoops := e.startLoops(
		e.maintainLeases,
		newMembership(e).run,
		e.tickAll,
		e.watch,
		func(<-chan struct{}) { e.recoverOrphans() },
		func(<-chan struct{}) { e.pollAll(e.stop) },
		func(<-chan struct{}) { e.listen(ctx) },
	)
	var turnLoops sync.WaitGroup
	for _, s := range e.shards {
		e.start(&turnLoops, s.run)
	}
	for _, l := range e.lanes {
		e.lanesRunning.Add(1)
		go l.run()
	}
	<-ctx.Done()
	e.drain(&turnLoops)
	endLoops()
}

// drain ends the lanes, then the turn loops of the shards.
func (e *Engine) drain(turnLoops *sync.WaitGroup) {
	e.stoppedAt = time.Now()
	close(e.stop)
	e.wakeAll()
	signal(e.nodesChanged) // that it drains
	timeout := time.AfterFunc(e.cfg.ShutdownTimeout, func() { e.interruptAll() })
	e.lanesRunning.Wait()
	timeout.Stop()
	e.wakeAll()
	turnLoops.Wait()
}

// wakeAll wakes all lanes and turn loops.
func (e *Engine) wakeAll() {
	for _, s := range e.shards {
		signal(s.wake)
	}
	for _, l := range e.lanes {
		signal(l.wake)
	}
}

// interruptAll cancels the handlers that run.
func (e *Engine) interruptAll() {
	for _, s := range e.shards {
		s.mu.Lock()
		running := slices.Clone(s.running)
		s.mu.Unlock()
		if len(running) > 0 {
			e.log.Warn("skein: cancelling batches that outlast the shutdown timeout", "shard", s.id.String(), "batches", len(running))
		}
		for _, b := range running {
			b.interrupt(ErrShutdown)
		}
	}
}

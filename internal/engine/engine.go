package engine

import (
	"context"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// Engine is one node. Make it with New, and call Run or RunDue once.
type Engine struct {
	node
	shards []*shard
	lanes  []*lane
	// pollNow asks for a poll before its time.
	pollNow chan struct{}
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
		},
		pollNow: make(chan struct{}, 1),
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
	if err := e.assignShards(); err != nil {
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

// assignShards assigns each shard to a lane, as the splitter says.
func (e *Engine) assignShards() error {
	queues := make(map[string]*Queue, len(e.cfg.Queues))
	var all []core.Shard
	for _, q := range e.cfg.Queues {
		queues[q.Name] = q
		all = append(all, core.Shards(q.Name, q.Shards)...)
	}
	split, err := e.cfg.Splitter.Split(all, e.cfg.Lanes)
	if err != nil {
		return err
	}
	if err := split.Check(all); err != nil {
		return err
	}
	for number, ids := range split.Lanes {
		l := newLane(&e.node, number)
		for _, id := range ids {
			l.shards = append(l.shards, newShard(&e.node, id, queues[id.Queue], l))
		}
		l.heads = make([]core.Head, len(l.shards))
		l.scheduler = e.cfg.Scheduler(core.SchedulerConfig{Shards: ids, PollInterval: e.cfg.PollInterval})
		if err := checkScheduler(l.scheduler, queues); err != nil {
			return err
		}
		e.lanes = append(e.lanes, l)
		e.shards = append(e.shards, l.shards...)
	}
	return nil
}

// serve runs all loops until ctx ends and the node has drained.
func (e *Engine) serve(ctx context.Context) {
	endLoops := e.startLoops(
		e.maintainLeases,
		e.announce,
		e.tickAll,
		e.watch,
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
		running := s.running
		s.mu.Unlock()
		if running != nil {
			e.log.Warn("skein: cancelling a batch that outlasts the shutdown timeout", "shard", s.id.String())
			running.interrupt(ErrShutdown)
		}
	}
}

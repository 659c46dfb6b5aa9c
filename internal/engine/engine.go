package engine

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Engine is one node. Make it with New, and call Run or RunDue once.
type Engine struct {
	store      Store
	cfg        Config
	log        *slog.Logger
	observer   ports.Observer
	clock      *storeClock
	outages    outageLog
	roundTrips roundTrips

	shards []*shard
	lanes  []*lane

	// nodes are those that the last announcement was answered with.
	nodes atomic.Pointer[[]ports.Node]

	// handlerCtx carries the values of Run's context but not its end.
	handlerCtx context.Context
	// asked is Run's context: once it has ended the node starts nothing more.
	runCtx context.Context
	// storeCtx is that of all calls until the node has drained.
	storeCtx context.Context
	// stop is closed when the node is to stop.
	stop chan struct{}
	// stoppedAt is when it was closed, by Run.
	stoppedAt time.Time
	pollNow   chan struct{}
	// pollFailed is when the last poll failed that did; it belongs to that loop.
	pollFailed time.Time
	// tickNow says that a shard waits for time to pass.
	tickNow chan struct{}

	lastChance lastChance

	lanesRunning sync.WaitGroup
	renewals     sync.WaitGroup
	hooks        hooks
	fatal        sync.Once
}

// New makes an engine of a checked Config.
func New(store Store, cfg Config) *Engine {
	return &Engine{
		store:    store,
		cfg:      cfg,
		log:      cfg.Logger,
		observer: cfg.Observer,
		clock:    newStoreClock(),
		outages:  outageLog{log: cfg.Logger, byLoop: make(map[string]*outage)},
		stop:     make(chan struct{}),
		pollNow:  make(chan struct{}, 1),
		tickNow:  make(chan struct{}, 1),
	}
}

// Run works until ctx ends, then drains: it claims nothing more, lets handlers
// finish, settles what finished, puts back what never started, and releases its
// leases. It returns once every handler has returned.
//
// A store that can't be reached does not end it. It returns an error, having
// done nothing, if the queues can't be declared as they are, if the store is
// ports.ErrUnusable, or if the splitter deals badly.
func (e *Engine) Run(ctx context.Context) error {
	endCalls := e.makeContexts(ctx)
	defer endCalls()
	defer e.hooks.close()
	if err := e.assignShards(); err != nil {
		return err
	}
	if err := e.declareAll(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if err := e.callStarted(ctx); err != nil {
		return err
	}
	e.serve(ctx, endCalls)
	e.hooks.wait()
	e.retire()
	return nil
}

// begin makes the contexts of handlers and of calls, and gives the end of the
// latter.
func (e *Engine) makeContexts(ctx context.Context) (endCalls context.CancelFunc) {
	e.runCtx, e.handlerCtx = ctx, context.WithoutCancel(ctx)
	e.storeCtx, endCalls = context.WithCancel(e.handlerCtx)
	e.outages.callCtx = e.storeCtx
	e.hooks.start(e, ctx)
	return endCalls
}

func (e *Engine) callStarted(ctx context.Context) error {
	if e.cfg.Started == nil {
		return nil
	}
	return Guard(func() error { return e.cfg.Started(ctx) })
}

// deal splits the shards over the lanes.
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
		l := newLane(e, number)
		for _, id := range ids {
			l.shards = append(l.shards, newShard(e, id, queues[id.Queue], l))
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
func (e *Engine) serve(ctx context.Context, endCalls func()) {
	helpers := make(chan struct{})
	var helping, turning sync.WaitGroup
	e.start(&helping, func() { e.maintainLeases(helpers) })
	e.start(&helping, func() { e.announce(helpers) })
	e.start(&helping, func() { e.tickAll(helpers) })
	e.start(&helping, func() { e.watch(helpers) })
	e.start(&helping, func() { e.pollAll(e.stop) })
	if n, ok := e.store.(ports.Notifier); ok {
		e.start(&helping, func() { e.listen(ctx, n) })
	}
	for _, s := range e.shards {
		e.start(&turning, s.run)
	}
	for _, l := range e.lanes {
		e.lanesRunning.Add(1)
		go l.run()
	}
	<-ctx.Done()
	e.drain(&turning)
	close(helpers)
	endCalls()
	helping.Wait()
	e.renewals.Wait()
}

// start runs a loop in a goroutine of its own.
func (e *Engine) start(group *sync.WaitGroup, loop func()) {
	group.Go(func() {
		defer e.reportPanic()
		loop()
	})
}

// lastWords is deferred by each of the engine's goroutines.
func (e *Engine) reportPanic() {
	if v := recover(); v != nil {
		e.callFatal(v)
		panic(v)
	}
}

// tellFatal lets Fatal hear of the first panic that is no handler's. A second one waits
// until it has returned, since the process ends with the panic.
func (e *Engine) callFatal(v any) {
	if e.cfg.Fatal != nil {
		e.fatal.Do(func() { e.cfg.Fatal(&PanicError{Value: v, Stack: debug.Stack()}) })
	}
}

// drain ends the lanes, then the shards.
func (e *Engine) drain(turning *sync.WaitGroup) {
	e.stoppedAt = time.Now()
	close(e.stop)
	e.wakeAll()
	patience := time.AfterFunc(e.cfg.ShutdownTimeout, func() { e.interruptAll() })
	e.lanesRunning.Wait()
	patience.Stop()
	e.wakeAll()
	turning.Wait()
}

// probe makes the view of a loop that is for all shards.
func (e *Engine) newLoopStatus(doing string) *loopStatus {
	return &loopStatus{log: &e.outages, doing: doing}
}

func (e *Engine) stopping() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

func (e *Engine) wakeAll() {
	for _, s := range e.shards {
		signal(s.wake)
	}
	for _, l := range e.lanes {
		signal(l.wake)
	}
}

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

func (e *Engine) leaseChanged(event ports.LeaseEvent) {
	if e.observer != nil {
		e.observer.LeaseChanged(event)
	}
}

// dueNow is a head that makes a lane look.
func (e *Engine) dueNow() core.Head {
	return core.Head{Due: e.clock.now(), OK: true}
}

package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
)

// shard is this node's side of one shard. Three parts have its state: lease, turns and claims. They
// are state machines without locks, calls or goroutines, and don't know each other. The shard locks,
// passes on events with what the parts have to know of each other, and carries out what they return.
// Lanes and its turn loop work on it together.
type shard struct {
	shardInfo
	// pool works the shard. member is the shard as the pool's state sees it, which node.pooling
	// guards.
	pool   *pool
	member *dispatch.Shard
	// wake wakes the turn loop, which may have something to do.
	wake chan struct{}
	// released wakes an acquire that waits: the shard's owner may have released it.
	released chan struct{}

	// attempt is the number of the acquire. refusals are the waits after refused turns. Only the
	// turn loop uses both.
	attempt  int64
	refusals backoff

	// acquiring, turning and renewing are the status of this shard's calls.
	acquiring, turning, renewing, asking *report.Loop

	// mu guards the fields below.
	mu sync.Mutex
	// assigned is set while the shard is assigned to this node. unassignedAt is when that ended.
	assigned     bool
	unassignedAt time.Time
	// lease, turns and claims decide. overdue runs when the turn in flight takes too long.
	lease   lease
	turns   turns
	claims  claims
	overdue *time.Timer
	// comes runs when the next held job may start.
	comes *time.Timer
}

func newShard(node *node, id core.Shard, queue *Queue) *shard {
	s := &shard{
		shardInfo: shardInfo{execution.Shard{ID: id, Queue: &queue.Queue, Server: &node.batches}, node, queue},
		wake:      make(chan struct{}, 1),
		released:  make(chan struct{}, 1),
	}
	s.acquiring, s.turning = node.outages.Loop("acquire", id), node.outages.Loop("turn", id)
	s.renewing, s.asking = node.outages.Loop("renew", id), node.outages.Loop("rate", id)
	s.lease.ttl = node.cfg.LeaseTTL
	s.turns = newTurns(&node.cfg, &s.shardInfo)
	s.claims = claims{queue: queue, patience: node.cfg.PollInterval}
	return s
}

// publish shows the shard's heads to its pool.
func (s *shard) publish() { s.pool.update(s, false) }

// publishNews is publish after something has changed in the store: a job that waits for the end of
// another one on its last chance may be gone, or may have been joined by others.
func (s *shard) publishNews() { s.pool.update(s, true) }

// view returns the shard's view for its pool.
func (s *shard) view() dispatch.View {
	v := dispatch.View{Idle: s.claims.idle()}
	if !s.lease.held || s.leaving() {
		return v
	}

	var first *core.Claim
	v.Waiting, first = s.claims.waiting(!s.turns.unresponsive)
	v.Free, v.Stock = s.claims.freeToRun(), s.stock()

	if first != nil && !s.turns.news.paused {
		v.Run = core.Head{Due: s.turns.news.steady(first.PerformAt), OK: true}
	}
	v.Claim = s.turns.claim()

	return v
}

// syncClock takes the time of a reply for this shard. The caller holds shard.mu.
func (s *shard) syncClock(now core.Instant, received time.Time) {
	s.turns.news.syncClock(now, s.node.clock.Steady(received))
}

// now returns the time of the shard's server.
func (s *shard) now() core.Instant {
	return s.node.clock.Steady(s.node.clock.Local()).Add(s.turns.news.ahead)
}

// stock returns how many batches may wait for lanes.
func (s *shard) stock() int {
	return s.claims.stock(s.node.cfg.Prefetch, int(s.pool.laneCount.Load()), s.pool.nodeLanes())
}

// take starts the next batch, for a lane; lane is nil in RunDue. It returns nil if no batch may
// start. begins is the batch that the lane has to wait for, if a turn has to begin its jobs first.
func (s *shard) take(l *lane) (b *runningBatch, begins *startingBatch) {
	var now time.Time
	if l != nil {
		now = l.now
	} else {
		now = s.node.clock.Local()
	}
	b, begins = s.tryTake(l, now)
	if b == nil && begins == nil {
		s.dropEndedLease(now)
		s.queue.permits.Load().dropEnded(now)
	}
	return b, begins
}

// tryTake is take at a time. It does not drop a lease that has ended.
func (s *shard) tryTake(l *lane, now time.Time) (b *runningBatch, begins *startingBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mayStart(now) && s.claims.freeToRun() > 0 {
		var claims []core.Claim
		var chance bool
		claims, chance, begins = s.nextBatch(l, now)
		if len(claims) > 0 {
			b = s.start(claims, chance, now)
		}
	}
	s.pool.taken(s, l != nil, b != nil, now)
	return b, begins
}

// nextBatch takes the claims that a lane may start now: see claims.next. It takes nothing if their job
// has to wait for the end of another one on its last chance.
func (s *shard) nextBatch(l *lane, now time.Time) (claims []core.Claim, chance bool, begins *startingBatch) {
	mayBegin := !s.turns.unresponsive
	if id, needed := s.claims.lastChance(mayBegin); needed && !s.node.lastChance.take(s, id) {
		return nil, false, nil
	}

	claims, chance, begins = s.claims.next(l, mayBegin, now)
	if begins != nil {
		signal(s.wake)
	}
	return claims, chance, begins
}

// mayStart reports whether jobs of the shard may start at a time.
func (s *shard) mayStart(now time.Time) bool {
	return s.lease.valid(now) && !s.turns.news.paused && s.queue.permits.Load().last(now) && !s.leaving()
}

// takeBegun starts a batch that a lane waits for. wait is true while the lane has to wait.
func (s *shard) takeBegun(begins *startingBatch) (b *runningBatch, wait bool) {
	now := s.node.clock.Local()
	s.mu.Lock()
	defer s.mu.Unlock()

	ok, wait := s.claims.takeBegun(begins)
	if !ok {
		return nil, wait
	}

	if !s.mayStart(now) {
		s.withdraw(withdrawal{claims: begins.claims, chance: begins.chance}, core.Untouched)
		signal(s.wake)
		return nil, false
	}

	b = s.start(begins.claims, begins.chance, now)
	s.pool.taken(s, false, true, now)
	return b, false
}

// start starts a batch.
func (s *shard) start(claims []core.Claim, chance bool, now time.Time) *runningBatch {
	b := s.claims.start(&s.Shard, s.lease.token, claims, chance, now)
	if slices.ContainsFunc(claims, isRecovered) {
		b.SendPart = func(part core.PayloadSettlement) bool { return s.sendPart(b, part) }
	}
	return b
}

// finish takes over a batch whose handler has returned. If the lease is lost, nothing is sent: the
// next owner recovers the jobs.
func (s *shard) finish(b *runningBatch, settled []core.Settlement, took time.Duration) {
	s.mu.Lock()
	s.giveChanceBack(s.claims.finish(b))

	current := s.lease.holds(b.Token())
	events := s.turns.outbox.finish(&b.Batch, settled, current)
	if current {
		s.node.countEnding(settled)
		s.claims.observe(took, len(b.Claims))
		s.node.tallies.observe(s, b, took, settled)
	}

	if s.queue.Parallel > 0 || s.claims.idle() {
		s.publish()
	}
	s.mu.Unlock()

	signal(s.wake)
	s.node.jobLog.Take(events)
	if !current {
		s.jobsEnded(b.LostJobs())
		s.node.log.Debug("the lease was lost while a batch ran; its jobs will run again, unless it settled them itself",
			"queue", s.ID.Queue, "shard", s.ID.String(), "token", b.Token(), "jobs", len(b.Claims))
	}
}

// withdraw carries out a withdrawal. It settles the jobs with the given kind of outcome.
func (s *shard) withdraw(w withdrawal, kind core.OutcomeKind) {
	if len(w.claims) > 0 {
		s.node.countEnding(s.turns.outbox.settleUnstarted(w.claims, kind))
	}
	s.giveChanceBack(w.chance)
	for _, l := range w.lanes {
		signal(l.wake)
	}
}

// giveChanceBack lets another job on its last chance run, if had is true.
func (s *shard) giveChanceBack(had bool) {
	if had {
		s.node.lastChance.giveBack()
	}
}

// interrupt ends the contexts of the running batches, and returns how many there are.
func (s *shard) interrupt(cause error) int {
	s.mu.Lock()
	running := slices.Clone(s.claims.running)
	s.mu.Unlock()
	for _, b := range running {
		b.Interrupt(cause)
	}
	return len(running)
}

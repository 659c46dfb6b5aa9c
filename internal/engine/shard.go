package engine

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
)

// shard is this node's side of one shard: its lease, the claimed jobs that have not started, the
// running batches, and the settlements that are to be sent. Lanes and its turn loop work on it
// together.
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
	acquiring, turning, renewing *report.Loop

	// mu guards the fields below.
	mu sync.Mutex
	// assigned is set while the shard is assigned to this node. unassignedAt is when that ended.
	assigned     bool
	unassignedAt time.Time
	lease        lease
	owner        ownerInfo
	// lostAt is when it was last logged that the lease was lost.
	lostAt time.Time
	turns  turns
	// overdue runs when the turn in flight takes too long.
	overdue *time.Timer
	buffer  buffer
	// starting are the batches that wait for a turn to begin them, in order. running are those that
	// run.
	starting []*startingBatch
	// unstartedRefs are the newest claims whose handlers did not start, since their lease was lost
	// or the store did not answer, at most mostUnstarted. The store may have marked them as begun
	// by a turn whose answer was lost.
	unstartedRefs []core.ClaimRef
	running       []*runningBatch
	pace          dispatch.Pace
}

func newShard(node *node, id core.Shard, queue *Queue) *shard {
	s := &shard{
		shardInfo: shardInfo{execution.Shard{ID: id, Queue: &queue.Queue, Server: &node.batches}, node, queue},
		wake:      make(chan struct{}, 1),
		released:  make(chan struct{}, 1),
	}
	s.acquiring, s.turning, s.renewing =
		node.outages.Loop("acquire", id), node.outages.Loop("turn", id), node.outages.Loop("renew", id)
	s.turns = newTurns(&node.cfg, &s.shardInfo)
	return s
}

// publish shows the shard's heads to its pool.
func (s *shard) publish() { s.pool.update(s, false) }

// publishNews is publish after something has changed in the store: a job that waits for the end of
// another one on its last chance may be gone, or may have been joined by others.
func (s *shard) publishNews() { s.pool.update(s, true) }

// view returns the shard's view for its pool.
func (s *shard) view() dispatch.View {
	v := dispatch.View{Idle: s.unstarted() == 0 && len(s.running) == 0}
	if !s.lease.held || s.leaving() {
		return v
	}

	var first *core.Claim
	v.Waiting, first = s.waiting()
	v.Free, v.Stock = s.freeToRun(), s.stock()

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

// freeToRun returns how many batches of the shard may run in addition to the running ones.
func (s *shard) freeToRun() int {
	if s.queue.Parallel == 0 {
		return math.MaxInt32
	}
	free := s.queue.Parallel - len(s.running)
	for _, b := range s.starting {
		if b.lane != nil {
			free--
		}
	}
	return max(0, free)
}

// stock returns how many batches may wait for lanes. The pool knows how many its lanes will
// start soon. For a shard that only some lanes may work, this is how many those lanes will start
// if all of them work it.
func (s *shard) stock() int {
	jobs := s.node.cfg.Prefetch
	if most := s.queue.Parallel; most > 0 && most < int(s.pool.laneCount.Load()) {
		jobs = min(jobs, most*s.pace.JobsWithin(dispatch.Window(s.node.cfg.PollInterval)))
	}
	if most := s.queue.mostLanes(); most > 0 && most < s.pool.nodeLanes() {
		jobs = min(jobs, most*s.pace.JobsWithin(dispatch.Window(s.node.cfg.PollInterval)))
	}
	return jobs / s.queue.BatchSize
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
		s.queue.permits.dropEnded(now)
	}
	return b, begins
}

// tryTake is take at a time. It does not drop a lease that has ended.
func (s *shard) tryTake(l *lane, now time.Time) (b *runningBatch, begins *startingBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mayStart(now) && s.freeToRun() > 0 {
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

// mayStart reports whether jobs of the shard may start at a time.
func (s *shard) mayStart(now time.Time) bool {
	return s.lease.held && !s.turns.news.paused && now.Before(s.lease.until) && s.queue.permits.last(now) && !s.leaving()
}

// takeBegun starts a batch that a lane waits for. wait is true while the lane has to wait.
func (s *shard) takeBegun(begins *startingBatch) (b *runningBatch, wait bool) {
	now := s.node.clock.Local()
	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case begins.lane == nil: // the lane no longer waits
		return nil, false
	case !begins.begun:
		return nil, true
	}

	s.removeStarting(begins)
	if !s.mayStart(now) {
		s.settleUnstarted(begins.claims, core.Untouched)
		s.giveChanceBack(begins.chance)
		signal(s.wake)
		return nil, false
	}

	b = s.start(begins.claims, begins.chance, now)
	s.pool.taken(s, false, true, now)
	return b, false
}

// runningBatch is a batch that runs.
type runningBatch struct {
	execution.Batch
	// chance is set if the batch is a job on its last chance. position is its place in
	// shard.running.
	chance   bool
	position int
}

// start starts a batch.
func (s *shard) start(claims []core.Claim, chance bool, now time.Time) *runningBatch {
	b := &runningBatch{chance: chance, position: len(s.running)}
	b.Start(&s.Shard, s.lease.token, claims, now)
	if slices.ContainsFunc(claims, isRecovered) {
		b.SendPart = func(part core.PayloadSettlement) bool { return s.sendPart(b, part) }
	}
	s.running = append(s.running, b)
	return b
}

// finish takes over a batch whose handler has returned. If the lease is lost, nothing is sent: the
// next owner recovers the jobs.
func (s *shard) finish(b *runningBatch, settled []core.Settlement, took time.Duration) {
	s.mu.Lock()
	last := len(s.running) - 1
	s.running[b.position] = s.running[last]
	s.running[b.position].position = b.position
	s.running[last] = nil
	s.running = s.running[:last]

	s.giveChanceBack(b.chance)
	b.chance = false // a part of the batch may be answered later

	current := s.lease.held && s.lease.token == b.Token()
	events := s.turns.outbox.finish(&b.Batch, settled, current)
	if current {
		s.node.countEnding(settled)
		s.pace.Observe(took, len(b.Claims))
		s.node.tallies.observe(s, b, took, settled)
	}

	if s.queue.Parallel > 0 || last == 0 && s.unstarted() == 0 {
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

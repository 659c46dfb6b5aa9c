package engine

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// shard is this node's side of one shard: its lease, the jobs claimed and not
// started, the batch that runs, and what is finished and not sent. Its lane and
// its turn loop work on it together.
type shard struct {
	node  *Engine
	id    core.Shard
	queue *Queue
	lane  *lane
	// kick tells the turn loop that there may be something to do.
	wake chan struct{}
	// freed tells the turn loop that another node may have released the shard.
	released chan struct{}
	// head is when the next job is due as the lane sees it, or noHead. Barred hides
	// it while a job on its last chance waits for another one.
	head         atomic.Int64
	awaitsPermit atomic.Bool

	// attempt and refusals, the waits after refused turns, belong to the turn loop
	// alone.
	attempt  int64
	refusals backoff

	acquiring, turning, renewing loopStatus

	mu    sync.Mutex
	lease lease
	owner ownerInfo
	// lostAt is when the log last said that the lease was lost.
	lostAt time.Time
	turns  turns
	buffer buffer
	// starting is the batch that waits for a turn to begin it.
	starting startingBatch
	running  *Batch
	// finished waits for the next turn.
	finished []core.Settlement
	// held are settlements that the store could not reach, until the next tick.
	deferred []core.Settlement
	// waiting are the claims of settlements that are held, and since when.
	deferrals map[core.ClaimRef]deferral
	// sequels wait until the settlement that they belong to is confirmed.
	pendingResults []pendingResult
	// store is the store's head as last heard. Blind hides it after a turn that failed
	// or for which the lane has stopped waiting, until one is answered.
	storeHead    core.Head
	unresponsive bool
	// notBefore is when to believe again a store that has said that a job is due and
	// gave none; doubts are the waits until then.
	headNotBefore core.Instant
	emptyClaims   backoff
	// asked says that the lane waits for jobs.
	laneWaits bool
	paused    bool
	pace      pace
	stats     statsBuffer
}

// lease is what this node believes of its lease. Until is when it acts as if the
// lease had ended.
type lease struct {
	held    bool
	token   int64
	until   time.Time
	renewAt time.Time
	// ctx is that of the calls made under the lease; callOff ends them.
	ctx         context.Context
	cancelCalls context.CancelCauseFunc
}

const noHead = math.MaxInt64

func newShard(node *Engine, id core.Shard, queue *Queue, l *lane) *shard {
	s := &shard{node: node, id: id, queue: queue, lane: l, wake: make(chan struct{}, 1), released: make(chan struct{}, 1)}
	for p, doing := range map[*loopStatus]string{&s.acquiring: "acquire", &s.turning: "turn", &s.renewing: "renew"} {
		p.log, p.doing, p.shard = &node.outages, doing, id.String()
	}
	s.emptyClaims.longest = min(longestRetry, node.cfg.PollInterval)
	s.head.Store(noHead)
	return s
}

// headNow is the head for the lane's scheduler.
func (s *shard) laneHead() core.Head {
	due := s.head.Load()
	return core.Head{Due: core.Instant(due), OK: due != noHead && !s.awaitsPermit.Load()}
}

// publish computes the head: the first job that waits to start, else the store's.
func (s *shard) publishHead() {
	due := int64(noHead)
	switch first := s.firstToStart(); {
	case !s.lease.held:
	case first != nil && !s.paused:
		due = int64(first.PerformAt)
	case s.storeHead.OK && !s.unresponsive:
		due = int64(max(s.storeHead.Due, s.headNotBefore))
	}
	s.head.Store(due)
}

// ask makes the next turn claim for the lane; false if the lease is not held. One
// that is over is dropped, should the lane be the first to see it.
func (s *shard) requestJobs() bool {
	s.dropEndedLease(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held || s.unresponsive {
		return false
	}
	s.laneWaits = true
	signal(s.wake)
	return true
}

// leave ends the lane's wait for an answer: it comes back once a turn is answered.
// False if the answer is here.
func (s *shard) stopWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.laneWaits {
		return false
	}
	s.laneWaits, s.unresponsive = false, true
	s.turns.due = !s.turns.open() // else the one under way will do
	s.publishHead()
	signal(s.wake)
	return true
}

// answered reports whether the lane's question has an answer.
func (s *shard) answeredLane() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.laneWaits
}

// take starts the next batch, or gives nil.
func (s *shard) take(now time.Time) *Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held || s.paused || !now.Before(s.lease.until) || s.node.stopping() {
		return nil
	}
	claims := s.nextBatch(now)
	if len(claims) == 0 {
		s.publishHead() // what has left the buffer may have to begin, which shows no job while turns fail
		return nil
	}
	s.running = newBatch(s, claims, now)
	s.publishHead()
	return s.running
}

// finish takes over a batch whose handler has returned. What ran under a lease
// that is gone is not sent: the next owner recovers it.
func (s *shard) finish(b *Batch, settled []core.Settlement, took time.Duration) {
	sequels, notices := b.pendingResults(settled)
	s.mu.Lock()
	s.running = nil
	if isRecovered(b.Claims[0]) {
		s.node.lastChance.giveBack(s)
	}
	current := s.lease.held && s.lease.token == b.token
	if current {
		s.finished = append(s.finished, settled...)
		s.pendingResults = append(s.pendingResults, sequels...)
		s.pace.observe(took, len(b.Claims))
		s.stats.observe(b, took, settled)
	}
	s.publishHead()
	s.mu.Unlock()
	signal(s.wake)
	s.node.logLines(notices)
	if !current {
		s.node.log.Warn("skein: the lease was lost while a batch ran; its jobs will run again, unless it settled them itself",
			"shard", s.id.String(), "token", b.token, "jobs", len(b.Claims))
	}
}

// dropIfOver drops a lease that is not to be used any more.
func (s *shard) dropEndedLease(now time.Time) {
	s.mu.Lock()
	token, cause := s.lease.token, s.leaseEnded(now)
	s.mu.Unlock()
	if cause != nil {
		s.dropLease(token, cause)
	}
}

// drop forgets a lease that ran out or is another's. The handler that may still
// run is cancelled; nothing of it is sent.
func (s *shard) dropLease(token int64, cause error) {
	s.mu.Lock()
	if !s.lease.held || s.lease.token != token {
		s.mu.Unlock()
		return
	}
	s.clearLease(cause)
	level := slog.LevelWarn
	if now := time.Now(); now.Sub(s.lostAt) < reminder { // a store that grants leases and breaks them
		level = slog.LevelDebug
	} else {
		s.lostAt = now
	}
	running := s.running
	s.mu.Unlock()
	if running != nil {
		running.interrupt(ports.ErrLeaseLost)
	}
	signal(s.wake)
	s.node.log.Log(context.Background(), level, "skein: lease lost", "shard", s.id.String(), "token", token, "error", cause)
	s.node.leaseChanged(ports.LeaseEvent{Shard: s.id, Change: ports.LeaseDropped, Token: token, Err: cause})
}

// forget clears all that belongs to the lease.
func (s *shard) clearLease(cause error) {
	s.lease.cancelCalls(cause)
	s.lease = lease{}
	s.turns = turns{}
	s.buffer.reset()
	s.clearStarting()
	s.finished, s.deferred, s.pendingResults, s.deferrals = nil, nil, nil, nil
	s.storeHead = core.Head{}
	s.laneWaits, s.paused = false, false
	s.headNotBefore = 0
	s.publishHead()
	signal(s.lane.wake)
}

// wakeUp is a hint that there may be a job now. It stays valid after the turn in
// flight. To a node without the lease it says that it may be free.
func (s *shard) onWakeup() {
	s.mu.Lock()
	if !s.lease.held {
		signal(s.released)
	}
	s.turns.woken, s.turns.wokenAt = s.turns.inFlight, time.Now()
	s.assumeDue(s.node.clock.now())
	if s.running != nil || s.unstarted() > 0 { // it may be a cancel
		s.turns.due = true
		signal(s.wake)
	}
	s.mu.Unlock()
	signal(s.lane.wake)
}

// sawNews takes a head of now that is news, whatever the store said before.
func (s *shard) assumeDue(now core.Instant) {
	s.headNotBefore = 0
	s.awaitsPermit.Store(false) // what it waits for may be gone, or have company
	s.advanceHead(core.Head{Due: now, OK: true})
	s.publishHead() // also the head that was known, and was not believed
}

// doubtHead hides the store's head for a while if it is not to be believed.
func (s *shard) delayHead(doubt bool, now core.Instant) {
	s.headNotBefore = 0
	if !doubt {
		s.emptyClaims.reset()
		return
	}
	s.headNotBefore = now.Add(s.emptyClaims.next())
}

// sawHead takes a head that is news, unless the one known is earlier.
func (s *shard) advanceHead(h core.Head) {
	if s.lease.held && h.OK && (!s.storeHead.OK || h.Due < s.storeHead.Due) {
		s.storeHead = h
		s.publishHead()
	}
}

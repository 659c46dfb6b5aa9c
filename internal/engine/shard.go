package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// shard is this node's side of one shard: its lease, the jobs that are claimed and have not
// started, the batch that runs, and the settlements that are to be sent. Its lane and its turn
// loop work on it together.
type shard struct {
	shardInfo
	lane *lane
	// wake wakes the turn loop: there may be something to do.
	wake chan struct{}
	// released wakes an acquire that waits: the shard's owner may have released it.
	released chan struct{}
	// head is when the next job is due as the lane sees it, or noHead. awaitsPermit hides it
	// while a job on its last chance waits for another one.
	head         atomic.Int64
	awaitsPermit atomic.Bool

	// attempt is the number of the acquire, and refusals are the waits after refused turns. Only
	// the turn loop uses them.
	attempt  int64
	refusals backoff

	// acquiring, turning and renewing are the status of this shard's calls.
	acquiring, turning, renewing loopStatus

	// mu guards what follows.
	mu    sync.Mutex
	lease lease
	owner ownerInfo
	// lostAt is when the log last said that the lease was lost.
	lostAt time.Time
	turns  turns
	buffer buffer
	// starting is the batch that waits for a turn to begin it, and running the one that runs, or
	// nil.
	starting startingBatch
	running  *Batch
	// finished are the settlements that wait for the next turn.
	finished []core.Settlement
	// deferred are settlements that the store could not carry out yet. They wait for the next
	// tick.
	deferred []core.Settlement
	// deferrals says for how long the settlements of claims have been deferred.
	deferrals map[core.ClaimRef]deferral
	// pendingResults wait until the store confirms their settlements.
	pendingResults []pendingResult
	// storeHead is the store's head as last known. While unresponsive is set it does not count: a
	// turn has failed, or the lane has stopped waiting for one, and none was answered since.
	storeHead    core.Head
	unresponsive bool
	// headNotBefore is when to believe again a store that has said that a job is due and then
	// claimed none; emptyClaims are the waits until then.
	headNotBefore core.Instant
	emptyClaims   backoff
	// laneWaits says that the lane waits for jobs.
	laneWaits bool
	paused    bool
	pace      pace
	stats     statsBuffer
}

func newShard(node *node, id core.Shard, queue *Queue, l *lane) *shard {
	s := &shard{shardInfo: shardInfo{node, id, queue}, lane: l, wake: make(chan struct{}, 1), released: make(chan struct{}, 1)}
	for status, doing := range map[*loopStatus]string{&s.acquiring: "acquire", &s.turning: "turn", &s.renewing: "renew"} {
		status.outages, status.doing, status.shard = &node.outages, doing, id.String()
	}
	s.emptyClaims.longest = min(longestRetry, node.cfg.PollInterval)
	s.head.Store(noHead)
	return s
}

// requestJobs makes the next turn claim for the lane. It returns false if the lease is not held,
// or the shard is unresponsive. A lease that has ended is dropped, if the lane is the first to
// see it.
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

// stopWaiting ends the lane's wait for an answer. The lane comes back to the shard once a turn is
// answered. It returns false if the answer is here.
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

// answeredLane reports whether the lane need not wait any more.
func (s *shard) answeredLane() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.laneWaits
}

// take starts the next batch. It returns nil if none may start.
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
	s.running = newBatch(&s.shardInfo, s.lease.token, claims, now)
	s.publishHead()
	return s.running
}

// finish takes over a batch whose handler has returned. If the lease is lost, nothing is sent:
// the next owner recovers the jobs.
func (s *shard) finish(b *Batch, settled []core.Settlement, took time.Duration) {
	results, lines := b.pendingResults(settled)
	s.mu.Lock()
	s.running = nil
	if isRecovered(b.Claims[0]) {
		s.node.lastChance.giveBack(s)
	}
	current := s.lease.held && s.lease.token == b.token
	if current {
		s.finished = append(s.finished, settled...)
		s.pendingResults = append(s.pendingResults, results...)
		s.pace.observe(took, len(b.Claims))
		s.stats.observe(b, took, settled)
	}
	s.publishHead()
	s.mu.Unlock()
	signal(s.wake)
	s.node.logLines(lines)
	if !current {
		s.node.log.Warn("skein: the lease was lost while a batch ran; its jobs will run again, unless it settled them itself",
			"shard", s.id.String(), "token", b.token, "jobs", len(b.Claims))
	}
}

package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// shard is this node's side of one shard: its lease, the jobs claimed and not
// started, the batch that runs, and what is finished and not sent. Its lane and
// its turn loop work on it together.
type shard struct {
	shardInfo
	lane *lane
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

func newShard(node *node, id core.Shard, queue *Queue, l *lane) *shard {
	s := &shard{shardInfo: shardInfo{node, id, queue}, lane: l, wake: make(chan struct{}, 1), released: make(chan struct{}, 1)}
	for p, doing := range map[*loopStatus]string{&s.acquiring: "acquire", &s.turning: "turn", &s.renewing: "renew"} {
		p.log, p.doing, p.shard = &node.outages, doing, id.String()
	}
	s.emptyClaims.longest = min(longestRetry, node.cfg.PollInterval)
	s.head.Store(noHead)
	return s
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
	s.running = newBatch(&s.shardInfo, s.lease.token, claims, now)
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

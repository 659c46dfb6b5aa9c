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
	kick chan struct{}
	// freed tells the turn loop that another node may have released the shard.
	freed chan struct{}
	// head is when the next job is due as the lane sees it, or noHead. Barred hides
	// it while a job on its last chance waits for another one.
	head   atomic.Int64
	barred atomic.Bool

	// attempt and refusals, the waits after refused turns, belong to the turn loop
	// alone.
	attempt  int64
	refusals backoff

	acquiring, turning, renewing probe

	mu      sync.Mutex
	lease   lease
	vacancy vacancy
	// lostAt is when the log last said that the lease was lost.
	lostAt time.Time
	turns  turns
	buffer buffer
	// starting is the batch that waits for a turn to begin it.
	starting starting
	running  *Batch
	// finished waits for the next turn.
	finished []core.Settlement
	// held are settlements that the store could not reach, until the next tick.
	held []core.Settlement
	// waiting are the claims of settlements that are held, and since when.
	waiting map[core.ClaimRef]heldSince
	// sequels wait until the settlement that they belong to is confirmed.
	sequels []sequel
	// store is the store's head as last heard. Blind hides it after a turn that failed
	// or for which the lane has stopped waiting, until one is answered.
	store core.Head
	blind bool
	// notBefore is when to believe again a store that has said that a job is due and
	// gave none; doubts are the waits until then.
	notBefore core.Instant
	doubts    backoff
	// asked says that the lane waits for jobs.
	asked  bool
	paused bool
	pace   pace
	stats  statsBuffer
}

// lease is what this node believes of its lease. Until is when it acts as if the
// lease had ended.
type lease struct {
	held    bool
	token   int64
	until   time.Time
	renewAt time.Time
	// ctx is that of the calls made under the lease; callOff ends them.
	ctx     context.Context
	callOff context.CancelCauseFunc
}

const noHead = math.MaxInt64

func newShard(node *Engine, id core.Shard, queue *Queue, l *lane) *shard {
	s := &shard{node: node, id: id, queue: queue, lane: l, kick: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
	for p, doing := range map[*probe]string{&s.acquiring: "acquire", &s.turning: "turn", &s.renewing: "renew"} {
		p.health, p.doing, p.shard = &node.health, doing, id.String()
	}
	s.doubts.longest = min(longestRetry, node.cfg.PollInterval)
	s.head.Store(noHead)
	return s
}

// headNow is the head for the lane's scheduler.
func (s *shard) headNow() core.Head {
	due := s.head.Load()
	return core.Head{Due: core.Instant(due), OK: due != noHead && !s.barred.Load()}
}

// publish computes the head: the first job that waits to start, else the store's.
func (s *shard) publish() {
	due := int64(noHead)
	switch first := s.firstToStart(); {
	case !s.lease.held:
	case first != nil && !s.paused:
		due = int64(first.PerformAt)
	case s.store.OK && !s.blind:
		due = int64(max(s.store.Due, s.notBefore))
	}
	s.head.Store(due)
}

// ask makes the next turn claim for the lane; false if the lease is not held. One
// that is over is dropped, should the lane be the first to see it.
func (s *shard) ask() bool {
	s.dropIfOver(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held || s.blind {
		return false
	}
	s.asked = true
	signal(s.kick)
	return true
}

// leave ends the lane's wait for an answer: it comes back once a turn is answered.
// False if the answer is here.
func (s *shard) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		return false
	}
	s.asked, s.blind = false, true
	s.turns.due = !s.turns.open() // else the one under way will do
	s.publish()
	signal(s.kick)
	return true
}

// answered reports whether the lane's question has an answer.
func (s *shard) answered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.asked
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
		s.publish() // what has left the buffer may have to begin, which shows no job while turns fail
		return nil
	}
	s.running = newBatch(s, claims, now)
	s.publish()
	return s.running
}

// finish takes over a batch whose handler has returned. What ran under a lease
// that is gone is not sent: the next owner recovers it.
func (s *shard) finish(b *Batch, settled []core.Settlement, took time.Duration) {
	sequels, notices := b.sequels(settled)
	s.mu.Lock()
	s.running = nil
	if recovered(b.Claims[0]) {
		s.node.lastChance.giveBack(s)
	}
	current := s.lease.held && s.lease.token == b.token
	if current {
		s.finished = append(s.finished, settled...)
		s.sequels = append(s.sequels, sequels...)
		s.pace.observe(took, len(b.Claims))
		s.stats.observe(b, took, settled)
	}
	s.publish()
	s.mu.Unlock()
	signal(s.kick)
	s.node.logAll(notices)
	if !current {
		s.node.log.Warn("skein: the lease was lost while a batch ran; its jobs will run again, unless it settled them itself",
			"shard", s.id.String(), "token", b.token, "jobs", len(b.Claims))
	}
}

// dropIfOver drops a lease that is not to be used any more.
func (s *shard) dropIfOver(now time.Time) {
	s.mu.Lock()
	token, cause := s.lease.token, s.over(now)
	s.mu.Unlock()
	if cause != nil {
		s.drop(token, cause)
	}
}

// drop forgets a lease that ran out or is another's. The handler that may still
// run is cancelled; nothing of it is sent.
func (s *shard) drop(token int64, cause error) {
	s.mu.Lock()
	if !s.lease.held || s.lease.token != token {
		s.mu.Unlock()
		return
	}
	s.forget(cause)
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
	signal(s.kick)
	s.node.log.Log(context.Background(), level, "skein: lease lost", "shard", s.id.String(), "token", token, "error", cause)
	s.node.leaseChanged(ports.LeaseEvent{Shard: s.id, Change: ports.LeaseDropped, Token: token, Err: cause})
}

// forget clears all that belongs to the lease.
func (s *shard) forget(cause error) {
	s.lease.callOff(cause)
	s.lease = lease{}
	s.turns = turns{}
	s.buffer.reset()
	s.endStarting()
	s.finished, s.held, s.sequels, s.waiting = nil, nil, nil, nil
	s.store = core.Head{}
	s.asked, s.paused = false, false
	s.notBefore = 0
	s.publish()
	signal(s.lane.wake)
}

// wakeUp is a hint that there may be a job now. It stays valid after the turn in
// flight. To a node without the lease it says that it may be free.
func (s *shard) wakeUp() {
	s.mu.Lock()
	if !s.lease.held {
		signal(s.freed)
	}
	s.turns.woken, s.turns.heard = s.turns.inFlight, time.Now()
	s.sawNews(s.node.clock.now())
	if s.running != nil || s.unstarted() > 0 { // it may be a cancel
		s.turns.due = true
		signal(s.kick)
	}
	s.mu.Unlock()
	signal(s.lane.wake)
}

// sawNews takes a head of now that is news, whatever the store said before.
func (s *shard) sawNews(now core.Instant) {
	s.notBefore = 0
	s.barred.Store(false) // what it waits for may be gone, or have company
	s.sawHead(core.Head{Due: now, OK: true})
	s.publish() // also the head that was known, and was not believed
}

// doubtHead hides the store's head for a while if it is not to be believed.
func (s *shard) doubtHead(doubt bool, now core.Instant) {
	s.notBefore = 0
	if !doubt {
		s.doubts.reset()
		return
	}
	s.notBefore = now.Add(s.doubts.next())
}

// sawHead takes a head that is news, unless the one known is earlier.
func (s *shard) sawHead(h core.Head) {
	if s.lease.held && h.OK && (!s.store.OK || h.Due < s.store.Due) {
		s.store = h
		s.publish()
	}
}

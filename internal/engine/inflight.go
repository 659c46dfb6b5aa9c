package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/ports"
)

// turnSlots bound how many turns of the node are in flight at once; the store sets the number. A
// hanging turn gives its slot back, and a turn of a shard that did not answer last time needs no
// slot. A nil turnSlots bounds nothing.
type turnSlots chan struct{}

func newTurnSlots(store Store) turnSlots {
	if limiter, ok := store.(ports.TurnLimiter); ok && limiter.MaxTurns() > 0 {
		return make(turnSlots, limiter.MaxTurns())
	}
	return nil
}

// take waits for a slot, in order of the calls. While shards begin to hang, the turn proceeds
// without a slot: many that hang one after another would keep the others waiting.
func (t turnSlots) take(s *shard) {
	if t == nil {
		return
	}

	s.mu.Lock()
	suspect := s.turns.unresponsive
	s.mu.Unlock()
	if suspect {
		return
	}

	if t.wait(s.node) {
		s.mu.Lock()
		s.turns.takeSlot()
		s.mu.Unlock()
	}
}

// wait returns true with a slot, and false while shards begin to hang.
func (t turnSlots) wait(n *node) bool {
	select {
	case t <- struct{}{}:
		return true
	default:
	}

	ticker := time.NewTicker(minAnswerTimeout)
	defer ticker.Stop()
	for n.hangs.count(time.Now()) == 0 {
		select {
		case t <- struct{}{}:
			return true
		case <-ticker.C:
		}
	}
	return false
}

// giveBack gives back the slot that the shard has, if it still has one.
func (t turnSlots) giveBack(s *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.free(s.turns.returnSlot())
}

// free gives a slot back, if had is true.
func (t turnSlots) free(had bool) {
	if had {
		<-t
	}
}

// armOverdue starts the timer for the answer of the turn that is being sent.
func (s *shard) armOverdue(now time.Time) {
	timeout := s.node.roundTrips.answerTimeout(s.node.cfg.PollInterval, s.node.hangs.count(now))
	s.turns.sent(now, timeout)
	if s.overdue == nil {
		s.overdue = time.AfterFunc(timeout, s.turnOverdue)
		return
	}
	s.overdue.Reset(timeout)
}

// turnOverdue notes that a turn takes too long. The pool no longer counts on it, and other shards
// may turn instead.
func (s *shard) turnOverdue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, hangs := s.turns.overdue(time.Now())
	s.node.turnSlots.free(free)
	if hangs {
		s.node.hangs.add(time.Now())
		s.stopTrusting()
	}
}

// stopTrusting hides the store's jobs of the shard until a turn is answered. Lanes and handlers no
// longer wait for it.
func (s *shard) stopTrusting() {
	parts := s.turns.distrust()
	s.withdraw(s.claims.leaveStarting(), core.Untouched)
	s.giveUpParts(parts)
	s.pool.revokeGrant(s)
}

// hangs counts the shards that have begun to hang lately. It is safe for concurrent use.
type hangs struct {
	mu     sync.Mutex
	recent dispatch.Recent
}

func (h *hangs) add(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recent.Add(now)
}

func (h *hangs) count(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recent.Count(now)
}

// averageWeight divides the share of the newest value in the moving average of roundTrips: that
// share is 1/averageWeight.
const averageWeight = 8

// roundTrips is the moving average of how long the store takes to answer. An exchange that takes
// many times as long as usual changes it little, so one hanging shard does not make the node wait
// longer for others. It is safe for concurrent use.
type roundTrips struct{ average atomic.Int64 }

func (r *roundTrips) observe(took time.Duration) {
	average := r.average.Load()
	if average == 0 {
		r.average.Store(max(1, int64(took)))
		return
	}
	took = min(took, 2*time.Duration(average)+time.Millisecond)
	r.average.Store(max(1, average+(int64(took)-average)/averageWeight))
}

const (
	// minAnswerTimeout is the least time that the pool counts on a turn's answer, unless other
	// turns hang.
	minAnswerTimeout = 100 * time.Millisecond
	// answerTrips is how many usual exchanges a turn may take at least.
	answerTrips = 4
)

// hangsWindow is for how long a shard that has begun to hang shortens the node's wait for others.
const hangsWindow = time.Second

// answerTimeout returns how long to count on the answer of a turn. It is halved for each shard
// that has begun to hang lately. So any number of shards that begin to hang together delay the
// others by at most twice the first wait in total.
func (r *roundTrips) answerTimeout(poll time.Duration, hangs int) time.Duration {
	return max(min(minAnswerTimeout, poll)>>min(hangs, 10), answerTrips*time.Duration(r.average.Load()))
}

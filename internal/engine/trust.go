package engine

import (
	"sync"
	"time"

	"github.com/skeinq/skein/internal/dispatch"
)

// startOverdue begins to wait for the answer of the turn that is being sent.
func (s *shard) startOverdue() {
	d := s.node.roundTrips.answerTimeout(s.node.cfg.PollInterval, s.node.hangs.count(s.turns.sentAt))
	s.overdueAt = s.turns.sentAt.Add(d)
	if s.overdue == nil {
		s.overdue = time.AfterFunc(d, s.turnOverdue)
		return
	}
	s.overdue.Reset(d)
}

// turnOverdue notes that a turn takes too long. The pool no longer counts on it, and other shards
// may turn instead.
func (s *shard) turnOverdue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.overdueAt) {
		return
	}
	s.node.turnSlots.free(s) // also if the lease was lost meanwhile and the call still runs
	if s.turns.inFlight && !s.unresponsive {
		s.node.hangs.add(time.Now())
		s.stopTrusting()
	}
}

// stopTrusting hides the store's jobs of the shard until a turn is answered. Lanes no longer wait
// for it.
func (s *shard) stopTrusting() {
	s.unresponsive = true
	s.leaveStarting()
	s.pool.revokeGrant(s)
}

// trust ends what stopTrusting began.
func (s *shard) trust() {
	s.overdue.Stop()
	s.unresponsive = false
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

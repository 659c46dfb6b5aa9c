package engine

import (
	"math"

	"github.com/skeinq/skein/core"
)

// noHead is the head of a shard of which no job is due at any time.
const noHead = math.MaxInt64

// laneHead returns the head for the lane's scheduler.
func (s *shard) laneHead() core.Head {
	due := s.head.Load()
	return core.Head{Due: core.Instant(due), OK: due != noHead && !s.awaitsPermit.Load()}
}

// publishHead computes the head that the lane sees: that of the first job that waits to start,
// else the store's.
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

// assumeDue makes the lane look: something may have changed, so a job may be due now, whatever
// the store said before.
func (s *shard) assumeDue(now core.Instant) {
	s.headNotBefore = 0
	s.awaitsPermit.Store(false) // what it waits for may be gone, or have company
	s.advanceHead(core.Head{Due: now, OK: true})
	s.publishHead() // also the head that was known, and was not believed
}

// advanceHead takes h as the store's head if it is earlier than the one that is known.
func (s *shard) advanceHead(h core.Head) {
	if s.lease.held && h.OK && (!s.storeHead.OK || h.Due < s.storeHead.Due) {
		s.storeHead = h
		s.publishHead()
	}
}

// delayHead hides the store's head for a while, longer each time, if empty is true: the store
// said that a job is due, and claimed none.
func (s *shard) delayHead(empty bool, now core.Instant) {
	s.headNotBefore = 0
	if !empty {
		s.emptyClaims.reset()
		return
	}
	s.headNotBefore = now.Add(s.emptyClaims.next())
}

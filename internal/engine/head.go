package engine

import (
	"math"

	"github.com/skeinq/skein/core"
)

const noHead = math.MaxInt64

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

// sawNews takes a head of now that is news, whatever the store said before.
func (s *shard) assumeDue(now core.Instant) {
	s.headNotBefore = 0
	s.awaitsPermit.Store(false) // what it waits for may be gone, or have company
	s.advanceHead(core.Head{Due: now, OK: true})
	s.publishHead() // also the head that was known, and was not believed
}

// sawHead takes a head that is news, unless the one known is earlier.
func (s *shard) advanceHead(h core.Head) {
	if s.lease.held && h.OK && (!s.storeHead.OK || h.Due < s.storeHead.Due) {
		s.storeHead = h
		s.publishHead()
	}
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

package engine

import "github.com/skeinq/skein/core"

// assumeDue makes the pool ask the store: something may have changed, so a job may be due now,
// whatever the store replied before.
func (s *shard) assumeDue(now core.Instant) {
	s.headNotBefore = 0
	if s.lease.held && (!s.storeHead.OK || now < s.storeHead.Due) {
		s.storeHead = core.Head{Due: now, OK: true}
	}
	s.publishNews() // also the known head, which was not believed
}

// delayHead hides the store's head for a while, longer each time, if empty is true: the store
// replied that a job is due, and claimed none.
func (s *shard) delayHead(empty bool, now core.Instant) {
	s.headNotBefore = 0
	if !empty {
		s.emptyClaims.reset()
		return
	}
	s.headNotBefore = now.Add(s.emptyClaims.next())
}

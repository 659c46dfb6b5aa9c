package engine

import "time"

// assign makes the shard this node's, or another's. One that is no longer this node's is given up: nothing
// more of it is claimed or started, what waits goes back, and when its handlers have returned it is
// released.
func (s *shard) assign(assigned bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned = assigned
	if assigned {
		s.publishNews()
	} else {
		s.unassignedAt = now
		s.owner = ownerInfo{}
		s.member.pool.revokeGrant(s.member, s.view())
		signal(s.released)
	}
	signal(s.wake)
}

// isAssigned reports whether the shard is this node's to work.
func (s *shard) isAssigned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.assigned
}

// leaving reports whether the shard is given up: the node stops, or the shard is to be another's.
func (s *shard) leaving() bool { return !s.assigned || s.node.stopping() }

// leavingNow is leaving for who does not hold s.mu.
func (s *shard) leavingNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving()
}

// leavingSince returns since when the shard is given up.
func (s *shard) leavingSince() time.Time {
	if !s.assigned {
		return s.unassignedAt
	}
	return s.node.stoppedAt
}

package engine

import "time"

// assign assigns the shard to this node, or to another one. A shard that is no longer this node's
// is given up: no more of its jobs are claimed or started, waiting jobs are put back, and it is
// released once its handlers have returned.
func (s *shard) assign(assigned bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned = assigned
	if assigned {
		s.publishNews()
	} else {
		s.unassignedAt = now
		s.owner = ownerInfo{}
		s.pool.revokeGrant(s)
		signal(s.released)
	}
	signal(s.wake)
}

// isAssigned reports whether the shard is assigned to this node.
func (s *shard) isAssigned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.assigned
}

// leaving reports whether the shard is given up: the node stops, or the shard is assigned to
// another node.
func (s *shard) leaving() bool { return !s.assigned || s.node.stopping() }

// leavingNow is leaving for a caller that does not hold s.mu.
func (s *shard) leavingNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving()
}

// leavingSince returns since when the shard has been given up.
func (s *shard) leavingSince() time.Time {
	if !s.assigned {
		return s.unassignedAt
	}
	return s.node.stoppedAt
}

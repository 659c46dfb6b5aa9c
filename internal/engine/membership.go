package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/membership"
	"github.com/skeinq/skein/ports"
)

// announceInterval is how often a node announces itself. It is short enough for an announcement to
// be lost before the previous one expires.
func (n *node) announceInterval() time.Duration { return n.cfg.LeaseTTL / 3 }

// announcePause is how soon after an announcement a change of the list causes the next one, so
// that many changes at once cost one announcement.
const announcePause = 10 * time.Millisecond

// shareShards announces the node and shares the shards, until stop is closed.
func (e *Engine) shareShards(stop <-chan struct{}) {
	members := &membership.Members{
		Owner:    e.cfg.Owner,
		Interval: e.announceInterval(),
		Splitter: e.cfg.Splitter,
		Logger:   e.log,
		Observer: e.observer,
	}

	status, retry := e.outages.Loop("announce", core.Shard{}), backoff{longest: e.announceInterval()}
	for ok := true; ok; ok = ok && pause(announcePause, stop) {
		answer, err := e.announce()
		status.Called(err)
		wait := e.share(members, answer)
		if err != nil {
			wait = min(wait, retry.next())
		} else {
			retry.reset()
		}

		timer := time.NewTimer(max(wait, 1))
		ok = await(timer.C, e.nodesChanged, stop)
		timer.Stop()
	}
}

// announce makes one call. It returns nil with an error.
func (e *Engine) announce() (*ports.AnnounceReply, error) {
	ctx, cancel := e.callContext()
	defer cancel()
	reply, err := e.store.Announce(ctx, ports.AnnounceRequest{Node: e.self(), TTL: e.cfg.LeaseTTL})
	if err != nil {
		return nil, err
	}
	e.nodes.Store(&reply.Nodes)
	return &reply, nil
}

// share assigns the shards to this node or to another. It returns how long to wait until the next
// announcement.
func (e *Engine) share(members *membership.Members, answer *ports.AnnounceReply) time.Duration {
	now, served := time.Now(), e.served.Load()
	self := membership.Self{SplitNode: e.splitNode(served), All: served.all, Stopping: e.stopping()}
	byID := make(map[core.Shard]*shard, len(served.shards))
	for _, s := range served.shards {
		self.Shards = append(self.Shards, membership.Shard{
			Shard:    s.ID,
			Assigned: s.isAssigned(),
			Removed:  s.queue.removed.Load(),
		})
		byID[s.ID] = s
	}

	change, wait := members.Share(&self, answer, now)
	for _, id := range change.Gained {
		byID[id].assign(true, now)
	}
	for _, id := range change.Lost {
		byID[id].assign(false, now)
	}

	members.Assigned(change, &self)
	return wait
}

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
		s.lease.unassigned()
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

package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// startingBatch is a batch with recovered jobs, which starts once a turn has recorded their
// beginning in the store (RULES 4). Its jobs have left the buffer.
type startingBatch struct {
	claims []core.Claim
	// since is when the batch was put together.
	since time.Time
	// sent says that a turn carries its recovered jobs, and begun that the turn was answered.
	sent, begun bool
}

// isRecovered reports whether a job has lost an owner before.
func isRecovered(c core.Claim) bool { return c.Recoveries > 0 }

// unstarted returns the number of claimed jobs that have not started.
func (s *shard) unstarted() int { return s.buffer.jobs + len(s.starting.claims) }

// firstToStart returns the job that the lane would start next, or nil. While the shard is
// unresponsive it is nil if that job has to begin by a turn.
func (s *shard) firstToStart() *core.Claim {
	if s.starting.claims == nil {
		return s.buffer.head()
	}
	if s.unresponsive && !s.starting.begun {
		return nil
	}
	return &s.starting.claims[0]
}

// oldest returns when the first job that waits to start was claimed or, if it is in the starting
// batch, when that was put together. ok is false if no job waits.
func (s *shard) oldest() (since time.Time, ok bool) {
	if s.starting.claims != nil {
		return s.starting.since, true
	}
	return s.buffer.oldest()
}

// nextBatch returns the claims that the lane may start now. It returns nil if there are none, or
// if they have to wait: for the turn that begins them, or for the end of another job on its last
// chance.
func (s *shard) nextBatch(now time.Time) []core.Claim {
	if s.starting.claims == nil {
		claims := s.takeBatch()
		if !slices.ContainsFunc(claims, isRecovered) {
			return claims
		}
		s.starting = startingBatch{claims: claims, since: now}
		signal(s.wake)
	}
	if !s.starting.begun {
		return nil
	}
	claims := s.starting.claims
	s.starting = startingBatch{}
	return claims
}

// takeBatch takes a batch out of the buffer. A job on its last chance is a batch of its own, and
// waits while another one runs on this node.
func (s *shard) takeBatch() []core.Claim {
	first := s.buffer.head()
	if first == nil {
		return nil
	}
	if s.queue.Policy.LastChance(first) {
		if !s.node.lastChance.take(s) {
			return nil
		}
		return s.buffer.take(1)
	}
	return s.buffer.take(s.buffer.leading(s.queue.BatchSize, func(c *core.Claim) bool {
		return !s.queue.Policy.LastChance(c)
	}))
}

// needsBegin reports whether the next turn has to begin jobs.
func (s *shard) needsBegin() bool { return s.starting.claims != nil && !s.starting.sent }

// needsBeginTurn is needsBegin for a caller that does not hold the lock.
func (s *shard) needsBeginTurn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.needsBegin()
}

// beginRefs lists the jobs for the next turn to begin.
func (s *shard) beginRefs() []core.ClaimRef {
	if !s.needsBegin() {
		return nil
	}
	var refs []core.ClaimRef
	for i := range s.starting.claims {
		if c := &s.starting.claims[i]; isRecovered(*c) {
			refs = append(refs, c.Ref())
		}
	}
	s.starting.sent = true
	return refs
}

// confirmBegin takes the reply of the turn that began jobs. A job that did not begin does not
// start. A repeated turn's reply does not say which began, so they are sent again.
func (s *shard) confirmBegin(refs []core.ClaimRef, r *ports.TurnReply) {
	switch {
	case len(refs) == 0:
		return
	case r.Repeat:
		s.starting.sent = false
		return
	}
	for _, at := range r.NotBegun {
		s.dropStarting(refs[at], core.Untouched)
	}
	s.starting.begun = s.starting.claims != nil
}

// dropStarting settles one job of the starting batch. It reports whether the job was in it.
func (s *shard) dropStarting(ref core.ClaimRef, kind core.OutcomeKind) bool {
	at := slices.IndexFunc(s.starting.claims, func(c core.Claim) bool { return c.Ref() == ref })
	if at < 0 {
		return false
	}
	s.settleUnstarted(s.starting.claims[at:at+1], kind)
	s.starting.claims = slices.Concat(s.starting.claims[:at], s.starting.claims[at+1:])
	if len(s.starting.claims) == 0 {
		s.clearStarting()
	}
	return true
}

// returnStarting puts back the jobs of the starting batch.
func (s *shard) returnStarting() {
	s.settleUnstarted(s.starting.claims, core.Untouched)
	s.clearStarting()
}

// clearStarting clears the starting batch, and gives its last-chance permit back.
func (s *shard) clearStarting() {
	s.starting = startingBatch{}
	if s.running == nil {
		s.node.lastChance.giveBack(s)
	}
}

// lastChance is the node's permit to run a job that is buried if it loses its process once more
// (RULES 4). One such job runs at a time, so that of several only the one that kills the process
// is buried. It is safe for concurrent use.
type lastChance struct {
	mu      sync.Mutex
	holder  *shard
	waiting []*shard
}

// take reports whether the shard has the permit now. If not, the shard's head is hidden from its
// lane until the permit is given back or the shard has news.
func (l *lastChance) take(s *shard) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == nil || l.holder == s {
		l.holder = s
		return true
	}
	s.awaitsPermit.Store(true)
	if !slices.Contains(l.waiting, s) {
		l.waiting = append(l.waiting, s)
	}
	return false
}

// giveBack takes the permit from the shard, if it has it, and wakes the lanes of the shards that
// wait for it.
func (l *lastChance) giveBack(s *shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != s {
		return
	}
	l.holder = nil
	for _, w := range l.waiting {
		w.awaitsPermit.Store(false)
		signal(w.lane.wake)
	}
	l.waiting = nil
}

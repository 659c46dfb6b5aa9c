package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// startingBatch is a batch with recovered jobs. It starts once a turn has recorded in the store
// that they begin (RULES 4). Its jobs have left the buffer. shard.mu guards it.
type startingBatch struct {
	claims []core.Claim
	// since is when the batch was put together.
	since time.Time
	// lane is the lane that waits to run it. It is nil once that lane has stopped waiting; then any
	// lane may run the batch.
	lane *lane
	// chance is set if the batch is a job on its last chance.
	chance bool
	// turn is the number of the turn that carries its recovered jobs, or 0. begun is set once the turn
	// was answered.
	turn  int64
	begun bool
}

// leave ends the wait of the batch's lane.
func (b *startingBatch) leave() {
	if b.lane != nil {
		signal(b.lane.wake)
		b.lane = nil
	}
}

// isRecovered reports whether a job has lost an owner before.
func isRecovered(c core.Claim) bool { return c.Recoveries > 0 }

// unstarted returns the number of claimed jobs that have not started.
func (s *shard) unstarted() int {
	n := s.buffer.jobs
	for _, b := range s.starting {
		n += len(b.claims)
	}
	return n
}

// waiting returns how many batches may start, as far as is known before they are put together, and
// the first job of the next batch, or nil. While the shard is unresponsive, a batch whose jobs
// need a turn to begin may not start.
func (s *shard) waiting() (batches int, first *core.Claim) {
	if b := s.nextBegun(); b != nil {
		batches, first = 1, &b.claims[0]
	}
	if head := s.nextBuffered(); head != nil {
		batches += s.queue.batches(s.buffer.jobs)
		if first == nil {
			first = head
		}
	}
	return batches, first
}

// nextBuffered returns the first job of the next batch of the buffer, or nil if none may start.
func (s *shard) nextBuffered() *core.Claim {
	if head := s.buffer.head(); head != nil && !(s.turns.unresponsive && isRecovered(*head)) {
		return head
	}
	return nil
}

// nextBegun returns a batch that has begun and for which no lane waits, or nil.
func (s *shard) nextBegun() *startingBatch {
	for _, b := range s.starting {
		if b.begun && b.lane == nil {
			return b
		}
	}
	return nil
}

// nextBatch returns the claims that a lane may start now. chance is set if they are a job on its
// last chance. It returns no claims if nothing is buffered or if the claims have to wait: for the
// end of another job on its last chance, or for the turn that begins them. In the latter case
// begins is their batch.
func (s *shard) nextBatch(l *lane, now time.Time) (claims []core.Claim, chance bool, begins *startingBatch) {
	if b := s.nextBegun(); b != nil {
		s.removeStarting(b)
		return b.claims, b.chance, nil
	}

	if s.nextBuffered() == nil {
		return nil, false, nil
	}

	claims, chance = s.takeBatch()
	if !slices.ContainsFunc(claims, isRecovered) {
		return claims, chance, nil
	}

	// A recovered job may kill its process, so the store must know that it begins before it does.
	begins = &startingBatch{claims: claims, since: now, lane: l, chance: chance}
	s.starting = append(s.starting, begins)
	signal(s.wake)
	return nil, false, begins
}

// takeBatch takes a batch out of the buffer. A job on its last chance is a batch of its own, and
// waits while another such job runs on this node.
func (s *shard) takeBatch() (claims []core.Claim, chance bool) {
	first := s.buffer.head()
	if s.queue.Policy.LastChance(first) {
		if !s.node.lastChance.take(s, first.ID) {
			return nil, false
		}
		return s.buffer.take(1), true
	}
	return s.buffer.take(s.buffer.leading(s.queue.BatchSize, func(c *core.Claim) bool {
		return !s.queue.Policy.LastChance(c)
	})), false
}

// needsBegin reports whether the next turn has to begin jobs.
func (s *shard) needsBegin() bool {
	return slices.ContainsFunc(s.starting, func(b *startingBatch) bool { return b.turn == 0 })
}

// beginRefs lists the jobs that a turn begins: those of all batches that lanes are about to run,
// up to the limit of a turn.
func (s *shard) beginRefs(turn int64) (refs []core.ClaimRef) {
	for _, b := range s.starting {
		if b.turn != 0 || len(refs)+len(b.claims) > core.MaxTurnJobs {
			continue
		}
		b.turn = turn
		for i := range b.claims {
			if isRecovered(b.claims[i]) {
				refs = append(refs, b.claims[i].Ref())
			}
		}
	}
	return refs
}

// confirmBegin takes the reply of the turn that began jobs. A job that did not begin does not
// start. A repeated turn's reply does not show which jobs began, so they are sent again.
func (s *shard) confirmBegin(request *ports.TurnRequest, r *ports.TurnReply) {
	for _, at := range r.NotBegun {
		s.dropStarting(request.Begin[at], core.Untouched)
	}

	for _, b := range s.starting {
		if b.turn != request.Number {
			continue
		}
		if r.Repeat {
			b.turn = 0
			continue
		}
		b.begun = true
		if b.lane != nil {
			signal(b.lane.wake)
		}
	}
}

// dropStarting settles one job of the batches that are starting. It reports whether the job was in
// one.
func (s *shard) dropStarting(ref core.ClaimRef, kind core.OutcomeKind) bool {
	for _, b := range s.starting {
		at := slices.IndexFunc(b.claims, func(c core.Claim) bool { return c.Ref() == ref })
		if at < 0 {
			continue
		}
		s.settleUnstarted(b.claims[at:at+1], kind)
		b.claims = slices.Concat(b.claims[:at], b.claims[at+1:])
		if len(b.claims) == 0 {
			s.endStarting(b)
		}
		return true
	}
	return false
}

// returnStarting puts back the jobs of a batch that has not started.
func (s *shard) returnStarting(b *startingBatch) {
	s.settleUnstarted(b.claims, core.Untouched)
	s.endStarting(b)
}

// endStarting forgets a batch that does not start.
func (s *shard) endStarting(b *startingBatch) {
	s.removeStarting(b)
	s.giveChanceBack(b.chance)
	b.leave()
}

func (s *shard) removeStarting(b *startingBatch) {
	if at := slices.Index(s.starting, b); at >= 0 {
		s.starting = slices.Delete(s.starting, at, at+1)
	}
}

// leaveStarting ends the waits of all lanes that wait for a turn of the shard.
func (s *shard) leaveStarting() {
	for _, b := range s.starting {
		b.leave()
	}
}

// giveChanceBack lets another job on its last chance run, if held is true.
func (s *shard) giveChanceBack(held bool) {
	if held {
		s.node.lastChance.giveBack()
	}
}

// lastChance is the node's one chance to run a job that is buried if it loses its process once
// more (RULES 4). Such jobs run one at a time, so only the one that kills the process is buried.
// It is safe for concurrent use.
type lastChance struct {
	mu      sync.Mutex
	taken   bool
	of      ports.LastChance
	waiting []*shard
}

// job returns the job that has the chance, or the zero value.
func (l *lastChance) job() ports.LastChance {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of
}

// take reports whether a job of the shard gets the chance now. If not, the shard's heads are
// hidden from its pool until the chance is given back or the shard has news.
func (l *lastChance) take(s *shard, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.taken {
		l.taken, l.of = true, ports.LastChance{Shard: s.ID, ID: id}
		return true
	}
	s.pool.awaitChance(s, true)
	if !slices.Contains(l.waiting, s) {
		l.waiting = append(l.waiting, s)
	}
	return false
}

// giveBack gives the chance back, and shows the shards that wait for it.
func (l *lastChance) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken, l.of = false, ports.LastChance{}
	for _, s := range l.waiting {
		s.pool.awaitChance(s, false)
	}
	l.waiting = nil
}

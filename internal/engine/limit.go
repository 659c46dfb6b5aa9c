package engine

import (
	"math"
	"time"
)

// laneLimit bounds how many lanes of the node run batches of one queue at once. node.pooling
// guards it. A nil limit bounds nothing.
type laneLimit struct {
	// most is how many lanes may run now. For a queue with permits it is the number of held permits,
	// and at most lanes.
	most int
	// lanes is Queue.MaxLanes, and permits are those of the queue, or nil.
	lanes   int
	permits *permits
	// running counts the lanes that run a batch or are about to. claimed counts the batches that may
	// start but for the limit, or that turns are to bring.
	running, claimed int
	// askHeld are the shards that get no grant since the limit is reached, in the order in which they
	// were chosen.
	askHeld []*member
	// supplies are those of the pools that share the limit. waiting are those of the pools whose free
	// lanes the limit keeps from a batch, in order of arrival. promised counts the lanes that were
	// woken for their turn and have not come yet.
	supplies []*supply
	waiting  []*supply
	promised int
}

// newLaneLimit returns a limit, nil for 0.
func newLaneLimit(most int) *laneLimit {
	if most == 0 {
		return nil
	}
	return &laneLimit{most: most, lanes: most}
}

// room returns how many more batches may be claimed, ahead of them beyond the limit.
func (l *laneLimit) room(ahead int) int {
	if l == nil {
		return math.MaxInt
	}
	if l.most == 0 { // no batch will start soon
		ahead = 0
	}
	return l.most - l.running + ahead - l.claimed
}

// holdAsk hides the store's jobs of a shard until more may be claimed.
func (l *laneLimit) holdAsk(m *member) {
	if !m.askHeld {
		m.askHeld = true
		l.askHeld = append(l.askHeld, m)
	}
}

// unhold shows as many of the hidden shards as the limit has room for. The caller dispatches p
// itself.
func (l *laneLimit) unhold(p *pool) {
	if l == nil {
		return
	}
	for n := l.room(0); n > 0 && len(l.askHeld) > 0; n-- {
		m := l.askHeld[0]
		l.askHeld = l.askHeld[1:]
		m.askHeld = false
		m.pool.recount(m)
		if m.pool != p {
			m.pool.dispatch(p.node.clock.local())
		}
	}
}

// wait notes that the limit keeps free lanes of a pool from a batch.
func (l *laneLimit) wait(s *supply) {
	if len(l.supplies) > 1 && !s.waits && !s.promised {
		s.waits = true
		l.waiting = append(l.waiting, s)
	}
}

// promise gives freed lanes to the waiting pools. It wakes one lane of each.
func (l *laneLimit) promise(now time.Time) {
	for l.running+l.promised < l.most && len(l.waiting) > 0 {
		s := l.waiting[0]
		l.waiting = l.waiting[1:]
		s.waits = false
		if s.startable == 0 || len(s.pool.free) == 0 {
			continue
		}
		s.promised = true
		l.promised++
		s.pool.dispatch(now)
		if s.pool.woken == 0 {
			s.breakPromise()
		}
	}
}

// mayStart returns how many more batches of the supply may run.
func (s *supply) mayStart() int {
	if s.limit == nil {
		return math.MaxInt
	}
	n := s.limit.most - s.limit.running - s.limit.promised
	if s.promised {
		n++
	}
	return max(0, n)
}

// cut returns how many of n batches may start.
func (s *supply) cut(n int) int { return min(n, s.mayStart()) }

// start reports whether one more lane may run a batch of the shard. If not, the shard is hidden
// until one may.
func (s *supply) start(m *member) bool {
	switch {
	case s.limit == nil:
	case s.mayStart() > 0:
		s.breakPromise() // the promise is kept
		s.limit.running++
		s.running++
	default:
		if !m.runHeld {
			m.runHeld = true
			s.runHeld = append(s.runHeld, m)
		}
		return false
	}
	return true
}

// breakPromise ends a promise.
func (s *supply) breakPromise() {
	if s.promised {
		s.promised = false
		s.limit.promised--
	}
}

// unhold shows as many of the hidden shards as may start.
func (s *supply) unhold() {
	for n := s.mayStart(); n > 0 && len(s.runHeld) > 0; n-- {
		m := s.runHeld[0]
		s.runHeld = s.runHeld[1:]
		m.runHeld = false
		s.pool.recount(m)
	}
}

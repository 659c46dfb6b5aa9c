package engine

import (
	"math"
	"time"
)

// laneLimit bounds how many lanes of the node run batches of one queue at once. node.pooling guards
// it. A nil limit bounds nothing.
type laneLimit struct {
	// most is how many may, now: of a queue with permits as many as are held, and no more than lanes.
	most int
	// lanes is Queue.MaxLanes, and permits are those of the queue, or nil.
	lanes   int
	permits *permits
	// running counts the lanes that run a batch or are about to, and claimed the batches that
	// may start but for the limit, or that turns are to bring.
	running, claimed int
	// askHeld are the shards of which nothing is granted since the limit is reached, in the order in which
	// they were chosen.
	askHeld []*member
	// supplies are those of the pools that share the limit. waiting are those of the pools that it keeps
	// free lanes of from a batch, in the order in which they came; promised counts the lanes that
	// were woken for their turn and have not come yet.
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

// room returns how many batches more may be claimed, so many of them ahead.
func (l *laneLimit) room(ahead int) int {
	if l == nil {
		return math.MaxInt
	}
	if l.most == 0 { // nothing will start soon
		ahead = 0
	}
	return l.most - l.running + ahead - l.claimed
}

// holdAsk hides what the store has for a shard until more may be claimed.
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

// promise gives what has become free to the pools that wait, of each of which it wakes one lane.
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

// mayStart returns how many batches more may run of the supply.
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

// start reports whether one lane more may run a batch of the shard. If not, the shard is hidden until it may.
func (s *supply) start(m *member) bool {
	switch {
	case s.limit == nil:
	case s.mayStart() > 0:
		s.breakPromise() // it is kept
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

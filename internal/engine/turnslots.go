package engine

import (
	"time"

	"github.com/skeinq/skein/ports"
)

// turnSlots bound how many turns of the node are in flight at once; the store sets the number. A
// hanging turn gives its slot back, and a turn of a shard that did not answer last time needs no
// slot. A nil turnSlots bounds nothing.
type turnSlots chan struct{}

func newTurnSlots(store Store) turnSlots {
	if limiter, ok := store.(ports.TurnLimiter); ok && limiter.MaxTurns() > 0 {
		return make(turnSlots, limiter.MaxTurns())
	}
	return nil
}

// take waits for a slot, in order of the calls. While shards begin to hang, the turn proceeds
// without a slot: many that hang one after another would keep the others waiting.
func (t turnSlots) take(s *shard) {
	if t == nil {
		return
	}
	s.mu.Lock()
	suspect := s.unresponsive
	s.mu.Unlock()
	if suspect {
		return
	}
	if t.wait(s.node) {
		s.mu.Lock()
		s.hasSlot = true
		s.mu.Unlock()
	}
}

// wait returns true with a slot, and false while shards begin to hang.
func (t turnSlots) wait(n *node) bool {
	select {
	case t <- struct{}{}:
		return true
	default:
	}
	ticker := time.NewTicker(minAnswerTimeout)
	defer ticker.Stop()
	for n.hangs.count(time.Now()) == 0 {
		select {
		case t <- struct{}{}:
			return true
		case <-ticker.C:
		}
	}
	return false
}

// giveBack gives back the slot that the shard has, if it still has one.
func (t turnSlots) giveBack(s *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.free(s)
}

// free is giveBack for a caller that holds shard.mu.
func (t turnSlots) free(s *shard) {
	if s.hasSlot {
		s.hasSlot = false
		<-t
	}
}

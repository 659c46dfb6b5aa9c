package engine

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// sendPart ends a payload of a batch in the store and waits for the answer. It returns false if the
// next payload of the job must not start: the store has skipped the part, or it is unknown whether
// the store has it.
func (s *shard) sendPart(b *runningBatch, settlement core.PayloadSettlement) bool {
	part := &awaitedPart{batch: b, settlement: settlement, stored: make(chan bool, 1)}
	if !s.addPart(part) {
		return false
	}

	if s.node.dispatcher.ByHand { // no loop makes turns
		if s.turnOnce() != nil {
			s.mu.Lock()
			s.giveUpParts(s.turns.outbox.giveUpParts())
			s.mu.Unlock()
		}
	} else {
		signal(s.wake)
	}

	return <-part.stored
}

// addPart lets the next turn carry a part. It returns false if the batch's lease is lost, or while
// the store does not answer.
func (s *shard) addPart(part *awaitedPart) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.holds(part.batch.Token()) || s.turns.unresponsive {
		return false
	}
	s.turns.outbox.addPart(part)
	return true
}

// confirmParts takes the answers to the parts of a turn.
func (s *shard) confirmParts(request *ports.TurnRequest, r *ports.TurnReply) {
	for _, p := range s.turns.outbox.answeredParts(request, r) {
		s.endPart(p.awaitedPart, p.ok)
	}
}

// endPart lets the handler proceed or end.
func (s *shard) endPart(p *awaitedPart, stored bool) {
	if stored {
		s.giveChanceBack(s.claims.partEnded(p.batch, &p.settlement))
	}
	p.stored <- stored
}

// giveUpParts ends the waits for parts. The next payloads of their jobs do not start.
func (s *shard) giveUpParts(parts []*awaitedPart) {
	for _, p := range parts {
		s.claims.rememberUnstarted(p.next())
		s.endPart(p, false)
	}
}

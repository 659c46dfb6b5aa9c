package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// awaitedPart is the end of a payload of a recovered job. The next payload of the job starts once a
// turn has stored that end (docs/rules.md 4). shard.mu guards it.
type awaitedPart struct {
	batch      *runningBatch
	settlement core.PayloadSettlement
	// turn is the number of the turn that carries it, or 0.
	turn int64
	// stored receives whether the store has it. It has room for that.
	stored chan bool
}

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
			s.giveUpParts()
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
	if !s.lease.held || s.lease.token != part.batch.Token() || s.unresponsive {
		return false
	}
	s.parts = append(s.parts, part)
	return true
}

// needsPart reports whether a part waits for the next turn.
func (s *shard) needsPart() bool {
	return slices.ContainsFunc(s.parts, func(p *awaitedPart) bool { return p.turn == 0 })
}

// nextParts returns the parts that a turn carries, as far as they fit.
func (s *shard) nextParts(turn int64) (parts []core.PayloadSettlement) {
	for _, p := range s.parts {
		if p.turn == 0 && len(parts) < core.MaxTurnJobs {
			p.turn = turn
			parts = append(parts, p.settlement)
		}
	}
	return parts
}

// confirmParts takes the answers to the parts of a turn. The reply to a repeated turn does not show
// which parts were skipped, so they are sent again: the store applies each once.
func (s *shard) confirmParts(request *ports.TurnRequest, r *ports.TurnReply) {
	waiting := s.parts
	s.parts = nil

	for _, p := range waiting {
		switch {
		case p.turn != request.Number:
			s.parts = append(s.parts, p)
		case r.Repeat:
			p.turn = 0
			s.parts = append(s.parts, p)
		default:
			at := slices.Index(request.Parts, p.settlement)
			s.endPart(p, !slices.Contains(r.SkippedParts, at))
		}
	}
}

// endPart lets the handler proceed or end. A job that proceeds may no longer be on its last chance,
// since its first payload has ended.
func (s *shard) endPart(p *awaitedPart, stored bool) {
	claim := core.Claim{Job: core.Job{State: core.State{Recoveries: p.settlement.Recoveries}}}
	if stored && p.batch.chance && !s.queue.Policy.LastChance(&claim) {
		p.batch.chance = false
		s.giveChanceBack(true)
	}
	p.stored <- stored
}

// giveUpParts ends the waits for all parts. The turn in flight may still store theirs, and mark the
// next payloads as begun, which do not start.
func (s *shard) giveUpParts() {
	for _, p := range s.parts {
		s.rememberUnstarted(core.ClaimRef{ID: p.settlement.ID, Receipt: p.settlement.Receipt.NextPart()})
		s.endPart(p, false)
	}
	s.parts = nil
}

package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// cancelJobs ends the jobs that an operator has cancelled. A job that has not started is settled
// at once; the context of a running one ends.
func (s *shard) cancelJobs(cancels []ports.Cancellation) {
	for _, k := range cancels {
		kind := core.Untouched
		if k.Drop {
			kind = core.Dropped
		}
		if c, ok := s.buffer.remove(k.ID, k.Receipt); ok {
			s.settleUnstarted([]core.Claim{c}, kind)
			continue
		}
		if !s.dropStarting(core.ClaimRef{ID: k.ID, Receipt: k.Receipt}, kind) {
			s.cancelRunning(k)
		}
	}
}

// cancelRunning ends the context of a running job.
func (s *shard) cancelRunning(k ports.Cancellation) {
	for _, b := range s.running {
		for i := range b.Claims {
			if c := &b.Claims[i]; c.ID == k.ID && c.Receipt == k.Receipt.Whole() {
				b.Cancel(i, k.Drop)
				return
			}
		}
	}
}

// interrupt ends the contexts of the running batches, and returns how many there are.
func (s *shard) interrupt(cause error) int {
	s.mu.Lock()
	running := slices.Clone(s.running)
	s.mu.Unlock()
	for _, b := range running {
		b.Interrupt(cause)
	}
	return len(running)
}

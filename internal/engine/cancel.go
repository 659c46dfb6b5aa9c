package engine

import (
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Causes of a handler's context, beside ports.ErrLeaseLost and the context's
// normal end.
var (
	// ErrShutdown is a server that stops and whose ShutdownTimeout is over.
	ErrShutdown = errors.New("server is shutting down")
	// ErrCancelled is a job that an operator has cancelled.
	ErrCancelled = errors.New("job was cancelled")
)

// cancelJobs ends the jobs that an operator has cancelled: one that runs is told,
// one that waits goes back or away at once.
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
		if s.dropStarting(core.ClaimRef{ID: k.ID, Receipt: k.Receipt}, kind) || s.running == nil {
			continue
		}
		for i := range s.running.Claims {
			if c := &s.running.Claims[i]; c.ID == k.ID && c.Receipt == k.Receipt {
				s.running.cancel(i, k.Drop)
			}
		}
	}
}

// cancel ends the job that an operator has cancelled, once. It comes too late for
// one that has its outcome.
func (b *Batch) cancel(i int, drop bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.dropped[i]
	if kind := b.outcomes[i].Kind; !known && kind != core.Undecided && kind != core.Untouched {
		return
	}
	if b.dropped == nil {
		b.dropped = make(map[int]bool)
	}
	b.dropped[i] = drop
	if !known && (b.current == i || b.current == wholeBatch) {
		b.ctx.end(ErrCancelled)
	}
}

// interrupt ends the handler's context, and lets no other job start.
func (b *Batch) interrupt(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.ctx.end(cause)
	b.batchCtx.end(cause)
}

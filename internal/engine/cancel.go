package engine

import (
	"errors"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Causes of the end of a handler's context, besides ports.ErrLeaseLost and the normal end.
var (
	// ErrShutdown means that the server stops and its ShutdownTimeout is over.
	ErrShutdown = errors.New("server is shutting down")
	// ErrCancelled means that an operator has cancelled the job.
	ErrCancelled = errors.New("job was cancelled")
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
				b.cancel(i, k.Drop)
				return
			}
		}
	}
}

// cancel ends the context of job i, once. A job that has its outcome is no longer cancelled.
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

// interrupt ends the contexts of the running batches, and returns how many there are.
func (s *shard) interrupt(cause error) int {
	s.mu.Lock()
	running := slices.Clone(s.running)
	s.mu.Unlock()
	for _, b := range running {
		b.interrupt(cause)
	}
	return len(running)
}

// interrupt ends the handler's context with a cause. No other job of the batch starts.
func (b *Batch) interrupt(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.ctx.end(cause)
	b.batchCtx.end(cause)
}

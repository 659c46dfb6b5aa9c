package execution

import (
	"errors"

	"github.com/skeinq/skein/core"
)

// Causes of the end of a handler's context, besides ports.ErrLeaseLost and the normal end.
var (
	// ErrShutdown means that the server stops and its ShutdownTimeout is over.
	ErrShutdown = errors.New("server is shutting down")
	// ErrCancelled means that an operator has cancelled the job.
	ErrCancelled = errors.New("job was cancelled")
)

// Cancel ends the context of job i, once. A job that has its outcome is no longer cancelled.
func (b *Batch) Cancel(i int, drop bool) {
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

// Interrupt ends the handler's context with a cause. No other job of the batch starts.
func (b *Batch) Interrupt(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.ctx.end(cause)
	b.batchCtx.end(cause)
}

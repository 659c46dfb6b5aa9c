package execution

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// runContext is a handler's context. It is part of the Batch and makes a real cancellable context
// only when Done is called, so a batch costs one allocation. context.Cause and derived contexts
// work as usual, since they find that inner context through Value.
type runContext struct {
	parent context.Context
	batch  *Batch
	job    int // the only job that it is for, or wholeBatch

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelCauseFunc
	cause  error
	at     time.Time // when it ended
}

// wholeBatch is the current job of a handler that works all jobs at once.
const wholeBatch = -1

// contextEnd is when and why a handler's context ends.
type contextEnd struct {
	at    time.Time
	cause error
}

type batchKey struct{}

// end cancels the context. The first cause stays.
func (c *runContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.cause, c.at = cause, time.Now()
	if c.cancel != nil {
		c.cancel(cause)
	}
}

// ended returns the cause, or nil if the context has not ended.
func (c *runContext) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// endInfo returns when and why the context ended.
func (c *runContext) endInfo() contextEnd {
	c.mu.Lock()
	defer c.mu.Unlock()
	return contextEnd{c.at, c.cause}
}

// real returns the inner context, and makes it if necessary.
func (c *runContext) real() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithCancelCause(c.parent)
		if c.cause != nil {
			c.cancel(c.cause)
		}
	}
	return c.inner
}

// Deadline implements context.Context.
func (c *runContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements context.Context.
func (c *runContext) Done() <-chan struct{} { return c.real().Done() }

// Err implements context.Context.
func (c *runContext) Err() error {
	if c.ended() != nil {
		return context.Canceled
	}
	return c.parent.Err()
}

// Value implements context.Context.
func (c *runContext) Value(key any) any {
	if key == (batchKey{}) {
		return c
	}
	if c.ended() != nil {
		return c.real().Value(key)
	}
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.parent.Value(key)
}

// Fence returns the fencing token of the lease that a handler's context runs under. ok is false
// if ctx is not a handler's context.
func Fence(ctx context.Context) (token int64, ok bool) {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return 0, false
	}
	return c.batch.token, true
}

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
	put(&b.dropped, i, drop)
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

// overdueAfter is how long a handler may run after its context has ended before that is logged,
// and the interval at which it is logged again.
const overdueAfter = time.Minute

// overdueState is the state that a batch needs if its handler has a timeout or runs on after the
// end of its context.
type overdueState struct {
	timeout contextEnd // the handler's own; its cause is nil if it has no timeout
	logged  time.Time  // when it was last logged that the handler still runs
}

// Overdue describes a handler that runs long after its context has ended.
type Overdue struct {
	// Since and Cause are when and why its context has ended.
	Since time.Time
	Cause error
	// IDs are those of the jobs that it works.
	IDs []string
	// First is set if it is described for the first time.
	First bool
}

// WithTimeout is context.WithTimeoutCause for a context of the batch's handler. The batch notes the
// timeout, so that the log can report a handler that outlasts it.
func (b *Batch) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
	b.setTimeout(contextEnd{time.Now().Add(d), cause})
	return ctx, func() {
		b.setTimeout(contextEnd{})
		cancel()
	}
}

func (b *Batch) setTimeout(l contextEnd) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.overdueState == nil {
		b.overdueState = new(overdueState)
	}
	b.overdueState.timeout = l
}

// Overdue returns what to log about the batch now, or nil. It returns the same again after
// overdueAfter.
func (b *Batch) Overdue(now time.Time) *Overdue {
	b.mu.Lock()
	defer b.mu.Unlock()

	over, more := b.ctx.endInfo(), b.overdueState
	if more == nil {
		more = new(overdueState)
	}
	if t := more.timeout; t.cause != nil && !now.Before(t.at) && (over.cause == nil || t.at.Before(over.at)) {
		over = t
	}

	if b.closed || over.cause == nil || now.Sub(over.at) < overdueAfter || now.Sub(more.logged) < overdueAfter {
		return nil
	}

	first := more.logged.IsZero()
	more.logged, b.overdueState = now, more
	return &Overdue{over.at, over.cause, b.runningIDs(), first}
}

// runningIDs returns the ids that the handler works on: that of the job that has begun, or all.
func (b *Batch) runningIDs() []string {
	if b.current != wholeBatch {
		return []string{b.Claims[b.current].ID}
	}
	ids := make([]string, len(b.Claims))
	for i := range b.Claims {
		ids[i] = b.Claims[i].ID
	}
	return ids
}

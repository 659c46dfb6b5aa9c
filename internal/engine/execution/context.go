package execution

import (
	"context"
	"sync"
	"time"
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

package engine

import (
	"context"
	"sync"
	"time"
)

// runContext is a handler's context. It lives inside the Batch and makes a real
// cancellable context only when somebody asks for Done, so that a batch costs
// one allocation. Whatever asks the standard library's way finds that inner
// context through Value, so context.Cause and derived contexts work as usual.
type runContext struct {
	parent context.Context
	batch  *Batch
	job    int // the only one that it is for, or wholeBatch

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelCauseFunc
	cause  error
	at     time.Time // when it ended
}

// wholeBatch is the current job of a handler that takes all at once.
const wholeBatch = -1

// limit is when and why a handler's time ends.
type contextEnd struct {
	at    time.Time
	cause error
}

type batchKey struct{}

// end cancels the context; the first cause stays.
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

func (c *runContext) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// limit is when and why it ended.
func (c *runContext) endInfo() contextEnd {
	c.mu.Lock()
	defer c.mu.Unlock()
	return contextEnd{c.at, c.cause}
}

// real is the inner context, made if need be.
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

// Fence is the fencing token of the lease that a handler's context runs under.
func Fence(ctx context.Context) (token int64, ok bool) {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return 0, false
	}
	return c.batch.token, true
}

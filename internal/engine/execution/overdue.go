package execution

import (
	"context"
	"time"
)

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

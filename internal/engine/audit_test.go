package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// audit watches handlers: it records executions, and fails the test if two for
// one id overlap or if payloads are handled out of order.
type audit struct {
	*world
	// allowOverlap is for handlers that ignore their context.
	allowOverlap bool

	mu      sync.Mutex
	running map[string]bool
	runs    map[string][]auditedRun
	handled map[string][]string
	last    map[string]float64
}

// auditedRun is one call of a handler.
type auditedRun struct {
	at         time.Duration
	ended      time.Duration
	payloads   []string
	retry      int
	recoveries int
	cause      error
	err        error
}

func (w *world) audit() *audit {
	return &audit{
		world:   w,
		running: make(map[string]bool),
		runs:    make(map[string][]auditedRun),
		handled: make(map[string][]string),
		last:    make(map[string]float64),
	}
}

// watch is a handler that runs f under the auditor's eyes.
func (a *audit) watch(f func(ctx context.Context, c *core.Claim) error) handler {
	return each(func(ctx context.Context, c *core.Claim) (err error) {
		a.enter(c)
		err = fmt.Errorf("the handler did not return")
		defer func() { a.leave(ctx, c, err) }()
		err = f(ctx, c)
		return err
	})
}

func (a *audit) enter(c *core.Claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[c.ID] && !a.allowOverlap {
		a.Errorf("at %v: two executions for %q overlap", a.elapsed(), c.ID)
	}
	a.running[c.ID] = true
	e := auditedRun{at: a.elapsed(), retry: c.RetryCount, recoveries: c.Recoveries}
	for _, p := range c.Payloads {
		e.payloads = append(e.payloads, string(p.Data))
	}
	a.runs[c.ID] = append(a.runs[c.ID], e)
}

func (a *audit) leave(ctx context.Context, c *core.Claim, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[c.ID] = false
	e := &a.runs[c.ID][len(a.runs[c.ID])-1]
	e.ended, e.cause, e.err = a.elapsed(), context.Cause(ctx), err
	if err != nil || e.cause != nil {
		return
	}
	for _, p := range c.Payloads {
		// A result that its lease did not outlive is no result: the job runs again.
		again := slices.Contains(a.handled[c.ID], string(p.Data))
		if p.Score < a.last[c.ID] && !again {
			a.Errorf("%q: score %v was handled after %v", c.ID, p.Score, a.last[c.ID])
		}
		a.last[c.ID] = max(a.last[c.ID], p.Score)
		a.handled[c.ID] = append(a.handled[c.ID], string(p.Data))
	}
}

// of lists the executions for an id.
func (a *audit) of(id string) []auditedRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.runs[id])
}

// starts lists when the executions for an id began.
func (a *audit) starts(id string) []time.Duration {
	var at []time.Duration
	for _, e := range a.of(id) {
		at = append(at, e.at)
	}
	return at
}

// wantRuns checks how often an id was executed, and returns the executions.
func (a *audit) wantRuns(id string, n int) []auditedRun {
	a.Helper()
	runs := a.of(id)
	if len(runs) != n {
		a.Fatalf("at %v: %q was executed %d times, want %d: %+v", a.elapsed(), id, len(runs), n, runs)
	}
	return runs
}

// wantHandledOnce checks that each payload of n ids, job-0 and on, was handled
// with success exactly once.
func (a *audit) wantHandledOnce(n int, payloads ...string) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range n {
		id := fmt.Sprintf("job-%d", i)
		if got := a.handled[id]; !slices.Equal(got, payloads) {
			a.Errorf("%q: handled %q, want %q", id, got, payloads)
		}
	}
}

// succeed is a handler that succeeds at once.
func succeed(context.Context, *core.Claim) error { return nil }

// untilCancelled is a handler that runs until its context ends.
func untilCancelled(ctx context.Context, _ *core.Claim) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// lasting is a handler that takes a while and ignores its context.
func lasting(d time.Duration) func(context.Context, *core.Claim) error {
	return func(context.Context, *core.Claim) error {
		time.Sleep(d)
		return nil
	}
}

// Package virtual has a clock for the stores in tests.
package virtual

import (
	"sync"
	"time"
)

// Clock is a clock that changes only when it is set. It can also be set back. Make it with
// [NewClock]. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows start until it is set.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the clock's time. The method can be the Clock of a store's options.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Pass moves the clock to t, unless that is earlier.
func (c *Clock) Pass(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// Package virtual has the clock of stores under test.
package virtual

import (
	"sync"
	"time"
)

// Clock is a time that stands still unless it is moved, also backwards. Make it with [NewClock]. It
// is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at a time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time. It is the Clock of a store's options.
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

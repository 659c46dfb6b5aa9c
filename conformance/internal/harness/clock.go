// Package harness is what all parts of the conformance suite share: the clock that
// backends read, the comparison of replies and errors, and handles that repeat
// calls of unknown outcome.
package harness

import (
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// Start is where every clock of the suite begins: that of the vectors, and not
// on a whole second, so that a store which rounds is found out.
const Start core.Instant = 1_800_000_000_123_456

// Clock is the time that a backend reads. It stands still unless it is moved, also
// backwards, and is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at Start.
func NewClock() *Clock { return &Clock{now: Start.Time()} }

// Now returns the time. It is what a factory of stores is given.
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

// Set moves the clock to an instant.
func (c *Clock) Set(at core.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = at.Time()
}

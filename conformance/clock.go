package conformance

import (
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// start is where every clock of the suite begins: that of the vectors, and not
// on a whole second, so that a store which rounds is found out.
const start core.Instant = 1_800_000_000_123_456

// clock is the time that a backend lives in. It stands still unless moved, also
// backwards, and is safe for concurrent use.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start.Time()} }

// Now is what a Factory is given.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, which may be negative.
func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to an instant.
func (c *clock) Set(at core.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = at.Time()
}

// Package clock estimates the store's clock on a server.
package clock

import (
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// Clock estimates the store's clock between replies. The estimate is never ahead of the last
// reply's time plus the time since that reply came, so no job is asked for before the store would
// return it. It is safe for concurrent use.
type Clock struct {
	// Start is when the clock was made. offset is the store's time then, in microseconds, according
	// to the last reply. first is the same according to the first reply, or 0 before it.
	Start  time.Time
	offset atomic.Int64
	first  atomic.Int64
	// lastReply is when the last reply came, after Start.
	lastReply atomic.Int64
}

// New returns a clock that, until the first reply, takes the time of this process.
func New() *Clock {
	c := &Clock{Start: time.Now()}
	c.offset.Store(c.Start.UnixMicro())
	return c
}

// Sync takes the Now of a reply that has just come.
func (c *Clock) Sync(now core.Instant) {
	since := time.Since(c.Start)
	c.offset.Store(int64(now) - since.Microseconds())
	c.first.CompareAndSwap(0, c.offset.Load())
	c.lastReply.Store(int64(since))
}

// RepliedAfter reports whether a reply has come after t, a time of this process.
func (c *Clock) RepliedAfter(t time.Time) bool {
	return time.Duration(c.lastReply.Load()) > t.Sub(c.Start)
}

// Local returns the time of this process. It is monotonic and cheaper than time.Now.
func (c *Clock) Local() time.Time { return c.Start.Add(time.Since(c.Start)) }

// Steady is like At, but uses the first reply only. Servers of a store have clocks of their own, so
// At jumps with each reply. The engine converts each shard's times to this one.
func (c *Clock) Steady(t time.Time) core.Instant {
	first := c.first.Load()
	if first == 0 {
		first = c.offset.Load()
	}
	return core.Instant(first + t.Sub(c.Start).Microseconds())
}

// Ahead returns how far the clock of this process, which shows now, is ahead of the store's. It is
// 0 before the first reply. A step of the process's clock changes it, since the estimate of the
// store's clock is monotonic.
func (c *Clock) Ahead(now time.Time) time.Duration {
	if c.first.Load() == 0 {
		return 0
	}
	return core.InstantOf(now).Sub(c.At(now))
}

// At returns the estimate for t, a time of this process.
func (c *Clock) At(t time.Time) core.Instant {
	return core.Instant(c.offset.Load() + t.Sub(c.Start).Microseconds())
}

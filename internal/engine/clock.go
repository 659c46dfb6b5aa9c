package engine

import (
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// storeClock estimates the store's clock between replies. It is never ahead of
// what the last reply said plus the time since it came, so that nobody asks for
// a job before the store would give it.
type storeClock struct {
	start  time.Time
	offset atomic.Int64
	// heard is when the last reply came.
	lastReply atomic.Int64
}

func newStoreClock() *storeClock {
	c := &storeClock{start: time.Now()}
	c.offset.Store(c.start.UnixMicro())
	return c
}

// sync takes a reply's Now, at the moment it came.
func (c *storeClock) sync(now core.Instant) {
	since := time.Since(c.start)
	c.offset.Store(int64(now) - since.Microseconds())
	c.lastReply.Store(int64(since))
}

// heardAfter reports whether a reply has come after a time of this process.
func (c *storeClock) repliedAfter(t time.Time) bool {
	return time.Duration(c.lastReply.Load()) > t.Sub(c.start)
}

// time is this process's clock, monotonic and cheaper than time.Now.
func (c *storeClock) local() time.Time { return c.start.Add(time.Since(c.start)) }

// now is the estimate.
func (c *storeClock) now() core.Instant { return c.at(c.local()) }

// at is the estimate for a time of this process.
func (c *storeClock) at(t time.Time) core.Instant {
	return core.Instant(c.offset.Load() + t.Sub(c.start).Microseconds())
}

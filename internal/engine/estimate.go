package engine

import (
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// storeClock estimates the store's clock between replies. The estimate is never ahead of the last
// reply's time plus the time since that reply came, so no job is asked for before the store would
// return it. It is safe for concurrent use.
type storeClock struct {
	// start is when the clock was made. offset is the store's time then, in microseconds, according
	// to the last reply. first is the same according to the first reply, or 0 before it.
	start  time.Time
	offset atomic.Int64
	first  atomic.Int64
	// lastReply is when the last reply came, after start.
	lastReply atomic.Int64
}

func newStoreClock() *storeClock {
	c := &storeClock{start: time.Now()}
	c.offset.Store(c.start.UnixMicro())
	return c
}

// sync takes the Now of a reply that has just come.
func (c *storeClock) sync(now core.Instant) {
	since := time.Since(c.start)
	c.offset.Store(int64(now) - since.Microseconds())
	c.first.CompareAndSwap(0, c.offset.Load())
	c.lastReply.Store(int64(since))
}

// repliedAfter reports whether a reply has come after t, a time of this process.
func (c *storeClock) repliedAfter(t time.Time) bool {
	return time.Duration(c.lastReply.Load()) > t.Sub(c.start)
}

// local returns the time of this process. It is monotonic and cheaper than time.Now.
func (c *storeClock) local() time.Time { return c.start.Add(time.Since(c.start)) }

// steady is like at, but uses the first reply only. Servers of a store have clocks of their own, so
// at jumps with each reply. Each shard's times are converted to this one (shard.steady).
func (c *storeClock) steady(t time.Time) core.Instant {
	first := c.first.Load()
	if first == 0 {
		first = c.offset.Load()
	}
	return core.Instant(first + t.Sub(c.start).Microseconds())
}

// at returns the estimate for t, a time of this process.
func (c *storeClock) at(t time.Time) core.Instant {
	return core.Instant(c.offset.Load() + t.Sub(c.start).Microseconds())
}

// averageWeight divides the share of the newest value in the moving average of roundTrips: that
// share is 1/averageWeight.
const averageWeight = 8

// roundTrips is the moving average of how long the store takes to answer. An exchange that takes
// many times as long as usual changes it little, so one hanging shard does not make the node wait
// longer for others. It is safe for concurrent use.
type roundTrips struct{ average atomic.Int64 }

func (r *roundTrips) observe(took time.Duration) {
	average := r.average.Load()
	if average == 0 {
		r.average.Store(max(1, int64(took)))
		return
	}
	took = min(took, 2*time.Duration(average)+time.Millisecond)
	r.average.Store(max(1, average+(int64(took)-average)/averageWeight))
}

const (
	// minAnswerTimeout is the least time that the pool counts on a turn's answer, unless other turns
	// hang.
	minAnswerTimeout = 100 * time.Millisecond
	// answerTrips is how many usual exchanges a turn may take at least.
	answerTrips = 4
)

// hangsWindow is for how long a shard that has begun to hang shortens the node's wait for others.
const hangsWindow = time.Second

// answerTimeout returns how long to count on the answer of a turn. It is halved for each shard
// that has begun to hang lately. So any number of shards that begin to hang together delay the
// others by at most twice the first wait in total.
func (r *roundTrips) answerTimeout(poll time.Duration, hangs int) time.Duration {
	return max(min(minAnswerTimeout, poll)>>min(hangs, 10), answerTrips*time.Duration(r.average.Load()))
}

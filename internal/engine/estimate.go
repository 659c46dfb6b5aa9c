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

// roundTrips is the moving average of what an exchange with the store takes. An
// exchange that takes many times as long as usual moves it little, so that one
// shard which hangs teaches nobody patience. It is safe for concurrent use.
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
	// shortPatience is how long a lane waits at least for a turn's answer, unless it
	// has just waited in vain.
	minAnswerTimeout = 100 * time.Millisecond
	// patientTrips is how many usual exchanges it waits for at least: the turn
	// under way, its own, and what both may be late.
	answerTrips = 4
)

// patience is how long a lane waits for the answer of a shard before it turns to
// others. It halves with each of the shards before that the lane has left so, so
// that any number of them that begin to hang delay the others by twice the first
// wait in all.
func (r *roundTrips) answerTimeout(poll time.Duration, left int) time.Duration {
	return max(min(minAnswerTimeout, poll)>>min(left, 10), answerTrips*time.Duration(r.average.Load()))
}

// ahead is how far a claim looks: what will start within it is claimed early.
const lookAhead = 50 * time.Millisecond

// pace is the moving average of what a job takes.
type pace struct {
	known   bool
	average time.Duration
}

// weight is the share of the newest batch in the average: 1/weight.
const averageWeight = 8

func (p *pace) observe(took time.Duration, jobs int) {
	each := took / time.Duration(jobs)
	if !p.known {
		p.known, p.average = true, each
		return
	}
	p.average += (each - p.average) / averageWeight
}

// mostAhead is the most jobs that a buffer holds: those of one turn are worked while
// the next is under way, so that it can be as large.
const maxBuffered = 2 * core.MaxTurnJobs

// want is how many jobs the buffer should hold. A lane that waits gets at least
// a batch. One that runs for so long gets more only if it will start on them
// within the time ahead.
func (p *pace) want(batch, prefetch int, running bool, since time.Duration) int {
	soon := min(p.jobsWithin(lookAhead, since/time.Duration(batch)), prefetch)
	if running && soon < batch {
		return 0
	}
	return min(max(batch, soon), maxBuffered)
}

// jobsWithin is how many jobs of the average, or of the one that has taken longer
// already, fit into a time.
func (p *pace) jobsWithin(d, already time.Duration) int {
	if !p.known {
		return 0
	}
	each := max(p.average, already, 1)
	return int(d / each)
}

package engine

import (
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
)

// storeClock estimates the store's clock between replies. The estimate is never ahead of what the
// last reply said plus the time since it came, so that no job is asked for before the store would
// return it. It is safe for concurrent use.
type storeClock struct {
	// start is when the clock was made; offset is the store's time then, in microseconds.
	start  time.Time
	offset atomic.Int64
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
	c.lastReply.Store(int64(since))
}

// repliedAfter reports whether a reply has come after t, a time of this process.
func (c *storeClock) repliedAfter(t time.Time) bool {
	return time.Duration(c.lastReply.Load()) > t.Sub(c.start)
}

// local returns the time of this process. It is monotonic and cheaper than time.Now.
func (c *storeClock) local() time.Time { return c.start.Add(time.Since(c.start)) }

// now returns the estimate for the present.
func (c *storeClock) now() core.Instant { return c.at(c.local()) }

// at returns the estimate for t, a time of this process.
func (c *storeClock) at(t time.Time) core.Instant {
	return core.Instant(c.offset.Load() + t.Sub(c.start).Microseconds())
}

// roundTrips is the moving average of how long the store takes to answer. An exchange that takes
// many times as long as usual moves it little, so that one shard that hangs does not make lanes
// wait longer for others. It is safe for concurrent use.
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
	// minAnswerTimeout is how long a lane waits at least for a turn's answer, unless it has just
	// waited in vain.
	minAnswerTimeout = 100 * time.Millisecond
	// answerTrips is how many usual exchanges it waits for at least: the turn under way, its own,
	// and as much again for delays.
	answerTrips = 4
)

// answerTimeout returns how long a lane waits for the answer of a shard before it turns to
// others. It is halved for each of the shards before that did not answer in time, so that any
// number of shards that begin to hang delay the others by twice the first wait in all.
func (r *roundTrips) answerTimeout(poll time.Duration, timeouts int) time.Duration {
	return max(min(minAnswerTimeout, poll)>>min(timeouts, 10), answerTrips*time.Duration(r.average.Load()))
}

// lookAhead is how far ahead jobs are claimed: those that will probably start within it.
const lookAhead = 50 * time.Millisecond

// pace is the moving average of how long a job takes.
type pace struct {
	known   bool
	average time.Duration
}

// averageWeight divides the share of the newest value in a moving average: it is 1/averageWeight.
const averageWeight = 8

// observe takes a batch of jobs that took so long.
func (p *pace) observe(took time.Duration, jobs int) {
	each := took / time.Duration(jobs)
	if !p.known {
		p.known, p.average = true, each
		return
	}
	p.average += (each - p.average) / averageWeight
}

// maxBuffered is the most jobs that a buffer holds: the jobs of one turn run while the next turn,
// which may be as large, is under way.
const maxBuffered = 2 * core.MaxTurnJobs

// want returns how many jobs the buffer should hold. A lane that waits gets at least a batch. One
// whose batch has been running since then gets more only if the lane will start on them within
// lookAhead.
func (p *pace) want(batch, prefetch int, running bool, since time.Duration) int {
	soon := min(p.jobsWithin(lookAhead, since/time.Duration(batch)), prefetch)
	if running && soon < batch {
		return 0
	}
	return min(max(batch, soon), maxBuffered)
}

// jobsWithin returns how many jobs fit into d, by the average or by how long the present job has
// taken already, whichever is longer.
func (p *pace) jobsWithin(d, already time.Duration) int {
	if !p.known {
		return 0
	}
	each := max(p.average, already, 1)
	return int(d / each)
}

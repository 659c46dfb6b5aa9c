package engine

import (
	"sync/atomic"
	"time"
)

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

package engine

import (
	"sync/atomic"
	"time"
)

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

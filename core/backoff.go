package core

import (
	"fmt"
	"math"
	"time"
)

// Backoff returns the wait before retry number retryCount, which is 0 for the first retry. jitter
// is a random number from 0 to BackoffJitter-1, drawn by the caller. A Backoff must be safe for
// concurrent use. A negative wait counts as 0.
type Backoff func(retryCount, jitter int) time.Duration

// BackoffJitter is the number of possible values of jitter.
const BackoffJitter = 30

// DefaultBackoff returns n^4 + 15 + r*(n+1) seconds for retry n and jitter r (docs/rules.md 3). The
// first waits are some seconds long, and 25 retries take about 20 days in total. A retryCount below
// 0 counts as 0.
func DefaultBackoff(retryCount, jitter int) time.Duration {
	n := float64(max(retryCount, 0))
	seconds := n*n*n*n + 15 + float64(jitter)*(n+1)
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(seconds) * time.Second
}

// Wait returns how long a job waits before retry number retryCount, by the policy's [Backoff] or,
// if that is nil, by [DefaultBackoff]. It is never negative.
func (p RetryPolicy) Wait(retryCount, jitter int) time.Duration {
	if p.Backoff == nil {
		return DefaultBackoff(retryCount, jitter)
	}
	return max(0, p.Backoff(retryCount, jitter))
}

func recoveredTooOften(recoveries int) string {
	return fmt.Sprintf("its server was lost %d times while it ran: the job may be crashing its process", recoveries)
}

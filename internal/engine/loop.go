package engine

import (
	"math/rand/v2"
	"time"
)

// every calls f now and then each interval, until stop is closed.
func every(interval time.Duration, stop <-chan struct{}, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		f()
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

// pause waits for d; false if stop was closed before.
func pause(d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// signal makes a channel of capacity 1 ready, if it is not.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// backoff is the wait between tries of something that fails, doubling from the
// first to the longest, each cut by up to a half so that nodes spread out. The
// zero value starts at 20 ms and ends at 1 s.
type backoff struct {
	wait    time.Duration
	longest time.Duration
}

const (
	firstRetry   = 20 * time.Millisecond
	longestRetry = time.Second
)

func (b *backoff) next() time.Duration {
	longest := b.longest
	if longest == 0 {
		longest = longestRetry
	}
	if b.wait == 0 {
		b.wait = firstRetry
	}
	b.wait = min(b.wait, longest)
	wait := b.wait
	b.wait *= 2
	return wait/2 + rand.N(wait/2+1)
}

func (b *backoff) reset() { b.wait = 0 }

package engine

import (
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/skeinq/skein/internal/engine/guard"
)

// startLoops runs each loop in a goroutine of its own. The returned function makes them stop, ends
// the calls to the store, and waits for the loops and for the renewals that they began.
func (n *node) startLoops(loops ...func(stop <-chan struct{})) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, loop := range loops {
		n.start(&running, func() { loop(stop) })
	}
	return func() {
		close(stop)
		n.cancelCalls()
		running.Wait()
		n.renewals.Wait()
	}
}

// start runs f in a goroutine of its own. A panic of f is fatal.
func (n *node) start(group *sync.WaitGroup, f func()) {
	group.Go(func() {
		defer n.reportPanic()
		f()
	})
}

// reportPanic is deferred by each of the engine's goroutines.
func (n *node) reportPanic() {
	if v := recover(); v != nil {
		n.callFatal(v)
		panic(v)
	}
}

// callFatal calls Config.Fatal with the first panic outside of handlers. A second panic waits
// until that call has returned, since the process ends with the panic.
func (n *node) callFatal(v any) {
	if n.cfg.Fatal != nil {
		n.fatal.Do(func() { n.cfg.Fatal(&guard.PanicError{Value: v, Stack: debug.Stack()}) })
	}
}

// every calls f at once and then once per interval, until stop is closed.
func every(interval time.Duration, stop <-chan struct{}, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ok := true; ok; ok = await(ticker.C, nil, stop) {
		f()
	}
}

// pause waits for d. It returns false, at once, if stop is closed before that.
func pause(d time.Duration, stop <-chan struct{}) bool {
	if d <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return await(timer.C, nil, stop)
}

// await waits for a tick or a signal; either may be nil. It returns false, at once, if stop is
// closed before that.
func await(tick <-chan time.Time, signalled, stop <-chan struct{}) bool {
	select {
	case <-tick:
	case <-signalled:
	case <-stop:
		return false
	}
	return true
}

// signal makes a channel of capacity 1 ready. It does nothing if the channel is ready.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// backoff is the wait between tries of a failing operation. It doubles from the first to the
// longest, and each wait is cut by up to a half, so that nodes spread out. The zero value starts
// at 20 ms and ends at 1 s.
type backoff struct {
	wait    time.Duration
	longest time.Duration
}

const (
	firstRetry   = 20 * time.Millisecond
	longestRetry = time.Second
)

// next returns the next wait.
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

package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// endTimeout is how long, in virtual time, a stopped node may take to end: longer than any test's
// shutdown timeout.
const endTimeout = 3 * time.Hour

// awaitEnd returns once the stopped node's Run has, and fails the test if Run fails or does not
// return.
//
// A node that is left running keeps virtual time going, so the test would never end either. So
// its calls fail then with ports.ErrLeaseLost, which ends nearly everything, and failing that the
// test ends its process.
func (n *node) awaitEnd() {
	n.Helper()
	if !n.endsWithin(endTimeout) {
		n.Errorf("Run has not returned %v after the stop; the log's end:\n%s", endTimeout, n.log.tail(20))
		n.link.set(leaseLost)
		if !n.endsWithin(endTimeout) {
			panic("Run does not return, though its leases are lost")
		}
	}
	if n.err != nil {
		n.Errorf("Run: %v", n.err)
	}
}

func (n *node) endsWithin(d time.Duration) bool {
	select {
	case <-n.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// spinGuard fails a test in which something is called again and again without
// any time passing, and then slows the caller down, so that the test ends.
type spinGuard struct {
	t  *testing.T
	mu sync.Mutex
	// at is the instant of the calls that are counted.
	at     time.Time
	calls  int
	failed bool
}

// maxCallsAtOnce is more than any test makes at one instant.
const maxCallsAtOnce = 5000

// count counts a call.
func (g *spinGuard) count() {
	g.mu.Lock()
	now := time.Now()
	if !now.Equal(g.at) {
		g.at, g.calls = now, 0
	}
	g.calls++
	if g.calls > maxCallsAtOnce && !g.failed {
		g.failed = true
		g.t.Errorf("%d calls at the same instant: something spins", g.calls)
	}
	slow := g.failed // from now on, or it would spin at the next instant too
	g.mu.Unlock()
	if slow {
		time.Sleep(time.Second)
	}
}

// guardedScheduler finds a lane that chooses again and again without any time
// passing.
type guardedScheduler struct {
	core.Scheduler
	spin *spinGuard
}

func guardScheduler(t *testing.T, build core.SchedulerFunc) core.SchedulerFunc {
	return func(c core.SchedulerConfig) core.Scheduler {
		return guardedScheduler{build(c), &spinGuard{t: t}}
	}
}

func (s guardedScheduler) Next(now core.Instant, heads []core.Head) core.Choice {
	s.spin.count()
	return s.Scheduler.Next(now, heads)
}

// realTimeout is far more than any test in virtual time takes on a busy machine.
const realTimeout = 4 * time.Minute

// limitRealTime ends the process, naming the test, if the returned function is not
// called in time: virtual time stands still while a goroutine computes for ever or
// waits for a mutex, and nothing within the test can end that.
func limitRealTime(t *testing.T) (stop func() bool) {
	return time.AfterFunc(realTimeout, func() {
		panic(t.Name() + ": virtual time stands still; see the goroutine that runs or waits for a mutex")
	}).Stop
}

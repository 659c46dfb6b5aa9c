package engine_test

import (
	"runtime/debug"
	"runtime/pprof"
	"strings"
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
			panic(n.Name() + ": Run does not return, though its leases are lost; the log's end:\n" + n.log.tail(40) +
				"\nthe goroutines, of other tests too:\n" + stacks())
		}
	}
	if n.err != nil {
		n.Errorf("Run: %v", n.err)
	}
}

// stacks returns the stacks of all goroutines, each once with how many have it: a panic shows no
// other goroutine's.
func stacks() string {
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		return err.Error()
	}
	return text.String()
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
	t *testing.T
	// extra is how many calls more than usual are made at one instant.
	extra int
	mu    sync.Mutex
	// at is the instant of the calls that are counted.
	at     time.Time
	calls  int
	failed bool
}

// maxCallsAtOnce is more than any test makes at one instant.
const maxCallsAtOnce = 5000

// count counts a call, and slows it down once something spins.
func (g *spinGuard) count() {
	if g.countOnly() {
		time.Sleep(time.Second)
	}
}

// countOnly counts a call, and reports whether something spins or has spun.
func (g *spinGuard) countOnly() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !now.Equal(g.at) {
		g.at, g.calls = now, 0
	}
	g.calls++
	if g.calls > maxCallsAtOnce+g.extra && !g.failed {
		g.failed = true
		g.t.Errorf("%d calls at the same instant: something spins:\n%s", g.calls, debug.Stack())
	}
	return g.failed // also at the next instants, or it would spin there too
}

// guardedScheduler finds lanes that choose again and again without any time passing.
type guardedScheduler struct {
	core.Scheduler
	spin *spinGuard
}

// guardedHeads is one for a scheduler that keeps the heads.
type guardedHeads struct {
	core.HeadScheduler
	spin *spinGuard
}

// guardScheduler guards the schedulers of a node with that many lanes, each of which may choose at
// one instant.
func guardScheduler(t *testing.T, build core.SchedulerFunc, lanes int) core.SchedulerFunc {
	return func(c core.SchedulerConfig) core.Scheduler {
		spin := &spinGuard{t: t, extra: 50 * lanes}
		s := build(c)
		if heads, ok := s.(core.HeadScheduler); ok {
			return guardedHeads{heads, spin}
		}
		return guardedScheduler{s, spin}
	}
}

func (s guardedScheduler) Next(now core.Instant, heads []core.Head) core.Choice {
	s.spin.count()
	return s.Scheduler.Next(now, heads)
}

// Choose may not sleep, as a lane that spins does: it is called under a lock.
func (s guardedHeads) Choose(now core.Instant) core.Choice {
	s.spin.countOnly()
	return s.HeadScheduler.Choose(now)
}

// realTimeout is far more than any test in virtual time takes on a busy machine, and less than the
// -timeout that make test gives the package, whose end would not name the test.
const realTimeout = 10 * time.Minute

// limitRealTime ends the process, naming the test, if the returned function is not
// called in time: virtual time stands still while a goroutine computes for ever or
// waits for a mutex, and nothing within the test can end that.
func limitRealTime(t *testing.T, limit time.Duration) (stop func() bool) {
	return time.AfterFunc(limit, func() {
		panic(t.Name() + ": virtual time stands still; see the goroutine that runs or waits for a mutex:\n" + stacks())
	}).Stop
}

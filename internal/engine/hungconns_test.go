package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// connections are a pool of connections. Some of them may hang. As in pgxpool, a call gets the one
// that was given back last, a connection whose call was given up is closed, and another one is
// opened when there is no idle one.
type connections struct {
	free chan struct{}
	// firstAcquire is how long the first Acquire of a connection takes: the store has to plan it.
	firstAcquire time.Duration

	mu   sync.Mutex
	idle []connection
	hung int // how many calls met one that hangs
}

type connection struct{ hangs, acquired bool }

func newConnections(n int) *connections {
	c := &connections{free: make(chan struct{}, n), idle: make([]connection, n)}
	for range n {
		c.close()
	}
	return c
}

// hang makes the connections that are taken next hang.
func (c *connections) hang(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.idle {
		c.idle[i].hangs = i >= len(c.idle)-n
	}
}

// call takes one call to a connection, and performs it.
func (c *connections) call(ctx context.Context, method string, perform func() error) error {
	select {
	case <-c.free:
	case <-ctx.Done():
		return fmt.Errorf("pool: %w", ctx.Err())
	}
	used := c.take()
	var wait time.Duration
	if method == "Acquire" && !used.acquired {
		wait, used.acquired = c.firstAcquire, true
	}
	if used.hangs {
		wait = time.Hour // longer than any call
	}
	if wait > 0 && !c.waits(ctx, wait) {
		return fmt.Errorf("link: %w", ctx.Err())
	}
	defer c.give(used)
	return perform()
}

// waits waits for a while. If the context ends meanwhile, it closes the connection and returns
// false. The wait is never 0: with the race detector Go 1.26 crashes at times in a select on a
// timer of a bubble that is due already.
func (c *connections) waits(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		c.close()
		return false
	}
}

func (c *connections) take() (last connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle) - 1; n >= 0 {
		last = c.idle[n]
		c.idle = c.idle[:n]
	}
	if last.hangs {
		c.hung++
	}
	return last
}

// close notes that a connection is closed, and give that it works and is idle.
func (c *connections) close() { c.free <- struct{}{} }

func (c *connections) give(used connection) {
	c.mu.Lock()
	c.idle = append(c.idle, used)
	c.mu.Unlock()
	c.close()
}

// Half of the connections to the store begin to hang. The renewal of a lease is sent again on
// another one long before the lease ends, so no shard loses its owner.
func TestAHungHalfOfTheConnectionsCostsNoLease(t *testing.T) {
	for _, c := range []struct{ shards, connections int }{{1, 4}, {1, 10}, {1, 20}, {8, 20}, {20, 20}} {
		t.Run(fmt.Sprintf("%d shards, %d connections", c.shards, c.connections), func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				pool := newConnections(c.connections)
				n := w.start(a.watch(succeed), shards(c.shards), noWakeups, func(s *setup) {
					s.link.connections, s.maxTurns = pool, c.connections/2
				})
				w.sleep(2 * ttl)
				pool.hang(c.connections / 2)
				w.pushEach(1)
				w.sleep(3 * ttl)
				if pool.hung < c.connections/2 {
					w.Errorf("%d calls met a connection that hangs, want at least %d", pool.hung, c.connections/2)
				}
				if got := n.link.count("Acquire"); got != c.shards {
					w.Errorf("%d calls of Acquire for %d shards, want one each; the log:\n%v", got, c.shards, n.log)
				}
			})
		})
	}
}

// The first acquire of each connection takes longer than calls usually may, and a connection whose
// call was given up is closed. So a repeat finds the store as slow as before, and needs more time.
func TestAnAcquireThatIsSlowOnANewConnectionSucceeds(t *testing.T) {
	for _, took := range []time.Duration{ttl/3 + time.Second, ttl / 2, 2*ttl/3 - time.Millisecond} {
		t.Run(took.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				a := w.audit()
				pool := newConnections(4)
				pool.firstAcquire = took
				n := w.start(a.watch(succeed), func(s *setup) { s.link.connections = pool })
				w.sleep(5 * ttl)
				w.push("job", "x")
				w.sleep(5 * ttl)
				a.wantRuns("job", 1)
				if got := n.link.count("Acquire"); got != 2 {
					w.Errorf("%d calls of Acquire, want one that is called off and one with more time; the log:\n%v",
						got, n.log)
				}
			})
		})
	}
}

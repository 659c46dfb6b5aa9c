package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// connections are a pool of connections. Some of them may hang. As in pgxpool, a call gets the one
// that was given back last, a connection whose call was given up is closed, and another one is
// opened when there is no idle one.
type connections struct {
	free chan struct{}
	mu   sync.Mutex
	idle []bool // whether it hangs
	hung int    // how many calls met one that hangs
}

func newConnections(n int) *connections {
	c := &connections{free: make(chan struct{}, n), idle: make([]bool, n)}
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
		c.idle[i] = i >= len(c.idle)-n
	}
}

func (c *connections) take(ctx context.Context) (hung bool, err error) {
	select {
	case <-c.free:
	case <-ctx.Done():
		return false, fmt.Errorf("pool: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return false, nil
	}
	hung = c.idle[last]
	c.idle = slices.Delete(c.idle, last, last+1)
	if hung {
		c.hung++
	}
	return hung, nil
}

// close notes that a connection is closed, and give that it works and is idle.
func (c *connections) close() { c.free <- struct{}{} }

func (c *connections) give() {
	c.mu.Lock()
	c.idle = append(c.idle, false)
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

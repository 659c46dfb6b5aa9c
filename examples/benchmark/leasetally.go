package main

import (
	"sync"
	"time"

	"github.com/skeinq/skein/ports"
)

// leaseTally counts the leased shards of each queue on each of several nodes.
type leaseTally struct {
	setting fleetSetting

	mu      sync.Mutex
	held    []map[string]int // of each node, by queue
	dead    []bool
	changed time.Time // when a lease last began or ended
}

func newLeaseTally(setting fleetSetting) *leaseTally {
	t := &leaseTally{setting: setting, dead: make([]bool, setting.nodes)}
	for range setting.nodes {
		t.held = append(t.held, map[string]int{})
	}
	return t
}

// change adds to the leases of a node.
func (t *leaseTally) change(node int, queue string, by int, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.dead[node] {
		t.held[node][queue] += by
		t.changed = at
	}
}

// bury removes a node from the tally.
func (t *leaseTally) bury(node int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead[node] = true
}

// even reports whether all shards are leased and shared evenly, and since when. Then the numbers of
// shards of a queue that two living nodes have differ by at most one.
func (t *leaseTally) even() (since time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	alive, sums := 0, map[string]int{}
	for node, held := range t.held {
		if t.dead[node] {
			continue
		}
		alive++
		for queue, n := range held {
			sums[queue] += n
		}
	}

	if len(sums) < t.setting.queues {
		return t.changed, false
	}

	for queue, sum := range sums {
		if sum != t.setting.shards || !t.evenIn(queue, alive) {
			return t.changed, false
		}
	}

	return t.changed, true
}

// evenIn reports whether the shards of one queue are shared evenly among the living nodes.
func (t *leaseTally) evenIn(queue string, alive int) bool {
	least := t.setting.shards / alive
	most := (t.setting.shards + alive - 1) / alive
	for node, held := range t.held {
		if n := held[queue]; !t.dead[node] && (n < least || n > most) {
			return false
		}
	}
	return true
}

// leaseWatch reports the leases of one node to a tally.
type leaseWatch struct {
	ports.NopObserver
	tally *leaseTally
	node  int
}

// LeaseChanged implements ports.Observer.
func (w *leaseWatch) LeaseChanged(e ports.LeaseEvent) {
	by := -1
	if e.Change == ports.LeaseAcquired {
		by = 1
	}
	w.tally.change(w.node, e.Shard.Queue, by, time.Now())
}

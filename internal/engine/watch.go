package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// watcher logs conditions that make no loop fail: handlers that ignore the end of their context,
// shards without an owner, and that the node stands by.
type watcher struct {
	node   *node
	shards func() []*shard
	// holders are the owners that the log last named as those of all shards. standingBy is since when
	// other nodes have held all shards.
	holders    []string
	standingBy time.Time
	// saidClock is when it was last logged that the clock differs from the store's.
	saidClock time.Time
	// saidWaiting is when it was last logged that a stop waits for handlers.
	saidWaiting time.Time
}

// waitingEach is how often it is logged that a stop waits for handlers.
const waitingEach = 10 * time.Second

// clockEach is how often it is logged that the clock differs from the store's.
const clockEach = time.Hour

// watch looks once per second, until stop is closed.
func (e *Engine) watch(stop <-chan struct{}) {
	w := watcher{node: &e.node, shards: e.shards}
	every(time.Second, stop, func() {
		now := time.Now()
		e.jobLog.Flush(now)
		w.handlers(now)
		w.unowned(now)
		w.standby(now)
		w.draining(now)
		w.clock(now)
	})
}

// handlers logs the handlers that run long after their context has ended.
func (w *watcher) handlers(now time.Time) {
	for _, s := range w.shards() {
		s.mu.Lock()
		running := slices.Clone(s.claims.running)
		s.mu.Unlock()

		for _, b := range running {
			if o := b.Overdue(now); o != nil {
				if o.First {
					s.overran(ports.OverrunEvent{IDs: o.IDs, For: now.Sub(o.Since)}, o.Cause)
				}
				w.node.log.Warn(
					"a handler still runs long after its context has ended; "+
						"until it returns, it keeps its lane and its shard; "+
						"before you kill its process, run skein job cancel --drop, or the job runs again",
					"queue", s.ID.Queue,
					"shard", s.ID.String(),
					"id", o.IDs[0],
					"jobs", len(o.IDs),
					"cause", o.Cause,
					"since", o.Since,
					"for", now.Sub(o.Since).Round(time.Second),
				)
			}
		}
	}
}

// clock logs, once each clockEach, that the clock of this process differs from the store's. A store
// in this process has the same clock, unless a test has given it another one.
func (w *watcher) clock(now time.Time) {
	_, remote := w.node.store.(ports.Checker)
	ahead := w.node.clock.Ahead(now)
	if !remote || ahead.Abs() < ports.ClockLimit || now.Sub(w.saidClock) < clockEach {
		return
	}

	w.saidClock = now
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	w.node.log.Warn("needs attention", "check", "clocks", "server", "",
		"value", fmt.Sprintf("the clock of this process is %v %s the store's",
			ahead.Abs().Round(time.Millisecond), direction),
		"advice", "synchronise the clocks of this host and of the store, as NTP does")
}

// unowned logs, once each, the shards that this node can't acquire although it knows of no holder.
func (w *watcher) unowned(now time.Time) {
	var shards []string
	var cause error
	for _, s := range w.shards() {
		s.mu.Lock()
		err := s.lease.unowned(now)
		s.mu.Unlock()
		if err != nil {
			cause = err
			shards = append(shards, s.ID.String())
		}
	}

	if len(shards) > 0 {
		w.node.log.Warn("shards have no owner, and their jobs wait",
			"shards", shards, "for", unownedLimit, "error", cause)
	}
}

// standby logs the holders if other nodes hold all of this node's shards, and again when the
// holders change.
func (w *watcher) standby(now time.Time) {
	var holders []string
	for _, s := range w.shards() {
		s.mu.Lock()
		assigned, held, holder := s.assigned, s.lease.held, s.lease.owner.holder
		s.mu.Unlock()

		if !assigned {
			continue
		}

		if held {
			w.holders = nil
		}
		if held || holder == "" {
			w.standingBy = time.Time{}
			return
		}

		holders = append(holders, holder)
	}

	slices.Sort(holders)
	holders = slices.Compact(holders)
	if w.standingBy.IsZero() {
		w.standingBy = now
	}

	if len(holders) == 0 || slices.Equal(holders, w.holders) {
		return
	}

	names, known := w.names(holders)
	if !known && now.Sub(w.standingBy) < w.node.cfg.LeaseTTL { // they announce themselves within it
		return
	}

	w.holders = holders
	w.node.log.Info("this server waits for its shards, which other servers hold", "holders", names)
}

// names returns the names of owners, or their ids. known is false if a name is missing.
func (w *watcher) names(owners []string) (names []string, known bool) {
	known = true
	for _, owner := range owners {
		name, found := w.node.findName(owner)
		known = known && found
		names = append(names, name)
	}
	return names, known
}

// nameFor returns the name of an owner, or its id.
func (n *node) nameFor(owner string) string {
	name, _ := n.findName(owner)
	return name
}

// findName returns the name of an owner. If the owner has not announced itself, found is false and
// the name is its id.
func (n *node) findName(owner string) (name string, found bool) {
	nodes := n.nodes.Load()
	if nodes == nil {
		return owner, false
	}
	at := slices.IndexFunc(*nodes, func(n ports.Node) bool { return n.Owner == owner })
	if at < 0 {
		return owner, false
	}
	return report.NodeName(&(*nodes)[at]), true
}

// overran notifies the observer of a handler that runs long after its context has ended.
func (s *shardInfo) overran(event ports.OverrunEvent, cause error) {
	event.Shard = s.ID
	switch {
	case errors.Is(cause, ports.ErrLeaseLost):
		event.Cause = ports.OverrunLease
	case errors.Is(cause, execution.ErrCancelled):
		event.Cause = ports.OverrunCancel
	case errors.Is(cause, execution.ErrShutdown):
		event.Cause = ports.OverrunShutdown
	}
	s.node.observer.HandlerOverran(event)
}

package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/ports"
)

// watcher logs what makes no loop fail: handlers that ignore the end of their context, shards
// without an owner, and that the node stands by.
type watcher struct {
	node   *node
	shards func() []*shard
	// holders are the owners that the log last named as those of all shards, and standingBy is
	// since when others have held all.
	holders    []string
	standingBy time.Time
}

// unownedLimit is how long a shard may be without an owner before the log says so.
const unownedLimit = 30 * time.Second

// watch looks once per second, until stop is closed.
func (e *Engine) watch(stop <-chan struct{}) {
	w := watcher{node: &e.node, shards: e.shards}
	every(time.Second, stop, func() {
		now := time.Now()
		w.handlers(now)
		w.unowned(now)
		w.standby(now)
	})
}

// handlers logs the handlers that go on long after their context has ended.
func (w *watcher) handlers(now time.Time) {
	for _, s := range w.shards() {
		s.mu.Lock()
		running := slices.Clone(s.running)
		s.mu.Unlock()
		for _, b := range running {
			if o := b.overdue(now); o != nil {
				w.node.log.Warn("skein: a handler goes on long after its context has ended; until it returns, it keeps its lane, and its shard can't change hands",
					"queue", s.id.Queue, "shard", s.id.String(), "ids", o.ids, "cause", o.cause,
					"since", o.at, "for", now.Sub(o.at).Round(time.Second))
			}
		}
	}
}

// unowned logs, once each, the shards that this node can't acquire although it knows of nobody
// who holds them.
func (w *watcher) unowned(now time.Time) {
	var shards []string
	var cause error
	for _, s := range w.shards() {
		s.mu.Lock()
		if o := &s.owner; !o.since.IsZero() && !o.logged && now.Sub(o.since) >= unownedLimit {
			o.logged, cause = true, o.err
			shards = append(shards, s.id.String())
		}
		s.mu.Unlock()
	}
	if len(shards) > 0 {
		w.node.log.Warn(fmt.Sprintf("skein: shards have had no owner for %v; their jobs wait", unownedLimit),
			"shards", shards, "error", cause)
	}
}

// standby logs who holds the shards that are this node's if others hold all of them, and again when these
// change.
func (w *watcher) standby(now time.Time) {
	var holders []string
	for _, s := range w.shards() {
		s.mu.Lock()
		assigned, held, holder := s.assigned, s.lease.held, s.owner.holder
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
	w.node.log.Info("skein: this server waits for its shards, which are held by " + strings.Join(names, ", "))
}

// names returns the names of owners, or their ids. known is false if a name is missing.
func (w *watcher) names(owners []string) (names []string, known bool) {
	known = true
	nodes := w.node.nodes.Load()
	for _, owner := range owners {
		name := owner
		at := -1
		if nodes != nil {
			at = slices.IndexFunc(*nodes, func(n ports.Node) bool { return n.Owner == owner })
		}
		if at >= 0 {
			name = nodeName(&(*nodes)[at])
		}
		known = known && at >= 0
		names = append(names, name)
	}
	return names, known
}

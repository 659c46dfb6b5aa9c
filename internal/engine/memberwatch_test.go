package engine_test

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// memberWatch checks repeatedly whether each shard is worked. While a node that serves a queue is
// well and does not drain, and nothing bad happens to another such node, a node that is well holds
// each of the queue's shards within the bound, and the shard's due jobs start.
type memberWatch struct {
	story *memberStory

	mu    sync.Mutex
	nodes map[string]*watchedNode
	// bad is when something happened last to a node that serves a queue.
	bad map[string]time.Duration
	// held is when a shard was last held by a node that reaches the store. got is when its due jobs
	// last made progress. starts is how many of its jobs had started then.
	held, got map[core.Shard]time.Duration
	starts    map[core.Shard]int
	failed    bool
}

// watchedNode is the watch's knowledge of a node.
type watchedNode struct {
	// well is set while its link works, which began at since. shaky is set if some of its calls
	// succeed, and stops once it takes no more shards.
	well, shaky, stops bool
	since              time.Duration
	// serves are its queues, since then.
	serves map[string]time.Duration
}

func newMemberWatch(s *memberStory) *memberWatch {
	return &memberWatch{
		story:  s,
		nodes:  make(map[string]*watchedNode),
		bad:    make(map[string]time.Duration),
		held:   make(map[core.Shard]time.Duration),
		got:    make(map[core.Shard]time.Duration),
		starts: make(map[core.Shard]int),
	}
}

const (
	// watchInterval is how often the watch looks.
	watchInterval = 500 * time.Millisecond
	// heldBound is how long a shard may go without a holder that is well.
	heldBound = memberTTL + 2*announceInterval + watchInterval
)

func (v *memberWatch) started(n *memberNode) {
	v.mu.Lock()
	defer v.mu.Unlock()
	serves := make(map[string]time.Duration)
	for queue := range n.serves {
		serves[queue] = v.story.elapsed()
	}
	v.nodes[n.owner] = &watchedNode{well: true, since: v.story.elapsed(), serves: serves}
}

// change changes the knowledge of a node. If the change is bad, the bound begins anew for its
// queues.
func (v *memberWatch) change(n *memberNode, bad bool, change func(w *watchedNode)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.nodes[n.owner]
	if w == nil {
		return
	}
	if bad {
		v.noteBad(w)
	}
	change(w)
}

func (v *memberWatch) noteBad(w *watchedNode) {
	for queue := range w.serves {
		v.bad[queue] = v.story.elapsed()
	}
}

func (v *memberWatch) unwell(n *memberNode, shaky bool) {
	v.change(n, true, func(w *watchedNode) { w.well, w.shaky = false, shaky })
}

func (v *memberWatch) well(n *memberNode) {
	v.change(n, false, func(w *watchedNode) {
		if !w.well {
			w.well, w.since = true, v.story.elapsed()
		}
	})
}

func (v *memberWatch) event(n *memberNode) { v.change(n, true, func(*watchedNode) {}) }

func (v *memberWatch) stops(n *memberNode) {
	v.change(n, true, func(w *watchedNode) { w.stops = true })
}

func (v *memberWatch) gone(n *memberNode) {
	v.change(n, true, func(*watchedNode) { delete(v.nodes, n.owner) })
}

func (v *memberWatch) serves(n *memberNode, queue string, serves bool) {
	v.change(n, !serves, func(w *watchedNode) {
		if serves {
			w.serves[queue] = v.story.elapsed()
		} else {
			delete(w.serves, queue)
		}
	})
}

func (v *memberWatch) eventForAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.nodes {
		v.noteBad(w)
	}
}

// run looks until over is closed.
func (v *memberWatch) run(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(watchInterval):
			v.look()
		}
	}
}

// look checks all shards once.
func (v *memberWatch) look() {
	s := v.story
	reply, err := s.store.Nodes(s.Context())
	if err != nil {
		s.Error(err)
		return
	}
	drains := make(map[string]bool)
	for _, n := range reply.Nodes {
		drains[n.Owner] = n.Draining
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for queue := range s.ledger.queues {
		since := v.servedSince(queue, drains)
		stats, err := s.store.Stats(s.Context(), ports.StatsRequest{Queues: []string{queue}})
		if err != nil {
			continue // no node has declared it yet
		}
		for _, shard := range stats[0].Shards {
			v.check(shard, stats[0].Now, max(since, v.bad[queue]))
		}
	}
}

// servedSince returns since when a queue has been served without a pause by the one of its nodes
// that has for longest.
func (v *memberWatch) servedSince(queue string, drains map[string]bool) time.Duration {
	now := v.story.elapsed()
	since := now
	for owner, n := range v.nodes {
		if drains[owner] {
			n.since = now
		}
		if at, ok := n.serves[queue]; ok && n.well && !n.stops && !drains[owner] {
			since = min(since, max(at, n.since))
		}
	}
	return since
}

// check checks one shard.
func (v *memberWatch) check(shard ports.ShardStats, storeNow core.Instant, since time.Duration) {
	s, now := v.story, v.story.elapsed()
	holder := v.nodes[shard.Owner]
	if holder != nil && (holder.well || holder.shaky) && shard.ExpiresAt > storeNow {
		v.held[shard.Shard] = now
	}
	s.ledger.mu.Lock()
	starts, runs := s.ledger.starts[shard.Shard], s.ledger.runsIn(shard.Shard)
	s.ledger.mu.Unlock()
	due := shard.Oldest.OK && shard.Oldest.Due <= storeNow
	if !due || runs || starts != v.starts[shard.Shard] {
		v.got[shard.Shard], v.starts[shard.Shard] = now, starts
	}
	unheld, stands := now-max(since, v.held[shard.Shard]), now-max(since, v.got[shard.Shard])
	if v.failed || unheld <= heldBound+s.excess() && stands <= heldBound+s.startExcess() {
		return
	}
	v.failed = true
	s.Errorf("at %v: nobody that reaches the store has held %v for %v, and what is due of it has stood still "+
		"for %v: %+v\nnodes: %v%s",
		now, shard.Shard, unheld, stands, shard, slices.Sorted(maps.Keys(v.nodes)), s.logs(60))
}

// excess is how much longer than the bound a shard may go without a holder: a node does not
// acquire it again before handlers that ignore the end of their context have returned.
func (s *memberStory) excess() time.Duration { return s.long/3 + poll }

// startExcess is how much longer than the bound due jobs may wait: for lanes that others keep
// busy, and for the handlers of the node that gives the shard up.
func (s *memberStory) startExcess() time.Duration { return 2*s.long + poll }

// runsIn reports whether a job of the shard runs, in a process that lives.
func (l *ledger) runsIn(shard core.Shard) bool {
	for _, c := range l.running {
		if c.shard == shard && !c.run.ended && !c.run.process.killed {
			return true
		}
	}
	return false
}

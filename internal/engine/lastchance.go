package engine

import (
	"slices"
	"sync"

	"github.com/skeinq/skein/ports"
)

// lastChance is the node's one chance to run a job that is buried if it loses its process once
// more (RULES 4). Such jobs run one at a time, so only the one that kills the process is buried.
// It is safe for concurrent use.
type lastChance struct {
	mu      sync.Mutex
	taken   bool
	of      ports.LastChance
	waiting []*shard
}

// job returns the job that has the chance, or the zero value.
func (l *lastChance) job() ports.LastChance {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of
}

// take reports whether a job of the shard gets the chance now. If not, the shard's heads are
// hidden from its pool until the chance is given back or the shard has news.
func (l *lastChance) take(s *shard, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.taken {
		l.taken, l.of = true, ports.LastChance{Shard: s.ID, ID: id}
		return true
	}
	s.pool.awaitChance(s, true)
	if !slices.Contains(l.waiting, s) {
		l.waiting = append(l.waiting, s)
	}
	return false
}

// giveBack gives the chance back, and shows the shards that wait for it.
func (l *lastChance) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken, l.of = false, ports.LastChance{}
	for _, s := range l.waiting {
		s.pool.awaitChance(s, false)
	}
	l.waiting = nil
}

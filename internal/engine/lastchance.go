package engine

import (
	"slices"
	"sync"
)

// lastChance is the permit of a node to run a job that is buried if it loses its
// process once more (RULES 4): one at a time, so that of several only the one that
// kills the process is buried.
type lastChance struct {
	mu      sync.Mutex
	holder  *shard
	waiting []*shard
}

// take gives the permit to a shard, or lets it wait, without a head, until the
// permit is given back or there is news of the shard.
func (l *lastChance) take(s *shard) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == nil || l.holder == s {
		l.holder = s
		return true
	}
	s.awaitsPermit.Store(true)
	if !slices.Contains(l.waiting, s) {
		l.waiting = append(l.waiting, s)
	}
	return false
}

// giveBack takes the permit from the shard, if it has it, and lets those that wait
// try again.
func (l *lastChance) giveBack(s *shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != s {
		return
	}
	l.holder = nil
	for _, w := range l.waiting {
		w.awaitsPermit.Store(false)
		signal(w.lane.wake)
	}
	l.waiting = nil
}

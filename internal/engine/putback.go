package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// tickAll looks twice each poll interval at shards that wait for time to pass, while there are
// any, until stop is closed. Such a shard turns if jobs have to be put back, if deferred
// settlements have to be sent, or if a running batch may have been cancelled.
func (e *Engine) tickAll(stop <-chan struct{}) {
	for await(nil, e.tickNow, stop) && pause(e.cfg.PollInterval/2, stop) {
		now := time.Now()
		for _, s := range e.shards() {
			if s.tick(now) {
				signal(e.tickNow)
			}
		}
	}
}

// tick wakes the turn loop if something is due. It reports whether to look again.
func (s *shard) tick(now time.Time) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held {
		return false
	}

	running := len(s.claims.running) > 0
	due := s.turns.tick(now, running)
	overdue, waiting := s.claims.overdue(now)
	if due || overdue {
		signal(s.wake)
	}

	return running || waiting
}

// putBack puts back the jobs that wait to start: all of them if the shard is paused or given up,
// else those that have waited for a poll interval.
func (s *shard) putBack(now time.Time, leaving bool) {
	before := s.claims.unstarted()
	if before == 0 {
		return
	}
	s.withdraw(s.claims.putBack(now, leaving || s.turns.news.paused), core.Untouched)
	if s.claims.unstarted() != before {
		s.publish()
	}
}

// settleOrphans settles jobs that earlier leases left claimed.
func (s *shard) settleOrphans(orphans []core.Claim, cancels []ports.Cancellation) {
	for i := range orphans {
		s.claims.correctBegun(&orphans[i])
		s.turns.outbox.settleOrphan(&orphans[i], cancels, s.now())
	}
}

// cancelJobs ends the jobs that an operator has cancelled. A job that has not started is settled
// at once; the context of a running one ends.
func (s *shard) cancelJobs(cancels []ports.Cancellation) {
	for i := range cancels {
		k := &cancels[i]
		kind := core.Untouched
		if k.Drop {
			kind = core.Dropped
		}

		w, running, position := s.claims.cancel(k)
		s.withdraw(w, kind)
		if running != nil {
			running.Cancel(position, k.Drop)
		}
	}
}

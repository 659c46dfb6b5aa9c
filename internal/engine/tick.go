package engine

import "time"

// tickAll looks twice each poll interval at shards that wait for time to pass,
// while there are any, until stop is closed. Each gets a turn when jobs should go
// back, statistics or what the store held are to be sent, or a running batch may have
// been cancelled.
func (e *Engine) tickAll(stop <-chan struct{}) {
	for {
		select {
		case <-e.tickNow:
		case <-stop:
			return
		}
		if !pause(e.cfg.PollInterval/2, stop) {
			return
		}
		now := time.Now()
		for _, s := range e.shards {
			if s.tick(now) {
				signal(e.tickNow)
			}
		}
	}
}

// tick reports whether to look again.
func (s *shard) tick(now time.Time) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held {
		return false
	}
	poll := s.node.cfg.PollInterval
	if s.running != nil && now.Sub(s.turns.ended) >= poll {
		s.turns.due = true
	}
	s.finished, s.deferred = append(s.finished, s.deferred...), nil
	since, waiting := s.oldest()
	if s.turns.due || len(s.finished) > 0 || s.stats.due(now) || waiting && now.Sub(since) >= poll {
		signal(s.wake)
	}
	return s.running != nil || waiting || s.stats.any
}

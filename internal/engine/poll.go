package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
)

// pollAll polls once per interval, and when asked to, until stop is closed.
func (e *Engine) pollAll(stop <-chan struct{}) {
	status := e.outages.Loop("poll", core.Shard{})
	ticker := time.NewTicker(e.cfg.PollInterval)
	defer ticker.Stop()
	for await(ticker.C, e.pollNow, stop) {
		if !e.poll(status) {
			ticker.Reset(e.cfg.PollInterval) // the shards make turns first
		}
	}
}

// pollTimeout is how long a poll may take. It is short, since all shards of the poll wait for a
// hanging one.
func (e *Engine) pollTimeout() time.Duration {
	return min(e.cfg.LeaseTTL/3, max(2*e.cfg.PollInterval, time.Second))
}

// poll asks in one call for the heads of those shards of this node that have not turned lately. If
// that fails, the shards turn instead. The next poll asks again for shards that the store has not
// reached.
func (e *Engine) poll(status *report.Loop) (ok bool) {
	since := time.Now()
	shards, ids := e.quietShards(since)
	if len(ids) == 0 { // the answers to other calls have the same information
		if e.clock.RepliedAfter(e.pollFailed) {
			status.Called(nil)
		}
		return true
	}

	ctx, cancel := context.WithTimeout(e.storeCtx, e.pollTimeout())
	defer cancel()
	reply, err := e.store.Heads(ctx, ids)
	if err != nil {
		e.pollFailed = time.Now()
		status.Called(err)
		for _, s := range shards { // one of them may be the cause, which its turn will show
			s.invite()
		}
		return false
	}

	e.clock.Sync(reply.Now)
	missing := reply.Unreached
	for i, s := range shards {
		if len(missing) > 0 && s.ID == missing[0] { // it stays quiet, so the next poll asks again
			missing = missing[1:]
			continue
		}
		s.polled(reply.Heads[i], reply.Now, since)
	}

	if n := len(reply.Unreached); n > 0 {
		e.pollFailed = time.Now()
		status.Called(fmt.Errorf("%d of %d shards can't be reached, the first is %v", n, len(ids), reply.Unreached[0]))
	} else {
		status.Called(nil)
	}

	return true
}

// quietShards returns the shards that have not turned lately, with their ids.
func (e *Engine) quietShards(now time.Time) (shards []*shard, ids []core.Shard) {
	shards = make([]*shard, 0, len(e.shards()))
	ids = make([]core.Shard, 0, len(e.shards()))
	for _, s := range e.shards() {
		if s.quiet(now) {
			shards = append(shards, s)
			ids = append(ids, s.ID)
		}
	}
	return shards, ids
}

// listeningPolls is how many poll intervals a shard may be quiet while the subscription to
// wake-ups stands. Wake-ups bring news and renewals look as well, so a poll only finds what a lost
// wake-up would have brought.
const listeningPolls = 5

// quiet reports whether a lease is held and the store has not answered for the shard lately: for
// half a poll interval or, while the subscription to wake-ups stands, for listeningPolls of them.
func (s *shard) quiet(now time.Time) bool {
	lately := s.node.cfg.PollInterval / 2
	if s.node.listening.Load() {
		lately = listeningPolls * s.node.cfg.PollInterval
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.held && s.turns.quiet(now, lately)
}

// invite makes the pool ask for jobs of the shard although no job is known to be due.
func (s *shard) invite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assumeDue(s.now())
}

// polled takes a head that was asked for at a time, unless something else has brought news since. now
// is the time of the reply.
func (s *shard) polled(h core.Head, now core.Instant, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lease.held || s.turns.inFlight {
		return
	}

	changed, again := s.turns.news.polled(h, now, s.now(), asked, time.Now())
	if again {
		signal(s.node.pollNow)
	}
	if changed {
		s.publishNews()
	}
}

// assumeDue makes the pool ask the store, also if the head is known and was not believed.
func (s *shard) assumeDue(now core.Instant) {
	if s.lease.held {
		s.turns.news.assumeDue(now)
	}
	s.publishNews()
}

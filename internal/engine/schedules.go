package engine

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/ticks"
)

// newFirer returns the firer of the schedules of this node's shards.
func (e *Engine) newFirer() *ticks.Firer {
	return ticks.New(ticks.Config{
		Store:        e.store,
		Held:         e.heldShards,
		Acquired:     e.ticksNow,
		PollInterval: e.cfg.PollInterval,
		Call:         e.callContext,
		Look:         e.pollContext,
		Start:        e.start,
		Log:          e.log,
		Observer:     e.observer,
		Outages:      e.outages,
		Pushed:       e.ticksPushed,
	})
}

// pollContext returns the context of a call for all shards.
func (e *Engine) pollContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.storeCtx, e.pollTimeout())
}

// fireTicks fires the schedules of the held shards, until stop is closed.
func (e *Engine) fireTicks(stop <-chan struct{}) { e.newFirer().Run(stop) }

// heldShards returns the shards whose schedules this node fires.
func (e *Engine) heldShards() (held []ticks.Shard) {
	for _, s := range e.shards() {
		if s.holds() {
			held = append(held, s.ticking())
		}
	}
	return held
}

// holds reports whether this node has the shard's lease and keeps it.
func (s *shard) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.held && !s.leaving()
}

// ticking returns the shard for the firer.
func (s *shardInfo) ticking() ticks.Shard {
	q := s.queue
	return ticks.Shard{ID: s.ID, Shards: q.Shards, Generation: q.generation.Load(), Merge: q.Merge}
}

// ticksPushed makes a shard look for the jobs that its ticks have pushed, unless the store sends a
// wake-up.
func (e *Engine) ticksPushed(id core.Shard) {
	if e.listening.Load() {
		return
	}
	for _, s := range e.shards() {
		if s.ID == id {
			s.invite()
		}
	}
}

// fireDue fires the due schedules of a shard that RunDue works.
func (s *shard) fireDue(f *ticks.Firer) error {
	if _, err := f.Fire(s.ticking()); err != nil {
		return fmt.Errorf("fire the schedules of shard %v: %w", s.ID, err)
	}
	return nil
}

package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/retention"
)

// kept is which dead letters of a queue are kept. since is when this node has learned it, or when an
// operator has set it.
type kept struct {
	core.Retention
	since time.Time
}

// keepDeadLetters makes what operators have set, else the program's bounds, those of a queue's dead
// letters. Bounds that are new to this node begin now, and those of operators when they were set.
func (n *node) keepDeadLetters(q *Queue, s core.Settings) {
	r, at := q.keepBy(s)
	if was := q.kept.Load(); was != nil && was.Retention == r {
		return
	}

	since := time.Now()
	if at > 0 {
		since = since.Add(min(0, at.Sub(n.clock.Steady(since))))
	}
	q.kept.Store(&kept{r, since})
}

// keepBy returns the bounds of the queue's dead letters: what operators have set, else the program's.
// at is when the newer of the settings was set.
func (q *Queue) keepBy(s core.Settings) (r core.Retention, at core.Instant) {
	r = q.Keep
	if age, set := s.MorgueAge(); set {
		r.Age = age
	}
	if n, set := s.MorgueCount(); set {
		r.Count = n
	}
	for _, name := range []string{core.SettingMorgueAge, core.SettingMorgueCount} {
		if setting, set := s.Find(name); set {
			at = max(at, setting.At)
		}
	}
	return r, at
}

// expireDeadLetters removes the dead letters that queues no longer keep, until stop is closed.
func (e *Engine) expireDeadLetters(stop <-chan struct{}) {
	retention.New(retention.Config{
		Store:    e.store,
		Held:     e.retainedShards,
		Call:     e.callContext,
		Last:     e.lastContext,
		Node:     e.cfg.Node,
		Logger:   e.log,
		Observer: e.observer,
		Outages:  e.outages,
	}).Run(stop)
}

// retainedShards returns the shards that this node holds of queues that keep only some dead letters.
func (e *Engine) retainedShards() (held []retention.Shard) {
	for _, s := range e.shards() {
		k := s.queue.kept.Load()
		if k == nil || !k.Any() || !s.holds() {
			continue
		}
		held = append(held, retention.Shard{
			ID:     s.ID,
			Shards: s.queue.Shards,
			Keep:   k.Retention,
			From:   k.since.Add(retention.Grace),
		})
	}
	return held
}

package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/retention"
)

// kept is which dead letters of a queue are kept. ageSince and countSince are when this node has
// learned of each bound, or when an operator has set it.
type kept struct {
	core.Retention
	ageSince, countSince time.Time
}

// from returns the time before which nothing is removed.
func (k *kept) from() time.Time {
	since := k.ageSince
	if k.countSince.After(since) {
		since = k.countSince
	}
	return since.Add(core.RetentionGrace)
}

// keepDeadLetters makes what operators have set, else the program's bounds, those of a queue's dead
// letters. A bound that is new to this node begins now, and one of operators when it was set.
func (n *node) keepDeadLetters(q *Queue, s core.Settings) {
	was := q.kept.Load()
	if was == nil {
		was = &kept{}
	}

	now := *was
	now.Retention = q.keepBy(s)
	if now.Age != was.Age {
		now.ageSince = n.setSince(s, core.SettingMorgueAge)
	}
	if now.Count != was.Count {
		now.countSince = n.setSince(s, core.SettingMorgueCount)
	}
	q.kept.Store(&now)
}

// setSince returns when a setting was set by the clock of this process, or now if it is unset.
func (n *node) setSince(s core.Settings, name string) time.Time {
	now := time.Now()
	if setting, set := s.Find(name); set {
		return now.Add(min(0, setting.At.Sub(n.clock.Steady(now))))
	}
	return now
}

// keepBy returns the bounds of the queue's dead letters: what operators have set, else the program's.
func (q *Queue) keepBy(s core.Settings) core.Retention {
	r := q.Keep
	if age, set := s.MorgueAge(); set {
		r.Age = age
	}
	if n, set := s.MorgueCount(); set {
		r.Count = n
	}
	return r
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
			From:   k.from(),
		})
	}
	return held
}

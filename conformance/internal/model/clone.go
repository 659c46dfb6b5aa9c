package model

import (
	"maps"
	"reflect"
	"slices"
)

// Clone returns a store with the same content. It shares with m only the clock, Reach, and lists
// that are never written to.
func (m *Store) Clone() *Store {
	m.mu.Lock()
	defer m.mu.Unlock()

	c := &Store{
		clock:   m.clock,
		Reach:   m.Reach,
		id:      m.id,
		queues:  map[string]*queue{},
		nodes:   maps.Clone(m.nodes),
		actions: maps.Clone(m.actions),
	}

	for name, q := range m.queues {
		c.queues[name] = q.clone()
	}
	return c
}

func (q *queue) clone() *queue {
	c := &queue{
		record:   q.record,
		records:  maps.Clone(q.records),
		permits:  maps.Clone(q.permits),
		tracked:  maps.Clone(q.tracked),
		limiters: maps.Clone(q.limiters),
	}
	for _, s := range q.shards {
		c.shards = append(c.shards, s.clone())
	}
	return c
}

func (s *shard) clone() *shard {
	c := *s
	c.queued, c.claimed, c.dead = maps.Clone(s.queued), maps.Clone(s.claimed), maps.Clone(s.dead)
	c.groups, c.schedules, c.past = maps.Clone(s.groups), maps.Clone(s.schedules), maps.Clone(s.past)
	c.once = maps.Clone(s.once)
	c.lease.orphans, c.lease.handedOver = slices.Clone(s.lease.orphans), maps.Clone(s.lease.handedOver)
	return &c
}

// Distinct returns the stores of the list, except those with the same content as an earlier one.
func Distinct(models []*Store) []*Store {
	var out []*Store
	for _, m := range models {
		same := func(o *Store) bool {
			return reflect.DeepEqual(o.queues, m.queues) && reflect.DeepEqual(o.nodes, m.nodes) &&
				reflect.DeepEqual(o.actions, m.actions)
		}
		if len(models) == 1 || !slices.ContainsFunc(out, same) {
			out = append(out, m)
		}
	}
	return out
}

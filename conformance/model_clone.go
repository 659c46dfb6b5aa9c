package conformance

import (
	"maps"
	"reflect"
	"slices"
)

// clone is a model that goes its own way from here on.
func (m *model) clone() *model {
	c := &model{clock: m.clock, reach: m.reach, queues: map[string]*modelQueue{}, nodes: maps.Clone(m.nodes)}
	for name, q := range m.queues {
		c.queues[name] = q.clone()
	}
	return c
}

func (q *modelQueue) clone() *modelQueue {
	c := &modelQueue{record: q.record, minutes: maps.Clone(q.minutes)}
	for at, stats := range q.minutes {
		copied := *stats
		c.minutes[at] = &copied
	}
	for _, s := range q.shards {
		c.shards = append(c.shards, s.clone())
	}
	return c
}

func (s *modelShard) clone() *modelShard {
	c := *s
	c.queued, c.claimed, c.dead = maps.Clone(s.queued), maps.Clone(s.claimed), maps.Clone(s.dead)
	c.lease.given, c.lease.handed = slices.Clone(s.lease.given), maps.Clone(s.lease.handed)
	return &c
}

// distinct leaves out models that hold the same as another.
func distinct(models []*model) []*model {
	var out []*model
	for _, m := range models {
		same := func(o *model) bool {
			return reflect.DeepEqual(o.queues, m.queues) && reflect.DeepEqual(o.nodes, m.nodes)
		}
		if len(models) == 1 || !slices.ContainsFunc(out, same) {
			out = append(out, m)
		}
	}
	return out
}

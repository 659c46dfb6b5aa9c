package memory

import (
	"cmp"
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Groups implements [ports.Inspector].
func (s *Store) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	q, shards, err := s.b.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.GroupsReply{}, err
	}

	var sums storekit.GroupSums
	for _, shard := range shards {
		sh := q.shards[shard.Index]
		sh.mu.Lock()
		for g := range sh.morgue.groups.All {
			sums.Add(g)
		}
		sh.mu.Unlock()
	}

	reply := ports.GroupsReply{Now: s.b.now()}
	sums.Fill(&reply, r.Size())
	return reply, nil
}

// noDeadLetters is the list of a group without dead letters.
var noDeadLetters sorted[*core.DeadLetter]

// listByTime returns the dead letters of a group by time, or all of them for "". Callers must not
// add to the result.
func (m *morgue) listByTime(group string) *sorted[*core.DeadLetter] {
	if group == "" {
		return &m.byTime
	}
	return cmp.Or(m.byGroup[group], &noDeadLetters)
}

// list adds a dead letter to the lists by time.
func (m *morgue) list(d *core.DeadLetter) {
	m.byTime.Insert(deadLetterByTime(d), d)
	group := m.byGroup[d.Group]
	if group == nil {
		group = new(sorted[*core.DeadLetter])
		if m.byGroup == nil {
			m.byGroup = make(map[string]*sorted[*core.DeadLetter])
		}
		m.byGroup[d.Group] = group
	}
	group.Insert(deadLetterByTime(d), d)
}

// unlist removes a dead letter from the lists by time.
func (m *morgue) unlist(d *core.DeadLetter) {
	m.byTime.Delete(deadLetterByTime(d))
	group := m.byGroup[d.Group]
	group.Delete(deadLetterByTime(d))
	if group.Len() == 0 {
		delete(m.byGroup, d.Group)
	}
}

package model

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Groups implements ports.Inspector.
func (m *Store) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, shards, err := m.listed(ctx, &ports.PageRequest{Queue: r.Queue, Shards: r.Shards}, r.Validate())
	if err != nil {
		return ports.GroupsReply{}, err
	}

	reply := ports.GroupsReply{Now: m.Now()}
	for _, s := range shards {
		for _, g := range s.groups {
			reply.Dead += g.Count
			reply.Groups = addGroup(reply.Groups, g)
		}
	}

	slices.SortFunc(reply.Groups, func(a, b core.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})

	reply.Total = len(reply.Groups)
	reply.Groups = reply.Groups[:min(len(reply.Groups), r.Size())]
	return reply, nil
}

// addGroup adds the group of a shard to sums, and returns sums.
func addGroup(sums []core.Group, g core.Group) []core.Group {
	for i := range sums {
		if sum := &sums[i]; sum.Name == g.Name {
			sum.Count += g.Count
			sum.First, sum.Last = min(sum.First, g.First), max(sum.Last, g.Last)
			return sums
		}
	}
	return append(sums, g)
}

// enterGroup counts a dead letter in the group name, and no longer in the group had, if had is not
// empty. It returns the name of the group, which is core.OtherGroup if the group would be new and
// the shard has the maximum number of groups.
func (s *shard) enterGroup(had, name string, at core.Instant) string {
	if _, known := s.groups[name]; !known && len(s.groups) >= core.MaxGroups {
		name = core.OtherGroup
	}

	g, known := s.groups[name]
	if !known {
		g = core.Group{Name: name, First: at}
	}

	g.First, g.Last = min(g.First, at), max(g.Last, at)
	g.Count++
	s.groups[name] = g

	if had != "" {
		s.leaveGroup(had)
	}
	return name
}

func (s *shard) leaveGroup(name string) {
	g := s.groups[name]
	g.Count--
	s.groups[name] = g
}

// tidyGroups removes the groups that a call has left empty.
func (s *shard) tidyGroups() {
	maps.DeleteFunc(s.groups, func(_ string, g core.Group) bool { return g.Count == 0 })
}

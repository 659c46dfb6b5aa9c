package storekit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// GroupSums adds up the groups of shards. The zero value is ready. It is for one goroutine.
type GroupSums struct{ byName map[string]core.Group }

// Add adds a group of a shard.
func (s *GroupSums) Add(g core.Group) {
	if s.byName == nil {
		s.byName = make(map[string]core.Group)
	}
	if sum, ok := s.byName[g.Name]; ok {
		g = core.Group{
			Name:  g.Name,
			Count: sum.Count + g.Count,
			First: min(sum.First, g.First),
			Last:  max(sum.Last, g.Last),
		}
	}
	s.byName[g.Name] = g
}

// Fill sets the Groups of a reply to the largest of the added groups, at most the given number. It
// sets Total to the number of all added groups, and Dead to the number of their dead letters.
func (s *GroupSums) Fill(reply *ports.GroupsReply, most int) {
	groups := slices.SortedFunc(maps.Values(s.byName), func(a, b core.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	reply.Groups, reply.Total, reply.Dead = nil, len(groups), 0
	for _, g := range groups {
		reply.Dead += g.Count
	}
	reply.Groups = groups[:min(most, len(groups)):min(most, len(groups))]
}

package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of groups.
const (
	// MaxGroupBytes is the maximum size of a group's name in bytes.
	MaxGroupBytes = 64
	// MaxGroups is the maximum number of groups of a shard, apart from OtherGroup. Dead letters of
	// further groups belong to OtherGroup.
	MaxGroups = 1000
)

// Groups that are not named after an error.
const (
	// OtherGroup is the group of dead letters without a group of their own, because no name was
	// given, or because their shard already had MaxGroups groups.
	OtherGroup = "other"
	// RecoveredGroup is the group of dead letters of jobs that were recovered too often
	// (docs/rules.md 4).
	RecoveredGroup = "recovered too often"
)

// GroupName returns the name of a group as stores keep it: UTF-8 without control characters,
// truncated to [MaxGroupBytes] between characters. If the result is empty, it returns [OtherGroup].
// GroupName does not change a name that it has returned.
func GroupName(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		name = strings.Map(func(r rune) rune {
			if r == utf8.RuneError || unicode.IsControl(r) {
				return -1
			}
			return r
		}, name)
	}
	if name = CutText(name, MaxGroupBytes); name == "" {
		return OtherGroup
	}
	return name
}

// Group counts the dead letters of one group, in a shard or in a queue.
type Group struct {
	// Name is as [GroupName] returns it.
	Name string
	// Count is the number of dead letters, at least one.
	Count int64
	// First is the earliest instant of a burial since the group was last empty, and Last is the
	// latest. The clock may have stepped back between the burials. Burials of dead letters that
	// were revived or purged since count too. An edit does not count. An imported dead letter
	// counts as buried at its ChangedAt.
	First, Last Instant
}

// Groups counts the dead letters of a shard by group. The zero value has no group.
//
// A store counts the changes of one call together: a group that becomes empty stays until the store
// calls [Groups.Tidy] at the end of the call. So the order of the changes within a call does not
// matter.
type Groups struct {
	byName map[string]*Group
	// empty are names of groups that may be without a dead letter.
	empty []string
}

// Bury counts a burial at an instant, which may be earlier than that of other burials. It moves the
// dead letter from the group had, or "" if the dead letter is new, to the named group. If the shard
// has no such group and already has [MaxGroups] groups, Bury moves the dead letter to [OtherGroup].
// Bury returns the name of the group that the dead letter is in now.
func (g *Groups) Bury(had, name string, at Instant) (entered string) {
	if g.byName[name] == nil && len(g.byName) >= MaxGroups {
		name = OtherGroup
	}
	g.enter(name, at)
	if had != "" {
		g.Leave(had)
	}
	return name
}

func (g *Groups) enter(name string, at Instant) {
	group := g.byName[name]
	if group == nil {
		group = &Group{Name: name, First: at, Last: at}
		if g.byName == nil {
			g.byName = make(map[string]*Group)
		}
		g.byName[name] = group
	}
	group.Count++
	group.First, group.Last = min(group.First, at), max(group.Last, at)
}

// Leave removes a dead letter from its group, whose name [Groups.Bury] returned.
func (g *Groups) Leave(name string) {
	group := g.byName[name]
	if group.Count--; group.Count == 0 {
		g.empty = append(g.empty, name)
	}
}

// Tidy removes the groups without a dead letter, at the end of a store's call.
func (g *Groups) Tidy() {
	for _, name := range g.empty {
		if group := g.byName[name]; group != nil && group.Count == 0 {
			delete(g.byName, name)
		}
	}
	g.empty = nil
	if len(g.byName) == 0 {
		g.byName = nil
	}
}

// Len returns the number of groups.
func (g *Groups) Len() int { return len(g.byName) }

// All calls yield with each group, in any order, until yield returns false.
func (g *Groups) All(yield func(Group) bool) {
	for _, group := range g.byName {
		if !yield(*group) {
			return
		}
	}
}

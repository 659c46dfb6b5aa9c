package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of groups.
const (
	// MaxGroupBytes is the longest name of a group.
	MaxGroupBytes = 64
	// MaxGroups is how many groups a shard tells apart. What else is buried there is of OtherGroup.
	MaxGroups = 1000
)

// Groups that no error gives its name.
const (
	// OtherGroup is the group of dead letters that have no other: since none was given, or since their
	// shard had MaxGroups of them already.
	OtherGroup = "other"
	// RecoveredGroup is the group of jobs that were recovered too often (RULES 4).
	RecoveredGroup = "recovered too often"
)

// GroupName returns the name of a group as it is kept: UTF-8 without control characters, cut to
// [MaxGroupBytes] between characters, and [OtherGroup] if nothing is left. It changes no name that it has
// returned.
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
	// Count is how many dead letters there are, at least one.
	Count int64
	// First is the earliest instant at which one was buried since the group was empty, and Last the latest. The
	// clock may have stepped back between them. Dead letters that were revived or purged since count for both, and an
	// edit for neither. One that was imported counts as buried at its ChangedAt.
	First, Last Instant
}

// Groups counts the dead letters of a shard by group. The zero value has none.
//
// A store counts what one call does together: groups that are left without a dead letter stay until
// [Groups.Tidy], which ends a call, so that the order within a call does not matter.
type Groups struct {
	byName map[string]*Group
	// empty are names of groups that may be without a dead letter.
	empty []string
}

// Bury counts a burial at an instant, which may be before others that were counted. It takes the dead letter
// out of the group that it had, "" if it is new, and puts it into that of the name given; or into [OtherGroup],
// if the shard has no such group and [MaxGroups] others. It returns the name of the group that it is in now.
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

// Leave takes a dead letter out of its group.
func (g *Groups) Leave(name string) {
	group := g.byName[name]
	if group.Count--; group.Count == 0 {
		g.empty = append(g.empty, name)
	}
}

// Tidy ends a call: groups without a dead letter are gone.
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

// Len returns how many groups there are.
func (g *Groups) Len() int { return len(g.byName) }

// All calls yield with each group, in no order, until it returns false.
func (g *Groups) All(yield func(Group) bool) {
	for _, group := range g.byName {
		if !yield(*group) {
			return
		}
	}
}

package core_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestGroupName(t *testing.T) {
	tests := []struct{ name, given, want string }{
		{"a name", "no route to host", "no route to host"},
		{"none", "", core.OtherGroup},
		{"nothing that is kept", "\x00\xff\n", core.OtherGroup},
		{"bytes that are not UTF-8", "a\xffb", "ab"},
		{"control characters", "a\x00b\nc\u0085", "abc"},
		{"the longest", strings.Repeat("a", 64), strings.Repeat("a", 64)},
		{"longer", strings.Repeat("a", 65), strings.Repeat("a", 64)},
		{"cut between characters", "a" + strings.Repeat("é", 32), "a" + strings.Repeat("é", 31)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := core.GroupName(tt.given)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			checkGroupName(t, got)
		})
	}
}

// groupsOf returns the groups in order of name.
func groupsOf(g *core.Groups) []core.Group {
	return slices.SortedFunc(g.All, func(a, b core.Group) int { return cmp.Compare(a.Name, b.Name) })
}

func checkGroups(t *testing.T, g *core.Groups, want ...core.Group) {
	t.Helper()
	if diff := gocmp.Diff(want, groupsOf(g)); diff != "" {
		t.Errorf("the groups (-want +got):\n%s", diff)
	}
	if g.Len() != len(want) {
		t.Errorf("%d groups, want %d", g.Len(), len(want))
	}
}

func TestGroupsCountBurials(t *testing.T) {
	var g core.Groups
	g.Bury("", "a", 10)
	g.Bury("", "a", 20)
	g.Bury("", "b", 30)
	g.Tidy()
	checkGroups(t, &g,
		core.Group{Name: "a", Count: 2, First: 10, Last: 20},
		core.Group{Name: "b", Count: 1, First: 30, Last: 30})

	g.Bury("a", "a", 40) // buried again for the same reason
	g.Bury("b", "a", 5)  // by a clock that stepped back
	g.Tidy()
	checkGroups(t, &g, core.Group{Name: "a", Count: 3, First: 5, Last: 40})

	g.Leave("a")
	g.Tidy()
	checkGroups(t, &g, core.Group{Name: "a", Count: 2, First: 5, Last: 40})
	g.Leave("a")
	g.Leave("a")
	g.Tidy()
	checkGroups(t, &g)

	g.Bury("", "a", 50)
	checkGroups(t, &g, core.Group{Name: "a", Count: 1, First: 50, Last: 50})
}

// Two dead letters that change their groups in one call end in the same groups in either order.
func TestTheOrderWithinACallDoesNotMatter(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		var g core.Groups
		g.Bury("", "a", 10)
		g.Bury("", "b", 20)
		g.Tidy()
		moves := [][2]string{{"a", "b"}, {"b", "a"}}
		if swapped {
			slices.Reverse(moves)
		}
		for _, m := range moves {
			g.Bury(m[0], m[1], 30)
		}
		g.Tidy()
		checkGroups(t, &g,
			core.Group{Name: "a", Count: 1, First: 10, Last: 30},
			core.Group{Name: "b", Count: 1, First: 20, Last: 30})
	}
}

// A group may be left without a dead letter more than once in a call, and have one at its end.
func TestAGroupMayBeLeftTwiceInACall(t *testing.T) {
	var g core.Groups
	g.Bury("", "a", 10)
	g.Tidy()
	g.Bury("a", "b", 20)
	g.Bury("b", "a", 30)
	g.Bury("a", "b", 40)
	g.Tidy()
	checkGroups(t, &g, core.Group{Name: "b", Count: 1, First: 20, Last: 40})
}

func TestGroupsBeyondTheMostAreOther(t *testing.T) {
	var g core.Groups
	name := func(i int) string { return fmt.Sprintf("g%04d", i) }
	for i := range core.MaxGroups {
		if got := g.Bury("", name(i), 1); got != name(i) {
			t.Fatalf("%s is of %q", name(i), got)
		}
	}

	bury := func(had, name, want string) {
		t.Helper()
		if got := g.Bury(had, name, 2); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}

	bury("", "new", core.OtherGroup)
	bury("", name(7), name(7))
	bury(core.OtherGroup, "newer", core.OtherGroup)
	bury(name(8), "newest", core.OtherGroup) // its old group stays until the end of the call

	g.Tidy()
	bury("", "yet another", core.OtherGroup) // with OtherGroup there are as many
	g.Leave(name(9))
	g.Tidy()
	bury("", "at last", "at last")
	g.Tidy()

	if g.Len() != core.MaxGroups {
		t.Errorf("%d groups", g.Len())
	}
}

func checkGroupName(t *testing.T, name string) {
	t.Helper()
	switch {
	case name == "" || len(name) > core.MaxGroupBytes:
		t.Fatalf("a name of %d bytes", len(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		t.Fatalf("%q", name)
	case core.GroupName(name) != name:
		t.Fatalf("%q changes when it is kept again", name)
	}
}

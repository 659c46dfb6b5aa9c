package core_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

func tags(t interface {
	Helper()
	Fatal(...any)
}, list ...string,
) core.Tags {
	t.Helper()
	made, err := core.NewTags(list...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestVectorsOfTags(t *testing.T) {
	type vector struct {
		About       string
		A, B, Union []string
	}
	for _, v := range vectors[vector](t, "tags.json") {
		a, b, want := tags(t, v.A...), tags(t, v.B...), tags(t, v.Union...)
		equal(t, v.About, want, a.Union(b))
		equal(t, v.About+", the other way", want, b.Union(a))
		equal(t, v.About+", as a list", len(v.Union), len(a.Union(b).List()))
	}
}

// The union of tags does not depend on the order in which pushes and put-backs merge.
func TestUnionOfTagsIsCommutativeAssociativeAndIdempotent(t *testing.T) {
	some := rapid.SliceOfN(rapid.StringMatching(`[a-cA-Cäß]{1,2}`), 0, core.MaxTags)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) core.Tags { return tags(t, some.Draw(t, label)...) }
		a, b, c := draw("a"), draw("b"), draw("c")
		if a.Union(b) != b.Union(a) {
			t.Errorf("%q and %q unite to %q or to %q", a, b, a.Union(b), b.Union(a))
		}
		if left, right := a.Union(b).Union(c), a.Union(b.Union(c)); left != right {
			t.Errorf("%q, %q and %q unite to %q or to %q", a, b, c, left, right)
		}
		if a.Union(a) != a || a.Union(b).Union(b) != a.Union(b) {
			t.Errorf("%q and %q unite to something else when it is repeated", a, b)
		}
		if err := a.Union(b).Validate(); err != nil {
			t.Error(err)
		}
	})
}

func TestNewTagsSortsAndRefuses(t *testing.T) {
	equal(t, "tags", []string{"B", "a", "b"}, tags(t, "b", "a", "B", "a").List())
	equal(t, "no tags", core.Tags(""), tags(t))
	equal(t, "no list", []string(nil), core.Tags("").List())
	given := []string{"b", "a"}
	_ = tags(t, given...)
	equal(t, "the caller's list", []string{"b", "a"}, given)
	for name, list := range map[string][]string{
		"empty": {"a", ""}, "too long": {strings.Repeat("x", core.MaxTagBytes+1)}, "not UTF-8": {"\xff"},
		"control character": {"a\x1fb"}, "NUL": {"\x00"}, "nine": strings.Fields("a b c d e f g h i"),
	} {
		if got, err := core.NewTags(list...); !errors.Is(err, core.ErrInvalidTag) || got != "" {
			t.Errorf("%s: got %q and error %v", name, got, err)
		}
	}
	equal(t, "at the limits",
		core.MaxTags, len(tags(t, strings.Split(strings.Repeat("é", 32)+" a b c d e f g g", " ")...).List()))
}

func TestTagsOfAnotherFormAreRefused(t *testing.T) {
	for _, text := range []core.Tags{
		"b\x1fa", "a\x1fa", "\x1f", "a\x1f", "a\nb",
		core.Tags(strings.Join(strings.Fields("a b c d e f g h i"), "\x1f")),
	} {
		if err := text.Validate(); !errors.Is(err, core.ErrInvalidTag) {
			t.Errorf("%q: got %v", text, err)
		}
		e := core.Entry{ID: "a", Tags: text}
		if err := e.Validate(); !errors.Is(err, core.ErrInvalidTag) {
			t.Errorf("an entry with %q: got %v", text, err)
		}
	}
	for _, list := range [][]string{nil, {"a"}, {"a", "b"}} {
		if err := tags(t, list...).Validate(); err != nil {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestTagsHas(t *testing.T) {
	set := tags(t, "vip", "import-7")
	equal(t, "has", []bool{true, true, false, false},
		[]bool{set.Has("vip"), set.Has("import-7"), set.Has("import"), set.Has("")})
	equal(t, "the empty set", false, core.Tags("").Has(""))
}

func TestTagsStayWithTheirJob(t *testing.T) {
	a, b := tags(t, "a"), tags(t, "b")
	both := a.Union(b)
	for name, merge := range mergeKinds {
		equal(t, name, both, merge(core.State{RetryCount: -1, Tags: a}, core.State{RetryCount: -1, Tags: b}).Tags)
	}
	equal(t, "revived", both, core.MergeRevive(core.State{RetryCount: -1, Tags: a}, b, 5).Tags)
	equal(t, "revived onto a held job", both, core.MergeRevive(
		core.State{PerformAt: core.MaxInstant, Tags: a}, b, 5).Tags)
	claimed := core.Job{
		ID:       "id",
		Payloads: []core.Payload{payload("p", 1), payload("q", 2)},
		State:    core.State{Tags: both},
	}
	s := core.Settlement{
		ID:     "id",
		Rest:   core.Requeue,
		Except: []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}},
	}
	back, dead := s.Apply(claimed, 5)
	equal(t, "put back and buried", []core.Tags{both, both}, []core.Tags{back.Tags, dead.Tags})
	equal(t, "the rest of a claim", both, claimed.Rest().Tags)
	there, coming := core.DeadLetter{ID: "id", ChangedAt: 7, Tags: a}, core.DeadLetter{ID: "id", ChangedAt: 5, Tags: b}
	buried, _ := core.MergeDeadLetters(there, coming, core.MergeRule{})
	imported, changed, _ := core.MergeImported(there, coming, core.MergeRule{})
	_, again, _ := core.MergeImported(imported, coming, core.MergeRule{})
	equal(t, "dead letters", []core.Tags{both, both}, []core.Tags{buried.Tags, imported.Tags})
	equal(t, "an import that adds tags has changed something, at first and when it is repeated",
		[]bool{true, false}, []bool{changed, again})
}

package storekit_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func at(key int64, id string) ports.Cursor { return ports.Cursor{Key: key, ID: id} }

// places are a list of twelve entries in order.
func places() []ports.Cursor {
	var list []ports.Cursor
	for key := range int64(4) {
		for _, id := range []string{"a", "b", "c"} {
			list = append(list, at(key, fmt.Sprint(id, key)))
		}
	}
	return list
}

func TestPagesCoverAListOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byID, descending := rapid.Bool().Draw(t, "by id"), rapid.Bool().Draw(t, "descending")
		size := rapid.IntRange(1, 14).Draw(t, "size")
		list := rapid.Permutation(places()).Draw(t, "list")

		var got []string
		r := ports.PageRequest{Limit: size, Descending: descending}
		for range len(list) + 1 {
			p := storekit.NewPager[string](r, byID)
			for _, place := range list {
				p.Add(place, place.ID)
			}

			views, next := p.Page()
			if len(views) > size {
				t.Fatalf("a page of %d, at most %d", len(views), size)
			}
			got = append(got, views...)

			if r.After = next; next == (ports.Cursor{}) {
				break
			}
			if len(views) < size {
				t.Fatalf("a page of %d of %d is not the last", len(views), size)
			}
		}

		slices.SortFunc(list, func(a, b ports.Cursor) int {
			if byID {
				a.Key, b.Key = 0, 0
			}
			return cmp.Or(cmp.Compare(a.Key, b.Key), strings.Compare(a.ID, b.ID))
		})

		var want []string
		for _, place := range list {
			want = append(want, place.ID)
		}
		if descending {
			slices.Reverse(want)
		}

		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("the list (-want +got):\n%s", diff)
		}
	})
}

// Entries that come in the reverse of a list's order replace one another most often.
func TestAPageOfEntriesInReverse(t *testing.T) {
	list := places()
	for size := range len(list) {
		p := storekit.NewPager[string](ports.PageRequest{Limit: size + 1}, false)
		var want []string
		for i, place := range slices.Backward(list) {
			p.Add(place, place.ID)
			if i <= size {
				want = append(want, place.ID)
			}
		}

		slices.Reverse(want)
		got, _ := p.Page()
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("a page of %d (-want +got):\n%s", size+1, diff)
		}
	}
}

// Wants is exact: it is false for entries that would no longer change the page.
func TestAPageWantsWhatItLacks(t *testing.T) {
	tests := []struct {
		name  string
		r     ports.PageRequest
		byID  bool
		added []ports.Cursor
		at    ports.Cursor
		want  bool
	}{
		{"anything at first", ports.PageRequest{}, false, nil, at(-1, ""), true},
		{"behind the cursor", ports.PageRequest{After: at(1, "b")}, false, nil, at(1, "c"), true},
		{"the cursor itself", ports.PageRequest{After: at(1, "b")}, false, nil, at(1, "b"), false},
		{"before the cursor", ports.PageRequest{After: at(1, "b")}, false, nil, at(1, "a"), false},
		{
			"behind the cursor, turned around",
			ports.PageRequest{After: at(1, "b"), Descending: true},
			false,
			nil,
			at(0, "z"),
			true,
		},
		{
			"before the cursor, turned around",
			ports.PageRequest{After: at(1, "b"), Descending: true},
			false,
			nil,
			at(1, "c"),
			false,
		},
		{
			"the entry that shows that more follows",
			ports.PageRequest{Limit: 1},
			false,
			[]ports.Cursor{at(1, "a")},
			at(9, "z"),
			true,
		},
		{
			"beyond that entry",
			ports.PageRequest{Limit: 1},
			false,
			[]ports.Cursor{at(1, "a"), at(2, "a")},
			at(3, "a"),
			false,
		},
		{
			"before that entry",
			ports.PageRequest{Limit: 1},
			false,
			[]ports.Cursor{at(1, "a"), at(2, "b")},
			at(2, "a"),
			true,
		},
		{
			"by id behind the cursor, whatever its key",
			ports.PageRequest{After: at(7, "b")},
			true,
			nil,
			at(0, "c"),
			true,
		},
		{
			"at a key, whatever the id",
			ports.PageRequest{From: &ports.Cursor{Key: 7, ID: "z"}},
			false,
			nil,
			at(7, "a"),
			true,
		},
		{"before a key", ports.PageRequest{From: &ports.Cursor{Key: 7}}, false, nil, at(6, "z"), false},
		{
			"at a key, turned around",
			ports.PageRequest{From: &ports.Cursor{Key: 7}, Descending: true},
			false,
			nil,
			at(7, "z"),
			true,
		},
		{
			"before a key, turned around",
			ports.PageRequest{From: &ports.Cursor{Key: 7}, Descending: true},
			false,
			nil,
			at(8, "a"),
			false,
		},
		{"at an id", ports.PageRequest{From: &ports.Cursor{Key: 7, ID: "b"}}, true, nil, at(0, "b"), true},
		{
			"at an id, but a cursor is further",
			ports.PageRequest{From: &ports.Cursor{ID: "b"}, After: at(0, "b")},
			true,
			nil,
			at(0, "b"),
			false,
		},
		{"without the prefix", ports.PageRequest{Prefix: "b"}, true, nil, at(0, "c"), false},
		{
			"with the prefix, turned around",
			ports.PageRequest{Prefix: "b", Descending: true},
			true,
			nil,
			at(0, "bz"),
			true,
		},
		{
			"by id before the cursor, whatever its key",
			ports.PageRequest{After: at(0, "b")},
			true,
			nil,
			at(7, "a"),
			false,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := storekit.NewPager[struct{}](tt.r, tt.byID)
			for _, place := range tt.added {
				p.Add(place, struct{}{})
			}
			if got := p.Wants(tt.at); got != tt.want {
				t.Errorf("it wants %v: %t", tt.at, got)
			}
		})
	}
}

func TestAPagerSaysWhereToBeginAndHowMuchToRead(t *testing.T) {
	r := ports.PageRequest{After: at(7, "b"), Limit: 20}
	byTime, byID := storekit.NewPager[int](r, false), storekit.NewPager[int](r, true)
	from := func(p ports.Cursor, inclusive bool) storekit.Start {
		return storekit.Start{Behind: true, At: p, Inclusive: inclusive}
	}
	if byTime.Start() != from(at(7, "b"), false) || byID.Start() != from(at(0, "b"), false) {
		t.Errorf("it starts at %v by time, %v by id", byTime.Start(), byID.Start())
	}

	r.After, r.From = ports.Cursor{}, &ports.Cursor{Key: 7, ID: "b"}
	byTime, byID = storekit.NewPager[int](r, false), storekit.NewPager[int](r, true)
	if byTime.Start() != from(at(7, ""), false) || byID.Start() != from(at(0, "b"), true) {
		t.Errorf("from a value it starts at %v by time, %v by id", byTime.Start(), byID.Start())
	}

	r.Prefix = "cc"
	if start := storekit.NewPager[int](r, true).Start(); start != from(at(0, "cc"), true) {
		t.Errorf("before a prefix it starts at %v", start)
	}

	if n := byTime.Need(); n != 21 {
		t.Errorf("it needs %d entries of a shard, want 21", n)
	}
}

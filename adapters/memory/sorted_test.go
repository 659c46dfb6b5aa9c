package memory

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// plain is the model of sorted: a slice that is sorted anew each time.
type plain []item[int]

func (p *plain) insert(at place, v int) {
	*p = append(*p, item[int]{at, v})
	slices.SortFunc(*p, func(a, b item[int]) int { return a.compare(b.place) })
}

func (p *plain) delete(at place) bool {
	n := len(*p)
	*p = slices.DeleteFunc(*p, func(it item[int]) bool { return it.place == at })
	return len(*p) < n
}

func (p plain) has(at place) bool {
	return slices.ContainsFunc(p, func(it item[int]) bool { return it.place == at })
}

func (p plain) scan(after place, descending bool) []int {
	var values []int
	for _, it := range p {
		c := it.compare(after)
		if after == (place{}) || c > 0 && !descending || c < 0 && descending {
			values = append(values, it.value)
		}
	}
	if descending {
		slices.Reverse(values)
	}
	return values
}

func scan(l *sorted[int], after place, descending bool) []int {
	var values []int
	for it := range l.Scan(storekit.Start{Behind: after != place{}, At: ports.Cursor(after)}, descending) {
		values = append(values, it.value)
	}
	return values
}

// same checks all that can be seen of a list, and that it keeps nothing alive.
func same(t interface {
	Helper()
	Fatalf(string, ...any)
}, l *sorted[int], want plain) {
	t.Helper()
	if l.Len() != len(want) {
		t.Fatalf("Len is %d, want %d", l.Len(), len(want))
	}

	for _, descending := range []bool{false, true} {
		if diff := cmp.Diff(want.scan(place{}, descending), scan(l, place{}, descending)); diff != "" {
			t.Fatalf("values, descending %t (-want +got):\n%s", descending, diff)
		}
	}

	first, ok := l.First()
	last, _ := l.Last()
	if ok != (len(want) > 0) || ok && (first != want[0].value || last != want[len(want)-1].value) {
		t.Fatalf("First is %d, %t and Last %d; want the ends of %v", first, ok, last, want)
	}

	for _, c := range l.chunks {
		for i, it := range c.items {
			if (i < c.from || i >= c.to) && it != (item[int]{}) {
				t.Fatalf("a removed item is still referred to: %v", it)
			}
		}
	}
}

func TestSortedTakesItemsInAnyOrder(t *testing.T) {
	const n = 10 * chunkLen
	orders := []struct {
		name string
		key  func(i int) int64
	}{
		{"rising", func(i int) int64 { return int64(i) }},
		{"falling", func(i int) int64 { return int64(n - i) }},
		{"from both ends", func(i int) int64 { return int64(n + (i%2*2-1)*i) }},
		{"scattered", func(i int) int64 { return int64(i * 7919 % n) }},
		{"all at one time", func(int) int64 { return 1 }},
	}

	for _, insert := range orders {
		for _, remove := range orders {
			t.Run(insert.name+", removed "+remove.name, func(t *testing.T) {
				var l sorted[int]
				var want plain
				at := func(i int) place { return place{insert.key(i), strconv.Itoa(i)} }
				for i := range n {
					l.Insert(at(i), i)
					want.insert(at(i), i)
				}
				same(t, &l, want)

				leaving := slices.Clone(want)
				slices.SortFunc(leaving, func(a, b item[int]) int {
					return place{remove.key(a.value), a.ID}.compare(place{remove.key(b.value), b.ID})
				})
				for i, it := range leaving {
					if !l.Delete(it.place) || !want.delete(it.place) {
						t.Fatalf("%v was not there", it.place)
					}
					if i%chunkLen == 0 {
						same(t, &l, want)
					}
				}

				same(t, &l, want)
			})
		}
	}
}

func TestSortedIsASortedSlice(t *testing.T) {
	places := rapid.Custom(func(t *rapid.T) place {
		return place{rapid.Int64Range(0, 30).Draw(t, "key"), strconv.Itoa(rapid.IntRange(0, 30).Draw(t, "id"))}
	})

	rapid.Check(t, func(t *rapid.T) {
		var l sorted[int]
		var want plain
		values := 0
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "times") {
					if at := places.Draw(t, "at"); !want.has(at) {
						values++
						l.Insert(at, values)
						want.insert(at, values)
					}
				}
			},
			"delete": func(t *rapid.T) {
				at := places.Draw(t, "at")
				if got, there := l.Delete(at), want.delete(at); got != there {
					t.Fatalf("Delete(%v) is %t, want %t", at, got, there)
				}
			},
			"take from the front": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 100).Draw(t, "times"), len(want)) {
					at := want[0].place
					l.Delete(at)
					want.delete(at)
				}
			},
			"scan": func(t *rapid.T) {
				after, descending := places.Draw(t, "after"), rapid.Bool().Draw(t, "descending")
				if diff := cmp.Diff(want.scan(after, descending), scan(&l, after, descending)); diff != "" {
					t.Fatalf("after %v, descending %t (-want +got):\n%s", after, descending, diff)
				}
			},
			"": func(t *rapid.T) { same(t, &l, want) },
		})
	})
}

func TestSortedStopsScanningWhenTold(t *testing.T) {
	var l sorted[int]
	for i := range 3 * chunkLen {
		l.Insert(place{int64(i), "id"}, i)
	}

	for _, descending := range []bool{false, true} {
		seen := 0
		for range l.Scan(storekit.Start{}, descending) {
			if seen++; seen == chunkLen+1 {
				break
			}
		}
		if seen != chunkLen+1 {
			t.Errorf("descending %t: %d items seen after a break at %d", descending, seen, chunkLen+1)
		}
	}
}

// A list that lost most of its items holds few chunks, wherever those left stand.
func TestSortedShrinks(t *testing.T) {
	const n, every = 1000 * chunkLen, 10 * chunkLen
	var l sorted[int]
	for i := range n {
		l.Insert(place{int64(i), "id"}, i)
	}
	for i := range n {
		if i%every != 0 {
			l.Delete(place{int64(i), "id"})
		}
	}

	left := n / every
	if most := 4*left/(chunkLen/2) + 2; l.Len() != left || len(l.chunks) > most {
		t.Errorf("%d items, want %d, in %d chunks, want %d at most", l.Len(), left, len(l.chunks), most)
	}
}

// Working at the ends takes no memory once the list has grown.
func TestSortedAllocatesNothingInSteadyState(t *testing.T) {
	var l sorted[int]
	next := int64(0)
	push := func() { l.Insert(place{next, "id"}, 0); next++ }

	for _, waiting := range []int64{1, chunkLen / 2, 5 * chunkLen} {
		for int64(l.Len()) < waiting {
			push()
		}
		allocs := testing.AllocsPerRun(50*chunkLen, func() {
			push()
			l.Delete(place{next - 1 - waiting, "id"})
		})
		if allocs != 0 {
			t.Errorf("%v allocations for a push and a claim with %d waiting", allocs, waiting)
		}
	}
}

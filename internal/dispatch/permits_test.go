package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// holders returns holders a, b, c …, each with the given numbers of permits that it holds and
// wants.
func holders(heldAndWanted ...[2]int) []core.PermitHolder {
	list := make([]core.PermitHolder, len(heldAndWanted))
	for i, n := range heldAndWanted {
		list[i] = core.PermitHolder{Owner: string(rune('a' + i)), Held: n[0], Want: n[1]}
	}
	return list
}

func TestFairPermits(t *testing.T) {
	tests := []struct {
		name    string
		limit   int
		holders []core.PermitHolder
		now     time.Duration
		want    []int
	}{
		{name: "nobody", limit: 5, want: []int{}},
		{name: "one alone gets what it wants", limit: 5, holders: holders([2]int{0, 3}), want: []int{3}},
		{name: "and no more than there are", limit: 5, holders: holders([2]int{0, 9}), want: []int{5}},
		{name: "all get what they want", limit: 5, holders: holders([2]int{0, 3}, [2]int{0, 2}), want: []int{3, 2}},
		{name: "who wants little gets it", limit: 10, holders: holders([2]int{0, 1}, [2]int{0, 90}, [2]int{0, 3}, [2]int{0, 90}), want: []int{1, 3, 3, 3}},
		{name: "the rest stays where it is", limit: 5, holders: holders([2]int{2, 9}, [2]int{3, 9}), want: []int{2, 3}},
		{name: "the rest goes to the first", limit: 5, holders: holders([2]int{2, 9}, [2]int{2, 9}), want: []int{3, 2}},
		{name: "one permit in the first second", limit: 1, holders: holders([2]int{1, 9}, [2]int{0, 9}, [2]int{0, 9}), want: []int{1, 0, 0}},
		{name: "in the second one", limit: 1, holders: holders([2]int{1, 9}, [2]int{0, 9}, [2]int{0, 9}), now: time.Second, want: []int{0, 1, 0}},
		{name: "two of three", limit: 2, holders: holders([2]int{1, 9}, [2]int{1, 9}, [2]int{0, 9}), now: 1500 * time.Millisecond, want: []int{1, 0, 1}},
		{name: "who wants none has no turn", limit: 1, holders: holders([2]int{1, 0}, [2]int{0, 9}), want: []int{0, 1}},
		{name: "negative numbers", limit: -1, holders: holders([2]int{0, -3}, [2]int{0, 3}), want: []int{0, 0}},
		{name: "a negative want", limit: 2, holders: holders([2]int{0, -3}, [2]int{0, 3}), want: []int{0, 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := FairPermits(test.limit, test.holders, core.Instant(test.now.Microseconds()))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
}

// drawHolders draws a limit and holders.
func drawHolders(t *rapid.T) (limit int, list []core.PermitHolder) {
	limit = rapid.IntRange(0, 40).Draw(t, "limit")
	for i := range rapid.IntRange(0, 9).Draw(t, "nodes") {
		list = append(list, core.PermitHolder{
			Owner: fmt.Sprint("n", i),
			Held:  rapid.IntRange(0, 12).Draw(t, "held"),
			Want:  rapid.IntRange(0, 12).Draw(t, "want"),
		})
	}
	return limit, list
}

func TestFairPermitsWasteNothingAndFavourNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, list := drawHolders(t)
		shares := FairPermits(limit, list, core.Instant(rapid.Int64Range(0, 1<<53).Draw(t, "now")))
		given, wanted := 0, 0
		for i, h := range list {
			if shares[i] < 0 || shares[i] > h.Want {
				t.Fatalf("%v gets %d", h, shares[i])
			}
			given, wanted = given+shares[i], wanted+h.Want
			for k := range list {
				if shares[i] < h.Want && shares[k] > shares[i]+1 {
					t.Fatalf("%v gets %d, and %v gets %d", h, shares[i], list[k], shares[k])
				}
			}
		}
		if given != min(limit, wanted) {
			t.Fatalf("%d permits are given of %d, for %d that are wanted", given, limit, wanted)
		}
	})
}

// A holder keeps its share if there are enough permits for all.
func TestFairPermitsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, list := drawHolders(t)
		shares := FairPermits(limit, list, 0)
		for i := range list {
			list[i].Held = shares[i]
			if shares[i] == 0 && list[i].Want > 0 {
				return // they take turns
			}
		}
		later := core.Instant(rapid.Int64Range(0, 1<<53).Draw(t, "later"))
		if diff := cmp.Diff(shares, FairPermits(limit, list, later)); diff != "" {
			t.Fatalf("shares change hands (-before +after):\n%s", diff)
		}
	})
}

// In as many seconds as there are nodes each gets a permit, if there is one.
func TestFairPermitsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, list := drawHolders(t)
		if limit == 0 {
			return
		}
		from := rapid.IntRange(0, 1000).Draw(t, "from")
		got := make([]int, len(list))
		for second := range len(list) {
			now := core.InstantOf(time.Unix(int64(from+second), 0))
			for i, share := range FairPermits(limit, list, now) {
				got[i] += share
			}
		}
		for i, h := range list {
			if h.Want > 0 && got[i] == 0 {
				t.Fatalf("%v gets nothing in %d seconds", h, len(list))
			}
		}
	})
}

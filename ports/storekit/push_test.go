package storekit_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func TestEntriesGoToTheirShardsInOrder(t *testing.T) {
	const shards = 5
	for _, n := range []int{0, 1, 16, 100} {
		entries := make([]core.Entry, n)
		want := make(map[int][]int)
		for i := range entries {
			entries[i].ID = strconv.Itoa(i % 40) // some come again
			shard := core.ShardOf(entries[i].ID, shards)
			want[shard] = append(want[shard], i)
		}

		before := storekit.Routed{Shard: 99, Position: 99}
		rest := storekit.Route([]storekit.Routed{before}, entries, shards)
		if rest[0] != before {
			t.Errorf("what was in the list is %v", rest[0])
		}

		got := make(map[int][]int)
		last := -1
		for rest = rest[1:]; len(rest) > 0; {
			var first []storekit.Routed
			first, rest = storekit.CutShard(rest)
			if first[0].Shard <= last {
				t.Errorf("shard %d comes after shard %d", first[0].Shard, last)
			}
			last = first[0].Shard
			for _, entry := range first {
				got[entry.Shard] = append(got[entry.Shard], entry.Position)
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d entries by shard (-want +got):\n%s", n, diff)
		}
	}
}

func TestAnEmptyListHasNoFirstShard(t *testing.T) {
	if first, rest := storekit.CutShard(nil); len(first)+len(rest) != 0 {
		t.Errorf("%v, %v", first, rest)
	}
}

func TestTheFirstShardGrowsApartFromTheRest(t *testing.T) {
	first, rest := storekit.CutShard([]storekit.Routed{{Shard: 0}, {Shard: 1, Position: 1}})
	first = append(first, storekit.Routed{Shard: 9, Position: 9})
	if want := (storekit.Routed{Shard: 1, Position: 1}); rest[0] != want {
		t.Errorf("the rest begins with %v after %v, want %v", rest[0], first, want)
	}
}

func TestAPushErrorNamesItsEntriesAscending(t *testing.T) {
	some := []storekit.Routed{{Shard: 0, Position: 7}, {Shard: 2, Position: 1}, {Shard: 2, Position: 9}}
	for name, tt := range map[string]struct {
		err  error
		want []int
	}{
		"some": {storekit.NotStored(some, ports.ErrFull), []int{1, 7, 9}},
		"all":  {storekit.NothingStored(3, ports.ErrFull), []int{0, 1, 2}},
	} {
		var failed *ports.PushError
		if !errors.As(tt.err, &failed) || !errors.Is(tt.err, ports.ErrFull) {
			t.Fatalf("%s: %v", name, tt.err)
		}
		if diff := cmp.Diff(tt.want, failed.Entries); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

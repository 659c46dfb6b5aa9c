package core_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// shares are the bounds of what members get.
type shares struct {
	low, high []int
	extra     int // how many get more than low
}

// sharesOf computes the shares of RULES 6, with numbers that can't overflow.
func sharesOf(shards int, members []core.Member) shares {
	weights := make([]*big.Int, len(members))
	sum := new(big.Int)
	for i, m := range members {
		weights[i] = big.NewInt(int64(min(max(m.Weight, 1), 1<<30)))
		sum.Add(sum, weights[i])
	}
	s := shares{extra: shards}
	for _, w := range weights {
		low, rest := new(big.Int).DivMod(new(big.Int).Mul(w, big.NewInt(int64(shards))), sum, new(big.Int))
		s.low = append(s.low, int(low.Int64()))
		s.high = append(s.high, int(low.Int64())+rest.Sign())
		s.extra -= int(low.Int64())
	}
	return s
}

// loads returns how many shards each member has. It fails the test for a shard without a member.
func loads(t rapid.TB, owners []int, members int) []int {
	t.Helper()
	n := make([]int, members)
	for shard, owner := range owners {
		if owner < 0 || owner >= members {
			t.Fatalf("shard %d belongs to member %d of %d", shard, owner, members)
		}
		n[owner]++
	}
	return n
}

func drawMembers(t *rapid.T) []core.Member {
	weight := rapid.OneOf(
		rapid.Just(20), rapid.IntRange(1, 100),
		rapid.SampledFrom([]int{math.MinInt, -1, 0, 1, 1 << 30, 1<<30 + 1, math.MaxInt}))
	ids := rapid.SliceOfNDistinct(rapid.StringN(0, 12, -1), 1, 20, rapid.ID[string]).Draw(t, "ids")
	var members []core.Member
	for _, id := range ids {
		members = append(members, core.Member{ID: id, Weight: weight.Draw(t, "weight")})
	}
	return members
}

func TestEachMemberGetsItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawMembers(t)
		shards := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 500)).Draw(t, "shards")
		owners := core.Assign(rapid.String().Draw(t, "queue"), shards, members)
		if len(owners) != shards {
			t.Fatalf("%d shards were dealt, want %d", len(owners), shards)
		}
		want := sharesOf(shards, members)
		for i, n := range loads(t, owners, len(members)) {
			if n < want.low[i] || n > want.high[i] {
				t.Errorf("member %d of weight %d has %d shards of %d, want %d to %d",
					i, members[i].Weight, n, shards, want.low[i], want.high[i])
			}
		}
	})
}

func TestTheOrderOfMembersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawMembers(t)
		shards := rapid.IntRange(0, 60).Draw(t, "shards")
		given := slices.Clone(members)
		want := core.Assign("orders", shards, members)
		if !slices.Equal(given, members) {
			t.Fatalf("Assign changed its arguments: %v, were %v", members, given)
		}
		shuffled := rapid.Permutation(members).Draw(t, "shuffled")
		for shard, owner := range core.Assign("orders", shards, shuffled) {
			if got, want := shuffled[owner].ID, members[want[shard]].ID; got != want {
				t.Fatalf("shard %d belongs to %q, and to %q in another order", shard, want, got)
			}
		}
	})
}

// vectorMember is written as [id, weight].
type vectorMember core.Member

func (m *vectorMember) UnmarshalJSON(text []byte) error {
	pair := []any{&m.ID, &m.Weight}
	return json.Unmarshal(text, &pair)
}

func TestAssignVectors(t *testing.T) {
	for _, v := range vectors[struct {
		Queue   string
		Shards  int
		Members []vectorMember
		Owners  []string
	}](t, "assign.json") {
		t.Run(fmt.Sprintf("%s_%d_among_%d", v.Queue, v.Shards, len(v.Members)), func(t *testing.T) {
			var members []core.Member
			for _, m := range v.Members {
				members = append(members, core.Member(m))
			}
			var got []string
			for _, owner := range core.Assign(v.Queue, v.Shards, members) {
				got = append(got, members[owner].ID)
			}
			equal(t, "owners", v.Owners, got)
		})
	}
}

func TestAssignAtTheEdges(t *testing.T) {
	one := []core.Member{{ID: "a"}}
	for _, tt := range []struct {
		name    string
		shards  int
		members []core.Member
		want    []int
	}{
		{"no members", 3, nil, nil},
		{"no shards", 0, one, []int{}},
		{"fewer than no shards", -1, one, []int{}},
		{"one member has all", 4, one, []int{0, 0, 0, 0}},
		{"one of ID \"\"", 2, []core.Member{{}}, []int{0, 0}},
		{"one of the largest weight", 3, []core.Member{{ID: "a", Weight: math.MaxInt}}, []int{0, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) { equal(t, "owners", tt.want, core.Assign("orders", tt.shards, tt.members)) })
	}
}

func TestWeightsOutOfBoundsCountAsTheBound(t *testing.T) {
	for _, tt := range []struct{ given, as int }{
		{0, 1}, {-7, 1}, {math.MinInt, 1}, {1<<30 + 1, 1 << 30}, {math.MaxInt, 1 << 30},
	} {
		other := core.Member{ID: "other", Weight: max(tt.as/3, 1)}
		want := core.Assign("orders", 100, []core.Member{other, {ID: "a", Weight: tt.as}})
		got := core.Assign("orders", 100, []core.Member{other, {ID: "a", Weight: tt.given}})
		equal(t, fmt.Sprint("weight ", tt.given), want, got)
	}
}

// TestTheRestDiffersFromQueueToQueue assigns the 5 shards of each of 400 queues to 4 nodes. On
// average each node gets 100 of the 400 remaining shards. By chance a node's number differs by more
// than 26 in about three of a thousand tries.
func TestTheRestDiffersFromQueueToQueue(t *testing.T) {
	members := []core.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	sum := make([]int, len(members))
	for queue := range 400 {
		for i, n := range loads(t, core.Assign(fmt.Sprint("queue-", queue), 5, members), len(members)) {
			sum[i] += n
		}
	}
	for i, n := range sum {
		if n < 474 || n > 526 {
			t.Errorf("member %d has %d shards of 2000, want about 500: %v", i, n, sum)
		}
	}
}

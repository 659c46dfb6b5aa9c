package execution

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Each end is found by its settlement, in whatever order the store answers: those that were
// deferred come after newer ones, some settlements have no end, and some ends have no settlement
// in the turn.
func TestEndsAreFoundInAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s Ends
		want := make(map[core.ClaimRef]bool)
		var settled []core.Settlement
		for n := range random.IntN(20) {
			// The same id twice, by other receipts.
			ref := core.ClaimRef{ID: fmt.Sprint("id", n/2), Receipt: core.Receipt{Token: 1, Number: int64(n)}}
			if has := random.IntN(4); has > 0 {
				s.list = append(s.list, awaitedEnd{
					claim:        ref,
					observed:     true,
					bySettlement: Result{ended: ports.EndedJob{ID: ref.ID, Attempt: n}},
				})
				want[ref] = true
			}
			settled = append(settled, core.Settlement{ID: ref.ID, Receipt: ref.Receipt})
		}

		if seed%2 == 1 {
			random.Shuffle(len(settled), func(i, j int) { settled[i], settled[j] = settled[j], settled[i] })
		}
		settled = settled[:random.IntN(len(settled)+1)]
		r := &ports.TurnReply{Repeat: seed%5 == 0}

		var attempts []int
		for i := range settled {
			ref := core.ClaimRef{ID: settled[i].ID, Receipt: settled[i].Receipt}
			switch {
			case !want[ref] || r.Repeat:
			case random.IntN(3) == 0:
				r.Deferred = append(r.Deferred, i)
			default:
				delete(want, ref)
				attempts = append(attempts, int(settled[i].Receipt.Number))
			}
		}

		var got []int
		for _, ended := range s.Answer(settled, r).Ended {
			got = append(got, ended.Attempt)
		}
		if !slices.Equal(got, attempts) || len(s.list) != len(want) {
			t.Fatalf("seed %d: the ends %v were taken and %d are left, want %v and %d",
				seed, got, len(s.list), attempts, len(want))
		}

		for i := range s.list {
			resent := r.Repeat &&
				slices.ContainsFunc(settled, func(one core.Settlement) bool {
					return one.Receipt == s.list[i].claim.Receipt
				})
			if !want[s.list[i].claim] || s.list[i].resent != resent || s.list[i].taken {
				t.Fatalf("seed %d: %+v is left", seed, s.list[i])
			}
		}
	}
}

package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
)

// permitRound is how long the same nodes have a permit where there are too few for all.
const permitRound = time.Second

// FairPermits divides the permits of a queue among the servers that want some: element i is how
// many holders[i] should hold. No server gets more than it wants. A server that wants no more than
// an equal share gets what it wants, and the others share the rest, so that no two of them differ
// by more than one. The larger shares go to servers that hold more, so that no permit changes hands
// without need. If there are fewer permits than servers that want some, these take turns, in the
// order of the list, by the second of now, the store's time: all servers compute the same from the
// same list.
//
// A negative limit and negative wants count as 0. It is pure.
func FairPermits(limit int, holders []core.PermitHolder, now core.Instant) []int {
	shares := make([]int, len(holders))
	for left := max(0, limit); left > 0; {
		open := unsatisfied(holders, shares)
		if len(open) == 0 {
			break
		}
		if left < len(open) {
			dealRest(shares, open, left, holders, now)
			break
		}
		each := left / len(open)
		for _, i := range open {
			more := min(each, holders[i].Want-shares[i])
			shares[i] += more
			left -= more
		}
	}
	return shares
}

// unsatisfied returns the positions of the holders that want more than their share.
func unsatisfied(holders []core.PermitHolder, shares []int) []int {
	var open []int
	for i, h := range holders {
		if h.Want > shares[i] {
			open = append(open, i)
		}
	}
	return open
}

// dealRest gives one permit more to as many as are left, fewer than those at the positions of
// open, whose shares are equal.
func dealRest(shares, open []int, left int, holders []core.PermitHolder, now core.Instant) {
	first := 0
	if shares[open[0]] == 0 {
		round := int64(now) / permitRound.Microseconds()
		first = int(round % int64(len(open)) * int64(left) % int64(len(open)))
	} else {
		slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(holders[b].Held, holders[a].Held) })
	}
	for k := range left {
		shares[open[(first+k)%len(open)]]++
	}
}

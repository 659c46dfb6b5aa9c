package core

import (
	"cmp"
	"hash/fnv"
	"math/bits"
	"slices"
)

// maxWeight is the maximum weight of a member, so that sums and products fit into 64 bits.
const maxWeight = 1 << 30

// member is a server to which assign deals shards.
type member struct {
	// ID distinguishes the members. No two members have the same ID.
	ID string
	// Weight is the member's share relative to the others: its lanes. Values below 1 count as 1,
	// values above 1<<30 as 1<<30.
	Weight int
}

// assign deals the shards of a queue to members. Element i of the result is the position in members
// of the member that gets shard i. The result is nil if there are no members.
//
// The exact share of a member is shards * Weight / sum of all weights. Each member gets its share,
// rounded down or up. The result depends only on the arguments, and not on the platform or the
// order of members, so servers that know the same members agree. When a member comes or goes, the
// others keep most of their shards. The members whose share is rounded up differ between queues.
//
// Each pair of a shard and a member has a rank, which depends on a hash of both and on the weight.
// In order of rank, the shard of a pair goes to the member of the pair, if the shard is still free
// and the member has room. The time grows with shards * members: 16,384 shards and 100 members take
// about 12 ms of processor time. testdata/assign.json describes the rank in detail, for other
// implementations.
func assign(queue string, shards int, members []member) []int {
	if len(members) == 0 {
		return nil
	}

	d := newDeal(queue, shards, members)
	owners := make([]int, max(0, shards))
	for shard := range owners {
		d.choose(shard)
		d.order.put(shard)
	}

	for shard := d.order.first(); shard >= 0; shard = d.order.first() {
		hand := &d.hands[d.best[shard].hand]
		if !d.hasRoom(hand) {
			d.choose(shard)
			d.order.fix(shard)
			continue
		}

		d.order.remove(shard)
		d.give(hand)
		owners[shard] = hand.position
	}

	return owners
}

// hand is a member and its dealt shards.
type hand struct {
	position int // in the list of assign's caller
	weight   uint64
	seed     uint64
	share    int  // exact share, rounded down
	fraction bool // the exact share is more than that
	dealt    int  // shards that it has so far
}

// choice is the member with the best rank for a shard among those that have room.
type choice struct {
	rank uint64
	hand int
}

// deal is the state of one call of assign.
type deal struct {
	hands []hand // in order of ID
	extra int    // number of members that may still get one shard more than their share rounded down
	best  []choice
	order indexHeap // the shards that no member has yet, the one with the best rank first
}

func newDeal(queue string, shards int, members []member) *deal {
	d := &deal{hands: make([]hand, len(members)), extra: shards, best: make([]choice, max(0, shards))}
	var sum uint64
	for i, m := range members {
		weight := uint64(min(max(m.Weight, 1), maxWeight))
		d.hands[i] = hand{position: i, weight: weight, seed: placementSeed(queue, m.ID)}
		sum += weight
	}

	for i := range d.hands {
		h := &d.hands[i]
		exact := uint64(max(0, shards)) * h.weight
		h.share, h.fraction = int(exact/sum), exact%sum != 0
		d.extra -= h.share
	}

	slices.SortStableFunc(d.hands, func(a, b hand) int {
		return cmp.Compare(members[a.position].ID, members[b.position].ID)
	})
	d.order = newIndexHeap(len(d.best), func(a, b int) bool {
		return d.best[a].rank < d.best[b].rank || d.best[a].rank == d.best[b].rank && a < b
	})

	return d
}

// choose finds the member with the best rank for the shard among those that have room. Of members
// with equal rank it takes the one with the smallest ID.
func (d *deal) choose(shard int) {
	best := choice{hand: -1}
	for i := range d.hands {
		h := &d.hands[i]
		if !d.hasRoom(h) {
			continue
		}
		if rank := h.rank(shard); best.hand < 0 || rank < best.rank {
			best = choice{rank, i}
		}
	}
	d.best[shard] = best
}

// hasRoom reports whether the member may get one more shard. Once it is false, it stays false.
func (d *deal) hasRoom(h *hand) bool {
	return h.dealt < h.share || h.dealt == h.share && h.fraction && d.extra > 0
}

// give deals the member one shard.
func (d *deal) give(h *hand) {
	if h.dealt == h.share {
		d.extra--
	}
	h.dealt++
}

// golden is the increment of the state of SplitMix64 for each number.
const golden = 0x9e3779b97f4a7c15

// placementSeed returns the seed of SplitMix64 for a member.
func placementSeed(queue, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(queue + "\x00" + id)) // never fails
	return mix(h.Sum64())
}

// mix is the finalizer of SplitMix64: each bit of z changes about half of the bits of the result.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// rank returns the rank of the member for the shard; 0 is the best. It is -log2(u) / weight, where
// u is the number at position shard of SplitMix64 from the member's seed, as a fraction of 1. So a
// member with twice the weight has the best rank for about twice as many shards. The logarithm is
// in units of 2^-57 and linear between powers of 2. That is exact enough, and the same on all
// platforms.
func (h *hand) rank(shard int) uint64 {
	u := mix(h.seed+uint64(shard+1)*golden) | 1
	zeros := bits.LeadingZeros64(u)
	return (uint64(zeros+1)<<57 - u<<(zeros+1)>>7) / h.weight
}

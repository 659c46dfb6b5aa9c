package storekit

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Routed is an entry of a push: its position in the request, and the index of the shard that its id
// belongs to.
type Routed struct{ Shard, Position int }

// Route appends the entries of a push to list and returns the result, for a queue with the given
// number of shards. The appended entries are ordered by shard and, within a shard, as in the
// request. list may be nil; a list with spare capacity saves the allocation.
func Route(list []Routed, entries []core.Entry, shards int) []Routed {
	list = slices.Grow(list, len(entries))
	added := len(list)
	for i := range entries {
		list = append(list, Routed{core.ShardOf(entries[i].ID, shards), i})
	}
	slices.SortFunc(list[added:], func(a, b Routed) int {
		if a.Shard != b.Shard {
			return a.Shard - b.Shard
		}
		return a.Position - b.Position
	})
	return list
}

// CutShard splits a list of [Route] after the entries of its first shard. If the list is empty,
// both parts are.
func CutShard(list []Routed) (first, remaining []Routed) {
	n := 0
	for n < len(list) && list[n].Shard == list[0].Shard {
		n++
	}
	return list[:n:n], list[n:]
}

// NotStored returns the *[ports.PushError] of a push whose given entries were not stored, or are
// not known to be stored, because of err. All other entries were stored.
func NotStored(entries []Routed, err error) error {
	positions := make([]int, len(entries))
	for i := range entries {
		positions[i] = entries[i].Position
	}
	slices.Sort(positions)
	return &ports.PushError{Entries: positions, Err: err}
}

// NothingStored returns the *[ports.PushError] of a push with the given number of entries. None of
// them was stored, or is known to be stored, because of err.
func NothingStored(entries int, err error) error {
	positions := make([]int, entries)
	for i := range positions {
		positions[i] = i
	}
	return &ports.PushError{Entries: positions, Err: err}
}

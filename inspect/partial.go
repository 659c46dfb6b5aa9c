package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
)

// PartialError reports that a result lacks some shards, because the part of the store that has them
// can't be reached now, such as one master of a Redis Cluster. It is returned together with the
// result, which is complete for the other shards. Use [errors.As] to find it.
type PartialError struct {
	// Unreached are the shards that the result lacks, in order of queue and index.
	Unreached []core.Shard
}

// Error implements error.
func (e *PartialError) Error() string {
	if len(e.Unreached) == 1 {
		return fmt.Sprintf("shard %v can't be reached now; the result covers the other shards", e.Unreached[0])
	}
	return fmt.Sprintf("%d shards can't be reached now, the first is %v; the result covers the other shards", len(e.Unreached), e.Unreached[0])
}

// partial returns a *PartialError for missing shards, or nil if no shard is missing.
func partial(unreached []core.Shard) error {
	if len(unreached) == 0 {
		return nil
	}
	return &PartialError{Unreached: mergeShards(nil, unreached)}
}

// mergeShards returns the shards of both lists, each once, in order.
func mergeShards(a, b []core.Shard) []core.Shard {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b core.Shard) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Index, b.Index))
	})
	return slices.Compact(all)
}

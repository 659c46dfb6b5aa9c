// Package look has the cases of reads for operators.
//
//   - find.go is about the look-up of an id, and about where a job stands in its shard.
//   - pending.go is about what is not settled yet of ids.
//   - list.go is about the lists, page.go about their pages, and pageothers.go about pages of the
//     lists other than that of queued jobs.
//   - group.go is about the groups of dead letters.
//   - stats.go is about counts, and about a recount of a shard.
//   - unreached.go is about reads while some shards can't be reached.
package look

import (
	"slices"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

// Groups returns the cases of the room. The group unreached is for a [Severer].
func Groups(store ports.ShardStore) []env.Group {
	all := []env.Group{
		{Name: "find", Cases: findCases()},
		{Name: "pending", Cases: pendingCases()},
		{Name: "standing", Cases: standingCases()},
		{Name: "list", Cases: slices.Concat(listCases(), pageCases(), pageOtherCases())},
		{Name: "group", Cases: groupCases()},
		{Name: "stats", Cases: statsCases()},
		{Name: "recount", Cases: recountCases()},
	}
	if _, ok := store.(env.Severer); ok {
		all = append(all, env.Group{Name: "unreached", Cases: slices.Concat(unreachedCases(), unreachedListCases())})
	}
	return all
}

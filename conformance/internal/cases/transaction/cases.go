// Package transaction has the cases of stores that settle outside of turns or in their callers'
// transactions.
//
//   - transaction.go is about settlements without a turn, and about pushes and settlements in a
//     transaction.
//   - payload.go is about the settlement of one payload of a claimed job.
package transaction

import (
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

// Groups returns the cases of the room that the store has the interfaces for: a
// [ports.Settler], or a [Transactor] too.
func Groups(store ports.ShardStore) (all []env.Group) {
	if _, ok := store.(ports.Settler); ok {
		all = append(all, env.Group{Name: "settler", Cases: settlerCases()})
	}
	if _, ok := store.(env.Transactor); ok {
		all = append(all, env.Group{Name: "transaction", Cases: transactionCases()})
	}
	return all
}

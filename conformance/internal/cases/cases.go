// Package cases has the named cases of the suite, in rooms by the caller of the store. The door of
// each room is its function Groups, and its package comment lists its files.
//
//   - registry: queues, servers, permits, wake-ups, and the store as a whole.
//   - push: what pushes store, and what requests may contain.
//   - merge: payloads and tags that meet for one id, and the worked cases of docs/rules.md.
//   - turn: leases and turns, the calls of the engine, also for paused queues and cancelled jobs.
//   - calendar: schedules and their ticks.
//   - bounds: calls that would carry, move or return too much.
//   - step: what operators change.
//   - look: what operators read.
//   - transaction: settlements outside of turns, and callers' transactions.
package cases

import (
	"slices"

	"github.com/skeinq/skein/conformance/internal/cases/bounds"
	"github.com/skeinq/skein/conformance/internal/cases/calendar"
	"github.com/skeinq/skein/conformance/internal/cases/look"
	"github.com/skeinq/skein/conformance/internal/cases/merge"
	"github.com/skeinq/skein/conformance/internal/cases/push"
	"github.com/skeinq/skein/conformance/internal/cases/registry"
	"github.com/skeinq/skein/conformance/internal/cases/step"
	"github.com/skeinq/skein/conformance/internal/cases/transaction"
	"github.com/skeinq/skein/conformance/internal/cases/turn"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

// Groups returns the named cases of all rooms for a store, also those of the optional interfaces
// that the store implements.
func Groups(store ports.ShardStore) []env.Group {
	return slices.Concat(
		registry.Groups(store),
		push.Groups(),
		merge.Groups(),
		turn.Groups(store),
		calendar.Groups(store),
		bounds.Groups(),
		step.Groups(store),
		look.Groups(store),
		transaction.Groups(store),
	)
}

package inspect

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// Check is the result of one check of the store's server. Its fields are the Name of the check, the
// Server, a Status, the observed Value, Advice unless the Status is [CheckOK], and whether the
// store Refuses pushes because of this state.
type Check = ports.Check

// CheckStatus is the result of a [Check]; worse results are larger. Its String is "ok", "unknown",
// "warn" or "fail".
type CheckStatus = ports.CheckStatus

// Results of a check.
const (
	// CheckOK needs no action.
	CheckOK = ports.CheckOK
	// CheckUnknown is a check that was not possible, because a right or an answer was missing.
	CheckUnknown = ports.CheckUnknown
	// CheckWarn is a state that will cause harm, or that already has.
	CheckWarn = ports.CheckWarn
	// CheckFail is a state that causes harm now: jobs may be lost, or work stands still.
	CheckFail = ports.CheckFail
)

// Checks examines the settings and the state of the store's servers, and returns the results in an
// order that does not change. It is the first thing to read when work stands still. It returns no
// result for a store without a server, such as memory. It returns an error only if no check was
// possible.
func (i *Inspector) Checks(ctx context.Context) ([]Check, error) {
	return ask(i, func(s Store) ([]ports.Check, error) {
		if checker, ok := s.(ports.Checker); ok {
			return checker.Check(ctx)
		}
		return nil, nil
	})
}

package inspect

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// Check is one thing that was looked at in the store's server: its Name, the Server, a Status, the Value that was found,
// Advice unless it is [CheckOK], and whether the store Refuses pushes because of it.
type Check = ports.Check

// CheckStatus is how a [Check] ended. Worse ones are larger. Its String is "ok", "unknown", "warn" or "fail".
type CheckStatus = ports.CheckStatus

// How a check ended.
const (
	// CheckOK needs nothing.
	CheckOK = ports.CheckOK
	// CheckUnknown could not be looked at, for want of a right or of an answer.
	CheckUnknown = ports.CheckUnknown
	// CheckWarn will hurt, or has.
	CheckWarn = ports.CheckWarn
	// CheckFail hurts: jobs may be lost, or work stands still.
	CheckFail = ports.CheckFail
)

// Checks looks at the store's servers, their settings and their state, and returns what it saw, in an order that does not
// change: what an operator looks at first when work stands still. It is empty for a store that has no server, as
// memory. It fails only if it could look at nothing.
func (i *Inspector) Checks(ctx context.Context) ([]Check, error) {
	return ask(i, func(s Store) ([]ports.Check, error) {
		if checker, ok := s.(ports.Checker); ok {
			return checker.Check(ctx)
		}
		return nil, nil
	})
}

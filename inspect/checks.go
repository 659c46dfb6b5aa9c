package inspect

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// Check is the result of one check of a server of the store. Its fields are the Name of the check,
// the Server, a Status, the observed Value, and Advice, which is empty if Status is [CheckOK].
// Refuses is true if the store refuses pushes because of this state.
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
	// CheckFail is a state that causes harm now: jobs may be lost, or no job runs.
	CheckFail = ports.CheckFail
)

// Checks examines the settings and the state of the store's servers, and returns the results in an
// order that does not change. The last one, "clocks", compares the clocks of this process and of
// the announced servers with the store's. Read them first when no job runs. A store without a
// server, such as the store in memory, has no results. It returns an error only if no check was
// possible.
func (i *Inspector) Checks(ctx context.Context) ([]Check, error) {
	rows, err := ask(i, func(s Store) ([]ports.Check, error) {
		if checker, ok := s.(ports.Checker); ok {
			return checker.Check(ctx)
		}
		return nil, nil
	})
	if err != nil || len(rows) == 0 || len(rows) == 1 && rows[0].Status == CheckFail { // it does not answer
		return rows, err
	}
	return append(rows, i.checkClocks(ctx)), nil
}

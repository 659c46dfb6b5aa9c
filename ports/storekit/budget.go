package storekit

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// BudgetOf returns the limits of what a turn may claim, with every default and maximum of
// [core.Budget] applied. It is for a store that passes the numbers to a script or a statement. A
// store that claims in Go uses [ports.TurnRequest.Budget] and [core.Budget.Take].
func BudgetOf(r *ports.TurnRequest) core.Budget {
	b := core.Budget{
		Jobs:   max(0, min(r.Want, core.MaxTurnJobs)),
		PerJob: core.MaxTurnPayloads,
		Bytes:  core.DefaultTurnBytes,
	}
	if r.PerJob > 0 {
		b.PerJob = min(r.PerJob, core.MaxTurnPayloads)
	}
	if r.Bytes > 0 {
		b.Bytes = min(r.Bytes, core.MaxStepBytes)
	}
	return b
}

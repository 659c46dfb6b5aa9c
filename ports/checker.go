package ports

import (
	"context"
	"strconv"
)

// Checker is a store that reports the state of its servers, which an operator reads first when no
// job runs. It is optional.
type Checker interface {
	// Check examines the server's settings and state. It returns a row for each check of each
	// server, in an order that does not change. If a check was not possible, because a right or an
	// answer was missing, its row has CheckUnknown. So one failed check hides no other. A server
	// that does not answer has at most one row, with CheckFail; the other checks of that server are
	// skipped. Check writes nothing. It may take as long as a few dozen commands to the server.
	//
	// It returns an error only if no check was possible.
	Check(ctx context.Context) ([]Check, error)
}

// Check is the result of one check.
type Check struct {
	// Name is the name of the check, in snake_case. It does not change between versions, so alerts
	// may refer to it.
	Name string
	// Server is the address of the server that the row applies to. It is empty if the row applies
	// to all servers.
	Server string
	// Status is the severity of the result.
	Status CheckStatus
	// Value is the observed value, for people. With CheckUnknown it may be the reason why there is
	// no value.
	Value string
	// Advice is what an operator should do. It is empty with CheckOK.
	Advice string
	// Refuses is true if the store refuses pushes because of this state, to all shards or to some.
	// It is false with CheckOK and with CheckUnknown.
	Refuses bool
}

// CheckStatus is the result of a [Check]. Its zero value is CheckOK; worse results are larger.
type CheckStatus uint8

// Results of a check.
const (
	// CheckOK needs no action.
	CheckOK CheckStatus = iota
	// CheckUnknown is a check that was not possible.
	CheckUnknown
	// CheckWarn is a state that will cause harm, or that already has.
	CheckWarn
	// CheckFail is a state that causes harm now: jobs may be lost, or no job runs.
	CheckFail
)

// String returns "ok", "unknown", "warn" or "fail".
func (s CheckStatus) String() string {
	switch s {
	case CheckOK:
		return "ok"
	case CheckUnknown:
		return "unknown"
	case CheckWarn:
		return "warn"
	case CheckFail:
		return "fail"
	}
	return "CheckStatus(" + strconv.Itoa(int(s)) + ")"
}

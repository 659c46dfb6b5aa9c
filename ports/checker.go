package ports

import (
	"context"
	"strconv"
)

// Checker is a store that can say how its server is: what an operator looks at first when work
// stands still. It is optional.
type Checker interface {
	// Check looks at the server's settings and state, and returns a row for each thing that it
	// knows to look at, in an order that does not change, for each server in turn. What it could not
	// look at, for want of a right or of an answer, is a row with CheckUnknown, so that one failing
	// look hides no other. A server that does not answer is one row at most, with CheckFail: it is not asked again for
	// each. It writes nothing and may take as long as a few dozen commands of the server.
	//
	// It fails only if it could look at nothing.
	Check(ctx context.Context) ([]Check, error)
}

// Check is one thing that was looked at.
type Check struct {
	// Name is what was looked at, in snake_case. It does not change between versions, so that
	// alerts may name it.
	Name string
	// Server is the address of the server that it holds for; empty for all.
	Server string
	Status CheckStatus
	// Value is what was found, for people to read; with CheckUnknown, why nothing was.
	Value string
	// Advice is what to do; empty with CheckOK.
	Advice string
	// Refuses reports whether the store refuses pushes because of it, all or those to some shards. It
	// is false with CheckOK, and also with CheckUnknown.
	Refuses bool
}

// CheckStatus is how a [Check] ended. Its zero value is CheckOK, and worse ones are larger.
type CheckStatus uint8

// How a check ended.
const (
	// CheckOK needs nothing.
	CheckOK CheckStatus = iota
	// CheckUnknown could not be looked at.
	CheckUnknown
	// CheckWarn will hurt, or has.
	CheckWarn
	// CheckFail hurts: jobs may be lost, or work stands still.
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

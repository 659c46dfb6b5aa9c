// Package bounds has the cases of calls that would carry, move or return too much.
//
//   - bounds.go is about turns and acquires.
//   - steps.go is about the steps of operators.
//   - findbounds.go is about look-ups of an id.
package bounds

import (
	"slices"

	"github.com/skeinq/skein/conformance/internal/env"
)

// Groups returns the cases of the room.
func Groups() []env.Group {
	return []env.Group{
		{Name: "bounds", Cases: boundCases()},
		{Name: "bytes", Cases: slices.Concat(byteCases(), findByteCases())},
	}
}

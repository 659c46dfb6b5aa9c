// Package push has the cases of pushes and of what a request may contain.
//
//   - push.go is about what pushes store and report.
//   - urgent.go is about urgent entries, which overtake jobs that became due earlier.
//   - once.go is about entries that are accepted once within a time.
//   - input.go is about odd and invalid ids, payloads, times and texts in requests of all kinds.
package push

import "github.com/skeinq/skein/conformance/internal/env"

// Groups returns the cases of the room.
func Groups() []env.Group {
	return []env.Group{
		{Name: "push", Cases: pushCases()},
		{Name: "urgent", Cases: urgentCases()},
		{Name: "once", Cases: onceCases()},
		{Name: "input", Cases: inputCases()},
	}
}

// Package harness has the code that all parts of the conformance suite share: the clock that
// backends read, the comparison of replies and errors, and handles that repeat calls of unknown
// outcome.
package harness

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/virtual"
)

// Start is the time at which every clock of the suite begins. The vectors use the same time. It is
// not a whole second, so a store that rounds times fails.
const Start core.Instant = 1_800_000_000_123_456

// NewClock returns a clock that stands at Start.
func NewClock() *virtual.Clock { return virtual.NewClock(Start.Time()) }

package report

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// BuryReason is why payloads went to the morgue.
type BuryReason uint8

const (
	// Exhausted means that the retries of the payload's job were used up.
	Exhausted BuryReason = iota + 1
	// ByHandler means that a handler has buried the payload.
	ByHandler
	// Undecodable means that the codec refuses the payload.
	Undecodable
	// Recovered means that the payload's job has lost its process too often.
	Recovered
)

// String returns the reason in a word, as it is logged.
func (r BuryReason) String() string {
	switch r {
	case Exhausted:
		return "retries"
	case ByHandler:
		return "handler"
	case Undecodable:
		return "codec"
	case Recovered:
		return "recovery"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Buried has the payloads of one job that went to the morgue at once, for one reason.
type Buried struct {
	Shard    core.Shard
	ID       string
	Payloads []core.Payload
	Reason   BuryReason
	// Error is the text that is stored with the payloads, and Group the group of their dead letters.
	Error string
	Group string
}

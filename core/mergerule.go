package core

import (
	"fmt"
	"strconv"
)

// A third value of Stays also changes Validate, String and replaces in this file; MergeCode and
// MergeRuleOf of ports/storekit, with the stores that read the code (the map of
// docs/architecture.md lists their files; the comment in Postgres's tables/queues.sql lists the
// codes); vectorStays in core's and in conformance's test of mergerules.json; mergeOracle in core's
// test; the rules that conformance's cases_mergerule.go refuses and internal/random draws; and the
// constructors in queue.go of the root.

// Stays chooses which of two payloads with equal bytes stays when they merge (docs/rules.md 2).
type Stays uint8

const (
	// Lowest keeps the payload with the smaller score.
	Lowest Stays = iota
	// Highest keeps the payload with the larger score.
	Highest
)

// MergeRule decides what a merge keeps of an id's payloads (docs/rules.md 2). It belongs to the
// queue and holds for every merge in the queue and in its morgue. The result does not depend on
// the order of merges. The zero value unites the payloads and keeps the smaller score.
//
// These are all valid rules, with the name that users type and the code that stores keep:
//
//	MergeRule{}                          skein.Union()     0
//	MergeRule{Stays: Highest}            skein.Newest()   -1
//	MergeRule{Stays: Highest, Keep: n}   skein.Latest(n)   n
type MergeRule struct {
	// Stays chooses between payloads with equal bytes. On a tie the payload that was there stays.
	Stays Stays
	// Keep is the largest number of payloads of an id: the highest by (score, bytes) stay, and
	// the others are superseded. 0 means no bound. The maximum is MaxTurnPayloads. A bound needs
	// Stays to be Highest.
	Keep int
}

// Validate returns [ErrInvalidRule] if Stays is unknown, if Keep is out of range, or if a rule with
// a bound keeps the smaller score: what such a rule keeps would depend on the order of merges.
func (r MergeRule) Validate() error {
	switch {
	case r.Stays > Highest:
		return fmt.Errorf("%w: Stays %d; use Lowest or Highest", ErrInvalidRule, r.Stays)
	case r.Keep < 0 || r.Keep > MaxTurnPayloads:
		return fmt.Errorf("%w: Keep %d; use 1 to %d, or 0 for no limit", ErrInvalidRule, r.Keep, MaxTurnPayloads)
	case r.Keep > 0 && r.Stays == Lowest:
		return fmt.Errorf("%w: Keep %d with the smaller score; the payloads that stay would depend on the order of merges; use Stays: Highest", ErrInvalidRule, r.Keep)
	}
	return nil
}

// String returns "union", "newest" or "latest(n)". A rule that Validate refuses gets its fields.
func (r MergeRule) String() string {
	switch {
	case r == MergeRule{}:
		return "union"
	case r == MergeRule{Stays: Highest}:
		return "newest"
	case r.Validate() == nil:
		return "latest(" + strconv.Itoa(r.Keep) + ")"
	}
	return fmt.Sprintf("invalid(stays %d, keep %d)", r.Stays, r.Keep)
}

// Merge returns the merge of two ordered lists, and the number of payloads that it superseded. The
// payloads of coming merge one after another, lowest first. Merge does not change its arguments.
// There may hold more payloads than the rule keeps.
func (r MergeRule) Merge(there, coming []Payload) (merged []Payload, superseded int) {
	s := NewPayloadSet(there)
	superseded = s.MergeBy(r, coming)
	return s.list, superseded
}

// replaces reports whether a payload replaces one with equal bytes and another score.
func (r MergeRule) replaces(there, coming float64) bool {
	if r.Stays == Highest {
		return coming > there
	}
	return coming < there
}

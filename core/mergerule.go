package core

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// With a new value of Same or Stays, what stays must still not depend on the order of merges
// (docs/rules.md 2, whose table gets a row); payloads carry no time of their push. A new value also
// changes:
//
//   - Validate, String, ParseMergeRule, replaces and the table of MergeRule in this file. A bound
//     that keeps the lowest changes AddBy in payload.go.
//   - MergeCode and MergeRuleOf of ports/storekit, the comment in Postgres's tables/queues.sql, and
//     the functions of the stores that the map of docs/architecture.md lists. A new code changes the
//     stored format.
//   - vectorSame and vectorStays in core's and in conformance's test of mergerules.json, and
//     mergeOracle in core's test.
//   - The rules that mergerule.go and setmerge.go in conformance/internal/cases/merge refuse and
//     conformance/internal/random draws.
//   - The constructors in queue.go of the root, and the texts that list the rules: find them with
//     git grep -e 'every.last(n)' -e 'higher ones'.

// Same chooses which payloads of an id are one payload (docs/rules.md 2).
type Same uint8

const (
	// SameData takes payloads with equal bytes for one payload.
	SameData Same = iota
	// SamePush takes payloads with equal bytes and equal scores for one payload: a push that is
	// repeated. Stores compare bytes only, so that the payloads of such a queue are stored with
	// their scores in front of their bytes: see [MergeRule.Stored].
	SamePush
)

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
//	MergeRule{}                                          skein.Union()          0
//	MergeRule{Stays: Highest}                            skein.Newest()        -1
//	MergeRule{Stays: Highest, Keep: n}                   skein.Latest(n)        n
//	MergeRule{Same: SamePush}                            skein.Every()          0 and SamePush
//	MergeRule{Same: SamePush, Stays: Highest, Keep: n}   skein.Every().Last(n)  n and SamePush
type MergeRule struct {
	// Same chooses which payloads are one. It matters to those who push and read; stores keep it
	// with the queue, and merge stored payloads alike for both values.
	Same Same
	// Stays chooses between payloads with equal bytes. On a tie the payload that was there stays.
	Stays Stays
	// Keep is the largest number of payloads of an id: the highest by (score, bytes) stay, and
	// the others are superseded. 0 means no bound. The maximum is MaxTurnPayloads. A bound needs
	// Stays to be Highest.
	Keep int
}

// Last returns the rule with Keep n, and with Stays Highest if Same is SamePush, where Stays makes
// no other difference: of the payloads of an id only the n highest by (score, bytes) stay, 1 to
// MaxTurnPayloads. Validate refuses another n, and a rule that can't have a bound.
func (r MergeRule) Last(n int) MergeRule {
	if r.Same == SamePush {
		r.Stays = Highest
	}
	r.Keep = n
	if n < 1 {
		r.Keep = max(n, math.MinInt+1) - 1 // 0 would keep all; Validate's error names n
	}
	return r
}

// Validate returns [ErrInvalidRule] if Same or Stays is unknown, if Keep is out of range, or if a
// rule keeps the highest payloads, but the smaller score of equal bytes: what such a rule keeps
// would depend on the order of merges. It also refuses SamePush with Highest and no bound, since
// payloads that merge by such a rule have one score.
func (r MergeRule) Validate() error {
	switch {
	case r.Same > SamePush:
		return fmt.Errorf("%w: Same %d; use SameData or SamePush", ErrInvalidRule, r.Same)
	case r.Stays > Highest:
		return fmt.Errorf("%w: Stays %d; use Lowest or Highest", ErrInvalidRule, r.Stays)
	case r.Keep < 0:
		return fmt.Errorf("%w: %s; to keep all payloads use union, newest or every",
			ErrInvalidRule, r.outOfRange(r.Keep+1))
	case r.Keep > MaxTurnPayloads:
		return fmt.Errorf("%w: %s", ErrInvalidRule, r.outOfRange(r.Keep))
	case r.Keep > 0 && r.Stays == Lowest:
		return fmt.Errorf(
			"%w: Keep %d with the smaller score; the payloads that stay would depend on the order of merges; "+
				"use Stays: Highest",
			ErrInvalidRule, r.Keep,
		)
	case r.Same == SamePush && r.Stays == Highest && r.Keep == 0:
		return fmt.Errorf("%w: SamePush with Highest and no bound; leave Stays at Lowest", ErrInvalidRule)
	}
	return nil
}

// outOfRange describes a rule made by Last with an invalid n.
func (r MergeRule) outOfRange(n int) string {
	name := "latest"
	if r.Same == SamePush {
		name = "every.last"
	}
	return fmt.Sprintf("%s(%d): give 1 to %d", name, n, MaxTurnPayloads)
}

// String returns "union", "newest", "latest(n)", "every" or "every.last(n)". A rule that Validate
// refuses gets its fields.
func (r MergeRule) String() string {
	switch {
	case r == MergeRule{}:
		return "union"
	case r == MergeRule{Stays: Highest}:
		return "newest"
	case r == MergeRule{Same: SamePush}:
		return "every"
	case r.Validate() != nil:
		return fmt.Sprintf("invalid(same %d, stays %d, keep %d)", r.Same, r.Stays, r.Keep)
	case r.Same == SamePush:
		return "every.last(" + strconv.Itoa(r.Keep) + ")"
	}
	return "latest(" + strconv.Itoa(r.Keep) + ")"
}

// ParseMergeRule returns the rule that MergeRule.String writes as text. Another text is
// [ErrInvalidRule].
func ParseMergeRule(text string) (MergeRule, error) {
	name, bound, bounded := strings.Cut(text, "(")
	rules := map[string]MergeRule{"union": {}, "newest": {Stays: Highest}, "every": {Same: SamePush}}
	if bounded {
		rules = map[string]MergeRule{"latest": {Stays: Highest}, "every.last": {Same: SamePush}}
	}

	rule, known := rules[name]
	if known && bounded {
		n, err := strconv.Atoi(strings.TrimSuffix(bound, ")"))
		rule, known = rule.Last(n), err == nil
	}

	// The comparison refuses numbers that Atoi reads and String does not write, such as +2.
	if !known || rule.String() != text {
		return MergeRule{}, fmt.Errorf(
			"%w: %q; use union, newest, latest(n), every or every.last(n), with n from 1 to %d",
			ErrInvalidRule, text, MaxTurnPayloads,
		)
	}
	return rule, nil
}

// stamp begins the stored bytes of a payload under SamePush. Its score follows, in 8 bytes.
const stamp = "\x00every\x00\x01"

const stampSize = len(stamp) + 8

// Stored returns a pushed payload as a queue of this rule stores it. Under SamePush its Data begins
// with a stamp of 16 bytes, which holds its score, so that payloads with equal bytes and different
// scores are different bytes, in the same order. Otherwise it is stored as it was pushed. Data is
// copied if it changes. To store a payload of another queue, call that queue's Pushed first.
func (r MergeRule) Stored(p Payload) Payload {
	if r.Same == SamePush {
		data := make([]byte, 0, stampSize+len(p.Data))
		data = append(data, stamp...)
		data = binary.BigEndian.AppendUint64(data, math.Float64bits(NormalScore(p.Score)))
		p.Data = append(data, p.Data...)
	}
	return p
}

// Pushed returns a payload that a queue of this rule has stored as it was pushed. Under SamePush
// that is without its stamp, and otherwise unchanged: bytes that only look like a stamp belong to
// the payload. Data is not copied.
//
// A rule never changes to or from SamePush (docs/rules.md 2), so each payload of the queue and of
// its morgue was stored by the present Same. A payload without a stamp in a queue with SamePush was
// pushed by a program that did not call Stored, and is returned unchanged.
func (r MergeRule) Pushed(stored Payload) Payload {
	if r.Same == SamePush && stored.Stamped() {
		stored.Data = stored.Data[stampSize:]
	}
	return stored
}

// PushedAll returns stored payloads as they were pushed: see [MergeRule.Pushed]. The list is copied
// if one of them changes.
func (r MergeRule) PushedAll(stored []Payload) []Payload {
	if r.Same != SamePush || !slices.ContainsFunc(stored, Payload.Stamped) {
		return stored
	}
	pushed := slices.Clone(stored)
	for i := range pushed {
		pushed[i] = r.Pushed(pushed[i])
	}
	return pushed
}

// Stamped reports whether Data begins with the bytes of the stamp of p's score. Whether these are a
// stamp depends on the rule of the queue that has stored p: see [MergeRule.Pushed].
func (p Payload) Stamped() bool {
	score, stamped := bytes.CutPrefix(p.Data, []byte(stamp))
	return stamped && len(score) >= 8 && binary.BigEndian.Uint64(score) == math.Float64bits(NormalScore(p.Score))
}

// Merge returns the merge of two ordered lists, and the number of payloads that it superseded. The
// incoming payloads merge one after another, lowest first. Merge does not change its arguments.
//
// After a change of the rule, an id can have more payloads than the rule keeps. Then Merge returns
// no more payloads than kept has.
func (r MergeRule) Merge(kept, incoming []Payload) (merged []Payload, superseded int) {
	s := NewPayloadSet(kept)
	superseded = s.MergeBy(r, incoming)
	return s.list, superseded
}

// Imported returns pushed payloads of another queue or of a list of dead letters as a queue of this
// rule imports them: as it stores them, in order, and as a set by this rule (docs/rules.md 2). The
// rule's Keep does not bound the set: the store drops what exceeds it. payloads may be in any
// order, and with equal bytes.
func (r MergeRule) Imported(payloads []Payload) []Payload {
	r.Keep = 0
	var set PayloadSet
	for _, p := range payloads {
		set.AddBy(r, r.Stored(p))
	}
	return set.List()
}

// replaces reports whether a payload replaces one with equal bytes and another score.
func (r MergeRule) replaces(existing, incoming float64) bool {
	if r.Stays == Highest {
		return incoming > existing
	}
	return incoming < existing
}

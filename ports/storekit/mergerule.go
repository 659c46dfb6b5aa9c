package storekit

import "github.com/skeinq/skein/core"

// noMergeCode is the code of a rule that stores can't keep. MergeRuleOf refuses it.
const noMergeCode = -2

// MergeCode returns a merge rule without its Same as the number that stores keep: 0 for union, -1
// for newest and n for a bound of n. Stores keep Same beside it; no merge needs it. There is a code
// for exactly the rules that Validate accepts; MergeRuleOf refuses the number that MergeCode
// returns for another one. Stores take each code but 0 for one by which the larger score stays, and
// supersede the lowest payload. The map in docs/architecture.md lists where they do so.
func MergeCode(r core.MergeRule) int {
	switch {
	case r.Validate() != nil:
		return noMergeCode
	case r.Stays == core.Highest && r.Keep == 0:
		return -1
	}
	return r.Keep
}

// MergeRuleOf returns the merge rule of a number that MergeCode has returned, and of the rule's
// Same, or [core.ErrInvalidRule].
func MergeRuleOf(code int, same core.Same) (core.MergeRule, error) {
	r := core.MergeRule{Same: same}
	switch {
	case code == -1:
		r.Stays = core.Highest
	case code != 0:
		r.Stays, r.Keep = core.Highest, code
	}
	return r, r.Validate()
}

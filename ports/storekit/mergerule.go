package storekit

import "github.com/skeinq/skein/core"

// noMergeCode is the code of a rule that stores can't keep. MergeRuleOf refuses it.
const noMergeCode = -2

// MergeCode returns a merge rule as the number that stores keep: 0 for union, -1 for newest and n
// for latest(n). It has a code for exactly the rules that Validate accepts; MergeRuleOf refuses the
// number that it returns for another one. A new kind of rule needs a code here, in the Redis
// store's lua/lib/shard.lua, and in the Postgres store's functions that read merge_rule.
func MergeCode(r core.MergeRule) int {
	switch {
	case r == core.MergeRule{}:
		return 0
	case r == core.MergeRule{Stays: core.Highest}:
		return -1
	case r.Stays == core.Highest && r.Keep > 0:
		return r.Keep
	}
	return noMergeCode
}

// MergeRuleOf returns the merge rule of a number that MergeCode has returned, or
// [core.ErrInvalidRule].
func MergeRuleOf(code int) (core.MergeRule, error) {
	r := core.MergeRule{Stays: core.Highest, Keep: code}
	switch code {
	case 0:
		r = core.MergeRule{}
	case -1:
		r.Keep = 0
	}
	return r, r.Validate()
}

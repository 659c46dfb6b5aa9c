package storekit

import "github.com/skeinq/skein/core"

// MergeCode returns a valid merge rule as the number that stores keep: 0 for union, -1 for newest
// and n for latest(n).
func MergeCode(r core.MergeRule) int {
	if r.Keep == 0 && r.Stays == core.Highest {
		return -1
	}
	return r.Keep
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

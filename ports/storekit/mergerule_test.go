package storekit_test

import (
	"errors"
	"math"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

func TestMergeCodesAreRead(t *testing.T) {
	for code, want := range map[int]core.MergeRule{
		0: {}, -1: {Stays: core.Highest}, 1: {Stays: core.Highest, Keep: 1}, 1000: {Stays: core.Highest, Keep: 1000},
	} {
		got, err := storekit.MergeRuleOf(code)
		if err != nil || got != want || storekit.MergeCode(want) != code {
			t.Errorf("MergeRuleOf(%d) = %v, %v, and its code is %d", code, got, err, storekit.MergeCode(want))
		}
	}
	for _, code := range []int{-2, 1001} {
		if _, err := storekit.MergeRuleOf(code); !errors.Is(err, core.ErrInvalidRule) {
			t.Errorf("MergeRuleOf(%d) returned %v", code, err)
		}
	}
}

// A rule that Validate accepts comes back from its code, and no other rule has a code.
func TestMergeCodesKeepEveryRule(t *testing.T) {
	kept := 0
	for stays := range math.MaxUint8 + 1 {
		for keep := -2; keep <= core.MaxTurnPayloads+1; keep++ {
			rule := core.MergeRule{Stays: core.Stays(stays), Keep: keep}
			got, err := storekit.MergeRuleOf(storekit.MergeCode(rule))
			switch valid := rule.Validate() == nil; {
			case valid && (err != nil || got != rule):
				t.Fatalf("%+v came back as %+v, %v", rule, got, err)
			case !valid && err == nil:
				t.Fatalf("%+v is invalid and came back as %+v", rule, got)
			case valid:
				kept++
			}
		}
	}
	if want := 2 + core.MaxTurnPayloads; kept != want {
		t.Errorf("%d rules were kept, want %d", kept, want)
	}
}

package storekit_test

import (
	"errors"
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

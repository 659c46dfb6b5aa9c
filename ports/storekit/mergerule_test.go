package storekit_test

import (
	"errors"
	"math"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

func TestMergeCodesAreRead(t *testing.T) {
	type kept struct {
		code int
		same core.Same
	}
	for k, want := range map[kept]core.MergeRule{
		{0, core.SameData}:    {},
		{-1, core.SameData}:   {Stays: core.Highest},
		{1, core.SameData}:    {Stays: core.Highest, Keep: 1},
		{1000, core.SameData}: {Stays: core.Highest, Keep: 1000},
		{0, core.SamePush}:    {Same: core.SamePush},
		{1000, core.SamePush}: {Same: core.SamePush, Stays: core.Highest, Keep: 1000},
	} {
		got, err := storekit.MergeRuleOf(k.code, k.same)
		if err != nil || got != want || storekit.MergeCode(want) != k.code {
			t.Errorf("MergeRuleOf(%v) = %v, %v, and its code is %d", k, got, err, storekit.MergeCode(want))
		}
	}

	for _, k := range []kept{
		{-2, core.SameData}, {1001, core.SameData}, {-1, core.SamePush}, {1001, core.SamePush}, {0, 2},
	} {
		if _, err := storekit.MergeRuleOf(k.code, k.same); !errors.Is(err, core.ErrInvalidRule) {
			t.Errorf("MergeRuleOf(%v) returned %v", k, err)
		}
	}
}

// A rule that Validate accepts comes back from its code, and no other rule has a code.
func TestMergeCodesKeepEveryRule(t *testing.T) {
	kept := 0
	for same := range core.SamePush + 2 {
		for stays := range math.MaxUint8 + 1 {
			for keep := -2; keep <= core.MaxTurnPayloads+1; keep++ {
				rule := core.MergeRule{Same: same, Stays: core.Stays(stays), Keep: keep}
				got, err := storekit.MergeRuleOf(storekit.MergeCode(rule), same)
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
	}

	if want := 3 + 2*core.MaxTurnPayloads; kept != want {
		t.Errorf("%d rules were kept, want %d", kept, want)
	}
}

package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

type mergeRuleVector struct {
	About string
	Merge struct {
		Same  vectorSame
		Stays vectorStays
		Keep  int
	}
	There, Coming, Merged vectorPayloads
	Superseded            int
}

func (v *mergeRuleVector) rule() core.MergeRule {
	return core.MergeRule{Same: core.Same(v.Merge.Same), Stays: core.Stays(v.Merge.Stays), Keep: v.Merge.Keep}
}

func TestMergeRulesAreReadAsTheyAreWritten(t *testing.T) {
	for _, rule := range []core.MergeRule{
		{}, {Stays: core.Highest}, {Stays: core.Highest, Keep: 1}, {Stays: core.Highest, Keep: core.MaxTurnPayloads},
		{Same: core.SamePush}, core.MergeRule{Same: core.SamePush}.Last(12),
	} {
		if got, err := core.ParseMergeRule(rule.String()); got != rule || err != nil {
			t.Errorf("%v was read as %v, %v", rule, got, err)
		}
	}
	for _, text := range []string{
		"", "Union", "union()", "newest(3)", "latest", "latest()", "latest(0)", "latest(-1)", "latest(+1)",
		"latest(01)", "latest(1", "latest(1))", "latest(1001)", "every(2)", "every.last", "every.last(0)", "last(2)",
		"latest(99999999999999999999)",
	} {
		if got, err := core.ParseMergeRule(text); !errors.Is(err, core.ErrInvalidRule) {
			t.Errorf("%q was read as %v, %v", text, got, err)
		}
	}
}

// vectorSame is written as "data" or "push", or left out for data. Another word can't be read.
type vectorSame core.Same

func (s *vectorSame) UnmarshalText(text []byte) error {
	switch string(text) {
	case "data":
		*s = vectorSame(core.SameData)
	case "push":
		*s = vectorSame(core.SamePush)
	default:
		return fmt.Errorf("same %q; use data or push", text)
	}
	return nil
}

// vectorStays is written as "lowest" or "highest". Another word can't be read, so that no case is
// run by another rule than it names.
type vectorStays core.Stays

func (s *vectorStays) UnmarshalText(text []byte) error {
	switch string(text) {
	case "lowest":
		*s = vectorStays(core.Lowest)
	case "highest":
		*s = vectorStays(core.Highest)
	default:
		return fmt.Errorf("stays %q; use lowest or highest", text)
	}
	return nil
}

func TestVectorsOfUnknownRulesAreRefused(t *testing.T) {
	for _, text := range []string{`{"merge": {"stays": "middle"}}`, `{"merge": {"same": "id"}}`} {
		var v mergeRuleVector
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("an unknown word was read as %v", v.rule())
		}
	}
}

func TestMergeRuleVectors(t *testing.T) {
	for i, v := range vectors[mergeRuleVector](t, "mergerules.json") {
		t.Run(fmt.Sprintf("%d_%v_%s", i, v.rule(), v.About), func(t *testing.T) {
			there, coming := v.There.payloads(), v.Coming.payloads()
			for _, list := range [][]core.Payload{there, coming} {
				for i := range list {
					list[i].Score = core.NormalScore(list[i].Score)
					list[i] = v.rule().Stored(list[i])
				}
			}
			merged, superseded := v.rule().Merge(there, coming)
			equal(t, "payloads", v.Merged.payloads(), v.rule().PushedAll(merged))
			equal(t, "superseded", v.Superseded, superseded)
		})
	}
}

// Imported payloads become a set without the rule's bound, and then merge.
func TestImportVectors(t *testing.T) {
	type vector struct {
		mergeRuleVector
		Set vectorPayloads
	}
	for i, v := range vectors[vector](t, "imports.json") {
		t.Run(fmt.Sprintf("%d_%v_%s", i, v.rule(), v.About), func(t *testing.T) {
			there := v.There.payloads()
			for i := range there {
				there[i] = v.rule().Stored(there[i])
			}
			set := v.rule().Imported(v.Coming.payloads())
			equal(t, "the set", v.Set.payloads(), v.rule().PushedAll(set))
			merged, superseded := v.rule().Merge(there, set)
			equal(t, "payloads", v.Merged.payloads(), v.rule().PushedAll(merged))
			equal(t, "superseded", v.Superseded, superseded)
		})
	}
}

var drawMergeRule = rapid.Custom(func(t *rapid.T) core.MergeRule {
	return core.MergeRule{
		Same:  core.Same(rapid.IntRange(0, 2).Draw(t, "same")),
		Stays: core.Stays(rapid.IntRange(0, 2).Draw(t, "stays")), Keep: rapid.IntRange(-1, 6).Draw(t, "keep"),
	}
}).Filter(func(r core.MergeRule) bool { return r.Validate() == nil })

// without removes the Metas: on a tie the Meta that was there stays, so it depends on the order.
var without = cmp.Options{cmpopts.IgnoreFields(core.Payload{}, "Meta"), cmpopts.EquateEmpty()}

// drawKept draws payloads as a queue with the rule has them.
func drawKept(t *rapid.T, rule core.MergeRule, label string) []core.Payload {
	kept, _ := rule.Merge(nil, drawStored(t, rule, 12, label))
	return kept
}

func drawStored(t *rapid.T, rule core.MergeRule, most int, label string) []core.Payload {
	payloads := rapid.SliceOfN(rapid.Custom(drawPayload), 0, most).Draw(t, label)
	for i := range payloads {
		payloads[i] = rule.Stored(payloads[i])
	}
	return payloads
}

// Stores merge in different orders and groups, so the order must not matter for any valid rule.
func TestMergesDependOnNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawMergeRule.Draw(t, "rule")
		merge := func(a, b []core.Payload) []core.Payload {
			merged, _ := rule.Merge(a, b)
			return merged
		}
		a, b, c := drawKept(t, rule, "a"), drawKept(t, rule, "b"), drawKept(t, rule, "c")
		if diff := cmp.Diff(merge(a, b), merge(b, a), without); diff != "" {
			t.Errorf("%v is not commutative:\n%s", rule, diff)
		}
		if diff := cmp.Diff(merge(merge(a, b), c), merge(a, merge(b, c)), without); diff != "" {
			t.Errorf("%v is not associative:\n%s", rule, diff)
		}
		if diff := cmp.Diff(merge(merge(a, b), b), merge(a, b), without); diff != "" {
			t.Errorf("%v is not idempotent:\n%s", rule, diff)
		}
	})
}

// The rule that Validate refuses does depend on the order: the reason that it gives is true.
func TestABoundOnSmallestScoresDependsOnTheOrder(t *testing.T) {
	rule := core.MergeRule{Keep: 1}
	merge := func(a, b []core.Payload) []core.Payload {
		merged, _ := rule.Merge(a, b)
		return merged
	}
	x, y, z := []core.Payload{payload("a", 3)}, []core.Payload{payload("b", 2)}, []core.Payload{payload("a", 1)}
	if cmp.Equal(merge(merge(x, y), z), merge(x, merge(y, z))) {
		t.Error("the order does not matter, so there is no reason to refuse the rule")
	}
}

// mergeOracle applies a rule word for word, and slowly: to all payloads at once.
func mergeOracle(rule core.MergeRule, lists ...[]core.Payload) []core.Payload {
	best := naiveSet{}
	for _, p := range slices.Concat(lists...) {
		same := string(p.Data)
		if rule.Same == core.SamePush {
			same += fmt.Sprint(" ", p.Score)
		}
		there, ok := best[same]
		higher := p.Score > there.Score
		if !ok || (rule.Stays == core.Highest && higher) || (rule.Stays == core.Lowest && p.Score < there.Score) {
			best[same] = p
		}
	}
	list := best.list()
	if rule.Keep > 0 && len(list) > rule.Keep {
		list = list[len(list)-rule.Keep:]
	}
	return list
}

func TestMergeRuleEqualsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawMergeRule.Draw(t, "rule")
		there := drawKept(t, rule, "there")
		coming := drawStored(t, rule, 40, "coming")
		before := slices.Clone(there)
		merged, superseded := rule.Merge(there, coming)
		want := mergeOracle(rule, rule.PushedAll(there), rule.PushedAll(coming))
		if diff := cmp.Diff(want, rule.PushedAll(merged), without); diff != "" {
			t.Errorf("%v (-want +got):\n%s", rule, diff)
		}
		if diff := cmp.Diff(before, there); diff != "" {
			t.Errorf("an argument was changed:\n%s", diff)
		}
		if rule.Keep == 0 && superseded != 0 {
			t.Errorf("%v superseded %d", rule, superseded)
		}
	})
}

func TestAddByReportsWhatItAddedAndSuperseded(t *testing.T) {
	latest := core.MergeRule{Stays: core.Highest, Keep: 2}
	tests := []struct {
		name       string
		rule       core.MergeRule
		payload    core.Payload
		added      bool
		superseded int
	}{
		{"union: new", core.MergeRule{}, payload("c", 0), true, 0},
		{"union: there", core.MergeRule{}, payload("a", 0), false, 0},
		{"newest: there, and rises", core.MergeRule{Stays: core.Highest}, payload("a", 9), false, 0},
		{"latest: there, and rises", latest, payload("a", 9), false, 0},
		{"latest: above the bound", latest, payload("c", 9), true, 1},
		{"latest: below the bound", latest, payload("c", 0), false, 1},
		{"latest: there, and rises, in a set with too many", core.MergeRule{Stays: core.Highest, Keep: 1},
			payload("a", 9), false, 0},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := core.NewPayloadSet([]core.Payload{payload("a", 1), payload("b", 2)})
			added, superseded := set.AddBy(tt.rule, tt.payload)
			if added != tt.added || superseded != tt.superseded {
				t.Errorf("added %v and superseded %d; want %v and %d", added, superseded, tt.added, tt.superseded)
			}
		})
	}
}

func TestMergeRuleValidate(t *testing.T) {
	tests := []struct {
		rule  core.MergeRule
		text  string
		valid bool
	}{
		{core.MergeRule{}, "union", true},
		{core.MergeRule{Stays: core.Highest}, "newest", true},
		{core.MergeRule{Stays: core.Highest, Keep: 1}, "latest(1)", true},
		{core.MergeRule{Stays: core.Highest, Keep: core.MaxTurnPayloads}, "latest(1000)", true},
		{core.MergeRule{Stays: core.Highest, Keep: core.MaxTurnPayloads + 1}, "invalid(same 0, stays 1, keep 1001)",
			false},
		{core.MergeRule{Stays: core.Highest, Keep: -1}, "invalid(same 0, stays 1, keep -1)", false},
		{core.MergeRule{Keep: 1}, "invalid(same 0, stays 0, keep 1)", false},
		{core.MergeRule{Stays: 2}, "invalid(same 0, stays 2, keep 0)", false},
		{core.MergeRule{Same: core.SamePush}, "every", true},
		{core.MergeRule{Same: core.SamePush}.Last(2), "every.last(2)", true},
		{core.MergeRule{Same: core.SamePush}.Last(0), "invalid(same 1, stays 1, keep -1)", false},
		{core.MergeRule{Same: core.SamePush, Stays: core.Highest}, "invalid(same 1, stays 1, keep 0)", false},
		{core.MergeRule{Same: 2}, "invalid(same 2, stays 0, keep 0)", false},
		{core.MergeRule{}.Last(2), "invalid(same 0, stays 0, keep 2)", false},
	}

	for _, tt := range tests {
		err := tt.rule.Validate()
		if (err == nil) != tt.valid || errors.Is(err, core.ErrInvalidRule) == tt.valid {
			t.Errorf("Validate(%+v) = %v", tt.rule, err)
		}
		if got := tt.rule.String(); got != tt.text {
			t.Errorf("String of %+v = %q; want %q", tt.rule, got, tt.text)
		}
	}
}

func TestDeadLettersMergeByTheRule(t *testing.T) {
	latest := core.MergeRule{Stays: core.Highest, Keep: 1}
	there := core.DeadLetter{ID: "id", Payloads: []core.Payload{payload("a", 1)}, ChangedAt: 5, Failures: core.Failures{{Text: "old"}}}
	coming := core.DeadLetter{ID: "id", Payloads: []core.Payload{payload("b", 2)}, ChangedAt: 4, Failures: core.Failures{{Text: "new"}}}
	merged, superseded := core.MergeDeadLetters(there, coming, latest)
	equal(t, "buried", coming, merged)
	equal(t, "superseded", 1, superseded)

	imported, changed, superseded := core.MergeImported(there, coming, latest)
	want := there
	want.Payloads = coming.Payloads
	equal(t, "imported", want, imported)
	if !changed || superseded != 1 {
		t.Errorf("changed %v, superseded %d", changed, superseded)
	}
	_, changed, superseded = core.MergeImported(imported, there, latest)
	if changed || superseded != 1 {
		t.Errorf("an older dead letter: changed %v, superseded %d", changed, superseded)
	}
}

func TestStoredPayloadsComeBackAsTheyWerePushed(t *testing.T) {
	every := core.MergeRule{Same: core.SamePush}
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPayload(t), drawPayload(t)
		p.Score, q.Score = core.NormalScore(p.Score), core.NormalScore(q.Score)
		for range rapid.IntRange(0, 2).Draw(t, "stamps that were pushed") {
			p = every.Stored(p)
		}

		newest := core.MergeRule{Stays: core.Highest}
		for _, rule := range []core.MergeRule{{}, newest, newest.Last(2), every, every.Last(3)} {
			if diff := cmp.Diff(p, rule.Pushed(rule.Stored(p)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%v (-pushed +read):\n%s", rule, diff)
			}
			read := rule.PushedAll([]core.Payload{rule.Stored(q), rule.Stored(p)})
			if diff := cmp.Diff([]core.Payload{q, p}, read, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%v, as a list (-pushed +read):\n%s", rule, diff)
			}
		}

		if got, want := every.Stored(p).Compare(every.Stored(q)), p.Compare(q); got != want {
			t.Errorf("the order is %d, want %d", got, want)
		}

		other := every.Stored(p)
		other.Score = q.Score
		if other.Stamped() && q.Score != p.Score {
			t.Errorf("the stamp of score %v was taken for that of %v", p.Score, q.Score)
		}
	})
}

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExamineFindsWhatIsWrong(t *testing.T) {
	ordered := []transfer{{"a", "b", 10}, {"a", "b", 5}}
	paid := entry{"a", 0, -10, 990}
	received := entry{"b", 0, 10, 1010}
	paidNext := entry{"a", 1, -5, 985}
	receivedNext := entry{"b", 1, 5, 1015}

	cases := []struct {
		name    string
		history []entry
		want    findings
	}{
		{"right", []entry{paid, paidNext, received, receivedNext}, findings{entries: 4}},
		{
			"received in another order",
			[]entry{paid, paidNext, {"b", 1, 5, 1005}, {"b", 0, 10, 1015}},
			findings{entries: 4},
		},
		{"nothing", nil, findings{missing: 4}},
		{"not received", []entry{paid, paidNext, received}, findings{entries: 3, missing: 1}},
		{
			"received twice",
			[]entry{paid, paidNext, received, receivedNext, {"b", 1, 5, 1020}},
			findings{entries: 5, extra: 1},
		},
		{
			"paid in another order",
			[]entry{{"a", 1, -5, 995}, {"a", 0, -10, 985}, received, receivedNext},
			findings{entries: 4, late: 1},
		},
		{
			"a balance that was overwritten",
			[]entry{paid, {"a", 1, -5, 995}, received, receivedNext},
			findings{entries: 4, wrong: 1},
		},
		{
			"another amount",
			[]entry{paid, paidNext, {"b", 0, 11, 1011}, {"b", 1, 5, 1016}},
			findings{entries: 4, missing: 1, extra: 1},
		},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			got := examine(ordered, tt.history)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(findings{})); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

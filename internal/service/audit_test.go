package service

import "testing"

// What has chosen the entries of an action is one text, also if it is several things.
func TestWhatChoseTheEntriesOfAnAction(t *testing.T) {
	for want, a := range map[string]AuditRow{
		"":                                       {Queue: "orders"},
		"prefix a":                               {Prefix: "a"},
		"group boom":                             {Group: "boom"},
		`prefix a, group boom, error has "time"`: {Prefix: "a", Group: "boom", Filter: `error has "time"`},
	} {
		if got := a.ChosenBy(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

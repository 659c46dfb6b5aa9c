package service

import (
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// Each kind of part is redacted by the rule of what it names, and a part of an unknown kind is not
// shown.
func TestTheValuesOfAVerdictAreRedacted(t *testing.T) {
	const unknown = 99
	orders, mail := core.Shard{Queue: "orders", Index: 3}, core.Shard{Queue: "mail"}
	v := inspect.Verdict{
		Reason: inspect.WaitsForAlone,
		Sentence: inspect.Sentence{
			{Text: "behind "}, {Kind: inspect.PartJob, Shard: orders, ID: "ann"}, {Text: " and "},
			{Kind: inspect.PartJob, Shard: mail, ID: "bob"}, {Kind: unknown, Text: "eve"},
		},
		Findings: []inspect.Finding{{
			Name:  "failures",
			State: inspect.FindingBad,
			Value: inspect.Sentence{
				{Kind: inspect.PartError, Text: "of ann"}, {Text: ", "}, {Kind: inspect.PartNote, Text: `ask "ann"`},
			},
		}},
	}

	hideID := func(_, id string) string { return "id of " + string(rune('0'+len(id))) }
	hideError := func(_, _, text string) string { return "<" + text + ">" }
	for _, tt := range []struct {
		name, sentence, finding string
		options                 Options
	}{
		{"nothing", `behind job "ann" of orders/3 and a job of mail/0`, `of ann, ask "ann"`, Options{}},
		{
			"ids",
			`behind job "id of 3" of orders/3 and a job of mail/0`,
			"of ann, …",
			Options{RedactID: hideID},
		},
		{
			"errors",
			`behind job "ann" of orders/3 and a job of mail/0`,
			`<of ann>, <ask "ann">`,
			Options{RedactError: hideError},
		},
		{
			"both",
			`behind job "id of 3" of orders/3 and a job of mail/0`,
			`<of ann>, <ask "…">`,
			Options{RedactID: hideID, RedactError: hideError},
		},
	} {
		c := &call{Service: &Service{o: tt.options}}
		shown := c.verdict(&WhyQuery{Queue: "orders", ID: "x"}, &v)
		if got := shown.Sentence.String(); got != tt.sentence {
			t.Errorf("%s: the sentence is %q, want %q", tt.name, got, tt.sentence)
		}
		if got := shown.Findings[0].Value.String(); got != tt.finding {
			t.Errorf("%s: the finding is %q, want %q", tt.name, got, tt.finding)
		}
	}
	if got := v.Findings[0].Value.String(); got != `of ann, ask "ann"` {
		t.Errorf("the verdict itself has changed: %q", got)
	}
}

package inspect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

// A running job is not shown as held up by its own resources.
func TestARunningJobIsNotHeldUpByItself(t *testing.T) {
	v := &Verdict{
		Reason:     RunsNow,
		MaxRunning: 1,
		Busy:       1,
		Servers:    []string{"blue"},
		Owner:      "blue",
		OwnerFacts: OwnerFacts{Lanes: 1, Busy: 1, MaxLanes: 1, QueueBusy: 1},
		Found:      Found{Shard: core.Shard{Queue: "orders"}},
	}
	for _, f := range v.findings() {
		if f.State != FindingGood {
			t.Errorf("%v %s %v", f.State, f.Name, f.Value)
		}
	}

	v.Reason = AtLimit
	var got []string
	for _, f := range v.findings() {
		got = append(got, fmt.Sprint(f.State == FindingGood, " ", f.Name, " ", f.Value))
	}
	want := []string{
		"true served by blue",
		"true shard orders/0, held by blue",
		"false lane 1 of 1 lanes there are busy",
		"false lanes of the queue 1 of 1 there are busy",
		"false limit 1 of 1 running on all servers (MaxRunning)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The values of a sentence stay values, so that readers can format or hide them.
func TestASentenceKeepsItsValues(t *testing.T) {
	job := Part{Kind: PartJob, Shard: core.Shard{Queue: "orders", Index: 3}, ID: "a 1"}
	got := say("%s of %s waits for %s", 1, say("%s jobs", "2"), 90*time.Second).and("; %s: %s", job,
		Part{Kind: PartError, Text: "boom"})
	want := Sentence{
		{Text: "1"}, {Text: " of "}, {Text: "2"}, {Text: " jobs"}, {Text: " waits for "},
		{Kind: PartSpan, Span: 90 * time.Second}, {Text: "; "}, job, {Text: ": "}, {Kind: PartError, Text: "boom"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := `1 of 2 jobs waits for 1m30s; job "a 1" of orders/3: boom`; got.String() != text {
		t.Errorf("%q, want %q", got, text)
	}

	job.ID = ""
	if text := say("%s", job).String(); text != "a job of orders/3" {
		t.Errorf("a job that may not be seen is %q", text)
	}
}

// A sentence that is continued twice does not share its parts.
func TestASentenceMayBeContinuedTwice(t *testing.T) {
	begin := append(make(Sentence, 0, 9), say("a")...)
	one, other := begin.and("b"), begin.and("c")
	if one.String() != "ab" || other.String() != "ac" {
		t.Errorf("%q and %q", one, other)
	}
}

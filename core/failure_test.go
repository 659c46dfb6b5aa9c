package core_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// vectorFailure is a failure whose text is repeated.
type vectorFailure struct {
	At         core.Instant `json:"at_us"`
	Node, Text string
	Times      int
}

func (v vectorFailure) failure() core.Failure {
	return core.Failure{At: v.At, Node: v.Node, Text: strings.Repeat(v.Text, max(1, v.Times))}
}

func vectorFailures(list []vectorFailure) core.Failures {
	var out core.Failures
	for _, v := range list {
		out = append(out, v.failure())
	}
	return out
}

func TestFailuresVectors(t *testing.T) {
	type vector struct {
		About    string
		Failures []vectorFailure
		Add      vectorFailure
		Kept     []vectorFailure
	}
	for _, v := range vectors[vector](t, "failures.json") {
		t.Run(v.About, func(t *testing.T) {
			before := vectorFailures(v.Failures)
			equal(t, "the list after the failure", vectorFailures(v.Kept), before.With(v.Add.failure()))
			equal(t, "the list before", vectorFailures(v.Failures), before)
		})
	}
}

// A list that was stored is stored again with a job that is moved, put back or imported.
func TestAStoredListOfFailuresStaysAsItIs(t *testing.T) {
	failure := rapid.Custom(func(t *rapid.T) core.Failure {
		return core.Failure{
			At:   core.Instant(rapid.IntRange(-1, 2).Draw(t, "at")),
			Node: rapid.SampledFrom([]string{"", "web-1", strings.Repeat("n", 300), "\x00"}).Draw(t, "node"),
			Text: strings.Repeat(rapid.SampledFrom([]string{"e", "é", "\xff"}).Draw(t, "text"),
				rapid.SampledFrom([]int{0, 1, 100, 1000, 2048, 4096, 5000}).Draw(t, "times")),
		}
	})

	rapid.Check(t, func(t *rapid.T) {
		list := core.Failures(rapid.SliceOfN(failure, 0, 7).Draw(t, "list"))
		stored, size := list.Stored(), 0
		for _, f := range stored {
			size += len(f.Text)
		}
		if len(stored) > core.MaxFailures || size > core.MaxErrorBytes {
			t.Fatalf("%d failures of %d bytes are stored", len(stored), size)
		}
		if again := stored.Stored(); !slices.Equal(again, stored) {
			t.Fatalf("stored again, %v became %v", stored, again)
		}
	})
}

func TestAPageThatCutsErrorsHasTheNewestFailure(t *testing.T) {
	list := failures("é", "older")
	for bytes, want := range map[int]core.Failures{0: list, 1: nil, 2: failures("é"), 9: failures("é"), -1: nil} {
		equal(t, "the short list", want, list.Short(bytes))
	}
	equal(t, "no failure", core.Failures(nil), core.Failures(nil).Short(1))
}

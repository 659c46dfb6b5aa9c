package main

import (
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// The clock of a server may be ahead of the store's: its failure is then of now.
func TestAFailureIsNotInTheFuture(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	v := &inspect.Verdict{Now: now}
	v.Found.Queued = &inspect.QueuedJob{LastFailure: inspect.LastFailure{Failures: []inspect.Failure{
		{At: now.Add(time.Second), On: "blue", Text: "boom"}, {Text: "bang\x1b[2J"},
	}}}
	var b strings.Builder
	writeFailures(&b, v)
	if want := "\nThe last failures:\n- 0 s ago on blue: boom\n- at an unknown time: \"bang\\x1b[2J\"\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

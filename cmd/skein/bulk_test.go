package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
)

// A call that continues from a text prints "at least" for unknown counts: its own if its last step
// failed, and those of earlier calls unless nothing is left or gone.
func TestWhatAnActionThatGoesOnSays(t *testing.T) {
	lost := errors.New("no answer")
	for name, tt := range map[string]struct {
		failed     error
		checkpoint inspect.Checkpoint
		gone       int
		want       string
	}{
		"it has done the rest": {nil, "", 0, "3 revived now, 1 by earlier calls"},
		"some were gone":       {nil, "", 2, "3 revived now, at least 1 by earlier calls"},
		"it was stopped":       {nil, "text", 0, "3 revived now, at least 1 by earlier calls"},
		"it failed":            {lost, "text", 0, "at least 3 revived now, at least 1 by earlier calls"},
	} {
		var said strings.Builder
		a := &app{process: process{stderr: &said}}
		a.sayGone(&bulkFlags{goOn: "text", done: "revived"}, &inspect.Result{Handled: 4, Earlier: 1, Total: 6, Gone: tt.gone, Checkpoint: tt.checkpoint}, tt.failed)
		if !strings.HasPrefix(said.String(), tt.want) {
			t.Errorf("%s: it says %q, want %q", name, said.String(), tt.want)
		}
	}
}

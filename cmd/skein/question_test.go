package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
)

// askAbout is a question under way: confirm, with a look that returns r, and with this standard input.
func askAbout(ctx context.Context, r inspect.Result, in io.Reader) (bool, string, error) {
	var stderr bytes.Buffer
	a := &app{process: process{stdin: in, stdout: io.Discard, stderr: &stderr}}
	ok, err := a.confirm(ctx, &bulkFlags{verb: "revive", done: "revived"}, inspect.BulkOptions{},
		func(context.Context, inspect.BulkOptions) (inspect.Result, error) { return r, nil })
	return ok, stderr.String(), err
}

func TestQuestionSaysBoundsWhereTheLookWasCutOff(t *testing.T) {
	ok, text, err := askAbout(t.Context(), inspect.Result{Handled: 1748, Done: 2000, Total: 5252, Checkpoint: "x"}, strings.NewReader("y\n"))
	if !ok || err != nil || !strings.Contains(text, "at least 1748 match, at most 5000; 2000 of 5252 looked at") {
		t.Errorf("%v, %v, %q", ok, err, text)
	}
}

func TestSignalAtTheQuestionDoesNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	in, out := io.Pipe() // never answered
	defer func() { _ = out.Close() }()
	ok, _, err := askAbout(ctx, inspect.Result{Handled: 1, Done: 1, Total: 1}, in)
	if ok || exitCode(err) != 7 || !strings.HasPrefix(err.Error(), "nothing was done") {
		t.Errorf("%v, %v with exit code %d", ok, err, exitCode(err))
	}
}

package main

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
)

// askAbout is a question under way: confirm, with a look that returns r, and with this standard
// input.
func askAbout(ctx context.Context, r inspect.Result, in io.Reader) (bool, string, error) {
	var stderr bytes.Buffer
	a := &app{process: process{stdin: in, stdout: io.Discard, stderr: &stderr}, output: "table"}
	ok, err := a.confirm(ctx, &bulkFlags{verb: "revive", done: "revived"}, inspect.BulkOptions{},
		func(context.Context, inspect.BulkOptions) (inspect.Result, error) { return r, nil })
	return ok, stderr.String(), err
}

func TestQuestionSaysBoundsWhereTheLookWasCutOff(t *testing.T) {
	for handled, says := range map[int]string{
		1748: "at least 1748 match, at most 5000; 2000 of 5252 checked",
		0:    "at least 0 match, at most 3252; 2000 of 5252 checked", // a slow store: the others may match
	} {
		ok, text, err := askAbout(t.Context(), inspect.Result{Handled: handled, Done: 2000, Total: 5252}, strings.NewReader("y\n"))
		if !ok || err != nil || !strings.Contains(text, says) {
			t.Errorf("%v, %v, %q", ok, err, text)
		}
	}
	ok, text, err := askAbout(t.Context(), inspect.Result{Done: 4, Total: 4}, strings.NewReader("y\n"))
	if ok || err != nil || !strings.Contains(text, "none of 4 matches") {
		t.Errorf("%v, %v, %q", ok, err, text)
	}
}

func TestSignalAtTheQuestionDoesNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	in, out := io.Pipe() // never answered
	defer func() { _ = out.Close() }()
	ok, _, err := askAbout(ctx, inspect.Result{Handled: 1, Done: 1, Total: 1}, in)
	if ok || exitCode(err) != 7 || !strings.HasPrefix(err.Error(), "nothing was changed") {
		t.Errorf("%v, %v with exit code %d", ok, err, exitCode(err))
	}
}

// The schema goes when its name is typed, and for no other answer.
func TestTheSchemaIsRemovedWhenItsNameIsTyped(t *testing.T) {
	t.Parallel()
	address := storesOfTests()["Postgres"](t)
	u, err := url.Parse(address)
	must(t, err)
	name := u.Query().Get("schema")
	for _, tt := range []struct {
		typed, says string
		code        int
	}{
		{"yes\n", "nothing was removed: the schema's name was not typed", exitFailed},
		{strings.ToUpper(name) + "\n", "nothing was removed", exitFailed},
		{"", "nothing was removed", exitFailed},
		{" " + name + " \n", "Type the schema's name to remove it: ", 0},
	} {
		var stderr bytes.Buffer
		p := process{
			stdin: strings.NewReader(tt.typed), stdout: io.Discard, stderr: &stderr, env: func(string) string { return address },
			connect: backends.Connect, answersWithin: time.Minute,
		}
		if code := p.run(t.Context(), []string{"migrate", "down"}); code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("typed %q: exit code %d, want %d: %s", tt.typed, code, tt.code, stderr.String())
		}
		want := 0
		if tt.code == 0 {
			want = 6 // nothing is there
		}
		if code, said := run(t, address, "migrate status"); code != want {
			t.Errorf("typed %q: migrate status ends with %d, want %d: %s", tt.typed, code, want, said)
		}
	}
}

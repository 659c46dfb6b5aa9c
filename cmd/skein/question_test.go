package main

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
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
		ok, text, err := askAbout(t.Context(), inspect.Result{Handled: handled, Done: 2000, Total: 5252},
			strings.NewReader("y\n"))
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

// Any answer but yes, and the end of standard input, leave everything as it is. Scripts tell that
// from a failure by the exit code.
func TestNoAtTheQuestionEndsWithItsOwnCode(t *testing.T) {
	for _, answer := range []string{"no\n", "n\n", "YES\n", ""} {
		ok, _, err := askAbout(t.Context(), inspect.Result{Handled: 1, Done: 1, Total: 1}, strings.NewReader(answer))
		if ok || exitCode(err) != 7 || !strings.Contains(err.Error(), "not confirmed; use --yes") {
			t.Errorf("%q: %v, %v with exit code %d", answer, ok, err, exitCode(err))
		}
	}
}

// An action that was refused before its first entry is not one to continue: its call has a mistake.
func TestARefusedActionIsNotToBeContinued(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue[int]("orders", skein.QueueOptions[int]{})
	must(t, q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "42", 1))
	code, out, said := runOn(t, store, "job", "run-now", "orders", "--all", "--prefix", "4", "--yes")
	if code != 2 || !strings.Contains(said, "without an index of ids") || strings.Contains(said, "to continue") {
		t.Errorf("exit code %d: %s%s", code, out, said)
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
		{"yes\n", "nothing was changed: the schema's name was not typed", 7},
		{strings.ToUpper(name) + "\n", "nothing was changed", 7},
		{"", "nothing was changed", 7},
		{" " + name + " \n", "Type the schema's name to remove it: ", 0},
	} {
		var stderr bytes.Buffer
		p := process{
			stdin:         strings.NewReader(tt.typed),
			stdout:        io.Discard,
			stderr:        &stderr,
			env:           func(string) string { return address },
			connect:       backends.Connect,
			answersWithin: time.Minute,
		}
		if code := p.run(t.Context(), []string{"migrate", "down"}); code != tt.code ||
			!strings.Contains(stderr.String(), tt.says) {
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

// The preview before the question changes nothing, reads as fast as the store answers, for two
// seconds at most, and matches what the action matches. The action then keeps its rate.
func TestThePreviewHasNoRateAndTheActionHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := inspect.BulkOptions{Rate: 7, Prefix: "a", Filter: "f", Before: time.Now(), Payloads: -1}
		var calls []inspect.BulkOptions
		a := &app{
			process: process{stdin: strings.NewReader("y\n"), stdout: io.Discard, stderr: io.Discard},
			output:  "table",
		}
		must(t, a.onAll(t.Context(), &bulkFlags{verb: "revive", done: "revived"}, given,
			func(_ context.Context, o inspect.BulkOptions) (inspect.Result, error) {
				if calls = append(calls, o); len(calls) == 1 {
					early := o.Stop(1)
					time.Sleep(previewTime + time.Millisecond)
					if late := o.Stop(1); early || !late {
						t.Errorf("the preview stops at its begin: %v, after its time: %v", early, late)
					}
				}
				return inspect.Result{Handled: 1, Done: 1, Total: 1}, nil
			}))

		if len(calls) != 2 {
			t.Fatalf("%d calls, want a preview and the action", len(calls))
		}

		for at, want := range []struct {
			dry  bool
			rate int
		}{{true, 0}, {false, 7}} {
			o := calls[at]
			if o.DryRun != want.dry || o.Rate != want.rate {
				t.Errorf("call %d: dry run %v with rate %d, want %v with %d", at, o.DryRun, o.Rate, want.dry, want.rate)
			}
			if o.Prefix != given.Prefix || o.Filter != given.Filter || !o.Before.Equal(given.Before) ||
				o.Payloads != given.Payloads {
				t.Errorf("call %d matches %+v, want %+v", at, o, given)
			}
		}
	})
}

// Only yes and y are a confirmation. --yes and --continue need none.
func TestOnlyYesConfirms(t *testing.T) {
	for answer, confirmed := range map[string]bool{
		"yes\n":  true,
		"y\n":    true,
		" y \n":  true,
		"Y\n":    false,
		"no\n":   false,
		"\n":     false,
		"":       false,
		"yess\n": false,
	} {
		ok, _, err := askAbout(t.Context(), inspect.Result{Handled: 1, Done: 1, Total: 1}, strings.NewReader(answer))
		if ok != confirmed || (err == nil) != confirmed {
			t.Errorf("answer %q: confirmed %v, %v; want %v", answer, ok, err, confirmed)
		}
	}

	for name, tt := range map[string]struct {
		b     bulkFlags
		calls int
	}{"asked": {bulkFlags{}, 1}, "--yes": {bulkFlags{yes: true}, 1}, "--continue": {bulkFlags{goOn: "text"}, 1}} {
		calls, dry := 0, false
		a := &app{
			process: process{stdin: strings.NewReader("no\n"), stdout: io.Discard, stderr: io.Discard},
			output:  "table",
		}
		err := a.onAll(t.Context(), &tt.b, inspect.BulkOptions{},
			func(_ context.Context, o inspect.BulkOptions) (inspect.Result, error) {
				calls, dry = calls+1, o.DryRun
				return inspect.Result{Handled: 1, Done: 1, Total: 1}, nil
			})

		if refused := name == "asked"; calls != tt.calls || dry != refused || (err != nil) != refused {
			t.Errorf("%s: %d calls, the last one dry: %v, %v", name, calls, dry, err)
		}
	}
}

// Without a terminal nothing is asked.
func TestAPushFromNowhereAsksNothing(t *testing.T) {
	code, _, said := runOn(t, memory.New(memory.Options{}), "job", "push", "orders", "42", "--payload", "x")
	if code != 3 || !strings.Contains(said, "declare it with --shards") || strings.Contains(said, "Type the number") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

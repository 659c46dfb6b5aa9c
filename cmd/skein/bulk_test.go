package main

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

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
		a.sayGone(
			&bulkFlags{goOn: "text", done: "revived"},
			&inspect.Result{
				Handled:    4,
				Earlier:    1,
				Total:      6,
				Gone:       tt.gone,
				Checkpoint: tt.checkpoint,
			},
			tt.failed,
		)

		if !strings.HasPrefix(said.String(), tt.want) {
			t.Errorf("%s: it says %q, want %q", name, said.String(), tt.want)
		}
	}
}

// Flags that select or bound all matching entries are refused beside ids, one by one, and flags
// that contradict one another are refused too: ignoring one would act on more than the operator
// meant.
func TestFlagsOfAnActionThatContradict(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"a --prefix p", "need --all"},
		{"a --group g", "need --all"},
		{"a --error e", "need --all"},
		{"a --tag t", "need --all"},
		{"a --before 24h", "need --all"},
		{"a --rate 5", "need --all"},
		{"a --dry-run", "need --all"},
		{"a --yes", "need --all"},
		{"a --continue c", "need --all"},
		{"a --all", "name ids, or give --all"},
		{"", "name ids, or give --all"},
		{"a --fresh", "leave it out, or the ids"},
		{"--all --rate -1", "give the number of entries a second"},
		{"--all --continue c --before 24h", "leave out --before and --dry-run"},
		{"--all --continue c --dry-run", "leave out --before and --dry-run"},
		{"--all --tag a\x01", "--tag"},
		{"--all --before x", "--before"},
	} {
		if _, err := optionsOf(t, tt.flags); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error with %q", tt.flags, err, tt.want)
		}
	}

	for _, name := range []string{"prefix", "error", "tag", "group", "before", "continue"} {
		if _, err := optionsOf(t, "--all --"+name+"="); !errors.Is(err, errUsage) ||
			!strings.Contains(err.Error(), "--"+name+" is empty") {
			t.Errorf("an empty --%s: %v", name, err)
		}
	}
}

// An action on all that match reads no payloads, and passes its flags on.
func TestFlagsOfAnActionAreItsOptions(t *testing.T) {
	for flags, want := range map[string]inspect.BulkOptions{
		"a":               {},
		"--all":           {Payloads: -1},
		"--fresh":         {Payloads: -1},
		"--all --rate 5":  {Payloads: -1, Rate: 5},
		"--all --dry-run": {Payloads: -1, DryRun: true},
		"--all --prefix p --error e --tag t --continue c": {Payloads: -1, Prefix: "p", Filter: `error has "e", tag is "t"`, Continue: "c"},
		"--all --group g --before 2030-01-02T03:04:05Z":   {Payloads: -1, Group: "g", Before: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)},
	} {
		got, err := optionsOf(t, flags)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", flags, got, err, want)
		}
	}
}

// optionsOf returns the options of an action that has all flags, for a line of ids and flags.
func optionsOf(t *testing.T, line string) (inspect.BulkOptions, error) {
	t.Helper()
	var b bulkFlags
	f := pflag.NewFlagSet("bulk", pflag.ContinueOnError)
	b.add(f)
	f.StringVar(&b.o.Group, "group", "", "")
	f.BoolVar(&b.fresh, "fresh", false, "")
	if err := f.Parse(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return b.options(f.Args())
}

// A signal before the first step ends the action without a call. After a signal a step that hangs
// is cancelled once it has had its time.
func TestASignalEndsAnAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, signal := context.WithCancel(t.Context())
		a := &app{process: process{stdout: io.Discard, stderr: io.Discard}, output: "table"}
		began, calls := time.Now(), 0

		err := a.onAll(ctx, &bulkFlags{yes: true}, inspect.BulkOptions{},
			func(steps context.Context, o inspect.BulkOptions) (inspect.Result, error) {
				calls++
				o.Checkpoint("c")
				signal()
				<-steps.Done()
				return inspect.Result{Done: 1, Total: 2, Checkpoint: "c"}, steps.Err()
			})
		if took := time.Since(began); calls != 1 || took != patience || !errors.Is(err, errStopped) {
			t.Errorf("%d calls end after %v with %v; want one that has %v after the signal", calls, took, err, patience)
		}

		err = a.onAll(ctx, &bulkFlags{yes: true}, inspect.BulkOptions{},
			func(context.Context, inspect.BulkOptions) (inspect.Result, error) {
				calls++
				return inspect.Result{}, nil
			})
		if calls != 1 || !errors.Is(err, errNoStep) {
			t.Errorf("after the signal %d calls and %v, want no further call", calls, err)
		}
	})
}

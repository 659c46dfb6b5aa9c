package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skeinq/skein/internal/gitfixture"
)

// fixture returns a generated repository of a few thousand changes.
func fixture(t *testing.T, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if err := gitfixture.Write(t.Context(), dir, gitfixture.Options{Seed: seed, Commits: 400, SHA256: seed%2 == 1}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReplayEqualsHead(t *testing.T) {
	for seed := range uint64(3) {
		out := checkReplay(t, fixture(t, seed), "-lanes", "8", "-fail", "0.05", "-panic", "0.01", "-slow", "0.001")
		for _, want := range []string{"\nbroken links 0\n", "\noverlaps     0\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		for _, never := range []string{" 0 failed", " 0 panicked", "\nmerged       0 ", "\nretries      0 "} {
			if strings.Contains(out, never) {
				t.Errorf("%q: the run proves little\n%s", never, out)
			}
		}
	}
}

// replayWith replays a fixture with a handler of the test's around the index.
func replayWith(ctx context.Context, t *testing.T, wrap func(handler) handler) (out string, status int) {
	t.Helper()
	repo, err := openRepository(t.Context(), fixture(t, 9))
	if err != nil {
		t.Fatal(err)
	}
	r := newReplay(repo, options{store: "memory://", lanes: 4})
	r.handle = r.tally.wrap(wrap(r.index.handle))
	var stdout, stderr bytes.Buffer
	status = perform(ctx, r, &stdout, &stderr)
	return stdout.String(), status
}

// altering returns a handler that gives the index other events than it was given.
func altering(alter func([]Event) []Event) func(handler) handler {
	return func(next handler) handler {
		return func(ctx context.Context, id string, events []Event) error {
			return next(ctx, id, alter(slices.Clone(events)))
		}
	}
}

func TestReplayDetects(t *testing.T) {
	const position = 700
	wrongBlob := strings.Repeat("1", 64)
	for _, test := range []struct {
		name  string
		alter func([]Event) []Event
		want  []string
	}{
		{"one event that is dropped", func(events []Event) []Event {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Position == position })
		}, []string{"\nthe index took "}},
		{"many events that are dropped", func(events []Event) []Event {
			return slices.DeleteFunc(events, func(e Event) bool { return e.Position%20 == 0 })
		}, []string{"\nbroken link: ", "\nbroken link: and ", "\nindex differs from git ls-tree -r HEAD: "}},
		{"a blob that is wrong", func(events []Event) []Event {
			for i := range events {
				if events[i].Position == position {
					events[i].New.Blob = wrongBlob
				}
			}
			return events
		}, []string{wrongBlob}},
		{"events in the wrong order", func(events []Event) []Event {
			slices.Reverse(events)
			return events
		}, []string{"\nbroken link: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, status := replayWith(t.Context(), t, altering(test.alter))
			if status != exitFailed {
				t.Errorf("exit status %d, want %d\n%s", status, exitFailed, out)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

func TestReplayIsInterrupted(t *testing.T) {
	why := errors.New("received a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var calls atomic.Int64
	out, status := replayWith(ctx, t, func(next handler) handler {
		return func(ctx context.Context, id string, events []Event) error {
			if calls.Add(1) == 100 {
				cancel(why)
			}
			return next(ctx, id, events)
		}
	})
	if status != exitFailed || !strings.Contains(out, "\nended early: received a signal; the index was not compared\n") {
		t.Errorf("exit status %d\n%s", status, out)
	}
}

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chain returns the history of one path: it holds each blob in turn, "" for nothing.
func chain(blobs ...string) []Event {
	var events []Event
	old := Version{}
	for i, blob := range blobs {
		now := Version{}
		if blob != "" {
			now = Version{Mode: "100644", Blob: blob}
		}
		events = append(events, Event{Position: int64(i + 1), Old: old, New: now})
		old = now
	}
	return events
}

// states are the values by which indexes are compared.
type states struct {
	Files   map[string]Version
	Applied int64
	Broken  int64
}

func stateOf(x *index) states {
	files, applied := x.files()
	broken, _ := x.broken.list()
	return states{files, applied, broken}
}

func TestIndex(t *testing.T) {
	e := chain("a", "b", "a", "", "c")
	holds := func(blob string) map[string]Version {
		return map[string]Version{"path": {Mode: "100644", Blob: blob}}
	}
	for _, test := range []struct {
		name  string
		calls [][]Event
		want  states
	}{
		{"in order", [][]Event{e}, states{holds("c"), 5, 0}},
		{"one by one", [][]Event{e[:1], e[1:2], e[2:3], e[3:4], e[4:]}, states{holds("c"), 5, 0}},
		{"a delete at the end", [][]Event{e[:4]}, states{map[string]Version{}, 4, 0}},
		{"run again whole", [][]Event{e, e}, states{holds("c"), 5, 0}},
		{"run again after a part, with more", [][]Event{e[:2], e}, states{holds("c"), 5, 0}},
		{"one is lost", [][]Event{e[:1], e[2:]}, states{holds("c"), 4, 1}},
		{"two change places", [][]Event{{e[1], e[0]}}, states{holds("b"), 1, 1}},
		{"a round trip is lost, which only the count tells", [][]Event{e[:1], e[3:]}, states{holds("c"), 3, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newIndex()
			for _, events := range test.calls {
				if err := x.handle(t.Context(), "path", events); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, stateOf(x)); diff != "" {
				t.Errorf("index (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsKeepToTheirShares(t *testing.T) {
	const calls = 10_000
	f := newFaults(0.05, 0.01, 0, 7)
	x := newIndex()
	h := f.wrap(x.handle)
	var failed, panicked int64
	for i := range calls {
		err := guarded(t.Context(), h, []Event{{Position: int64(i)}})
		switch {
		case errors.Is(err, errInjected):
			failed++
		case err != nil:
			panicked++
		}
	}
	if got, want := f.counted(), (faultCount{failed: failed, panicked: panicked}); got != want {
		t.Errorf("counted %+v, seen %+v", got, want)
	}
	if failed < 400 || failed > 600 || panicked < 50 || panicked > 150 {
		t.Errorf("of %d calls %d failed and %d panicked, want about 500 and 100", calls, failed, panicked)
	}
}

// guarded turns a panic into an error.
func guarded(ctx context.Context, h handler, events []Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("panicked")
		}
	}()
	return h(ctx, "path", events)
}

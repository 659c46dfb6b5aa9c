package inspect_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/inspect"
)

func TestTrackedIDs(t *testing.T) {
	s := newFixture(t)
	s.push("a", 0, "p")

	change := func(what string, want bool, call func() (bool, error)) {
		t.Helper()
		if changed, err := call(); err != nil || changed != want {
			t.Errorf("%s: %t, %v; want %t", what, changed, err, want)
		}
	}
	track := func(id string) func() (bool, error) {
		return func() (bool, error) { return s.Track(t.Context(), "orders", id) }
	}
	untrack := func(id string) func() (bool, error) {
		return func() (bool, error) { return s.Untrack(t.Context(), "orders", id) }
	}

	since := epoch
	change("the first Track", true, track("b"))
	change("Track of an id with a job", true, track("a"))
	s.advance(time.Hour)
	change("a second Track", false, track("a"))
	change("Untrack", true, untrack("b"))
	change("a second Untrack", false, untrack("b"))

	got, err := s.Tracked(t.Context(), "orders")
	if diff := cmp.Diff([]inspect.TrackedID{{ID: "a", Since: since}}, got); err != nil || diff != "" {
		t.Errorf("Tracked: %v (-want +got):\n%s", err, diff)
	}

	for n := range inspect.MaxTracked - 1 {
		change("Track", true, track(fmt.Sprint(n)))
	}
	if _, err := s.Track(t.Context(), "orders", "more"); !errors.Is(err, inspect.ErrTooManyTracked) {
		t.Errorf("one more: %v; want ErrTooManyTracked", err)
	}
	if _, err := s.Track(t.Context(), "orders", ""); !errors.Is(err, inspect.ErrInvalidID) {
		t.Errorf("no id: %v; want ErrInvalidID", err)
	}
	if _, err := s.Tracked(t.Context(), "nowhere"); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("Tracked of an unknown queue: %v; want ErrUnknownQueue", err)
	}
}

package dashboard

import (
	"context"
	"errors"
	"testing"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports/storekit"
)

// A search names at most 50 queues, first the one whose name is the text, and says how many more
// there are.
func TestASearchNamesFewQueues(t *testing.T) {
	s := &snapshot{}
	for _, name := range append(numbered("Q", maxNamed+2), "q", "other") {
		s.view.Stats = append(s.view.Stats, inspect.QueueStats{Queue: inspect.Queue{Name: name}})
	}
	b := &searchBody{}
	if exact := b.addQueues(s, "q"); !exact || len(b.Queues) != maxNamed || b.Queues[0] != "q" || b.Cut != 3 {
		t.Errorf("exact %v, %d names, first %q, %d more", exact, len(b.Queues), b.Queues[0], b.Cut)
	}
	b = &searchBody{}
	if exact := b.addQueues(s, "the"); exact || len(b.Queues) != 1 || b.Cut != 0 {
		t.Errorf("exact %v, names %q, %d more", exact, b.Queues, b.Cut)
	}
}

// A search that took too long asks no further queue, and counts those that it did not ask.
func TestASearchEndsInTime(t *testing.T) {
	s := &snapshot{view: wrong.View{Stats: []inspect.QueueStats{{}, {}, {}}}}
	for all, want := range map[bool]int{true: 1 + 3, false: 3 + 3} {
		c := &call{cost: lookTime + 1, sight: sight{all: all}}
		b := &searchBody{ID: "a"}
		if err := c.findID(b, s); err != nil || b.Unasked != want || b.Whole() {
			t.Errorf("of all %v: %d queues were not asked, want %d; %v", all, b.Unasked, want, err)
		}
	}
}

// The reason why schedules can't be searched is redacted.
func TestASearchRedactsErrors(t *testing.T) {
	h := newHouse(t, Options{})
	h.board = h.over(func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if call.Method == "Schedules" {
			return errors.New("refused by secret")
		}
		return next(ctx)
	}, Options{API: httpapi.Options{RedactError: func(string, string, string) string { return "hidden" }}})
	page := h.get("/search?for=b")
	says(t, page, "Schedules of the id can't be read: orders: ", "hidden")
	saysNot(t, page, "secret")
}

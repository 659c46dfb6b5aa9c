package inspect_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// upper edits the bytes in place, which is allowed because they are a copy.
func upper(_ string, p core.Payload) ([]byte, bool, error) {
	copy(p.Data, bytes.ToUpper(p.Data))
	return p.Data, true, nil
}

func TestAnEditKeepsMergesAndStops(t *testing.T) {
	full := errors.New("no such order")

	for name, c := range map[string]struct {
		edit    inspect.EditFunc
		handled int
		err     error
		want    string
	}{
		"all kept": {func(string, core.Payload) ([]byte, bool, error) { return []byte("x"), false, nil },
			0, nil, "dead a at 1s [p1 p2 p3] hopeless"},
		"all the same": {func(_ string, p core.Payload) ([]byte, bool, error) { return p.Data, true, nil },
			0, nil, "dead a at 1s [p1 p2 p3] hopeless"},
		"some": {func(id string, p core.Payload) ([]byte, bool, error) {
			return []byte(id + string(p.Data)), p.Score == 1, nil
		}, 1, nil, "dead a at 1m1s [p1 ap2 p3] hopeless"},
		"to what is there": {func(_ string, p core.Payload) ([]byte, bool, error) {
			return []byte("p3"), string(p.Data) == "p1", nil
		}, 1, nil, "dead a at 1m1s [p3 p2] hopeless"},
		"to nothing": {func(_ string, p core.Payload) ([]byte, bool, error) { return nil, p.Score == 0, nil },
			1, nil, "dead a at 1m1s [ p2 p3] hopeless"},
		"until an error": {func(_ string, p core.Payload) ([]byte, bool, error) {
			if p.Score == 1 {
				return nil, true, full
			}
			return []byte("x"), true, nil
		}, 1, full, "dead a at 1m1s [x p2 p3] hopeless"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, edit := range []func(*fixture) (inspect.Result, error){
				func(s *fixture) (inspect.Result, error) {
					return s.Edit(t.Context(), "orders", inspect.DeadIDs("a"), c.edit)
				},
				func(s *fixture) (inspect.Result, error) {
					match := func(d inspect.DeadLetter) bool { return d.ID == "a" }
					return s.Edit(t.Context(), "orders", inspect.AllDead(match, inspect.BulkOptions{}), c.edit)
				},
			} {
				s := withDeadLetters(t)
				s.advance(time.Minute)
				result, err := edit(s)
				if result.Handled != c.handled || !errors.Is(err, c.err) {
					t.Errorf("%+v, %v; want %d, %v", result, err, c.handled, c.err)
				}

				for _, line := range s.state() {
					if strings.HasPrefix(line, "dead a") && line != c.want {
						t.Errorf("the dead letter is\n%s, want\n%s", line, c.want)
					}
				}
			}
		})
	}
}

func TestEachLetterIsEditedOnceAlsoWhenTheClockStands(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("early", 150)...)
	s.advance(time.Second)
	s.dead(numbered("late", 150)...)
	for name, step := range map[string]time.Duration{"stands": 0, "steps back": -500 * time.Millisecond} {
		edits := map[string]int{}
		result, err := s.Edit(t.Context(), "orders", inspect.AllDead(nil,

			inspect.BulkOptions{}), func(id string, p core.Payload) ([]byte, bool, error) {
			if edits[id]++; len(edits) == 1 {
				s.advance(step)
			}
			return append(p.Data, '+'), true, nil
		})

		if err != nil || result.Handled != 300 || len(edits) != 300 {
			t.Errorf("the clock %s: %+v, %v; %d dead letters edited, want 300", name, result, err, len(edits))
		}
		s.advance(time.Second)
	}
}

func TestAnEditWithoutAFunctionIsRefused(t *testing.T) {
	s := newFixture(t)
	s.dead("a")
	before := s.state()
	o := inspect.BulkOptions{}

	for name, call := range map[string]func() (inspect.Result, error){
		"of a dead letter": func() (inspect.Result, error) {
			return s.Edit(t.Context(), "orders", inspect.DeadIDs("a"), nil)
		},
		"of nothing": func() (inspect.Result, error) { return s.Edit(t.Context(), "orders", inspect.DeadIDs(), nil) },
		"of payloads": func() (inspect.Result, error) {
			return s.Edit(t.Context(), "orders",
				inspect.DeadPayloads(inspect.DeadLetterPayloads{ID: "a", Payloads: data("p")}), nil)
		},
		"of all": func() (inspect.Result, error) { return s.Edit(t.Context(), "orders", inspect.AllDead(nil, o), nil) },
	} {
		if _, err := call(); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("%s: %v, want ErrInvalidOptions", name, err)
		}
	}

	s.holds(before...)
}

// A queued job keeps its state when its payloads are edited, and a claimed job is not edited.
func TestAQueuedJobIsEdited(t *testing.T) {
	s := newFixture(t)
	s.push("a", 0, "p1", "p2", "p3")
	s.fail("boom")
	edit := func(_ string, p core.Payload) ([]byte, bool, error) {
		return append([]byte("new "), p.Data...), true, nil
	}

	result, err := s.EditJob(t.Context(), "orders", "a", [][]byte{[]byte("p2"), []byte("none")}, edit)
	if err != nil || result.Handled != 1 || result.Done != 1 || result.Total != 1 {
		t.Errorf("%+v, %v", result, err)
	}
	s.holds("queued a at 1h0m0s retries 1 [p1 new p2 p3] boom")

	if result, err = s.EditJob(t.Context(), "orders", "a", nil, edit); err != nil || result.Handled != 3 {
		t.Errorf("all: %+v, %v", result, err)
	}
	s.holds("queued a at 1h0m0s retries 1 [new p1 new new p2 new p3] boom")
	if _, err := s.EditJob(t.Context(), "orders", "a", nil, nil); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("without a function: %v", err)
	}

	s.push("c", 0, "q")
	s.claim()
	for _, id := range []string{"c", "none"} {
		if result, err := s.EditJob(t.Context(), "orders", id, nil, edit); err != nil || result.Handled != 0 {
			t.Errorf("%s: %+v, %v", id, result, err)
		}
	}
}

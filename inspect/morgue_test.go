package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// withDeadLetters returns a fixture whose morgue has one dead letter with three payloads and two
// with one; that of b is a second old, and a job is queued for it.
func withDeadLetters(t *testing.T) *fixture {
	s := newFixture(t)
	s.dead("b")
	s.advance(time.Second)
	s.push("a", 0, "p1", "p2", "p3")
	s.bury()
	s.dead("c")
	s.push("b", time.Hour, "q")
	return s
}

const (
	deadB   = "dead b at 0s [p] hopeless"
	deadA   = "dead a at 1s [p1 p2 p3] hopeless"
	deadC   = "dead c at 1s [p] hopeless"
	queuedB = "queued b at 1h0m1s retries 0 [q]"
)

func data(payloads ...string) [][]byte {
	list := [][]byte{}
	for _, p := range payloads {
		list = append(list, []byte(p))
	}
	return list
}

// old matches the letters that were buried first.
func old(d inspect.DeadLetter) bool { return d.ChangedAt.Equal(epoch) }

func TestActionsOnTheMorgue(t *testing.T) {
	o := inspect.BulkOptions{}
	some := []inspect.DeadLetterPayloads{
		{ID: "a", Payloads: data("p2", "p3", "p9")},
		{ID: "c", Payloads: data("p")},
		{ID: "b"},
		{ID: "nothing", Payloads: data("p")},
	}
	type act = func(context.Context, *inspect.Inspector) (inspect.Result, error)

	for name, c := range map[string]struct {
		act     act
		handled int
		want    []string
	}{
		"revive ids": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.DeadIDs("a", "b", "nothing"))
		}, 2, []string{"queued a at 1s retries 0 [p1 p2 p3]", "queued b at 1s retries 0 [p q]", deadC}},
		"revive payloads": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.DeadPayloads(some...))
		}, 2, []string{
			"queued a at 1s retries 0 [p2 p3]", "queued c at 1s retries 0 [p]", queuedB,
			deadB, "dead a at 1s [p1] hopeless",
		}},
		"revive what matches": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.AllDead(old, o))
		}, 1, []string{"queued b at 1s retries 0 [p q]", deadA, deadC}},
		"revive all": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.AllDead(nil, o))
		}, 3, []string{
			"queued a at 1s retries 0 [p1 p2 p3]", "queued b at 1s retries 0 [p q]", "queued c at 1s retries 0 [p]",
		}},
		"purge ids": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.DeadIDs("a", "b", "nothing"))
		}, 2, []string{queuedB, deadC}},
		"purge payloads": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.DeadPayloads(some...))
		}, 2, []string{queuedB, deadB, "dead a at 1s [p1] hopeless"}},
		"purge what matches": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.AllDead(old, o))
		}, 1, []string{queuedB, deadA, deadC}},
		"purge all": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.AllDead(nil, o))
		}, 3, []string{queuedB}},
		"purge no ids": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.DeadIDs())
		}, 0, []string{queuedB, deadB, deadA, deadC}},
		"purge no payloads": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Purge(ctx, "orders",
				inspect.DeadPayloads([]inspect.DeadLetterPayloads{{ID: "a"}, {ID: "b", Payloads: data()}}...))
		}, 0, []string{queuedB, deadB, deadA, deadC}},
		"edit ids": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Edit(ctx, "orders", inspect.DeadIDs("b", "c", "nothing"), upper)
		}, 2, []string{queuedB, deadA, "dead b at 1s [P] hopeless", "dead c at 1s [P] hopeless"}},
		"edit payloads": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Edit(ctx, "orders", inspect.DeadPayloads(some...), upper)
		}, 3, []string{queuedB, deadB, "dead a at 1s [p1 P2 P3] hopeless", "dead c at 1s [P] hopeless"}},
		"edit what matches": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Edit(ctx, "orders", inspect.AllDead(old, o), upper)
		}, 1, []string{queuedB, deadA, "dead b at 1s [P] hopeless", deadC}},
		"edit all": {func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
			return i.Edit(ctx, "orders", inspect.AllDead(nil, o), upper)
		}, 5, []string{
			queuedB, "dead a at 1s [P1 P2 P3] hopeless", "dead b at 1s [P] hopeless", "dead c at 1s [P] hopeless",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := withDeadLetters(t)
			result, err := c.act(t.Context(), s.Inspector)
			if result.Handled != c.handled || result.Checkpoint != "" || err != nil {
				t.Errorf("%+v, %v; want %d handled", result, err, c.handled)
			}
			s.holds(c.want...)
		})
	}
}

func TestAFilterSeesAllPayloadsOfALetter(t *testing.T) {
	s := newFixture(t)
	for n := range 40 {
		s.push("many", 0, nth("p", n))
	}
	s.bury()
	s.dead("few")
	seen := map[string]string{}
	result, err := s.Purge(t.Context(), "orders", inspect.AllDead(func(d inspect.DeadLetter) bool {
		seen[d.ID] = fmt.Sprintf("%d of %d", len(d.Payloads), d.PayloadCount)
		return d.ID == "many"
	}, inspect.BulkOptions{}))

	if err != nil || result.Handled != 1 {
		t.Errorf("PurgeAll = %+v, %v", result, err)
	}
	if seen["many"] != "40 of 40" || seen["few"] != "1 of 1" || len(seen) != 2 {
		t.Errorf("the filter saw %v", seen)
	}
	s.holds("dead few at 0s [p] hopeless")
}

func TestWhatAFilterHasNotSeenStays(t *testing.T) {
	o := inspect.BulkOptions{}
	for name, c := range map[string]struct {
		act     func(*fixture, func(inspect.DeadLetter) bool) (inspect.Result, error)
		handled int
		want    string
	}{
		"purged": {func(s *fixture, match func(inspect.DeadLetter) bool) (inspect.Result, error) {
			return s.Purge(t.Context(), "orders", inspect.AllDead(match, o))
		}, 0, "dead a at 1s [new p] hopeless"},
		"edited": {func(s *fixture, match func(inspect.DeadLetter) bool) (inspect.Result, error) {
			return s.Edit(t.Context(), "orders", inspect.AllDead(match, o), upper)
		}, 1, "dead a at 1s [P new] hopeless"},
	} {
		s := newFixture(t)
		s.dead("a")
		result, err := c.act(s, func(inspect.DeadLetter) bool {
			s.advance(time.Second)
			s.push("a", 0, "new")
			s.bury()
			return true
		})

		if err != nil || result.Handled != c.handled {
			t.Errorf("%s: %+v, %v; want %d", name, result, err, c.handled)
		}
		s.holds(c.want)
	}
}

func TestLettersThatChangeDuringALookUpArePassedOver(t *testing.T) {
	s := newFixture(t)
	for n := range 20 {
		s.push("changed", 0, nth("p", n))
		s.push("gone", 0, nth("p", n))
	}
	s.bury()
	disturbed := false
	s.intercept().before = func(call string) error {
		if call != "Find" || disturbed {
			return nil
		}
		disturbed = true
		s.advance(time.Second)
		s.push("changed", 0, "new")
		s.bury()
		_, err := inspect.New(s.store, inspect.Options{}).
			Purge(t.Context(), "orders", inspect.DeadIDs("gone"))
		return err
	}
	last := inspect.Progress{}
	result, err := s.Revive(t.Context(), "orders", inspect.AllDead(func(inspect.DeadLetter) bool { return true },
		inspect.BulkOptions{Progress: func(p inspect.Progress) { last = p }}))

	if err != nil || result.Handled != 0 {
		t.Errorf("ReviveAll = %+v, %v; want none", result, err)
	}
	if want := (inspect.Progress{Done: 2, Total: 2}); last != want {
		t.Errorf("progress ends at %+v, want %+v", last, want)
	}
}

func TestLargePayloadsGoInSmallSteps(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 20)
	for _, id := range ids {
		s.push(id, 0, strings.Repeat(id, 20<<10))
	}
	s.bury()

	steps := 0
	s.intercept().before = func(call string) error {
		if call == "Purge" {
			steps++
		}
		return nil
	}

	result, err := s.Purge(t.Context(), "orders", inspect.AllDead(func(inspect.DeadLetter) bool {
		return true
	}, inspect.BulkOptions{}))
	if err != nil || result.Handled != len(ids) {
		t.Errorf("PurgeAll = %+v, %v", result, err)
	}
	if steps < 5 { // nearly 5 MB, 1 MB a step
		t.Errorf("they were named in %d steps", steps)
	}
}

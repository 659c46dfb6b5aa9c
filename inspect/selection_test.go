package inspect_test

import (
	"context"
	"errors"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// An action refuses the zero selection and one on which it does not act, and changes nothing.
func TestActionsRefuseOtherSelections(t *testing.T) {
	s := newFixture(t)
	s.failed("a")
	s.dead("b")
	if err := s.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	to := inspect.Target{Queue: "orders-2"}
	edit := func(string, core.Payload) ([]byte, bool, error) { return []byte("new"), true, nil }
	move := func(ctx context.Context, queue string, jobs inspect.JobSelection) (inspect.Result, error) {
		return s.Move(ctx, queue, to, jobs)
	}
	type onJobs = func(context.Context, string, inspect.JobSelection) (inspect.Result, error)
	all := inspect.BulkOptions{}
	first := inspect.FirstPayloads(inspect.FirstPayload{ID: "a", Data: []byte("p")})
	for name, c := range map[string]struct {
		act  onJobs
		jobs inspect.JobSelection
	}{
		"RunNow, zero":    {s.RunNow, inspect.JobSelection{}},
		"RunNow, first":   {s.RunNow, first},
		"RunNow, failed":  {s.RunNow, inspect.FailedJobs(nil, all)},
		"RunNow, fresh":   {s.RunNow, inspect.FreshJobs(nil, all)},
		"Release, zero":   {s.Release, inspect.JobSelection{}},
		"Release, first":  {s.Release, first},
		"Release, failed": {s.Release, inspect.FailedJobs(nil, all)},
		"Release, fresh":  {s.Release, inspect.FreshJobs(nil, all)},
		"Bury, zero":      {s.Bury, inspect.JobSelection{}},
		"Delete, zero":    {s.Delete, inspect.JobSelection{}},
		"Move, zero":      {move, inspect.JobSelection{}},
		"Move, first":     {move, first},
		"Move, failed":    {move, inspect.FailedJobs(nil, all)},
	} {
		if r, err := c.act(t.Context(), "orders", c.jobs); !errors.Is(err, inspect.ErrInvalidOptions) ||
			r.Handled != 0 {
			t.Errorf("%s: %+v, %v; want ErrInvalidOptions", name, r, err)
		}
	}

	for name, act := range map[string]func(inspect.DeadLetterSelection) (inspect.Result, error){
		"Revive": func(d inspect.DeadLetterSelection) (inspect.Result, error) {
			return s.Revive(t.Context(), "orders", d)
		},
		"Purge": func(d inspect.DeadLetterSelection) (inspect.Result, error) {
			return s.Purge(t.Context(), "orders", d)
		},
		"Edit": func(d inspect.DeadLetterSelection) (inspect.Result, error) {
			return s.Edit(t.Context(), "orders", d, edit)
		},
		"MoveMorgue": func(d inspect.DeadLetterSelection) (inspect.Result, error) {
			return s.MoveMorgue(t.Context(), "orders", to, d)
		},
	} {
		if r, err := act(inspect.DeadLetterSelection{}); !errors.Is(err, inspect.ErrInvalidOptions) || r.Handled != 0 {
			t.Errorf("%s, zero: %+v, %v; want ErrInvalidOptions", name, r, err)
		}
	}
	if _, err := s.MoveMorgue(t.Context(), "orders",
		to, inspect.DeadIDs("b")); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("MoveMorgue of ids: %v; want ErrInvalidOptions", err)
	}

	s.holds("queued a at 1h0m0s retries 1 [p] boom", "dead b at 0s [p] hopeless")
}

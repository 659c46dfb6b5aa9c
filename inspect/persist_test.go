package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestActionsPersistWhereAnOutcomeIsUnknown(t *testing.T) {
	lost := errors.New("connection lost")
	ids := []string{"order-1", "order-2", "order-3", "order-4"}
	o := inspect.BulkOptions{}
	all := func(inspect.DeadLetter) bool { return true }

	for _, c := range []struct {
		name, call string
		act        func(context.Context, *fixture) (inspect.Result, error)
	}{
		{"ids", "Bury", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Bury(ctx, "orders", inspect.JobIDs(ids...))
		}},
		{"a queue", "Queues", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Bury(ctx, "orders", inspect.JobIDs(ids...))
		}},
		{"all failed", "Bury", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Bury(ctx, "orders", inspect.FailedJobs(nil, o))
		}},
		{"counts", "Stats", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Bury(ctx, "orders", inspect.FailedJobs(nil, o))
		}},
		{"all dead", "Revive", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Revive(ctx, "orders", inspect.AllDead(nil, o))
		}},
		{"a filter", "Purge", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Purge(ctx, "orders", inspect.AllDead(all, o))
		}},
		{"a filter's page", "Morgue", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Purge(ctx, "orders", inspect.AllDead(all, o))
		}},
		{"an edit", "Edit", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Edit(ctx, "orders", inspect.DeadIDs("dead-1", "dead-2", "dead-3", "dead-4"), upper)
		}},
		{"an edit's look-up", "Find", func(ctx context.Context, s *fixture) (inspect.Result, error) {
			return s.Edit(ctx, "orders", inspect.DeadIDs("dead-1", "dead-2", "dead-3", "dead-4"), upper)
		}},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost after it was done: %v", c.name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					newHooked := func() (*fixture, *hooks) {
						s := newFixture(t)
						s.dead("dead-1", "dead-2", "dead-3", "dead-4")
						s.failed(ids...)
						return s, s.intercept()
					}

					undisturbed, _ := newHooked()
					want, err := c.act(t.Context(), undisturbed)
					if err != nil || want.Handled != 4 {
						t.Fatalf("undisturbed: %+v, %v", want, err)
					}

					s, hooked := newHooked()
					losses := 0
					lose := func(call string) error {
						if call == c.call && losses < 3 {
							losses++
							return lost
						}
						return nil
					}
					if hooked.before = lose; after {
						hooked.before, hooked.after = nil, lose
					}

					got, err := c.act(t.Context(), s)
					if err != nil || got.Handled > want.Handled || !after && got.Handled != want.Handled {
						t.Errorf("%+v, %v; undisturbed %+v", got, err, want)
					}
					if losses != 3 {
						t.Errorf("%d losses, want 3", losses)
					}
					s.holds(undisturbed.state()...)
				})
			})
		}
	}
}

func TestActionsGiveUpInTheEnd(t *testing.T) {
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		err   error
		calls int
		took  time.Duration
	}{
		"an outcome that stays unknown":     {lost, 5, (50 + 100 + 200 + 400) * time.Millisecond},
		"a store that refuses":              {ports.ErrFull, 1, 0},
		"a request that the store refuses":  {fmt.Errorf("%w: no", ports.ErrInvalidRequest), 1, 0},
		"an invalid payload":                {fmt.Errorf("%w: no", core.ErrInvalidPayload), 1, 0},
		"an invalid score":                  {fmt.Errorf("%w: no", core.ErrInvalidScore), 1, 0},
		"an invalid time":                   {fmt.Errorf("%w: no", core.ErrInvalidTime), 1, 0},
		"an invalid rule":                   {fmt.Errorf("%w: no", core.ErrInvalidRule), 1, 0},
		"a call that was not begun":         {fmt.Errorf("%w: no", ports.ErrNotBegun), 1, 0},
		"a timeout that is not the context": {context.DeadlineExceeded, 5, 750 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFixture(t)
				ids := numbered("order", 100)
				s.dead(ids...)

				var calls []string
				s.intercept().before = func(call string) error {
					if call != "Revive" {
						return nil
					}
					if calls = append(calls, call); len(calls) > 1 {
						return c.err
					}
					return nil
				}

				start := time.Now()
				result, err := s.Revive(t.Context(), "orders", inspect.DeadIDs(ids...))
				if !errors.Is(err, c.err) || !strings.Contains(err.Error(), "revive: shard orders/1: ") {
					t.Errorf("error %v; want %v, and where", err, c.err)
				}
				if result.Handled == 0 || result.Handled == len(ids) || int64(result.Handled) != s.counts().Length() {
					t.Errorf("%+v; want what the first shard had, %+v", result, s.counts())
				}
				if took := time.Since(start); len(calls) != 1+c.calls || took != c.took {
					t.Errorf("%d calls of the second shard in %v, want %d in %v", len(calls)-1, took, c.calls, c.took)
				}
			})
		})
	}
}

func TestARepeatHeedsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		lost := errors.New("connection lost")
		s.intercept().before = func(string) error { return lost }
		ctx, stop := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer stop()
		start := time.Now()
		err := s.Pause(ctx, "orders")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lost) ||
			time.Since(start) != 60*time.Millisecond {
			t.Errorf("Pause: %v after %v; want both reasons at the deadline", err, time.Since(start))
		}
	})
}

func TestACallThatEndsWithItsContextIsNotRepeated(t *testing.T) {
	s := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calls := 0
	s.intercept().before = func(string) error {
		calls++
		stop()
		return fmt.Errorf("store: %w", ctx.Err())
	}
	err := s.Pause(ctx, "orders")
	if calls != 1 || err == nil || err.Error() != "pause: store: context canceled" {
		t.Errorf("Pause: %v after %d calls; want the store's word and one", err, calls)
	}
}

func TestStepsThatGetNowhereEndTheirShard(t *testing.T) {
	s := newFixture(t)
	s.dead("order-0")
	s.failed("order-1")
	stuck := &stuck{Store: s.store}
	i, o := inspect.New(stuck, inspect.Options{}), inspect.BulkOptions{}

	for name, act := range map[string]func() (inspect.Result, error){
		"jobs": func() (inspect.Result, error) {
			return i.Bury(t.Context(), "orders", inspect.FailedJobs(nil, o))
		},
		"dead letters": func() (inspect.Result, error) {
			return i.Purge(t.Context(), "orders", inspect.AllDead(nil, o))
		},
	} {
		stuck.steps = 0
		result, err := act()
		if err == nil || !strings.Contains(err.Error(), "call the action again") || result.Handled != 0 ||
			stuck.steps != 10_000 {
			t.Errorf("%s: %+v, %v after %d steps; want 10,000 and an error", name, result, err, stuck.steps)
		}
	}
}

// stuck is a store that makes no progress with jobs.
type stuck struct {
	*memory.Store
	steps int
}

func (s *stuck) Bury(context.Context, ports.JobStep) (ports.StepReply, error) {
	s.steps++
	return ports.StepReply{More: true}, nil
}

func (s *stuck) Purge(context.Context, ports.DeadLetterStep) (ports.StepReply, error) {
	s.steps++
	return ports.StepReply{More: true}, nil
}

package inspect_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestPauseStopsClaimsUntilResume(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1")
	for range 2 {
		if err := s.Pause(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
	}

	if queues, err := s.Queues(t.Context()); err != nil || !queues[0].Paused || len(s.claim()) != 0 {
		t.Errorf("Queues = %+v, %v; want it paused and nothing claimed", queues, err)
	}

	for range 2 {
		if err := s.Resume(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
	}
	if queues, err := s.Queues(t.Context()); err != nil || queues[0].Paused || len(s.claim()) != 1 {
		t.Errorf("Queues = %+v, %v; want it to go on", queues, err)
	}
}

func TestSetMergeHoldsFromTheNextMergeOn(t *testing.T) {
	s := newFixture(t)
	s.push("a", 0, "1", "2", "3")
	for range 2 {
		if err := s.SetMerge(t.Context(), "orders", core.MergeRule{Stays: core.Highest, Keep: 1}); err != nil {
			t.Fatal(err)
		}
	}

	s.push("b", 0, "1", "2", "3")
	for id, want := range map[string]int{"a": 3, "b": 1} {
		if found, err := s.Find(t.Context(), "orders", id); err != nil || found.Queued == nil ||
			len(found.Queued.Payloads) != want {
			t.Errorf("%s: %+v, %v; want %d payloads", id, found.Queued, err, want)
		}
	}

	if err := s.SetMerge(t.Context(), "orders",
		core.MergeRule{Same: core.SamePush}); !errors.Is(err, inspect.ErrQueueMismatch) {
		t.Errorf("a rule that counts each push: %v", err)
	}
	if err := s.SetMerge(t.Context(), "orders", core.MergeRule{Keep: 1}); !errors.Is(err, core.ErrInvalidRule) {
		t.Errorf("an invalid rule: %v", err)
	}
	if err := s.SetMerge(t.Context(), "nosuch", core.MergeRule{}); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("an unknown queue: %v", err)
	}
}

// withEachKind returns a fixture with a job of each kind: fresh ones that are due and that are
// not, one with a failure, a claimed one, and ids in two places.
func withEachKind(t *testing.T) *fixture {
	s := newFixture(t)
	s.pushAll("claimed", "both")
	s.claim()
	s.push("both", time.Minute, "q")
	s.failed("failed")
	s.pushAll("due")
	s.push("later", time.Minute, "p")
	return s
}

func TestActionsOnJobs(t *testing.T) {
	const (
		bothClaimed = "claimed both [p]"
		claimed     = "claimed claimed [p]"
		due         = "queued due at 0s retries 0 [p]"
		both        = "queued both at 1m0s retries 0 [q]"
		later       = "queued later at 1m0s retries 0 [p]"
		failed      = "queued failed at 1h0m0s retries 1 [p] boom"
	)
	everything := []string{"due", "both", "later", "failed", "claimed", "nothing"}
	o := inspect.BulkOptions{}

	for name, c := range map[string]struct {
		act     func(context.Context, *inspect.Inspector) (inspect.Result, error)
		handled int
		want    []string
	}{
		"run ids now": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.RunNow(ctx, "orders", inspect.JobIDs("due", "later", "claimed", "nothing"))
			}, 1,
			[]string{due, "queued later at 0s retries 0 [p]", both, failed, bothClaimed, claimed},
		},
		"run all now": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.RunNow(ctx, "orders", inspect.AllJobs(nil, o))
			}, 3,
			[]string{
				"queued both at 0s retries 0 [q]", due, "queued failed at 0s retries 1 [p] boom",
				"queued later at 0s retries 0 [p]", bothClaimed, claimed,
			},
		},
		"bury ids": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.Bury(ctx, "orders", inspect.JobIDs(everything...))
			}, 4,
			[]string{
				bothClaimed, claimed, "dead both at 0s [q] buried by hand", "dead due at 0s [p] buried by hand",
				"dead failed at 0s [p] boom", "dead later at 0s [p] buried by hand",
			},
		},
		"bury failed": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.Bury(ctx, "orders", inspect.FailedJobs(nil, o))
			}, 1,
			[]string{due, both, later, bothClaimed, claimed, "dead failed at 0s [p] boom"},
		},
		"delete ids": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.Delete(ctx, "orders", inspect.JobIDs(everything...))
			}, 4,
			[]string{bothClaimed, claimed},
		},
		"delete failed": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.Delete(ctx, "orders", inspect.FailedJobs(nil, o))
			}, 1,
			[]string{due, both, later, bothClaimed, claimed},
		},
		"delete no ids": {
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.Delete(ctx, "orders", inspect.JobIDs())
			}, 0,
			[]string{due, both, later, failed, bothClaimed, claimed},
		},
		"cancel": { // marks only: the owner ends them
			func(ctx context.Context, i *inspect.Inspector) (inspect.Result, error) {
				return i.Cancel(ctx, "orders", everything, inspect.CancelModeDrop)
			}, 2,
			[]string{due, both, later, failed, bothClaimed, claimed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withEachKind(t)
			result, err := c.act(t.Context(), s.Inspector)
			if result.Handled != c.handled {
				t.Errorf("result %+v, want %d handled", result, c.handled)
			}
			if err != nil {
				t.Error(err)
			}
			s.holds(c.want...)
		})
	}
}

func TestCancelledJobsEndAsChosen(t *testing.T) {
	s := withEachKind(t)
	for _, step := range []struct {
		ids    []string
		ending inspect.CancelMode
		drops  map[string]bool
	}{
		{[]string{"claimed"}, inspect.CancelModeDrop, map[string]bool{"claimed": true}},
		{[]string{"both", "due"}, inspect.CancelModePutBack, map[string]bool{"claimed": true, "both": false}},
		{[]string{"claimed", "both"}, inspect.CancelModePutBack, map[string]bool{"claimed": false, "both": false}},
	} {
		if _, err := s.Cancel(t.Context(), "orders", step.ids, step.ending); err != nil {
			t.Fatal(err)
		}

		drops := map[string]bool{}
		for _, shard := range core.Shards("orders", fixtureShards) {
			for _, c := range s.turn(shard, 0).Cancellations {
				drops[c.ID] = c.Drop
			}
		}
		if diff := cmp.Diff(step.drops, drops); diff != "" {
			t.Errorf("their owner learns (-want +got):\n%s", diff)
		}
	}

	for job := range must(t, s.Claimed(t.Context(), "orders", inspect.ListOptions{})) {
		if !job.Cancelled {
			t.Errorf("%s is not shown as cancelled", job.ID)
		}
	}

	_, err := s.Cancel(t.Context(), "orders", []string{"both"}, 7)
	if !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("an ending that is none: %v; want ErrInvalidOptions", err)
	}
}

func TestManyIDsGoInBoundedSteps(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 4*ports.MaxStep)
	s.pushAll(ids...)
	twice := slices.Concat(ids, ids[:10])
	jobs, dead := inspect.JobIDs(twice...), inspect.DeadIDs(twice...)

	steps := map[string]int{}
	s.intercept().before = func(call string) error {
		steps[call]++
		return nil
	}

	for n, c := range []struct {
		act  func() (inspect.Result, error)
		want int
	}{
		{func() (inspect.Result, error) { return s.RunNow(t.Context(), "orders", jobs) }, 0}, // they are due
		{func() (inspect.Result, error) { return s.Bury(t.Context(), "orders", jobs) }, len(ids)},
		{func() (inspect.Result, error) { return s.Revive(t.Context(), "orders", dead) }, len(ids)},
		{func() (inspect.Result, error) { return s.Bury(t.Context(), "orders", jobs) }, len(ids)},
		{func() (inspect.Result, error) { return s.Purge(t.Context(), "orders", dead) }, len(ids)},
		{func() (inspect.Result, error) { return s.Delete(t.Context(), "orders", jobs) }, 0}, // they are gone
	} {
		result, err := c.act()
		if err != nil || result.Handled != c.want {
			t.Errorf("action %d: %+v, %v; want %d", n, result, err, c.want)
		}
	}

	for call, least := range map[string]int{"Expedite": 4, "Bury": 8, "Revive": 4, "Purge": 4} {
		if steps[call] < least {
			t.Errorf("%d ids went in %d calls of %s, want %d at least", len(ids), steps[call], call, least)
		}
	}
	if diff := cmp.Diff(inspect.Counts{}, s.counts()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

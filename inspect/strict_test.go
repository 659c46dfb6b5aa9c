package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// A checkpoint in a shard before one that can't be reached leads to the rest of that one too.
func TestACheckpointBeforeAShardThatIsAwayStays(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		s := newFixture(t)
		s.dead(numbered("d", 30)...)

		away := inspect.New(&partialStore{Store: s.store}, inspect.Options{})
		result, err := reviving(away)[name](t.Context(), inspect.BulkOptions{Limit: 1})
		if err != nil || result.Handled != 1 || result.Checkpoint == "" {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}

		if _, err := reviving(s.Inspector)[name](t.Context(),
			inspect.BulkOptions{Continue: result.Checkpoint}); err != nil {
			t.Error(err)
		}

		if c := s.counts(); c.Dead != 0 || c.Fresh != 30 {
			t.Errorf("%s: %+v; want all revived", name, c)
		}
	}
}

// lettersOf are dead letters that may be imported.
func lettersOf(ids []string, payloads int) (list []core.DeadLetter) {
	for _, id := range ids {
		d := core.DeadLetter{ID: id, ChangedAt: core.InstantOf(epoch) - 1, Failures: core.Failures{{Text: "boom"}}, Group: "g"}
		for n := range payloads {
			d.Payloads = append(d.Payloads, core.Payload{Data: fmt.Append(nil, n), Score: float64(n)})
		}
		list = append(list, d)
	}
	return list
}

func (s *fixture) imported(ids []string, payloads int) {
	s.t.Helper()
	if _, err := s.Import(s.t.Context(), "orders", sequence(lettersOf(ids, payloads), nil), nil); err != nil {
		s.t.Fatal(err)
	}
}

// After a queue was declared with another shard count, an older checkpoint is refused, since ids
// are in other shards.
func TestACheckpointOfOtherShardsIsRefused(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		s := newFixture(t)
		s.imported(numbered("d", 30), 1)
		first, err := purging(s.Inspector)[name](t.Context(), inspect.BulkOptions{Limit: 1})
		if err != nil || first.Checkpoint == "" {
			t.Fatalf("%+v, %v", first, err)
		}

		if _, err := s.Purge(t.Context(), "orders", inspect.AllDead(nil, inspect.BulkOptions{})); err != nil {
			t.Fatal(err)
		}
		if err := s.Forget(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}

		s.declare("orders", 5)
		s.imported(numbered("d", 30), 1)

		r, err := purging(s.Inspector)[name](t.Context(), inspect.BulkOptions{Continue: first.Checkpoint})
		if !errors.Is(err, inspect.ErrInvalidCheckpoint) || s.counts().Dead != 30 {
			t.Errorf("%s: %+v, %v; %d are left of 30", name, r, err, s.counts().Dead)
		}
	}
}

// purging is reviving for a purge.
func purging(i *inspect.Inspector) map[string]func(context.Context, inspect.BulkOptions) (inspect.Result, error) {
	return map[string]func(context.Context, inspect.BulkOptions) (inspect.Result, error){
		"all": func(ctx context.Context, o inspect.BulkOptions) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.AllDead(nil, o))
		},
		"filter": func(ctx context.Context, o inspect.BulkOptions) (inspect.Result, error) {
			o.Filter = "any"
			return i.Purge(ctx, "orders", inspect.AllDead(anyLetter, o))
		},
	}
}

// Payloads that a page leaves out of an entry are fetched. If that fails, the action fails too.
// Entries that no longer exist by then are skipped.
func TestWhatCanNotBeReadWholeIsNotPassedOver(t *testing.T) {
	many := make([]string, 20)
	for n := range many {
		many[n] = fmt.Sprint("p", n)
	}

	anyJob := func(inspect.QueuedJob) bool { return true }
	for name, act := range map[string]func(context.Context, *inspect.Inspector) error{
		"revive": func(ctx context.Context, i *inspect.Inspector) error {
			_, err := i.Revive(ctx, "orders", inspect.AllDead(anyLetter, inspect.BulkOptions{}))
			return err
		},
		"delete": func(ctx context.Context, i *inspect.Inspector) error {
			_, err := i.Delete(ctx, "orders", inspect.FailedJobs(anyJob, inspect.BulkOptions{}))
			return err
		},
		"run now": func(ctx context.Context, i *inspect.Inspector) error {
			_, err := i.RunNow(ctx, "orders", inspect.AllJobs(anyJob, inspect.BulkOptions{}))
			return err
		},
		"export": func(ctx context.Context, i *inspect.Inspector) error {
			for _, err := range i.Export(ctx, "orders", inspect.ListOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for _, gone := range []bool{false, true} {
			s := newFixture(t)
			s.push("f", 0, many...)
			s.fail("boom")
			s.imported([]string{"d"}, 20)

			plain := s.Inspector
			h := s.intercept()
			h.before = func(method string) error {
				if method != "Find" {
					return nil
				}
				if !gone {
					return ports.ErrUnusable
				}
				_, dead := plain.Purge(t.Context(), "orders", inspect.DeadIDs("d"))
				_, queued := plain.Delete(t.Context(), "orders", inspect.JobIDs("f"))
				return errors.Join(dead, queued)
			}

			if err := act(t.Context(), s.Inspector); gone != (err == nil) {
				t.Errorf("%s, gone %v: %v", name, gone, err)
			}
		}
	}
}

// A dry run counts the entries that the action would take: only failed jobs, and only dead letters
// from before it.
func TestADryRunCountsWhatTheActionTakes(t *testing.T) {
	s := newFixture(t)
	s.failed("a1", "a2")
	s.push("a3", time.Hour, "p")
	s.dead("b1", "b2")
	s.advance(time.Minute)
	before := epoch.Add(time.Minute)
	s.dead("b3")

	failed, err := s.Bury(t.Context(), "orders", inspect.FailedJobs(nil, inspect.BulkOptions{DryRun: true}))
	if err != nil || failed.Handled != 2 || failed.Total != 2 || len(failed.Jobs) != 2 {
		t.Errorf("%+v, %v; want 2 of 2", failed, err)
	}

	old, err := s.Purge(t.Context(), "orders", inspect.AllDead(nil, inspect.BulkOptions{
		DryRun: true,
		Prefix: "b",
		Before: before,
	}))
	if err != nil || old.Handled != 2 || len(old.Samples) != 2 {
		t.Errorf("%+v, %v; want 2", old, err)
	}
}

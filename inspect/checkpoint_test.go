package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func anyLetter(inspect.DeadLetter) bool { return true }

// reviving returns ReviveAll by filter and of all.
func reviving(i *inspect.Inspector) map[string]func(context.Context, inspect.BulkOptions) (inspect.Result, error) {
	return map[string]func(context.Context, inspect.BulkOptions) (inspect.Result, error){
		"filter": func(ctx context.Context, o inspect.BulkOptions) (inspect.Result, error) {
			o.Filter = "any"
			return i.Revive(ctx, "orders", inspect.AllDead(anyLetter, o))
		},
		"all": func(ctx context.Context, o inspect.BulkOptions) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.AllDead(nil, o))
		},
	}
}

func TestAnyCheckpointOfAnInterruptedActionLeadsToItsEnd(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		for at := range 3 { // the checkpoint that outlived the process: from the first to the newest
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				s := newFixture(t)
				const letters = 500
				s.dead(numbered("d", letters)...)
				s.advance(time.Second)

				ctx, kill := context.WithCancel(t.Context())
				var kept []inspect.Checkpoint
				result, err := reviving(s.Inspector)[name](ctx,
					inspect.BulkOptions{Checkpoint: func(c inspect.Checkpoint) {
						if kept = append(kept, c); len(kept) == 3 {
							kill()
						}
					}})
				if !errors.Is(err, context.Canceled) || result.Checkpoint != kept[2] {
					t.Fatalf("%+v, %v; want the last checkpoint", result, err)
				}

				// The revived letters die again, and more die: neither are revived.
				s.advance(time.Second)
				again := s.claim()
				s.settle(again, core.Outcome{Kind: core.Buried, Error: "again"})
				s.dead("new")

				// An action on the earlier letters does not touch them.
				elsewhere := inspect.New(s.store, inspect.Options{})
				if _, err := reviving(elsewhere)[name](t.Context(),
					inspect.BulkOptions{Continue: kept[at]}); err != nil {
					t.Fatal(err)
				}

				counts := s.counts()
				if counts.Dead != int64(len(again))+1 || counts.Fresh != int64(letters-len(again)) {
					t.Errorf("%+v after %d died again; want each revived once", counts, len(again))
				}
			})
		}
	}
}

// An action that finds nothing at its start has nothing to continue.
func TestNoCheckpointIsMadeOfNothing(t *testing.T) {
	s := newFixture(t)
	for name, act := range reviving(s.Inspector) {
		made := 0
		result, err := act(t.Context(), inspect.BulkOptions{Checkpoint: func(inspect.Checkpoint) { made++ }})
		if err != nil || made != 0 || result.Checkpoint != "" {
			t.Errorf("%s: %d checkpoints, %+v, %v", name, made, result, err)
		}
	}
}

func TestLimitAndContinueTakeEachOnce(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead(numbered("d", 250)...)

			var at inspect.Checkpoint
			for call := 1; ; call++ {
				result, err := reviving(s.Inspector)[name](t.Context(), inspect.BulkOptions{Limit: 7, Continue: at})
				want := min(7*call, 250)
				if err != nil || result.Handled != want || s.counts().Fresh != int64(want) {
					t.Fatalf("call %d: %+v, %v; want %d", call, result, err, want)
				}
				if at = result.Checkpoint; at == "" {
					break
				}
			}

			if dead := s.counts().Dead; dead != 0 {
				t.Errorf("%d left", dead)
			}
		})
	}
}

func TestBeforeLeavesAloneWhatCameAtThatTimeOrAfter(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead("a")
			s.advance(time.Second)
			s.dead("b")
			result, err := reviving(s.Inspector)[name](t.Context(), inspect.BulkOptions{Before: epoch.Add(time.Second)})
			if err != nil || result.Handled != 1 || s.counts().Dead != 1 {
				t.Errorf("%+v, %v; want a alone", result, err)
			}
		})
	}
}

func TestADryRunCountsAndWritesNothing(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 120)...)
	s.failed(numbered("f", 120)...)
	s.advance(time.Second)

	hooked := s.intercept()
	hooked.before = func(call string) error {
		if slices.Contains([]string{"Revive", "Purge", "Edit", "Expedite", "Bury", "Delete"}, call) {
			return fmt.Errorf("%w: %s in a dry run", ports.ErrInvalidRequest, call)
		}
		return nil
	}

	o := inspect.BulkOptions{DryRun: true}
	for name, act := range bulk(s.Inspector, o) {
		result, err := act(t.Context())
		if samples := len(result.Samples) + len(result.Jobs); err != nil || result.Handled != 120 || samples != 10 ||
			result.Checkpoint != "" {
			t.Errorf("%s: %d handled, %d samples, %v", name, result.Handled, samples, err)
		}
		for _, j := range result.Jobs {
			if len(j.Payloads) != 1 || j.LastError != "boom" {
				t.Errorf("%s: a sample is %+v", name, j)
			}
		}
	}
}

func TestRateIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		s.dead(numbered("d", 100)...)
		for _, dry := range []bool{true, false} { // the dry run leaves all to the other
			start := time.Now()
			result, err := s.Revive(t.Context(), "orders",
				inspect.AllDead(nil, inspect.BulkOptions{Rate: 10, DryRun: dry}))
			if took := time.Since(start); err != nil || result.Handled != 100 || took != 10*time.Second {
				t.Errorf("dry %t: %d in %v, %v; want 100 in 10 s", dry, result.Handled, took, err)
			}
		}
	})
}

func TestAWrongContinuationIsRefused(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 50)...)
	first, err := s.Revive(t.Context(), "orders",
		inspect.AllDead(anyLetter, inspect.BulkOptions{Limit: 1, Filter: "any"}))
	if err != nil || first.Checkpoint == "" {
		t.Fatalf("%+v, %v", first, err)
	}

	at, o := first.Checkpoint, inspect.BulkOptions{Continue: first.Checkpoint, Filter: "any"}
	with := func(change func(*inspect.BulkOptions)) inspect.BulkOptions { c := o; change(&c); return c }
	flipped := []byte(at)
	flipped[len(flipped)/2] ^= 3
	revive := func(queue string, match func(inspect.DeadLetter) bool, o inspect.BulkOptions) error {
		_, err := s.Revive(t.Context(), queue, inspect.AllDead(match, o))
		return err
	}

	_, purge := s.Purge(t.Context(), "orders", inspect.AllDead(anyLetter, o))
	_, edit := s.Edit(t.Context(), "orders", inspect.AllDead(anyLetter, o), upper)

	for name, c := range map[string]struct{ err, want error }{
		"action": {purge, inspect.ErrInvalidCheckpoint},
		"edit":   {edit, inspect.ErrInvalidOptions},
		"queue":  {revive("others", anyLetter, o), inspect.ErrInvalidCheckpoint},
		"filter": {revive("orders", anyLetter, with(func(o *inspect.BulkOptions) {
			o.Filter = "x"
		})), inspect.ErrInvalidCheckpoint},
		"no filter": {revive("orders", nil, o), inspect.ErrInvalidCheckpoint},
		"before": {revive("orders", anyLetter, with(func(o *inspect.BulkOptions) {
			o.Before = epoch.Add(-1)
		})), inspect.ErrInvalidCheckpoint},
		"damaged": {revive("orders", anyLetter, with(func(o *inspect.BulkOptions) {
			o.Continue = inspect.Checkpoint(flipped)
		})), inspect.ErrInvalidCheckpoint},
		"cut": {revive("orders", anyLetter, with(func(o *inspect.BulkOptions) {
			o.Continue = at[:len(at)-2]
		})), inspect.ErrInvalidCheckpoint},
		"long": {revive("orders", anyLetter, with(func(o *inspect.BulkOptions) {
			o.Continue = inspect.Checkpoint(strings.Repeat("A", 1<<20))
		})), inspect.ErrInvalidCheckpoint},
		"negative":      {revive("orders", nil, inspect.BulkOptions{Limit: -1}), inspect.ErrInvalidOptions},
		"unnamed match": {revive("orders", anyLetter, inspect.BulkOptions{Continue: at}), inspect.ErrInvalidOptions},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v; want %v", name, c.err, c.want)
		}
	}

	if dead := s.counts().Dead; dead != 49 {
		t.Errorf("%d dead; a refused call did something", dead)
	}
}

func TestACheckpointDoesNotGoBeyondWhatCouldNotBeReached(t *testing.T) {
	for _, name := range []string{"filter", "all"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead(numbered("d", 30)...)

			away := inspect.New(&partialStore{Store: s.store}, inspect.Options{})
			result, err := reviving(away)[name](t.Context(), inspect.BulkOptions{})
			isPartial(t, err)

			if _, err := reviving(s.Inspector)[name](t.Context(),
				inspect.BulkOptions{Continue: result.Checkpoint}); err != nil || result.Checkpoint == "" {
				t.Fatalf("%+v, %v", result, err)
			}

			if c := s.counts(); c.Dead != 0 || c.Fresh != 30 {
				t.Errorf("%+v; want all revived when the shard is back", c)
			}
		})
	}
}

// The first checkpoint of an action that was killed leads to a right sum: the dead letters that the
// killed process handled are those that the next call does not find.
func TestWhatAKilledCallHandledIsGoneForTheNext(t *testing.T) {
	for name := range bulk(nil, inspect.BulkOptions{}) {
		if name == "RunAllNow" ||
			name == "EditAll" { // the first counts more than it is about, the second can't continue
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			const each = 400
			s.dead(numbered("d", each)...)
			s.failed(numbered("f", each)...)
			s.advance(time.Second)

			var first inspect.Checkpoint
			ctx, kill := context.WithCancel(t.Context())
			steps := 0
			killed, err := bulk(s.Inspector, inspect.BulkOptions{Filter: "all", Checkpoint: func(c inspect.Checkpoint) {
				if steps++; steps == 1 {
					first = c
				} else if steps == 3 {
					kill()
				}
			}})[name](ctx)

			if !errors.Is(err, context.Canceled) || killed.Handled == 0 || killed.Handled == each {
				t.Fatalf("%+v, %v; want an action that is cut off", killed, err)
			}

			s.advance(time.Second)
			s.dead(numbered("late", 30)...) // like the revived letters that die again, these count for nobody
			s.failed(numbered("late", 30)...)

			next, err := bulk(s.Inspector, inspect.BulkOptions{Filter: "all", Continue: first})[name](t.Context())
			if err != nil || next.Handled != each-killed.Handled || next.Gone != killed.Handled || next.Earlier != 0 ||
				next.Done != each {
				t.Errorf("%+v, %v; the killed call had handled %d of %d", next, err, killed.Handled, each)
			}
		})
	}
}

// Gone counts neither entries that do not match nor those that earlier calls counted, and is not
// reported for a part of the queue.
func TestGoneIsOnlyWhatWasNotFound(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 90)...)
	even := func(d inspect.DeadLetter) bool { return d.ID[len(d.ID)-1]%2 == 0 }
	o := inspect.BulkOptions{Filter: "even", Limit: 10}
	first, err := s.Revive(t.Context(), "orders", inspect.AllDead(even, o))
	if err != nil || first.Handled != 10 || first.Gone != -1 {
		t.Fatalf("%+v, %v", first, err)
	}

	if _, err := s.Purge(t.Context(), "orders", inspect.DeadIDs(nth("d", 86), nth("d", 88))); err != nil {
		t.Fatal(err)
	}

	o.Limit, o.Continue = 0, first.Checkpoint
	next, err := s.Revive(t.Context(), "orders", inspect.AllDead(even, o))
	if err != nil || next.Handled != 43 || next.Earlier != 10 || next.Gone != 2 {
		t.Errorf("%+v, %v; want 33 handled after 10, and 2 gone", next, err)
	}

	for name, o := range map[string]inspect.BulkOptions{
		"prefix": {Prefix: "x"},
		"group":  {Group: "x"},
		"before": {Before: epoch.Add(-time.Second)},
	} {
		if r, err := s.Purge(t.Context(), "orders", inspect.AllDead(nil, o)); err != nil || r.Total == 0 ||
			r.Gone != -1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

package inspect_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// staleDead fills the morgue with n dead letters, of which each tenth is stale. It returns their ids.
func (s *fixture) staleDead(n int) (stale []string) {
	s.t.Helper()
	s.dead(numbered("d", n)...)
	var marks []core.Past
	for k := 0; k < n; k += 10 {
		marks = append(marks, core.Past{ID: nth("d", k), DoneAt: core.InstantOf(epoch), Score: 1e12})
		stale = append(stale, nth("d", k))
	}
	s.bringPast("orders", fixtureShards, nil, marks)
	s.advance(time.Second)
	return stale
}

// deadIDs returns the ids in the morgue, in order.
func (s *fixture) deadIDs() (ids []string) {
	s.t.Helper()
	for d := range must(s.t, s.Morgue(s.t.Context(), "orders", inspect.ListOptions{})) {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestReviveOfAllLeavesWhatIsStale(t *testing.T) {
	s := newFixture(t)
	stale := s.staleDead(1000)

	var o inspect.BulkOptions
	handled, left := 0, 0
	for o.Limit = 70; ; {
		r, err := s.Revive(t.Context(), "orders", inspect.AllDead(nil, o))
		if err != nil {
			t.Fatal(err)
		}
		handled, left = r.Handled, left+r.Stale
		if o.Continue = r.Checkpoint; o.Continue == "" {
			break
		}
	}
	if handled != 1000-len(stale) || left != len(stale) {
		t.Errorf("%d were revived and %d were stale; want %d and %d", handled, left, 1000-len(stale), len(stale))
	}
	if got := s.deadIDs(); !slices.Equal(got, stale) {
		t.Errorf("the morgue has %v", got)
	}

	r, err := s.Revive(t.Context(), "orders", inspect.AllDead(nil, inspect.BulkOptions{}).Force())
	if err != nil || r.Handled != len(stale) || r.Stale != 0 {
		t.Errorf("by force %d were revived, %d stale: %v", r.Handled, r.Stale, err)
	}
}

// A revive of all lists its dead letters, since those that are stale stay, but without their payloads.
func TestReviveOfAllReadsNoPayloads(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 500)...)
	s.advance(time.Second)

	pages, payloads := 0, 0
	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if r, ok := call.Request.(*ports.MorgueRequest); ok {
			pages, payloads = pages+1, payloads+r.Payloads
		}
		if call.Method == "Find" {
			payloads++
		}
		return next(ctx)
	})
	i := inspect.New(store, inspect.Options{})
	r, err := i.Revive(t.Context(), "orders", inspect.AllDead(nil, inspect.BulkOptions{}))
	if err != nil || r.Handled != 500 {
		t.Fatalf("%d were revived: %v", r.Handled, err)
	}
	if pages < 500/ports.DefaultPage || payloads > 0 {
		t.Errorf("%d pages were listed, with up to %d payloads of each dead letter", pages, payloads)
	}
}

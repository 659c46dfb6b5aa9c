package inspect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// deadOf has jobs die of an error of a group.
func (s *fixture) deadOf(group string, ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: group + " 17", Group: group})
}

func idsOf(t *testing.T, s *fixture, o inspect.ListOptions) (ids []string) {
	t.Helper()
	for d := range must(t, s.Morgue(t.Context(), "orders", o)) {
		ids = append(ids, d.ID)
	}
	return ids
}

func TestGroupsCountDeadLetters(t *testing.T) {
	s := newFixture(t)
	s.deadOf("timeout", "t-1", "t-2")
	s.advance(time.Minute)
	s.deadOf("no route", "r-1", "r-2", "r-3", "r-4")
	s.advance(time.Minute)
	s.deadOf("timeout", "t-3")

	timeouts := inspect.Group{Name: "timeout", Count: 3, First: epoch, Last: epoch.Add(2 * time.Minute)}
	routes := inspect.Group{Name: "no route", Count: 4, First: epoch.Add(time.Minute), Last: epoch.Add(time.Minute)}
	for limit, want := range map[int][]inspect.Group{0: {routes, timeouts}, 1: {routes}} {
		got, err := s.Groups(t.Context(), "orders", limit)
		whole := inspect.Groups{Groups: want, Total: 2, Dead: 7, Now: epoch.Add(2 * time.Minute)}
		if diff := cmp.Diff(whole, got); diff != "" || err != nil {
			t.Errorf("limit %d: %v (-want +got):\n%s", limit, err, diff)
		}
	}

	if _, err := s.Groups(t.Context(), "orders", -1); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("a negative limit: %v", err)
	}
	if got := idsOf(t, s,
		inspect.ListOptions{Group: "timeout", Descending: true}); !cmp.Equal(got, []string{"t-3", "t-2", "t-1"}) {
		t.Errorf("the list has %v", got)
	}

	for d := range must(t, s.Morgue(t.Context(), "orders", inspect.ListOptions{SortBy: inspect.ByID, Limit: 1})) {
		if d.Group != "no route" {
			t.Errorf("%+v; want its group", d)
		}
	}
}

// An action on a group takes only its dead letters, all of them or those that match, and continues
// from a checkpoint.
func TestActionsAreOfAGroup(t *testing.T) {
	s := newFixture(t)
	s.deadOf("timeout", numbered("t", 40)...)
	s.deadOf("no route", numbered("r", 30)...)
	s.advance(time.Second)

	ctx, o := t.Context(), inspect.BulkOptions{Group: "timeout", Limit: 10}
	first, err := s.Revive(ctx, "orders", inspect.AllDead(nil, o))
	if err != nil || first.Handled != 10 || first.Checkpoint == "" {
		t.Fatalf("the first ten: %+v, %v", first, err)
	}

	o.Continue, o.Limit = first.Checkpoint, 0
	other := inspect.BulkOptions{Group: "no route", Continue: first.Checkpoint}
	if _, err := s.Revive(ctx, "orders", inspect.AllDead(nil, other)); !errors.Is(err, inspect.ErrInvalidCheckpoint) {
		t.Errorf("another group goes on: %v", err)
	}
	if r, err := s.Revive(ctx, "orders", inspect.AllDead(nil, o)); err != nil || r.Handled != 40 {
		t.Errorf("the others: %+v, %v", r, err)
	}

	half := func(d inspect.DeadLetter) bool { return d.ID < nth("r", 15) }
	dry, err := s.Purge(ctx, "orders", inspect.AllDead(half, inspect.BulkOptions{Group: "no route", DryRun: true}))
	if err != nil || dry.Handled != 15 || len(dry.Samples) != 10 || dry.Samples[0].Group != "no route" {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	if r, err := s.Purge(ctx, "orders", inspect.AllDead(half, inspect.BulkOptions{Group: "no route"})); err != nil ||
		r.Handled != 15 {
		t.Errorf("some: %+v, %v", r, err)
	}

	if c := s.counts(); c.Dead != 15 || c.Fresh != 40 {
		t.Errorf("%+v; want 15 dead and 40 revived", c)
	}
}

func TestGroupsThatCantBe(t *testing.T) {
	s := newFixture(t)
	s.deadOf("timeout", "t-1")
	ctx := t.Context()
	long := string(make([]byte, 65))
	all := func(inspect.DeadLetter) bool { return true }

	_, byMatch := s.Revive(ctx, "orders", inspect.AllDead(all, inspect.BulkOptions{Group: long}))
	_, prefix := s.Purge(ctx, "orders", inspect.AllDead(nil, inspect.BulkOptions{Group: "timeout", Prefix: "t"}))
	_, jobs := s.Bury(ctx, "orders", inspect.FreshJobs(nil, inspect.BulkOptions{Group: "timeout"}))
	cases := map[string]error{"a name that none has": byMatch, "beside a prefix": prefix, "of fresh jobs": jobs}

	for name, o := range map[string]inspect.ListOptions{
		"a list by id": {SortBy: inspect.ByID, Group: "timeout"}, "a list of a name that none has": {Group: long},
	} {
		for _, err := range s.Morgue(ctx, "orders", o) {
			cases[name] = err
		}
	}
	for _, err := range s.Jobs(ctx, "orders", inspect.ListOptions{Group: "timeout"}) {
		cases["a list of jobs"] = err
	}

	for _, name := range []string{
		"a name that none has",
		"beside a prefix",
		"of fresh jobs",
		"a list by id",
		"a list of a name that none has",
		"a list of jobs",
	} {
		if !errors.Is(cases[name], inspect.ErrInvalidOptions) {
			t.Errorf("%s: %v; want ErrInvalidOptions", name, cases[name])
		}
	}
}

// unreachedGroups is a store with one shard that can't be reached.
type unreachedGroups struct{ inspect.Store }

func (s unreachedGroups) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	reply, err := s.Store.Groups(ctx, r)
	reply.Unreached = []core.Shard{{Queue: "orders", Index: 1}}
	return reply, err
}

func TestGroupsSayWhatIsNotReached(t *testing.T) {
	s := newFixture(t)
	s.deadOf("timeout", "t-1")
	got, err := inspect.New(unreachedGroups{s.store}, inspect.Options{}).Groups(t.Context(), "orders", 0)
	var partial *inspect.PartialError
	if !errors.As(err, &partial) || len(partial.Unreached) != 1 || got.Dead != 1 {
		t.Errorf("%+v, %v; want what is reached and a PartialError", got, err)
	}
}

package inspect_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// done pushes jobs of one payload, lets them end as done, and records that.
func (s *fixture) done(result string, ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	claims := s.claim()
	for at := range claims {
		settled := core.RetryPolicy{}.Settlement(&claims[at], &core.Outcome{Kind: core.Done}, 0)
		settled.Record(&claims[at], core.Run{
			Started: core.InstantOf(s.clock.Now()),
			Took:    12 * time.Millisecond,
			Node:    "blue",
			Result:  []byte(result),
		})
		shard := core.Shard{Queue: "orders", Index: core.ShardOf(claims[at].ID, fixtureShards)}
		s.leases[shard.Index].Keep = core.KeepPast{Age: time.Hour}
		s.turn(shard, 0, settled)
	}
}

func (s *fixture) pastIDs(o inspect.PastOptions) (ids []string) {
	s.t.Helper()
	for p := range must(s.t, s.Past(s.t.Context(), "orders", o)) {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestRecordsAreListedNewestFirstFromEveryCursor(t *testing.T) {
	s := newFixture(t)
	ids := []string{"d", "b", "e", "a", "c", "f"}
	for _, id := range ids {
		s.done("", id)
		s.advance(time.Second)
	}

	for _, oldest := range []bool{false, true} {
		want := slices.Clone(ids)
		if !oldest {
			slices.Reverse(want)
		}
		if got := s.pastIDs(inspect.PastOptions{OldestFirst: oldest}); !slices.Equal(got, want) {
			t.Errorf("oldest first %v: %v, want %v", oldest, got, want)
		}
		if got := s.pastIDs(inspect.PastOptions{OldestFirst: oldest, Limit: 4}); !slices.Equal(got, want[:4]) {
			t.Errorf("oldest first %v, four: %v, want %v", oldest, got, want[:4])
		}

		place := 0
		for p := range must(t, s.Past(t.Context(), "orders", inspect.PastOptions{OldestFirst: oldest})) {
			place++
			for name, o := range map[string]inspect.PastOptions{
				"cursor": {OldestFirst: oldest, After: p.Cursor},
				"time":   {OldestFirst: oldest, FromTime: p.DoneAt},
			} {
				rest := want[place:]
				if name == "time" {
					rest = want[place-1:]
				}
				if got := s.pastIDs(o); !slices.Equal(got, rest) {
					t.Errorf("oldest first %v, from the %s of %q: %v, want %v", oldest, name, p.ID, got, rest)
				}
			}
		}
	}

	shard := core.ShardOf("a", fixtureShards)
	want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return core.ShardOf(id, fixtureShards) != shard })
	slices.Reverse(want)
	if got := s.pastIDs(inspect.PastOptions{Shards: []int{shard}}); !slices.Equal(got, want) {
		t.Errorf("shard %d has %v, want %v", shard, got, want)
	}
}

func TestARecordIsFoundWithItsResultAndListedWithoutIt(t *testing.T) {
	s := newFixture(t)
	s.done("ok", "a")
	s.advance(time.Second)

	want := inspect.Past{
		ID:           "a",
		DoneAt:       epoch,
		Node:         "blue",
		StartedAt:    epoch,
		Took:         12 * time.Millisecond,
		PayloadCount: 1,
		Attempt:      1,
		ResultBytes:  2,
	}
	for p := range must(t, s.Past(t.Context(), "orders", inspect.PastOptions{})) {
		want.Cursor = p.Cursor
		if diff := cmp.Diff(want, p, cmp.AllowUnexported(inspect.Cursor{})); diff != "" {
			t.Errorf("in the list (-want +got):\n%s", diff)
		}
	}
	if want.Cursor == (inspect.Cursor{}) {
		t.Error("the list has no record, or one without a cursor")
	}

	want.Result = []byte("ok")
	found, err := s.FindSome(t.Context(), "orders", "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, found.Past, cmp.AllowUnexported(inspect.Cursor{})); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if found, err = s.Find(t.Context(), "orders", "b"); err != nil || found.Past != nil {
		t.Errorf("an id that was never done has %+v, %v", found.Past, err)
	}
}

func TestAListOfRecordsRefusesInvalidOptions(t *testing.T) {
	s := newFixture(t)
	for name, o := range map[string]inspect.PastOptions{
		"a limit below 0":       {Limit: -1},
		"a shard that is not":   {Shards: []int{fixtureShards}},
		"a shard that is below": {Shards: []int{-1}},
	} {
		var failed error
		for _, err := range s.Past(t.Context(), "orders", o) {
			failed = err
		}
		if !errors.Is(failed, inspect.ErrInvalidOptions) {
			t.Errorf("%s: %v", name, failed)
		}
	}

	for _, err := range s.Past(t.Context(), "nosuch", inspect.PastOptions{}) {
		if !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("an unknown queue: %v", err)
		}
	}
}

func (p *partialStore) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	unreached := p.part(&r)
	r.Limit = min(r.Size(), 1)
	page, err := p.Store.Past(ctx, r)
	page.Unreached = unreached
	return page, err
}

func TestAListOfRecordsNamesTheShardsThatItMisses(t *testing.T) {
	s := newFixture(t)
	ids := numbered("id", 12)
	s.done("", ids...)
	s.Inspector = inspect.New(&partialStore{Store: s.store}, inspect.Options{})

	var got []string
	var failed error
	for p, err := range s.Past(t.Context(), "orders", inspect.PastOptions{}) {
		if err != nil {
			failed = err
			continue
		}
		got = append(got, p.ID)
	}
	isPartial(t, failed)
	want := reachable(ids)
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func TestWhySaysWhenAnIDWasDone(t *testing.T) {
	for name, c := range map[string]struct {
		arrive  func(*fixture)
		reason  inspect.Reason
		want    string
		without string
		stale   bool
	}{
		"done": {
			arrive: func(s *fixture) { s.done("", "x"); s.advance(3 * time.Minute) },
			reason: inspect.NothingQueued,
			want:   "done 3m0s ago by server blue, in 12ms; nothing is queued, claimed or dead for this id",
		},
		"done after it died": {
			arrive: func(s *fixture) { s.dead("x"); s.advance(time.Second); s.done("", "x"); s.advance(time.Minute) },
			reason: inspect.OnlyDead,
			want: "the id is only in the morgue, and a later run was done 1m0s ago by server blue, in 12ms; " +
				"revive its dead letter to run it again",
		},
		"done before it died": {
			arrive:  func(s *fixture) { s.done("", "x"); s.advance(time.Second); s.dead("x"); s.advance(time.Minute) },
			reason:  inspect.OnlyDead,
			want:    "the id is only in the morgue; revive",
			without: "done",
		},
		"done before it died, with as new a version": {
			arrive: func(s *fixture) {
				s.done("", "x")
				s.dead("x")
				s.bringPast("orders", fixtureShards, nil, []core.Past{{ID: "x", Score: 1e12}})
			},
			reason: inspect.OnlyDead,
			want: "the id is only in the morgue; something as new was done of it, " +
				"so a revive leaves its dead letter there unless it is forced",
			stale: true,
		},
		"done, dead and pushed again": {
			arrive: func(s *fixture) {
				s.done("", "x")
				s.dead("x")
				s.bringPast("orders", fixtureShards, nil, []core.Past{{ID: "x", Score: 1e12}})
				s.push("x", 0, "p")
			},
			reason: inspect.NobodyServes,
			stale:  true,
		},
		"done, with an older version than the dead one": {
			arrive: func(s *fixture) {
				s.done("", "x")
				s.dead("x")
				s.bringPast("orders", fixtureShards, nil, []core.Past{{ID: "x", Score: -1}})
			},
			reason: inspect.OnlyDead,
			want:   "revive its dead letter to run it again",
		},
		"done, and scheduled": {
			arrive:  func(s *fixture) { s.done("", "x"); s.hourly("x", "nightly") },
			reason:  inspect.Scheduled,
			want:    "nothing is queued for this id; its schedule nightly",
			without: "done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			c.arrive(s)
			v, err := s.Why(t.Context(), "orders", "x")
			if err != nil {
				t.Fatal(err)
			}

			if v.Reason != c.reason || !strings.Contains(v.Text, c.want) ||
				c.without != "" && strings.Contains(v.Text, c.without) {
				t.Errorf("%v: %q, want %v: %q", v.Reason, v.Text, c.reason, c.want)
			}
			finding := slices.ContainsFunc(v.Findings, func(f inspect.Finding) bool { return f.Name == "revive" })
			if v.StaleDead != c.stale || finding != (c.stale && c.reason != inspect.OnlyDead) {
				t.Errorf("stale: %v, among the findings: %v", v.StaleDead, finding)
			}
			if !slices.ContainsFunc(v.Findings, func(f inspect.Finding) bool {
				return f.Name == inspect.FindingPast && strings.HasSuffix(f.Value.String(), " ago by server blue, in 12ms")
			}) {
				t.Errorf("no finding has the record: %+v", v.Findings)
			}
		})
	}
}

func TestResultsAreDecoded(t *testing.T) {
	type invoice struct{ Number int }
	p := inspect.Past{ID: "42", Result: []byte(`{"Number":7}`), ResultBytes: 12}
	if got, err := inspect.ResultOf[invoice](&p); got.Number != 7 || err != nil {
		t.Errorf("the result is %+v, error %v", got, err)
	}
	if _, err := inspect.ResultOf[string](&p); err == nil || !strings.Contains(err.Error(), `"42"`) {
		t.Errorf("a result of another type has the error %v", err)
	}
	if _, err := inspect.ResultOf[invoice](&inspect.Past{ID: "42"}); err == nil || !strings.Contains(err.Error(), "no result") {
		t.Errorf("no result has the error %v", err)
	}
}

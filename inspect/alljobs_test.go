package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

type onJobs = func(context.Context, string, func(inspect.QueuedJob) bool, inspect.BulkOptions) (inspect.Result, error)

// on returns an action on all jobs of a kind.
func on(
	act func(context.Context, string, inspect.JobSelection) (inspect.Result, error),
	kind func(func(inspect.QueuedJob) bool, inspect.BulkOptions) inspect.JobSelection,
) onJobs {
	return func(
		ctx context.Context,
		queue string,
		match func(inspect.QueuedJob) bool,
		o inspect.BulkOptions,
	) (inspect.Result, error) {
		return act(ctx, queue, kind(match, o))
	}
}

// actsOnFailed returns actions on all jobs that take the failed ones.
func actsOnFailed(i *inspect.Inspector) map[string]onJobs {
	return map[string]onJobs{
		"RunAllNow":    on(i.RunNow, inspect.AllJobs),
		"BuryFailed":   on(i.Bury, inspect.FailedJobs),
		"DeleteFailed": on(i.Delete, inspect.FailedJobs),
	}
}

// waiting returns the ids of the jobs that have failed and wait.
func (s *fixture) waiting() (ids []string) {
	s.t.Helper()
	for j := range must(s.t, s.Jobs(s.t.Context(), "orders", inspect.ListOptions{SortBy: inspect.RetryingByID})) {
		if j.PerformAt.After(s.clock.Now()) {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

func TestActionsOnAllJobsTakeThoseThatMatch(t *testing.T) {
	for name := range actsOnFailed(nil) {
		for prefix, want := range map[string][]string{"": {"a-1", "a-3", "b-2"}, "a-": {"a-1", "a-3", "b-2", "b-4"}} {
			t.Run(name+prefix, func(t *testing.T) {
				s := newFixture(t)
				s.push("a-2", 0, numbered("p", 100)...)
				s.failed("a-1", "a-3", "b-2", "b-4")
				s.advance(time.Second)

				matched := map[string]int{}
				match := func(j inspect.QueuedJob) bool {
					matched[j.ID] = len(j.Payloads)
					return j.ID == "a-2" || j.ID == "b-4"
				}

				result, err := actsOnFailed(s.Inspector)[name](t.Context(), "orders", match,
					inspect.BulkOptions{Prefix: prefix})
				seen := map[string]int{"a-1": 1, "a-2": 100, "a-3": 1}
				if prefix == "" {
					seen["b-2"], seen["b-4"] = 1, 1
				}

				if diff := cmp.Diff(seen, matched); diff != "" || err != nil ||
					result.Handled != len(seen)-len(want)+2*len(prefix)/2 {
					t.Errorf("%+v, %v; payloads seen (-want +got):\n%s", result, err, diff)
				}
				if diff := cmp.Diff(want, s.waiting()); diff != "" {
					t.Errorf("what waits (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestAJobThatCameSinceIsLeftAlone chooses failed jobs. Some of them are done, and pushed and
// failed anew, before the step.
func TestAJobThatCameSinceIsLeftAlone(t *testing.T) {
	for name := range actsOnFailed(nil) {
		for _, call := range []string{"Stats", "Jobs"} {
			t.Run(name+" after "+call, func(t *testing.T) {
				s := newFixture(t)
				s.failed("a", "b", "c")
				s.advance(time.Second)

				operator, once := s.Inspector, false
				s.intercept().after = func(now string) error {
					if now != call || once {
						return nil
					}
					once = true
					s.advance(time.Second)
					if _, err := operator.Delete(t.Context(), "orders", inspect.JobIDs("b")); err != nil {
						return err
					}
					s.failed("b", "d")
					return nil
				}

				result, err := actsOnFailed(s.Inspector)[name](t.Context(), "orders", nil, inspect.BulkOptions{})
				if err != nil || result.Handled != 2 || !once {
					t.Errorf("%+v, %v; want a and c handled", result, err)
				}
				if diff := cmp.Diff([]string{"b", "d"}, s.waiting()); diff != "" {
					t.Errorf("what waits (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAnyCheckpointOfAnActionOnJobsLeadsToItsEnd(t *testing.T) {
	for name := range actsOnFailed(nil) {
		for _, match := range []func(inspect.QueuedJob) bool{nil, func(inspect.QueuedJob) bool { return true }} {
			for _, prefix := range []string{"", "f"} {
				for at := range 5 {
					t.Run(fmt.Sprint(name, match != nil, prefix, at), func(t *testing.T) {
						s := newFixture(t)
						const jobs = 5 * ports.MaxStep
						s.failed(numbered("f", jobs)...)
						s.advance(time.Second)

						ctx, kill := context.WithCancel(t.Context())
						var kept []inspect.Checkpoint
						o := inspect.BulkOptions{Filter: "any", Prefix: prefix, Checkpoint: func(c inspect.Checkpoint) {
							if kept = append(kept, c); len(kept) == 5 {
								kill()
							}
						}}

						result, err := actsOnFailed(s.Inspector)[name](ctx, "orders", match, o)
						if !errors.Is(err, context.Canceled) || len(kept) != 5 || result.Checkpoint != kept[4] ||
							result.Handled >= jobs {
							t.Fatalf("%+v, %v; want the last checkpoint", result, err)
						}
						s.advance(time.Second)

						// The action does not touch jobs that come now.
						if s.push("f-new", time.Hour, "p"); name != "RunAllNow" {
							s.failed("g")
						}

						elsewhere := inspect.New(s.store, inspect.Options{})
						o = inspect.BulkOptions{Filter: "any", Prefix: prefix, Continue: kept[at]}
						last, err := actsOnFailed(elsewhere)[name](t.Context(), "orders", match, o)
						if err != nil || last.Checkpoint != "" {
							t.Fatalf("%+v, %v", last, err)
						}

						if c := s.counts(); name == "RunAllNow" && len(s.waiting()) > 0 || name != "RunAllNow" &&
							c.Retrying != 1 || c.Fresh != 1 {
							t.Errorf("%+v; want what came since, and no job that waits", c)
						}
					})
				}
			}
		}
	}
}

func TestLimitAndBeforeOfActionsOnJobs(t *testing.T) {
	for name := range actsOnFailed(nil) {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.failed(numbered("old", 20)...)
			s.advance(time.Second)
			s.failed(numbered("young", 20)...)

			o := inspect.BulkOptions{Limit: 7, Before: epoch.Add(time.Second)}
			for call := 1; ; call++ {
				result, err := actsOnFailed(s.Inspector)[name](t.Context(), "orders", nil, o)
				want := min(7*call, 20)
				if left := len(s.waiting()); err != nil || result.Handled != want || left != 40-want {
					t.Fatalf("call %d: %+v, %v, %d left; want %d handled", call, result, err, left, want)
				}
				if o.Continue = result.Checkpoint; o.Continue == "" {
					break
				}
			}
		})
	}
}

func TestAPrefixIsOfActionsOnDeadLettersToo(t *testing.T) {
	s := newFixture(t)
	s.dead("a-1", "b-1", "a-2", "b-2", "b-3")
	s.push("b-2", 0, numbered("p", 40)...)
	s.bury()
	s.advance(time.Second)

	b := inspect.BulkOptions{Prefix: "b-"}
	if result, err := s.Edit(t.Context(), "orders", inspect.AllDead(nil, b), upper); err != nil ||
		result.Handled != 43 {
		t.Errorf("EditAll: %+v, %v", result, err)
	}

	s.advance(time.Second)
	if result, err := s.Revive(t.Context(), "orders", inspect.AllDead(nil, b)); err != nil || result.Handled != 3 {
		t.Errorf("ReviveAll: %+v, %v", result, err)
	}

	odd := func(d inspect.DeadLetter) bool { return d.ID == "a-1" }
	if result, err := s.Purge(t.Context(), "orders",
		inspect.AllDead(odd, inspect.BulkOptions{Prefix: "a"})); err != nil || result.Handled != 1 {
		t.Errorf("PurgeAll: %+v, %v", result, err)
	}

	s.advance(-time.Second)
	if c := s.counts(); c.Dead != 1 || c.Fresh != 3 {
		t.Errorf("%+v; want a-2 alone dead", c)
	}
}

func TestAnIDThatNoListHasByPrefix(t *testing.T) {
	s := newFixture(t)
	plain := ports.DeclareRequest{Queue: "plain", Shards: 1}
	if _, err := s.store.Declare(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	entry := core.Entry{ID: "a", Payload: core.Payload{Data: []byte("p")}, When: core.In(time.Hour)}
	if _, err := s.store.Push(t.Context(), ports.PushRequest{
		Queue:      "plain",
		Shards:     1,
		Generation: 1,
		Entries:    []core.Entry{entry},
	}); err != nil {
		t.Fatal(err)
	}

	_, noIndex := s.RunNow(t.Context(), "plain", inspect.AllJobs(nil, inspect.BulkOptions{Prefix: "a"}))
	s.failed("a", "a-2")
	_, noText := s.Bury(t.Context(), "orders", inspect.FailedJobs(nil, inspect.BulkOptions{Prefix: "\xff"}))
	first, err := s.Bury(t.Context(), "orders", inspect.FailedJobs(nil, inspect.BulkOptions{Prefix: "a", Limit: 1}))
	_, other := s.Bury(t.Context(), "orders",
		inspect.FailedJobs(nil, inspect.BulkOptions{Prefix: "b", Continue: first.Checkpoint}))

	for _, c := range []struct {
		name      string
		err, want error
	}{
		{"no index", noIndex, inspect.ErrQueueMismatch}, {"no text", noText, ports.ErrInvalidRequest},
		{"no error", err, nil}, {"another prefix", other, inspect.ErrInvalidCheckpoint},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v; want %v", c.name, c.err, c.want)
		}
	}
}

// Actions on fresh jobs leave alone failed, claimed, dead and later jobs; DeleteAll empties the
// queue of both.
func TestActionsOnFreshJobs(t *testing.T) {
	dead := []string{"dead d-1 at 0s [p] hopeless"}
	failed := []string{"queued f-1 at 1h0m0s retries 1 [p] boom", "queued f-2 at 1h0m0s retries 1 [p] boom"}
	claimed, late := []string{"claimed c-1 [p]"}, []string{"queued late at 2h0m1s retries 0 [p]"}
	left := func(parts ...[]string) []string { return slices.Concat(parts...) }

	acts := func(i *inspect.Inspector) map[string]onJobs {
		return map[string]onJobs{
			"BuryFresh":   on(i.Bury, inspect.FreshJobs),
			"BuryAll":     on(i.Bury, inspect.AllJobs),
			"DeleteFresh": on(i.Delete, inspect.FreshJobs),
			"DeleteAll":   on(i.Delete, inspect.AllJobs),
		}
	}

	for _, tt := range []struct {
		name    string
		o       inspect.BulkOptions
		handled int
		want    []string
	}{
		{"DeleteFresh", inspect.BulkOptions{}, 150, left(failed, late, claimed, dead)},
		{"DeleteFresh", inspect.BulkOptions{Prefix: "n-0001"}, 10, nil},
		{"DeleteFresh", inspect.BulkOptions{Prefix: "f-"}, 0, nil},
		{"BuryFresh", inspect.BulkOptions{}, 150, nil},
		{"BuryFresh", inspect.BulkOptions{DryRun: true}, 150, nil},
		{"BuryAll", inspect.BulkOptions{}, 152, nil},
		{"DeleteAll", inspect.BulkOptions{}, 152, left(late, claimed, dead)},
		{"DeleteAll", inspect.BulkOptions{Prefix: "f-"}, 2, nil},
	} {
		t.Run(fmt.Sprint(tt.name, tt.o.Prefix, tt.o.DryRun), func(t *testing.T) {
			s := newFixture(t)
			s.dead("d-1")
			s.failed("f-1", "f-2")
			s.pushAll("c-1")
			s.claim()
			for _, id := range numbered("n", 150) {
				s.push(id, 2*time.Hour, "p")
			}
			s.advance(time.Second)

			during := false
			s.intercept().after = func(string) error { // after the first look, which is when it begins
				if !during {
					during = true
					s.push("late", 2*time.Hour, "p")
				}
				return nil
			}

			r, err := acts(s.Inspector)[tt.name](t.Context(), "orders", nil, tt.o)
			if err != nil || r.Handled != tt.handled || tt.o.Prefix == "" && !tt.o.DryRun && r.Gone != 0 {
				t.Errorf("%+v, %v; want %d handled", r, err, tt.handled)
			}
			if tt.want != nil {
				s.holds(tt.want...)
			}

			if c := s.counts(); tt.name == "BuryFresh" &&
				(c.Retrying != 2 || c.Claimed != 1 || c.Fresh+c.Dead != 152) || tt.o.DryRun && c.Fresh != 151 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// An action on fresh jobs by a match continues elsewhere, and is not the one on jobs with a
// failure.
func TestActionsOnFreshJobsGoOn(t *testing.T) {
	s := newFixture(t)
	s.pushAll(numbered("n", 100)...)
	s.advance(time.Second)
	odd := func(j inspect.QueuedJob) bool { return j.ID[len(j.ID)-1]%2 == 1 }
	o := inspect.BulkOptions{Filter: "odd", Limit: 7}
	r, err := s.Delete(t.Context(), "orders", inspect.FreshJobs(odd, o))
	if err != nil || r.Handled != 7 {
		t.Fatalf("%+v, %v", r, err)
	}

	o.Limit, o.Continue = 0, r.Checkpoint
	if _, err := s.Delete(t.Context(), "orders",
		inspect.FailedJobs(odd, o)); !errors.Is(err, inspect.ErrInvalidCheckpoint) {
		t.Errorf("the action on failed jobs: %v", err)
	}
	if r, err := s.Delete(t.Context(), "orders", inspect.FreshJobs(odd, o)); err != nil || r.Handled != 50 ||
		r.Earlier != 7 || s.counts().Fresh != 50 {
		t.Errorf("%+v, %v; want the other 43", r, err)
	}
}

package inspect_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// held pushes jobs that are then held after their last retry.
func (s *fixture) held(ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	for _, c := range s.claim() {
		shard := core.Shard{Queue: "orders", Index: core.ShardOf(c.ID, fixtureShards)}
		back := core.PutBack{Delay: core.Forever, RetryCount: 25, Failures: core.Failures{{Text: "boom"}}}
		s.turn(shard, 0, core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue, PutBack: back, Failed: true})
	}
}

func heldIDs(t *testing.T, s *fixture, o inspect.ListOptions) (ids []string) {
	t.Helper()
	o.Held = true
	for job := range must(t, s.Jobs(t.Context(), "orders", o)) {
		if !job.Held || job.Retries != 26 || !job.PerformAt.Equal(core.MaxInstant.Time()) {
			t.Errorf("listed as held: %+v", job)
		}
		ids = append(ids, job.ID)
	}
	return ids
}

func TestHeldJobsAreListedAndReleased(t *testing.T) {
	s := newFixture(t)
	ids := numbered("held", 40)
	s.held(ids...)
	s.failed("failed")
	s.push("never", 1<<62, "p")
	s.pushAll("due")
	slices.Sort(ids)
	for _, o := range []inspect.ListOptions{{}, {SortBy: inspect.RetryingByTime}, {Limit: 100}} {
		if diff := cmp.Diff(ids, heldIDs(t, s, o)); diff != "" {
			t.Errorf("held jobs with %+v (-want +got):\n%s", o, diff)
		}
	}
	if diff := cmp.Diff(ids[:7], heldIDs(t, s, inspect.ListOptions{Limit: 7})); diff != "" {
		t.Errorf("the first held jobs (-want +got):\n%s", diff)
	}
	if c := s.counts(); c.Held != 40 || c.Oldest.IsZero() || c.Retrying != 41 || c.Lag != 0 {
		t.Errorf("counts %+v; want 40 held of 41 with a failure, and no lag", c)
	}
	for _, o := range []inspect.ListOptions{
		{SortBy: inspect.RetryingByID}, {SortBy: inspect.ByID}, {Descending: true}, {Fresh: true}, {FromTime: epoch},
	} {
		o.Held = true
		for _, err := range s.Jobs(t.Context(), "orders", o) {
			if !errors.Is(err, inspect.ErrInvalidOptions) {
				t.Errorf("held jobs with %+v: %v; want ErrInvalidOptions", o, err)
			}
		}
	}
	for _, err := range s.Claimed(t.Context(), "orders", inspect.ListOptions{Held: true}) {
		if !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("held claimed jobs: %v; want ErrInvalidOptions", err)
		}
	}

	for job := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{})) { // its cursor is of another list
		if diff := cmp.Diff(ids, heldIDs(t, s, inspect.ListOptions{After: job.Cursor})); diff != "" {
			t.Errorf("held jobs after %s (-want +got):\n%s", job.ID, diff)
		}
		break
	}

	s.advance(time.Minute)
	if r, err := s.Release(t.Context(), "orders",
		inspect.AllJobs(nil, inspect.BulkOptions{DryRun: true})); err != nil || r.Handled != 40 || len(r.Jobs) != 10 {
		t.Errorf("a dry run of ReleaseAll: %+v, %v; want 40 jobs", r, err)
	}
	if _, err := s.Release(t.Context(), "orders",
		inspect.AllJobs(nil, inspect.BulkOptions{Prefix: "held"})); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("ReleaseAll with a prefix: %v; want ErrInvalidOptions", err)
	}
	match := func(j inspect.QueuedJob) bool { return j.ID < ids[10] }
	if r, err := s.Release(t.Context(), "orders", inspect.AllJobs(match, inspect.BulkOptions{})); err != nil ||
		r.Handled != 10 || r.Total != 40 {
		t.Errorf("ReleaseAll of ten: %+v, %v", r, err)
	}
	if r, err := s.Release(t.Context(), "orders", inspect.JobIDs(ids[10], ids[11], "due", "nothing")); err != nil ||
		r.Handled != 2 {
		t.Errorf("Release: %+v, %v; want 2 handled", r, err)
	}
	first, err := s.Release(t.Context(), "orders", inspect.AllJobs(nil, inspect.BulkOptions{Limit: 5}))
	if err != nil || first.Handled != 5 || first.Checkpoint == "" {
		t.Errorf("ReleaseAll of at most five: %+v, %v", first, err)
	}
	if r, err := s.Release(t.Context(), "orders",
		inspect.AllJobs(nil, inspect.BulkOptions{Continue: first.Checkpoint})); err != nil || r.Handled != 28 ||
		r.Gone != 0 {
		t.Errorf("the rest of ReleaseAll: %+v, %v; want 28 handled in all", r, err)
	}
	if c := s.counts(); c.Held != 0 || c.Retrying != 1 || c.Fresh != 42 {
		t.Errorf("counts %+v; want no job held", c)
	}
}

func TestFirstPayloadsAreTakenByName(t *testing.T) {
	s := newFixture(t)
	s.held("a")
	s.push("a", 0, "q")
	s.push("b", time.Hour, "p", "q")
	named := func(id, payload string) []inspect.FirstPayload {
		return []inspect.FirstPayload{{ID: id, Data: []byte(payload)}}
	}

	for _, tt := range []struct {
		name    string
		act     func() (inspect.Result, error)
		handled int
	}{
		{"a later one", func() (inspect.Result, error) {
			return s.Bury(t.Context(), "orders", inspect.FirstPayloads(named("b", "q")...))
		}, 0},
		{"an unknown id", func() (inspect.Result, error) {
			return s.Delete(t.Context(), "orders", inspect.FirstPayloads(named("c", "p")...))
		}, 0},
		{"of two jobs", func() (inspect.Result, error) {
			return s.Bury(t.Context(), "orders", inspect.FirstPayloads(append(named("a", "p"), named("b", "p")...)...))
		}, 2},
	} {
		if r, err := tt.act(); err != nil || r.Handled != tt.handled {
			t.Errorf("%s: %+v, %v; want %d handled", tt.name, r, err, tt.handled)
		}
	}

	s.holds("queued a at 0s retries 0 [q] boom", "queued b at 1h0m0s retries 0 [q]", "dead a at 0s [p] boom",
		"dead b at 0s [p] buried by hand")
	if _, err := s.Bury(t.Context(), "orders",
		inspect.FirstPayloads(append(named("a", "q"),
			named("a", "q")...)...)); !errors.Is(err, inspect.ErrInvalidRequest) {
		t.Errorf("an id named twice: %v; want ErrInvalidRequest", err)
	}
}

// Held jobs are never due, so a queue that has only such jobs has no Oldest.
func TestHeldJobsAreNotTheOldest(t *testing.T) {
	s := newFixture(t)
	s.held("a", "b")
	if c := s.counts(); c.Held != 2 || !c.Oldest.IsZero() {
		t.Errorf("counts %+v; want 2 held and no Oldest", c)
	}
}

// A job that was chosen, was released by somebody else and failed anew while match looked at the
// next, waits for its retry.
func TestWhatIsReleasedMeanwhileKeepsItsBackoff(t *testing.T) {
	s := newFixture(t)
	ids := append(sameShard("x", 1), "x")
	s.held(ids...)
	s.advance(time.Second)

	other := inspect.New(s.store, inspect.Options{})
	match := func(j inspect.QueuedJob) bool {
		if j.ID == ids[1] {
			if r, err := other.Release(t.Context(), "orders", inspect.JobIDs(ids[:1]...)); err != nil ||
				r.Handled != 1 {
				t.Fatal(r, err)
			}
			s.fail("boom again")
		}
		return true
	}

	r, err := s.Release(t.Context(), "orders", inspect.AllJobs(match, inspect.BulkOptions{}))
	if err != nil || r.Handled != 1 {
		t.Errorf("ReleaseAll: %+v, %v; want 1 handled", r, err)
	}
	found, err := s.Find(t.Context(), "orders", ids[0])
	if err != nil || found.Queued == nil || found.Queued.Retries != 1 ||
		!found.Queued.PerformAt.After(epoch.Add(time.Second)) {
		t.Errorf("%q waits for no retry: %+v, %v", ids[0], found.Queued, err)
	}
}

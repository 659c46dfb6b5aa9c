package inspect_test

import (
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// withLists returns a fixture with something in every list. By time b comes before a, by id
// after it, and so on.
func withLists(t *testing.T) *fixture {
	s := newFixture(t)
	s.dead("y")
	s.advance(time.Second)
	s.dead("x")
	s.failed("d")
	s.advance(2 * time.Hour)
	s.fail("boom again")
	s.failed("e", "c")
	s.push("f", -time.Hour, "p1", "p2", "p3")
	s.push("a", 24*time.Hour, "p")
	return s
}

func jobIDs(t *testing.T, list iter.Seq2[inspect.QueuedJob, error]) []string {
	var ids []string
	for job := range must(t, list) {
		ids = append(ids, job.ID)
	}
	return ids
}

func TestListsHaveOrdersBothWaysFromEveryCursor(t *testing.T) {
	s := withLists(t)
	jobs := func(o inspect.ListOptions) iter.Seq2[inspect.Cursor, string] {
		return func(yield func(inspect.Cursor, string) bool) {
			for job := range must(t, s.Jobs(t.Context(), "orders", o)) {
				if !yield(job.Cursor, job.ID) {
					return
				}
			}
		}
	}

	morgue := func(o inspect.ListOptions) iter.Seq2[inspect.Cursor, string] {
		return func(yield func(inspect.Cursor, string) bool) {
			for dead := range must(t, s.Morgue(t.Context(), "orders", o)) {
				if !yield(dead.Cursor, dead.ID) {
					return
				}
			}
		}
	}

	for name, c := range map[string]struct {
		list  func(inspect.ListOptions) iter.Seq2[inspect.Cursor, string]
		order inspect.SortBy
		want  []string
	}{
		"jobs by time":     {jobs, inspect.ByTime, []string{"f", "c", "e", "d", "a"}},
		"jobs by id":       {jobs, inspect.ByID, []string{"a", "c", "d", "e", "f"}},
		"retries by time":  {jobs, inspect.RetryingByTime, []string{"c", "e", "d"}},
		"retries by id":    {jobs, inspect.RetryingByID, []string{"c", "d", "e"}},
		"retries by count": {jobs, inspect.RetryingByCount, []string{"c", "e", "d"}},
		"morgue by time":   {morgue, inspect.ByTime, []string{"y", "x"}},
		"morgue by id":     {morgue, inspect.ByID, []string{"x", "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, descending := range []bool{false, true} {
				want := slices.Clone(c.want)
				if descending {
					slices.Reverse(want)
				}
				o := inspect.ListOptions{SortBy: c.order, Descending: descending}

				place := 0
				for cursor, id := range c.list(o) {
					if id != want[place] {
						t.Errorf("element %d is %q, want %q (descending %v)", place, id, want[place], descending)
					}
					place++

					behind := o
					behind.After = cursor
					var rest []string
					for _, id := range c.list(behind) {
						rest = append(rest, id)
					}
					if diff := cmp.Diff(want[place:], rest, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("behind %q, descending %v (-want +got):\n%s", id, descending, diff)
					}
				}

				if place != len(want) {
					t.Errorf("%d elements, want %d", place, len(want))
				}
			}
		})
	}
}

func TestClaimedJobsAreListedByTheTimeOfTheirClaim(t *testing.T) {
	s := newFixture(t)
	s.push("b", -time.Minute, "p", "q")
	s.claim()
	s.advance(time.Second)
	s.pushAll("a")
	s.claim()

	for name, c := range map[string]struct {
		options inspect.ListOptions
		want    []string
	}{
		"ascending":  {inspect.ListOptions{}, []string{"b", "a"}},
		"descending": {inspect.ListOptions{Descending: true}, []string{"a", "b"}},
		"limited":    {inspect.ListOptions{Limit: 1}, []string{"b"}},
	} {
		var got []string
		for job := range must(t, s.Claimed(t.Context(), "orders", c.options)) {
			got = append(got, job.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	for first := range must(t, s.Claimed(t.Context(), "orders", inspect.ListOptions{Payloads: 1})) {
		if len(first.Payloads) != 1 || first.PayloadCount != 2 || first.Node != "blue" || !first.Since.Equal(epoch) {
			t.Errorf("the first claimed job is %+v", first)
		}
		for job := range must(t, s.Claimed(t.Context(), "orders", inspect.ListOptions{After: first.Cursor})) {
			if job.ID != "a" {
				t.Errorf("behind b there is %q", job.ID)
			}
		}
		break
	}
}

func TestPayloadsComeAsManyAsAskedFor(t *testing.T) {
	s := withLists(t)
	for _, want := range []int{0, 1, 2, 3} {
		for job := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{Limit: 1, Payloads: want})) {
			if job.ID != "f" || len(job.Payloads) != want || job.PayloadCount != 3 {
				t.Errorf("Payloads %d: %q with %d of %d", want, job.ID, len(job.Payloads), job.PayloadCount)
			}
		}
		for dead := range must(t, s.Morgue(t.Context(), "orders", inspect.ListOptions{Payloads: want})) {
			if len(dead.Payloads) != min(want, 1) || dead.PayloadCount != 1 {
				t.Errorf("Payloads %d: %q with %d of %d", want, dead.ID, len(dead.Payloads), dead.PayloadCount)
			}
		}
	}
}

func TestListsRefuseOptionsThatCantBe(t *testing.T) {
	s := newFixture(t)
	jobs := func(o inspect.ListOptions) error {
		for _, err := range s.Jobs(t.Context(), "orders", o) {
			return err
		}
		return nil
	}
	claimed := func(o inspect.ListOptions) error {
		for _, err := range s.Claimed(t.Context(), "orders", o) {
			return err
		}
		return nil
	}
	morgue := func(o inspect.ListOptions) error {
		for _, err := range s.Morgue(t.Context(), "orders", o) {
			return err
		}
		return nil
	}

	for name, c := range map[string]struct {
		list    func(inspect.ListOptions) error
		options inspect.ListOptions
	}{
		"no order of jobs":          {jobs, inspect.ListOptions{SortBy: 99}},
		"claimed jobs by id":        {claimed, inspect.ListOptions{SortBy: inspect.ByID}},
		"the morgue by retry count": {morgue, inspect.ListOptions{SortBy: inspect.RetryingByCount}},
		"a negative limit":          {jobs, inspect.ListOptions{Limit: -1}},
		"negative payloads":         {morgue, inspect.ListOptions{Payloads: -1}},
	} {
		if err := c.list(c.options); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("%s: %v; want ErrInvalidOptions", name, err)
		}
	}
}

func TestJobsByIDNeedTheirIndex(t *testing.T) {
	s := newFixture(t)
	if _, err := s.store.Declare(t.Context(), ports.DeclareRequest{Queue: "plain", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Jobs(t.Context(), "plain", inspect.ListOptions{SortBy: inspect.ByID}) {
		if !errors.Is(err, inspect.ErrQueueMismatch) {
			t.Errorf("by id without IndexIDs: %v; want ErrQueueMismatch", err)
		}
	}
	for _, err := range s.Morgue(t.Context(), "plain", inspect.ListOptions{SortBy: inspect.ByID}) {
		t.Errorf("an empty morgue by id: %v", err)
	}
}

func TestAQueueOfAnUnknownTypeIsShownAsBytes(t *testing.T) {
	s := newFixture(t)
	s.push("order-1", 0, "\x00\xff not JSON")
	for job := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{Payloads: 1})) {
		want := []core.Payload{{Data: []byte("\x00\xff not JSON")}}
		if diff := cmp.Diff(want, job.Payloads); diff != "" {
			t.Errorf("payloads (-want +got):\n%s", diff)
		}
	}
}

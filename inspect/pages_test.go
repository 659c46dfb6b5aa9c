package inspect_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// asked counts the pages that are requested from a store.
type asked struct {
	inspect.Store
	limits []int
}

func (a *asked) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	a.limits = append(a.limits, r.Size())
	return a.Store.Jobs(ctx, r)
}

func TestListsFetchOnlyWhatIsRangedOver(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 2*ports.MaxPage+1)
	s.pushAll(ids...)

	for name, c := range map[string]struct {
		limit, stop int
		want        int
		pages       []int
	}{
		"limited to a few":      {limit: 7, want: 7, pages: []int{7}},
		"limited to many":       {limit: ports.MaxPage + 1, want: ports.MaxPage + 1, pages: []int{ports.MaxPage, 1}},
		"limited to a full one": {limit: ports.MaxPage, want: ports.MaxPage, pages: []int{ports.MaxPage}},
		"limited beyond all": {
			limit: 10_000,
			want:  len(ids),
			pages: []int{ports.MaxPage, ports.MaxPage, ports.MaxPage},
		},
		"stopped by the range":  {stop: 150, want: 150, pages: []int{100, 100}},
		"stopped at a page end": {stop: 100, want: 100, pages: []int{100}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &asked{Store: s.store}
			var got []string
			list := inspect.New(store, inspect.Options{}).
				Jobs(t.Context(), "orders", inspect.ListOptions{Limit: c.limit})
			for job := range must(t, list) {
				got = append(got, job.ID)
				if len(got) == c.stop {
					break
				}
			}

			if diff := cmp.Diff(ids[:c.want], got); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.pages, store.limits); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachRangeBeginsAnew(t *testing.T) {
	s := withLists(t)
	list := s.Jobs(t.Context(), "orders", inspect.ListOptions{SortBy: inspect.ByID, Limit: 3})
	first, second := jobIDs(t, list), jobIDs(t, list)
	if diff := cmp.Diff([]string{"a", "c", "d"}, first); diff != "" {
		t.Errorf("the first range (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second range (-first +second):\n%s", diff)
	}
}

func TestWhatStaysIsListedOnceWhileOthersComeAndGo(t *testing.T) {
	s := newFixture(t)
	stay, leave := numbered("stay", 300), numbered("leave", 300)
	s.pushAll(append(slices.Clone(stay), leave...)...)

	seen := map[string]int{}
	count := 0
	for job := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{SortBy: inspect.ByID})) {
		seen[job.ID]++
		if count%3 == 0 { // also the one under the cursor
			s.pushAll(nth("new", count))
			if _, err := s.Delete(t.Context(), "orders", inspect.JobIDs(leave[count/3])); err != nil {
				t.Fatal(err)
			}
		}
		count++
	}

	for _, id := range stay {
		if seen[id] != 1 {
			t.Errorf("%s is listed %d times", id, seen[id])
		}
	}
}

func TestAListEndsWithItsError(t *testing.T) {
	s := newFixture(t)
	s.pushAll(numbered("order", 250)...)

	broken := errors.New("broken")
	hooked := s.intercept()
	pages := 0
	hooked.before = func(string) error {
		if pages++; pages == 2 {
			return broken
		}
		return nil
	}

	jobs, errs := 0, 0
	for job, err := range s.Jobs(t.Context(), "orders", inspect.ListOptions{}) {
		switch {
		case err == nil:
			jobs++
		case !errors.Is(err, broken) || job.ID != "":
			t.Errorf("the list ends with %v, %v", job, err)
		default:
			errs++
		}
	}

	if jobs != ports.DefaultPage || errs != 1 {
		t.Errorf("%d jobs and %d errors; want a page and one error", jobs, errs)
	}
}

func TestAListEndsWithItsContext(t *testing.T) {
	s := newFixture(t)
	s.pushAll(numbered("order", 250)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	jobs := 0
	var last error
	for _, err := range s.Jobs(ctx, "orders", inspect.ListOptions{}) {
		stop()
		last = err
		jobs++
	}

	if !errors.Is(last, context.Canceled) || jobs != ports.DefaultPage+1 {
		t.Errorf("%d elements, the last with %v; want a page and context.Canceled", jobs, last)
	}
}

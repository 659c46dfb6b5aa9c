package skein_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// shelf is a site with something in every list. By time b comes before a, by id
// after it, and so on.
func shelf(t *testing.T) *site {
	s := newSite(t)
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

func jobIDs(t *testing.T, list iter.Seq2[skein.QueuedJob, error]) []string {
	var ids []string
	for job := range must(t, list) {
		ids = append(ids, job.ID)
	}
	return ids
}

func TestListsHaveOrdersBothWaysFromEveryCursor(t *testing.T) {
	s := shelf(t)
	jobs := func(o skein.ListOptions) iter.Seq2[skein.Cursor, string] {
		return func(yield func(skein.Cursor, string) bool) {
			for job := range must(t, s.Jobs(t.Context(), "orders", o)) {
				if !yield(job.Cursor, job.ID) {
					return
				}
			}
		}
	}
	morgue := func(o skein.ListOptions) iter.Seq2[skein.Cursor, string] {
		return func(yield func(skein.Cursor, string) bool) {
			for letter := range must(t, s.Morgue(t.Context(), "orders", o)) {
				if !yield(letter.Cursor, letter.ID) {
					return
				}
			}
		}
	}
	for name, c := range map[string]struct {
		list  func(skein.ListOptions) iter.Seq2[skein.Cursor, string]
		order skein.Order
		want  []string
	}{
		"jobs by time":     {jobs, skein.ByTime, []string{"f", "c", "e", "d", "a"}},
		"jobs by id":       {jobs, skein.ByID, []string{"a", "c", "d", "e", "f"}},
		"retries by time":  {jobs, skein.RetriesByTime, []string{"c", "e", "d"}},
		"retries by id":    {jobs, skein.RetriesByID, []string{"c", "d", "e"}},
		"retries by count": {jobs, skein.RetriesByCount, []string{"c", "e", "d"}},
		"morgue by time":   {morgue, skein.ByTime, []string{"y", "x"}},
		"morgue by id":     {morgue, skein.ByID, []string{"x", "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, descending := range []bool{false, true} {
				want := slices.Clone(c.want)
				if descending {
					slices.Reverse(want)
				}
				o := skein.ListOptions{Order: c.order, Descending: descending}
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
	s := newSite(t)
	s.push("b", -time.Minute, "p", "q")
	s.claim()
	s.advance(time.Second)
	s.pushAll("a")
	s.claim()
	for name, c := range map[string]struct {
		options skein.ListOptions
		want    []string
	}{
		"ascending":  {skein.ListOptions{}, []string{"b", "a"}},
		"descending": {skein.ListOptions{Descending: true}, []string{"a", "b"}},
		"limited":    {skein.ListOptions{Limit: 1}, []string{"b"}},
	} {
		var got []string
		for job := range must(t, s.Claimed(t.Context(), "orders", c.options)) {
			got = append(got, job.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for first := range must(t, s.Claimed(t.Context(), "orders", skein.ListOptions{Payloads: 1})) {
		if len(first.Payloads) != 1 || first.PayloadCount != 2 || first.Node != "blue" || first.Lane != 1 || !first.Since.Equal(epoch) {
			t.Errorf("the first claimed job is %+v", first)
		}
		for job := range must(t, s.Claimed(t.Context(), "orders", skein.ListOptions{After: first.Cursor})) {
			if job.ID != "a" {
				t.Errorf("behind b there is %q", job.ID)
			}
		}
		break
	}
}

func TestPayloadsComeAsManyAsAskedFor(t *testing.T) {
	s := shelf(t)
	for _, want := range []int{0, 1, 2, 3} {
		for job := range must(t, s.Jobs(t.Context(), "orders", skein.ListOptions{Limit: 1, Payloads: want})) {
			if job.ID != "f" || len(job.Payloads) != want || job.PayloadCount != 3 {
				t.Errorf("Payloads %d: %q with %d of %d", want, job.ID, len(job.Payloads), job.PayloadCount)
			}
		}
		for letter := range must(t, s.Morgue(t.Context(), "orders", skein.ListOptions{Payloads: want})) {
			if len(letter.Payloads) != min(want, 1) || letter.PayloadCount != 1 {
				t.Errorf("Payloads %d: %q with %d of %d", want, letter.ID, len(letter.Payloads), letter.PayloadCount)
			}
		}
	}
}

// asked counts the pages that a store gives.
type asked struct {
	skein.InspectorStore
	limits []int
}

func (a *asked) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	a.limits = append(a.limits, r.Size())
	return a.InspectorStore.Jobs(ctx, r)
}

func TestListsFetchOnlyWhatIsRangedOver(t *testing.T) {
	s := newSite(t)
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
		"limited beyond all":    {limit: 10_000, want: len(ids), pages: []int{ports.MaxPage, ports.MaxPage, ports.MaxPage}},
		"stopped by the range":  {stop: 150, want: 150, pages: []int{100, 100}},
		"stopped at a page end": {stop: 100, want: 100, pages: []int{100}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &asked{InspectorStore: s.store}
			var got []string
			list := skein.NewInspector(store, skein.InspectorOptions{}).
				Jobs(t.Context(), "orders", skein.ListOptions{Limit: c.limit})
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
	s := shelf(t)
	list := s.Jobs(t.Context(), "orders", skein.ListOptions{Order: skein.ByID, Limit: 3})
	first, second := jobIDs(t, list), jobIDs(t, list)
	if diff := cmp.Diff([]string{"a", "c", "d"}, first); diff != "" {
		t.Errorf("the first range (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second range (-first +second):\n%s", diff)
	}
}

func TestWhatStaysIsListedOnceWhileOthersComeAndGo(t *testing.T) {
	s := newSite(t)
	stay, leave := numbered("stay", 300), numbered("leave", 300)
	s.pushAll(append(slices.Clone(stay), leave...)...)
	seen := map[string]int{}
	count := 0
	for job := range must(t, s.Jobs(t.Context(), "orders", skein.ListOptions{Order: skein.ByID})) {
		seen[job.ID]++
		if count%3 == 0 { // also the one under the cursor
			s.pushAll(nth("new", count))
			if _, err := s.Delete(t.Context(), "orders", []string{leave[count/3]}, skein.BulkOptions{}); err != nil {
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
	s := newSite(t)
	s.pushAll(numbered("order", 250)...)
	broken := errors.New("broken")
	link := s.linked()
	pages := 0
	link.before = func(string) error {
		if pages++; pages == 2 {
			return broken
		}
		return nil
	}
	jobs, errs := 0, 0
	for job, err := range s.Jobs(t.Context(), "orders", skein.ListOptions{}) {
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
	s := newSite(t)
	s.pushAll(numbered("order", 250)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	jobs := 0
	var last error
	for _, err := range s.Jobs(ctx, "orders", skein.ListOptions{}) {
		stop()
		last = err
		jobs++
	}
	if !errors.Is(last, context.Canceled) || jobs != ports.DefaultPage+1 {
		t.Errorf("%d elements, the last with %v; want a page and context.Canceled", jobs, last)
	}
}

func TestListsRefuseOptionsThatCantBe(t *testing.T) {
	s := newSite(t)
	jobs := func(o skein.ListOptions) error {
		for _, err := range s.Jobs(t.Context(), "orders", o) {
			return err
		}
		return nil
	}
	claimed := func(o skein.ListOptions) error {
		for _, err := range s.Claimed(t.Context(), "orders", o) {
			return err
		}
		return nil
	}
	morgue := func(o skein.ListOptions) error {
		for _, err := range s.Morgue(t.Context(), "orders", o) {
			return err
		}
		return nil
	}
	for name, c := range map[string]struct {
		list    func(skein.ListOptions) error
		options skein.ListOptions
	}{
		"no order of jobs":          {jobs, skein.ListOptions{Order: 99}},
		"claimed jobs by id":        {claimed, skein.ListOptions{Order: skein.ByID}},
		"the morgue by retry count": {morgue, skein.ListOptions{Order: skein.RetriesByCount}},
		"a negative limit":          {jobs, skein.ListOptions{Limit: -1}},
		"negative payloads":         {morgue, skein.ListOptions{Payloads: -1}},
	} {
		if err := c.list(c.options); !errors.Is(err, skein.ErrInvalidOptions) {
			t.Errorf("%s: %v; want ErrInvalidOptions", name, err)
		}
	}
}

func TestJobsByIDNeedTheirIndex(t *testing.T) {
	s := newSite(t)
	if _, err := s.store.Declare(t.Context(), ports.DeclareRequest{Queue: "plain", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Jobs(t.Context(), "plain", skein.ListOptions{Order: skein.ByID}) {
		if !errors.Is(err, skein.ErrQueueMismatch) {
			t.Errorf("by id without IndexIDs: %v; want ErrQueueMismatch", err)
		}
	}
	for _, err := range s.Morgue(t.Context(), "plain", skein.ListOptions{Order: skein.ByID}) {
		t.Errorf("an empty morgue by id: %v", err)
	}
}

func TestAQueueOfAnUnknownTypeIsShownAsBytes(t *testing.T) {
	s := newSite(t)
	s.push("order-1", 0, "\x00\xff not JSON")
	for job := range must(t, s.Jobs(t.Context(), "orders", skein.ListOptions{Payloads: 1})) {
		want := []core.Payload{{Data: []byte("\x00\xff not JSON")}}
		if diff := cmp.Diff(want, job.Payloads); diff != "" {
			t.Errorf("payloads (-want +got):\n%s", diff)
		}
	}
}

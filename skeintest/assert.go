package skeintest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// AssertEvents fails the test, with a diff, unless the lines of the events, as [Event.String]
// returns them, equal want.
func AssertEvents(t TB, got Events, want ...string) {
	t.Helper()
	if d := diff(want, got.lines()); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// AssertPushed fails the test, with a diff, unless the queue holds exactly these jobs, in any
// order. These are the jobs that were pushed and have not run, and those that were requeued.
func AssertPushed[P any](t TB, s *Store, q *skein.Queue[P], want ...Job[P]) {
	t.Helper()

	var got []view
	for job, err := range s.Inspector.Jobs(t.Context(), q.Name(), inspect.ListOptions{Payloads: math.MaxInt32}) {
		if unknown(err) {
			break
		}
		if err != nil {
			t.Fatalf("assert pushed: %v", err)
			return
		}
		got = append(got, view{
			id:        job.ID,
			payloads:  job.Payloads,
			in:        job.PerformAt.Sub(s.Now()),
			retries:   job.Retries,
			lastError: job.LastError,
			tags:      job.Tags,
		})
	}

	compare(t, "jobs of queue "+q.Name(), q, got, want)
}

// AssertMorgue is [AssertPushed] for the queue's morgue. In and Retries of a [Job] are not
// compared, because the morgue doesn't keep them.
func AssertMorgue[P any](t TB, s *Store, q *skein.Queue[P], want ...Job[P]) {
	t.Helper()

	var got []view
	for dead, err := range s.Inspector.Morgue(t.Context(), q.Name(), inspect.ListOptions{Payloads: math.MaxInt32}) {
		if unknown(err) {
			break
		}
		if err != nil {
			t.Fatalf("assert morgue: %v", err)
			return
		}
		got = append(got, view{id: dead.ID, payloads: dead.Payloads, lastError: dead.LastError, tags: dead.Tags})
	}

	want = slices.Clone(want)
	for i := range want {
		want[i].In, want[i].Retries = 0, 0
	}

	compare(t, "morgue of queue "+q.Name(), q, got, want)
}

// unknown reports whether an error means that nothing was pushed to the queue.
func unknown(err error) bool { return errors.Is(err, inspect.ErrUnknownQueue) }

// view is a job as it is compared.
type view struct {
	id       string
	payloads []core.Payload
	// scored is set if the scores are compared.
	scored    bool
	in        time.Duration
	retries   int
	lastError string
	tags      []string // sorted
}

func compare[P any](t TB, what string, q *skein.Queue[P], got []view, want []Job[P]) {
	t.Helper()

	masks := make(map[string]view, len(want))
	expected := make([]view, 0, len(want))
	for i := range want {
		w, err := viewOf(t.Context(), q, &want[i])
		if err != nil {
			t.Fatalf("%s: can't compare with job %d: %v", what, i, err)
			return
		}
		masks[w.id] = w
		expected = append(expected, w)
	}

	if d := diff(lines(expected, masks), lines(got, masks)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// viewOf returns a job as it is compared. A push that stores nothing encodes its payloads.
func viewOf[P any](ctx context.Context, q *skein.Queue[P], job *Job[P]) (view, error) {
	entries, err := job.entries()
	if err != nil {
		return view{}, err
	}

	v := view{
		id:        job.ID,
		scored:    job.Scores != nil,
		in:        job.In,
		retries:   job.Retries,
		lastError: job.LastError,
		tags:      sortedTags(job.Tags),
	}

	encode := func(skein.PushFunc) skein.PushFunc {
		return func(_ context.Context, push *skein.RawPush) error {
			for _, e := range push.Entries {
				v.payloads = append(v.payloads, core.Payload{Data: e.Data, Score: e.Score})
			}
			return nil
		}
	}

	client := skein.NewClient(nil, skein.ClientOptions{Middleware: []skein.PushMiddleware{encode}})
	return v, q.PushMany(ctx, client, entries)
}

// sortedTags returns tags in the order in which a job has them, nil for none.
func sortedTags(tags []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(tags)))
}

// lines returns the views in order of id, each with the fields that its mask sets.
func lines(views []view, masks map[string]view) []string {
	views = slices.SortedStableFunc(slices.Values(views), func(a, b view) int { return cmp.Compare(a.id, b.id) })
	list := make([]string, len(views))
	for i := range views {
		list[i] = views[i].line(masks[views[i].id])
	}
	return list
}

func (v *view) line(mask view) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v", v.id, printed(v.payloads))

	if mask.scored {
		scores := make([]float64, len(v.payloads))
		for i := range v.payloads {
			scores[i] = v.payloads[i].Score
		}
		fmt.Fprintf(&b, " scores %v", scores)
	}

	if mask.in != 0 {
		fmt.Fprintf(&b, " in %v", v.in)
	}
	if mask.retries != 0 {
		fmt.Fprintf(&b, " retries %d", v.retries)
	}
	if mask.lastError != "" {
		fmt.Fprintf(&b, " last error %q", v.lastError)
	}
	if mask.tags != nil {
		fmt.Fprintf(&b, " tags %q", v.tags)
	}

	return b.String()
}

package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// manyPayloads is more than one call reads.
const manyPayloads = 2*core.MaxTurnPayloads + 100

// pushMany pushes payloads p0000, p0001, ... for an id, each three with one score.
func (s *fixture) pushMany(id string, n int) {
	s.t.Helper()
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = core.Entry{
			ID:      id,
			Payload: core.Payload{Data: fmt.Appendf(nil, "p%04d", i), Score: float64(i / 3)},
			When:    core.In(0),
		}
	}
	s.pushEntries(entries)
}

// buryWhole buries a job that takes several steps.
func (s *fixture) buryWhole(id string) {
	s.t.Helper()
	for {
		if _, err := s.Bury(s.t.Context(), "orders", inspect.JobIDs(id)); err != nil {
			s.t.Fatal(err)
		}
		if found, err := s.FindSome(s.t.Context(), "orders", id, 0); err != nil || found.Queued == nil {
			return
		}
	}
}

func TestFindReturnsTheFirstPayloads(t *testing.T) {
	s := newFixture(t)
	s.pushMany("x", manyPayloads)
	found, err := s.Find(t.Context(), "orders", "x")
	if err != nil || len(found.Queued.Payloads) != core.MaxTurnPayloads || found.Queued.PayloadCount != manyPayloads {
		t.Errorf("Find returned %d of %d payloads, %v; want %d of %d",
			len(found.Queued.Payloads), found.Queued.PayloadCount, err, core.MaxTurnPayloads, manyPayloads)
	}
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 5000: core.MaxTurnPayloads} {
		found, err := s.FindSome(t.Context(), "orders", "x", n)
		if err != nil || len(found.Queued.Payloads) != want || found.Queued.PayloadCount != manyPayloads {
			t.Errorf("FindSome of %d returned %d of %d payloads, %v; want %d",
				n, len(found.Queued.Payloads), found.Queued.PayloadCount, err, want)
		}
	}
}

func TestPayloadsListsAllOfAPlace(t *testing.T) {
	s := newFixture(t)
	s.pushMany("x", manyPayloads)
	s.buryWhole("x")
	s.push("x", 0, "queued")

	texts := func(o inspect.PayloadOptions) (texts []string) {
		for p := range must(t, s.Payloads(t.Context(), "orders", "x", o)) {
			texts = append(texts, string(p.Data))
		}
		return texts
	}

	if diff := cmp.Diff([]string{"queued"}, texts(inspect.PayloadOptions{})); diff != "" {
		t.Errorf("the queued payloads (-want +got):\n%s", diff)
	}
	if got := texts(inspect.PayloadOptions{Place: inspect.PlaceClaimed}); got != nil {
		t.Errorf("payloads of a claim that is not there: %v", got)
	}

	var want []string
	for i := range manyPayloads {
		want = append(want, fmt.Sprintf("p%04d", i))
	}
	if diff := cmp.Diff(want, texts(inspect.PayloadOptions{Place: inspect.PlaceDead})); diff != "" {
		t.Errorf("the dead payloads (-want +got):\n%s", diff)
	}

	var pages []string
	o := inspect.PayloadOptions{Place: inspect.PlaceDead, Limit: 700}
	for more := true; more; {
		more = false
		for p := range must(t, s.Payloads(t.Context(), "orders", "x", o)) {
			text := p.Cursor.String()
			if url.QueryEscape(text) != text {
				t.Fatalf("the cursor %q does not fit into a URL", text)
			}
			if err := o.After.UnmarshalText([]byte(text)); err != nil || o.After != p.Cursor {
				t.Fatalf("the cursor %q reads as %v, %v", text, o.After, err)
			}
			pages, more = append(pages, string(p.Data)), true
		}
	}

	if diff := cmp.Diff(want, pages); diff != "" {
		t.Errorf("the dead payloads, by 700 (-want +got):\n%s", diff)
	}
}

func TestPayloadsRefuseInvalidOptions(t *testing.T) {
	s := newFixture(t)
	for _, o := range []inspect.PayloadOptions{{Place: inspect.PlaceDead + 1}, {Limit: -1}} {
		for _, err := range s.Payloads(t.Context(), "orders", "x", o) {
			if !errors.Is(err, inspect.ErrInvalidOptions) {
				t.Errorf("Payloads with %+v: %v, want ErrInvalidOptions", o, err)
			}
		}
	}
	for _, text := range []string{
		"x",
		"AAAA",
		"AAAAAAAAAAAA",
		"f_AAAAAAAAAB",
		"P_AAAAAAAAABAA",
		"P_AAAAAAAACAgICACA",
		"P_AAAAAAAAD___________8B",
	} {
		if c, err := inspect.ParsePayloadCursor(text); !errors.Is(err, inspect.ErrInvalidCursor) {
			t.Errorf("ParsePayloadCursor(%q) = %v, %v; want ErrInvalidCursor", text, c, err)
		}
	}
}

// noteFinds notes each request for payloads, and calls between after each of them.
func (s *fixture) noteFinds(between func(calls int)) (finds *[]ports.FindRequest) {
	finds = new([]ports.FindRequest)
	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		err := next(ctx)
		if r, ok := call.Request.(*ports.FindRequest); ok {
			if *finds = append(*finds, *r); between != nil {
				between(len(*finds))
			}
		}
		return err
	})
	s.Inspector = inspect.New(store, inspect.Options{})
	return finds
}

// Some stores read the payloads that they count, so only the first page counts.
func TestPayloadsAreCountedOnce(t *testing.T) {
	s := newFixture(t)
	s.pushMany("x", manyPayloads)
	s.buryWhole("x")
	s.advance(time.Second)

	finds := s.noteFinds(nil)
	counted := func() (most []int) {
		for _, r := range *finds {
			most = append(most, r.MaxCount)
		}
		*finds = nil
		return most
	}

	listed := 0
	for range must(t, s.Payloads(t.Context(), "orders", "x", inspect.PayloadOptions{Place: inspect.PlaceDead})) {
		listed++
	}
	if diff := cmp.Diff([]int{-1, -1, -1}, counted()); diff != "" || listed != manyPayloads {
		t.Errorf("a list of %d payloads counts (-want +got):\n%s", listed, diff)
	}

	matched := 0
	match := func(d inspect.DeadLetter) bool {
		matched = d.PayloadCount
		return len(d.Payloads) == manyPayloads
	}
	r, err := s.Purge(t.Context(), "orders", inspect.AllDead(match, inspect.BulkOptions{}))
	if err != nil || r.Handled != 1 || matched != manyPayloads {
		t.Errorf("PurgeAll = %+v, %v, and match saw a count of %d", r, err, matched)
	}

	if diff := cmp.Diff([]int{0, -1, -1}, counted()); diff != "" {
		t.Errorf("a match counts (-want +got):\n%s", diff)
	}
}

func TestWhyReadsNoPayload(t *testing.T) {
	s := newFixture(t)
	s.pushMany("x", 100)
	finds := s.noteFinds(nil)
	v, err := s.Why(t.Context(), "orders", "x")
	if err != nil || v.Found.Queued == nil || v.Found.Queued.PayloadCount != 100 || len(v.Found.Queued.Payloads) != 0 {
		t.Fatalf("Why found %+v, %v; want 100 payloads, of which it has none", v.Found.Queued, err)
	}
	if diff := cmp.Diff([]ports.FindRequest{{Queue: "orders", ID: "x"}}, *finds); diff != "" {
		t.Errorf("what it asked for (-want +got):\n%s", diff)
	}
}

func TestAMatchSeesAsManyPayloadsAsItAsksFor(t *testing.T) {
	for payloads, want := range map[int]int{0: 100, -1: 0, 1: 1, 50: 50} {
		s := newFixture(t)
		s.pushMany("x", 100)
		s.buryWhole("x")
		finds := s.noteFinds(nil)
		s.advance(time.Second)

		seen := -1
		match := func(d inspect.DeadLetter) bool {
			seen = len(d.Payloads)
			return true
		}
		r, err := s.Purge(t.Context(), "orders", inspect.AllDead(match, inspect.BulkOptions{Payloads: payloads}))
		if err != nil || r.Handled != 1 || seen != want {
			t.Errorf("Payloads %d: %+v, %v, match saw %d payloads; want %d", payloads, r, err, seen, want)
		}

		if payloads != 0 && len(*finds) > 0 {
			t.Errorf("Payloads %d: it asked for %+v", payloads, *finds)
		}
		if found, err := s.FindSome(t.Context(), "orders", "x", 0); err != nil || found.DeadLetter != nil {
			t.Errorf("Payloads %d: %+v is left, %v; want the whole dead letter purged", payloads, found.DeadLetter, err)
		}
	}

	s := newFixture(t)
	edit := func(string, core.Payload) ([]byte, bool, error) { return nil, false, nil }
	if _, err := s.Edit(t.Context(), "orders",
		inspect.AllDead(nil, inspect.BulkOptions{Payloads: -1}), edit); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("EditAll with Payloads: %v, want ErrInvalidOptions", err)
	}
}

// TestExportReadsADeadLetterAgainThatChanges takes a payload out of a dead letter between two of
// its pages: of the same score as the cursor, so that the second page lacks one that stays.
func TestExportReadsADeadLetterAgainThatChanges(t *testing.T) {
	s := newFixture(t)
	s.pushMany("x", manyPayloads)
	s.buryWhole("x")

	acted := s.Inspector
	finds := s.noteFinds(func(calls int) {
		if calls == 1 {
			gone := []inspect.DeadLetterPayloads{{
				ID:       "x",
				Payloads: [][]byte{[]byte("p0999")},
			}} // the last of the page, the first of its score
			if r, err := acted.Purge(t.Context(), "orders", inspect.DeadPayloads(gone...)); err != nil ||
				r.Handled != 0 && r.Handled != 1 {
				t.Errorf("PurgePayloads: %+v, %v", r, err)
			}
		}
	})

	letters := gather(t, s.Export(t.Context(), "orders", inspect.ListOptions{}))
	if len(letters) != 1 || len(letters[0].Payloads) != manyPayloads-1 {
		t.Fatalf("%d dead letters; want one with %d payloads", len(letters), manyPayloads-1)
	}

	n := 0
	for _, p := range letters[0].Payloads {
		if n == 999 {
			n++
		}
		if want := fmt.Sprintf("p%04d", n); string(p.Data) != want {
			t.Fatalf("payload %q follows; want %s", p.Data, want)
		}
		n++
	}

	if len(*finds) != 6 {
		t.Errorf("it took %d calls; want 6, three of them for what has changed", len(*finds))
	}
}

// A store may return a cursor and then nothing behind it, since the payloads no longer exist.
func TestAnExportEndsWhereNoPayloadFollows(t *testing.T) {
	s := newFixture(t)
	s.pushMany("x", manyPayloads)
	s.buryWhole("x")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	calls := 0
	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		err := next(ctx)
		if r, ok := call.Request.(*ports.FindRequest); ok && r.After != nil && r.After.Skip > 0 {
			found := call.Reply.(*ports.Found)
			found.DeadLetter.Payloads, found.Next = nil, []ports.PayloadCursor{*r.After}
			if calls++; calls > 100 {
				stop()
			}
		}
		return err
	})

	letters := gather(t, inspect.New(store, inspect.Options{}).Export(ctx, "orders", inspect.ListOptions{}))
	if len(letters) != 1 || len(letters[0].Payloads) != core.MaxTurnPayloads {
		t.Errorf("%d dead letters after %d calls; want one with what could be read", len(letters), calls)
	}
}

// The more payloads a match needs, the fewer dead letters and jobs are fetched at a time.
func TestAPageOfASweepHasSoManyPayloads(t *testing.T) {
	s := newFixture(t)
	s.pushAll("a", "b", "c")
	s.advance(time.Second)

	var pages []ports.PageRequest
	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		switch r := call.Request.(type) {
		case *ports.MorgueRequest:
			pages = append(pages, r.PageRequest)
		case *ports.JobsRequest:
			pages = append(pages, r.PageRequest)
		}
		return next(ctx)
	})

	i := inspect.New(store, inspect.Options{})
	for payloads, limit := range map[int]int{-1: 100, 0: 100, 1: 100, 16: 100, 32: 50, 1000: 1, 5000: 1} {
		pages = nil
		o := inspect.BulkOptions{Payloads: payloads}
		if _, err := i.Purge(t.Context(), "orders", inspect.AllDead(func(inspect.DeadLetter) bool {
			return false
		}, o)); err != nil {
			t.Error(err)
		}
		if _, err := i.Delete(t.Context(), "orders", inspect.AllJobs(func(inspect.QueuedJob) bool {
			return false
		}, o)); err != nil {
			t.Error(err)
		}

		for _, r := range pages {
			if r.Limit != limit {
				t.Errorf("Payloads %d: a page has %d entries of %d payloads, want %d entries",
					payloads, r.Limit, r.Payloads, limit)
			}
		}

		if len(pages) < 2 {
			t.Errorf("Payloads %d: %d pages were fetched, want one at least of each kind", payloads, len(pages))
		}
	}
}

package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// hold lets the due jobs fail for good in a queue that holds such jobs.
func (s *fixture) hold(text string, ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	claims := s.claim()
	policy := core.RetryPolicy{Exhausted: core.Hold}
	for at := range claims {
		shard := core.Shard{Queue: "orders", Index: core.ShardOf(claims[at].ID, fixtureShards)}
		s.turn(shard, 0, policy.Settlement(&claims[at], &core.Outcome{
			Kind: core.Failed, Error: text, At: core.InstantOf(s.clock.Now()), Node: "blue",
		}, 0))
	}
}

// failedFor pushes jobs that then fail.
func (s *fixture) failedFor(text string, ids ...string) {
	s.t.Helper()
	s.pushAll(ids...)
	s.settle(s.claim(), core.Outcome{Kind: core.Failed, Error: text, At: core.InstantOf(s.clock.Now()), Node: "blue"})
}

// brief is a group of errors without what a test does not ask for.
type brief struct {
	Name                 string
	Retrying, Dead, Held int64
	Sample               bool
	First, Last          time.Duration
}

func briefOf(groups []inspect.ErrorGroup) (list []brief) {
	for _, g := range groups {
		list = append(list, brief{
			g.Name, g.Retrying, g.Dead, g.Held, g.Sample, g.First.Sub(epoch), g.Last.Sub(epoch),
		})
	}
	return list
}

func (s *fixture) errorsOf(o inspect.ErrorsOptions) inspect.Errors {
	s.t.Helper()
	got, err := s.Errors(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// One error is one group, however many of its jobs retry, are held or are dead, whatever numbers
// its texts have, and whether its dead letters are named with the type of the error.
func TestErrorsAreGroupedByText(t *testing.T) {
	s := newFixture(t)
	s.pushAll("d", "e")
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "charge 9: 503", Group: "*pay.Error: charge #: #"})
	s.advance(time.Hour)
	s.failedFor("charge 4711: 503", "a", "b", "f")
	s.advance(time.Minute)
	s.hold("charge 12: 503", "c")
	s.hold("no such mailbox", "h")
	s.pushAll("p")
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "boom in 5", Group: "panic in shop.charge"})
	s.failedFor("boom in 7", "q")

	got := s.errorsOf(inspect.ErrorsOptions{})
	want := []brief{
		{Name: "charge #: #", Retrying: 3, Dead: 2, Held: 1, Last: 61 * time.Minute},
		{Name: "panic in shop.charge", Retrying: 1, Dead: 1, First: 61 * time.Minute, Last: 61 * time.Minute},
		{Name: "no such mailbox", Held: 1, First: 61 * time.Minute, Last: 61 * time.Minute},
	}
	if diff := cmp.Diff(want, briefOf(got.Groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Retrying != 4 || got.Dead != 3 || got.Held != 2 || got.Read != 9 || got.Of != 9 || got.Total != 3 ||
		!got.Now.Equal(epoch.Add(61*time.Minute)) {
		t.Errorf("%+v", got)
	}

	parts := []inspect.ErrorPart{
		{Queue: "orders", Group: "*pay.Error: charge #: #", Dead: 2},
		{Queue: "orders", Group: "charge #: #", Retrying: 3, Held: 1},
	}
	if diff := cmp.Diff(parts, got.Groups[0].Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// A job joins the group of dead letters whose cut name has the most of its error.
func TestErrorsJoinTheLongestCutGroup(t *testing.T) {
	s := newFixture(t)
	for text, ids := range map[string][]string{"c": {"a", "b"}, "charge": {"d"}} {
		group := "*pay." + strings.Repeat("x", core.MaxGroupBytes-len("*pay.: ")-len(text)) + ": " + text
		s.pushAll(ids...)
		s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "other " + text, Group: group})
	}
	s.failedFor("charge 4711", "f")

	got := s.errorsOf(inspect.ErrorsOptions{})
	for _, g := range got.Groups {
		if want := map[string]int64{"charge": 1}[g.Name]; g.Retrying != want {
			t.Errorf("%d jobs of the group %q retry, want %d", g.Retrying, g.Name, want)
		}
	}
	if len(got.Groups) != 2 {
		t.Errorf("%+v", briefOf(got.Groups))
	}
}

// The parts of a group are what actions act on.
func TestActionsOnJobsOfAGroup(t *testing.T) {
	s := newFixture(t)
	s.failedFor("charge 1: 503", "a", "b")
	s.failedFor("charge 22: 503", "c")
	s.failedFor("no such mailbox", "x")
	s.hold("charge 333: 503", "d")
	s.push("later", time.Hour, "p")
	part := s.errorsOf(inspect.ErrorsOptions{}).Groups[0].Parts[0]
	if diff := cmp.Diff(inspect.ErrorPart{Queue: "orders", Group: "charge #: #", Retrying: 3, Held: 1}, part); diff != "" {
		t.Fatal(diff)
	}

	of := inspect.BulkOptions{Group: part.Group, DryRun: true}
	dry, err := s.RunNow(t.Context(), "orders", inspect.AllJobs(nil, of))
	if err != nil || dry.Handled != 4 || len(dry.Jobs) != 4 || dry.Total != 5 {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}

	of = inspect.BulkOptions{Group: part.Group, Limit: 1}
	first, err := s.RunNow(t.Context(), "orders", inspect.AllJobs(nil, of))
	if err != nil || first.Handled != 1 || first.Checkpoint == "" {
		t.Fatalf("the first: %+v, %v", first, err)
	}
	of.Continue, of.Limit = first.Checkpoint, 0
	if rest, err := s.RunNow(t.Context(), "orders", inspect.AllJobs(nil, of)); err != nil || rest.Handled != 4 {
		t.Errorf("all: %+v, %v", rest, err)
	}

	held := func(j inspect.QueuedJob) bool { return j.Held }
	s.hold("charge 333: 503", "e")
	buried, err := s.Bury(t.Context(), "orders", inspect.FailedJobs(held, inspect.BulkOptions{Group: part.Group}))
	if c := s.counts(); err != nil || buried.Handled != 5 || c.Dead != 5 || c.Retrying != 1 {
		t.Errorf("buried held ones: %+v, %v; %+v", buried, err, c)
	}
}

// Errors of several queues with one text are one group with a part for each queue.
func TestErrorsOfSeveralQueues(t *testing.T) {
	s := newFixture(t)
	s.declare("mails", 1)
	s.deadOf("timeout of # ms", "a")
	got := s.errorsOf(inspect.ErrorsOptions{Queues: []string{"mails"}})
	if len(got.Groups) != 0 || got.Of != 0 {
		t.Errorf("of another queue: %+v", got)
	}
	if got := s.errorsOf(inspect.ErrorsOptions{Queues: []string{}}); len(got.Groups) != 0 {
		t.Errorf("of no queue: %+v", got)
	}
	if _, err := s.Errors(t.Context(), inspect.ErrorsOptions{Queues: []string{"nowhere"}}); !errors.Is(err,
		inspect.ErrUnknownQueue) {
		t.Errorf("of an unknown queue: %v", err)
	}
}

// A queue that is forgotten during the look is left out, unless it was asked for.
func TestErrorsWithoutAForgottenQueue(t *testing.T) {
	for _, lost := range []string{"Groups", "Morgue", "Jobs"} {
		s := newFixture(t)
		s.deadOf("boom", "a")
		s.failedFor("no route", "b")
		s.intercept().before = func(method string) error {
			if method == lost {
				return inspect.ErrUnknownQueue
			}
			return nil
		}
		if _, err := s.Errors(t.Context(), inspect.ErrorsOptions{}); err != nil {
			t.Errorf("forgotten before %s: %v", lost, err)
		}
		o := inspect.ErrorsOptions{Queues: []string{"orders"}}
		if _, err := s.Errors(t.Context(), o); !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("asked for, and forgotten before %s: %v", lost, err)
		}
	}
}

func TestErrorsAreFiltered(t *testing.T) {
	s := newFixture(t)
	s.pushTagged("a", "vip")
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "timeout of 5 ms", Group: "timeout of # ms"})
	s.deadOf("timeout of # ms", "b")
	s.advance(time.Hour)
	s.failedFor("no such mailbox 17", "c")

	for name, tt := range map[string]struct {
		o    inspect.ErrorsOptions
		want []brief
	}{
		"a tag": {inspect.ErrorsOptions{Tag: "vip"}, []brief{{Name: "timeout of # ms", Dead: 1}}},
		"a state": {
			inspect.ErrorsOptions{States: []inspect.ErrorState{inspect.ErrorDead}},
			[]brief{{Name: "timeout of # ms", Dead: 2}},
		},
		"a time": {
			inspect.ErrorsOptions{Since: epoch.Add(time.Minute)},
			[]brief{{Name: "no such mailbox #", Retrying: 1, First: time.Hour, Last: time.Hour}},
		},
		"a text of an error": {
			inspect.ErrorsOptions{Text: "mailbox 17"},
			[]brief{{Name: "no such mailbox #", Retrying: 1, First: time.Hour, Last: time.Hour}},
		},
		"a text that none has": {inspect.ErrorsOptions{Text: "nothing"}, nil},
		"a limit":              {inspect.ErrorsOptions{Limit: 1}, []brief{{Name: "timeout of # ms", Dead: 2}}},
	} {
		if diff := cmp.Diff(tt.want, briefOf(s.errorsOf(tt.o).Groups)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	for name, o := range map[string]inspect.ErrorsOptions{
		"a state":     {States: []inspect.ErrorState{"lost"}},
		"a limit":     {Limit: -1},
		"a long name": {Open: string(make([]byte, 70))},
		"entries":     {Entries: -1},
	} {
		if _, err := s.Errors(t.Context(), o); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A look that is stopped marks what it has as a sample; the counts of dead letters stay exact.
func TestErrorsAreASample(t *testing.T) {
	s := newFixture(t)
	s.deadOf("timeout", numbered("d", 700)...)
	s.failedFor("no route", numbered("f", 600)...)

	got := s.errorsOf(inspect.ErrorsOptions{Stop: func() bool { return true }})
	want := []brief{{Name: "timeout", Dead: 700, Sample: true}}
	if diff := cmp.Diff(want, briefOf(got.Groups)); diff != "" || got.Read != 0 || got.Of != 1300 {
		t.Errorf("stopped at once: read %d of %d (-want +got):\n%s", got.Read, got.Of, diff)
	}

	calls := 0
	got = s.errorsOf(inspect.ErrorsOptions{Stop: func() bool { calls++; return calls > 3 }})
	want = []brief{
		{Name: "timeout", Dead: 700, Sample: true},
		{Name: "no route", Retrying: 500, Sample: true},
	}
	if diff := cmp.Diff(want, briefOf(got.Groups)); diff != "" || got.Read != 1200 {
		t.Errorf("stopped later: read %d (-want +got):\n%s", got.Read, diff)
	}
}

// Of a queue with very many groups the largest are counted, and marked.
func TestErrorsOfVeryManyGroups(t *testing.T) {
	s := newFixture(t)
	s.deadOf("largest", "a", "b")
	for n := range 1100 {
		s.deadOf(fmt.Sprintf("error %c%c%c", 'a'+n%26, 'a'+n/26%26, 'a'+n/676), fmt.Sprint("id-", n))
	}
	got := s.errorsOf(inspect.ErrorsOptions{Limit: 1})
	want := []brief{{Name: "largest", Dead: 2, Sample: true}}
	if diff := cmp.Diff(want, briefOf(got.Groups)); diff != "" || got.Total != 1000 || got.Dead != 1102 {
		t.Errorf("%d groups, %d dead (-want +got):\n%s", got.Total, got.Dead, diff)
	}
}

// The entries that were read are counted by the half hour of their last failure.
func TestErrorsHaveSteps(t *testing.T) {
	s := newFixture(t)
	s.deadOf("boom", "old")
	s.advance(25 * time.Hour)
	s.deadOf("boom", "a", "b")
	s.advance(31 * time.Minute)
	s.deadOf("boom", "c")

	got := s.errorsOf(inspect.ErrorsOptions{Entries: 2}).Groups[0]
	var sum int64
	for _, n := range got.Steps {
		sum += n
	}
	if len(got.Steps) != inspect.ErrorSteps || sum != 3 || got.Steps[47] != 1 || got.Steps[46] != 2 {
		t.Errorf("%v", got.Steps)
	}
	if len(got.Entries) != 2 || got.Entries[0].ID != "c" || got.Entries[0].State != inspect.ErrorDead {
		t.Errorf("%+v", got.Entries)
	}

	for open, want := range map[string]int{"boom": 2, "other": 0} {
		if got := s.errorsOf(inspect.ErrorsOptions{Entries: 2, Open: open}).Groups[0]; len(got.Entries) != want {
			t.Errorf("entries of %s: %+v", open, got.Entries)
		}
	}
}

// Texts that a client made can't break the groups: each is one row.
func TestErrorsOfHostileTexts(t *testing.T) {
	s := newFixture(t)
	for at, text := range []string{"", "\x00", "\xff", "<script>alert(1)</script>", "\u202e", ": ", "a.b: "} {
		s.failedFor(text, fmt.Sprint("id-", at))
	}
	got := s.errorsOf(inspect.ErrorsOptions{})
	var sum int64
	for _, g := range got.Groups {
		sum += g.Retrying
	}
	if sum != 7 {
		t.Errorf("%+v", briefOf(got.Groups))
	}
	for _, g := range got.Groups {
		dry, err := s.Bury(t.Context(), "orders",
			inspect.FailedJobs(nil, inspect.BulkOptions{Group: g.Parts[0].Group, DryRun: true}))
		if err != nil || int64(dry.Handled) != g.Retrying {
			t.Errorf("group %q: %+v, %v; want %d", g.Name, dry, err, g.Retrying)
		}
	}
}

// Of a job that has failed several times the last failure only is counted, so its error may be older
// than the first known failure.
func TestAnErrorThatMayBeOlderIsMarked(t *testing.T) {
	s := newFixture(t)
	s.failedFor("boom", "a")
	if g := s.errorsOf(inspect.ErrorsOptions{}).Groups[0]; g.Earlier {
		t.Errorf("after one failure: %+v", g)
	}

	s.advance(100 * time.Hour)
	s.settle(s.claim(), core.Outcome{Kind: core.Failed, Error: "boom", At: core.InstantOf(s.clock.Now()), Node: "blue"})
	if g := s.errorsOf(inspect.ErrorsOptions{}).Groups[0]; !g.Earlier || !g.First.Equal(g.Last) {
		t.Errorf("after two failures: %+v", g)
	}
}

// Jobs without a failure have no error, and retried jobs are read in the order in which they are due.
func TestErrorsOfRetriedJobsByDueTime(t *testing.T) {
	s := newFixture(t)
	ids := numbered("f", 20)
	slices.Reverse(ids)
	for at, id := range ids {
		s.failedFor("boom", id)
		s.push(fmt.Sprint("fresh-", at), time.Minute, "p")
		s.advance(time.Second)
	}

	got := s.errorsOf(inspect.ErrorsOptions{Entries: 20})
	if len(got.Groups) != 1 || got.Read != 20 || got.Of != 20 {
		t.Fatalf("read %d of %d: %+v", got.Read, got.Of, briefOf(got.Groups))
	}
	for at, e := range got.Groups[0].Entries {
		if e.ID != ids[at] {
			t.Errorf("the %dth is %s, want %s", at, e.ID, ids[at])
		}
	}
}

// An entry has its newest failure only, however errors are stored.
func TestEntriesOfErrorsHaveOneFailure(t *testing.T) {
	s := newFixture(t)
	s.failedFor("first", "a")
	s.advance(100 * time.Hour)
	s.settle(s.claim(), core.Outcome{Kind: core.Failed, Error: "second", At: core.InstantOf(s.clock.Now()), Node: "red"})
	decoding := inspect.New(s.store, inspect.Options{DecodeError: func(text string) string { return text }})
	for _, i := range []*inspect.Inspector{s.Inspector, decoding} {
		s.Inspector = i
		e := s.errorsOf(inspect.ErrorsOptions{Entries: 1}).Groups[0].Entries[0]
		if e.Retries != 2 || len(e.Failures) != 1 || e.LastError != "second" || e.LastFailedOn != "red" ||
			e.Failures[0] != (inspect.Failure{At: e.LastFailedAt, On: "red", Text: "second"}) {
			t.Errorf("%+v", e)
		}
	}
}

// An error that is stored encoded is read whole, since a part of it can't be decoded.
func TestLongEncodedErrorsAreDecoded(t *testing.T) {
	s := newFixture(t)
	long := strings.Repeat("x", 2000)
	s.failedFor(long, "a")
	s.Inspector = inspect.New(s.store, inspect.Options{DecodeError: func(text string) string {
		if text == long {
			return "no route"
		}
		return "cut"
	}})
	if got := s.errorsOf(inspect.ErrorsOptions{}).Groups; len(got) != 1 || got[0].Name != "no route" {
		t.Errorf("%+v", briefOf(got))
	}
}

package skeintest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/skeintest"
)

func TestRunTellsWhatCameOfAJob(t *testing.T) {
	q := skein.NewQueue[string]("q", skein.QueueOptions[string]{MaxRetries: 2, Backoff: every(time.Minute)})
	job := skeintest.Job[string]{ID: "id", Payloads: []string{"a", "b"}}
	failed := job
	failed.Retries, failed.LastError = 2, "boom before"
	thrice := job
	thrice.Retries, thrice.Failures = 2, []skein.Failure{{Text: "third"}, {At: time.Unix(2, 0), On: "web-1", Text: "second"}}

	tests := []struct {
		name    string
		job     skeintest.Job[string]
		handler func(*skein.Job[string]) error
		want    skeintest.Event
	}{
		{"done", job, func(*skein.Job[string]) error { return nil }, skeintest.Event{Outcome: skeintest.Done}},
		{
			"failed", job, func(*skein.Job[string]) error { return errBoom },
			skeintest.Event{Outcome: skeintest.Failed, Error: "boom", Next: time.Minute},
		},
		{
			"a last failure", failed,
			func(j *skein.Job[string]) error { return fmt.Errorf("%d retries, %s", j.Retries, j.LastError) },
			skeintest.Event{Outcome: skeintest.Exhausted, Error: "2 retries, boom before", Buried: []string{`"a"`}},
		},
		{
			"earlier failures", thrice,
			func(j *skein.Job[string]) error {
				f := j.Failures()
				return fmt.Errorf("%s, %s at %d on %s", j.LastError, f[1].Text, f[1].At.Unix(), f[1].On)
			},
			skeintest.Event{
				Outcome: skeintest.Exhausted, Error: "third, second at 2 on web-1", Buried: []string{`"a"`},
			},
		},
		{
			"snoozed by nothing, once", job, func(*skein.Job[string]) error { return skein.Snooze(0) },
			skeintest.Event{Outcome: skeintest.Snoozed},
		},
		{
			"snoozed", job, func(*skein.Job[string]) error { return skein.Snooze(time.Hour) },
			skeintest.Event{Outcome: skeintest.Snoozed, Next: time.Hour},
		},
		{
			"one payload buried", job, func(j *skein.Job[string]) error { j.Payloads[1].Bury(errBoom); return nil },
			skeintest.Event{Outcome: skeintest.Done, Error: "boom", Buried: []string{`"b"`}},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := q.JobHandler(func(_ context.Context, j *skein.Job[string]) error { return tt.handler(j) })
			tt.want.Queue, tt.want.ID, tt.want.Payloads = "q", "id", []string{`"a"`, `"b"`}

			got := skeintest.Run(t, q, h, tt.job)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunHandsOverScores(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{})
	job := skeintest.Job[[]byte]{
		ID:       "id",
		Payloads: [][]byte{[]byte("second"), []byte("first")},
		Scores:   []float64{2, 1},
	}
	got := skeintest.Run(t, q, always(q, nil), job)
	if diff := cmp.Diff([]string{"first", "second"}, got.Payloads); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
}

func TestRunFailsTheTestForWhatIsNoJobOfTheHandler(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{})
	good := skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{nil}}

	tests := []struct {
		name    string
		handler skein.Handler
		job     skeintest.Job[[]byte]
		want    string
	}{
		{
			"another queue's handler",
			always(plain("other", skein.QueueOptions[[]byte]{}), nil),
			good,
			`not one of queue "q"`,
		},
		{"no handler", skein.Handler{}, good, "handler 1 of 1 is empty"},
		{"no payloads", always(q, nil), skeintest.Job[[]byte]{ID: "id"}, "no payloads"},
		{"no id", always(q, nil), skeintest.Job[[]byte]{Payloads: good.Payloads}, "id"},
		{
			"too many scores", always(q, nil),
			skeintest.Job[[]byte]{ID: "id", Payloads: good.Payloads, Scores: []float64{1, 2}},
			"1 payloads and 2 scores",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			skeintest.Run(f, q, tt.handler, tt.job)
			if len(f.fatals) != 1 || !strings.Contains(f.fatals[0], tt.want) {
				t.Errorf("it failed with %q, want %q", f.fatals, tt.want)
			}
		})
	}
}

func TestAssertPushed(t *testing.T) {
	q := skein.NewQueue[item]("items",
		skein.QueueOptions[item]{Score: func(i item) float64 { return float64(i.Number) }})
	job := func(id string, numbers ...int) skeintest.Job[item] {
		j := skeintest.Job[item]{ID: id}
		for _, n := range numbers {
			j.Payloads = append(j.Payloads, item{n})
		}
		return j
	}
	with := func(j skeintest.Job[item], change func(*skeintest.Job[item])) skeintest.Job[item] {
		change(&j)
		return j
	}

	exactly := with(job("b", 3), func(j *skeintest.Job[item]) { j.Scores, j.In = []float64{3}, time.Minute })

	tests := []struct {
		name string
		want []skeintest.Job[item]
		diff string
	}{
		{"as it is", []skeintest.Job[item]{job("a", 1, 2), job("b", 3)}, ""},
		{"in another order", []skeintest.Job[item]{job("b", 3), job("a", 1, 2)}, ""},
		{"with scores and time", []skeintest.Job[item]{job("a", 1, 2), exactly}, ""},
		{
			"payloads in another order", []skeintest.Job[item]{job("a", 2, 1), job("b", 3)}, `
- a [{"Number":2} {"Number":1}]
+ a [{"Number":1} {"Number":2}]
  b [{"Number":3}]
`,
		},
		{
			"a job less", []skeintest.Job[item]{job("a", 1, 2)}, `
  a [{"Number":1} {"Number":2}]
+ b [{"Number":3}]
`,
		},
		{
			"a job more", []skeintest.Job[item]{job("a", 1, 2), job("b", 3), job("c", 4)}, `
  a [{"Number":1} {"Number":2}]
  b [{"Number":3}]
- c [{"Number":4}]
`,
		},
		{
			"another score", []skeintest.Job[item]{
				job("a", 1, 2), with(exactly, func(j *skeintest.Job[item]) { j.Scores = []float64{7} }),
			}, `
  a [{"Number":1} {"Number":2}]
- b [{"Number":3}] scores [7] in 1m0s
+ b [{"Number":3}] scores [3] in 1m0s
`,
		},
		{
			"a failure", []skeintest.Job[item]{
				with(job("a", 1, 2), func(j *skeintest.Job[item]) { j.Retries, j.LastError = 1, "boom" }), job("b", 3),
			}, `
- a [{"Number":1} {"Number":2}] retries 1 last error "boom"
+ a [{"Number":1} {"Number":2}] retries 0 last error ""
  b [{"Number":3}]
`,
		},
		{
			"with tags",
			[]skeintest.Job[item]{
				job("a", 1, 2),
				with(job("b", 3), func(j *skeintest.Job[item]) { j.Tags = []string{"vip", "import-7", "vip"} }),
			},
			"",
		},
		{
			"other tags", []skeintest.Job[item]{
				with(job("a", 1, 2), func(j *skeintest.Job[item]) { j.Tags = []string{"x"} }),
				with(job("b", 3), func(j *skeintest.Job[item]) { j.Tags = []string{"vip"} }),
			}, `
- a [{"Number":1} {"Number":2}] tags ["x"]
- b [{"Number":3}] tags ["vip"]
+ a [{"Number":1} {"Number":2}] tags []
+ b [{"Number":3}] tags ["import-7" "vip"]
`,
		},
	}

	s := skeintest.New()
	err := q.PushMany(t.Context(), s.Client, []skein.Entry[item]{
		{ID: "b", Payload: item{3}, Options: []skein.PushOption{skein.In(time.Minute), skein.Tags("vip", "import-7")}},
		{ID: "a", Payload: item{2}},
		{ID: "a", Payload: item{1}},
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			skeintest.AssertPushed(f, s, q, tt.want...)

			var want []string
			if tt.diff != "" {
				want = []string{"jobs of queue items (-want +got):" + tt.diff}
			}
			if diff := cmp.Diff(want, f.errors); diff != "" || f.fatals != nil {
				t.Errorf("failures (-want +got):\n%s%q", diff, f.fatals)
			}
		})
	}
}

func TestTagsOfAJobThatRunsAndOfADeadLetter(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1, Backoff: every(time.Minute)})
	job := skeintest.Job[[]byte]{ID: "a", Payloads: [][]byte{[]byte("p")}, Tags: []string{"vip", "import-7"}}
	var got []string
	h := q.JobHandler(func(_ context.Context, j *skein.Job[[]byte]) error {
		got = j.Tags
		return errors.New("boom")
	})
	skeintest.Run(t, q, h, job)

	if want := []string{"import-7", "vip"}; !slices.Equal(got, want) {
		t.Errorf("the handler saw the tags %q, want %q", got, want)
	}

	s := skeintest.New()
	if err := q.Push(t.Context(), s.Client, "a", []byte("p"), skein.Tags("vip", "import-7")); err != nil {
		t.Fatal(err)
	}
	s.Drain(t, time.Hour, h)
	skeintest.AssertMorgue(t, s, q, job)

	f := newFake(t)
	job.Tags = []string{"vip"}
	skeintest.AssertMorgue(f, s, q, job)
	if len(f.errors) != 1 || !strings.Contains(f.errors[0], `+ a [p] tags ["import-7" "vip"]`) {
		t.Errorf("another tag: %q", f.errors)
	}
}

func TestAQueueToWhichNobodyPushedIsEmpty(t *testing.T) {
	s := skeintest.New()
	skeintest.AssertPushed(t, s, orders)
	skeintest.AssertMorgue(t, s, orders)
	f := newFake(t)
	skeintest.AssertPushed(f, s, orders, skeintest.Job[item]{ID: "a", Payloads: []item{{1}}})
	if len(f.errors) != 1 {
		t.Errorf("a job that is not there: %q", f.errors)
	}
}

func TestAssertionsFailTheTestWithoutAStoreToLookAt(t *testing.T) {
	s, f := skeintest.New(), newFake(t)
	s.Fail(skeintest.Fault{})
	skeintest.AssertPushed(f, s, orders)
	skeintest.AssertMorgue(f, s, orders)
	s.Heal()
	skeintest.AssertPushed(f, s, orders, skeintest.Job[item]{ID: "a"})
	if len(f.fatals) != 3 || f.errors != nil {
		t.Errorf("failures %q, errors %q", f.fatals, f.errors)
	}
}

func TestADiffShowsWhereItChanges(t *testing.T) {
	lines := func(n int, change map[int]string) skeintest.Events {
		var events skeintest.Events
		for i := range n {
			e := skeintest.Event{Queue: "q", ID: fmt.Sprint(i), Outcome: skeintest.Done}
			if id, ok := change[i]; ok {
				e.ID = id
			}
			events = append(events, e)
		}
		return events
	}

	f := newFake(t)
	skeintest.AssertEvents(f, lines(20, map[int]string{4: "x", 15: "y"}),
		strings.Split(lines(20, nil).String(), "\n")...)

	want := []string{`events (-want +got):
  ...
  0s q 2 [] done
  0s q 3 [] done
- 0s q 4 [] done
+ 0s q x [] done
  0s q 5 [] done
  0s q 6 [] done
  ...
  0s q 13 [] done
  0s q 14 [] done
- 0s q 15 [] done
+ 0s q y [] done
  0s q 16 [] done
  0s q 17 [] done
  ...
`}

	if diff := cmp.Diff(want, f.errors); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestALongDiffIsMade(t *testing.T) {
	f := newFake(t)
	got := make(skeintest.Events, 2000)
	skeintest.AssertEvents(f, got, make([]string, 2000)...)
	if len(f.errors) != 1 || strings.Count(f.errors[0], "\n+ ") != 2000 {
		t.Errorf("%d failures, of %d lines", len(f.errors), strings.Count(strings.Join(f.errors, ""), "\n"))
	}
}

func TestPayloadsArePrintedSoThatTheyCanBeToldApart(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{})

	for payload, want := range map[string]string{
		"":               `""`,
		"plain":          "plain",
		"two words":      `"two words"`,
		`{"a": "b c"}`:   `{"a": "b c"}`,
		"\"a\x00\"":      `"\"a\x00\""`,
		"line\nline":     `"line\nline"`,
		"\xff":           `"\xff"`,
		"{\n\"a\": 1\n}": `"{\n\"a\": 1\n}"`,
	} {
		got := skeintest.Run(t, q, always(q, nil), skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{[]byte(payload)}})
		if diff := cmp.Diff([]string{want}, got.Payloads); diff != "" {
			t.Errorf("%q (-want +got):\n%s", payload, diff)
		}
	}
}

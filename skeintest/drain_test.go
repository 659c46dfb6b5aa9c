package skeintest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

var errBoom = errors.New("boom")

func TestDrainTellsHowEachExecutionEnded(t *testing.T) {
	tests := []struct {
		name    string
		options skein.QueueOptions[[]byte]
		handler func(*skein.Queue[[]byte]) skein.Handler
		want    []string
	}{
		{
			name:    "done",
			handler: func(q *skein.Queue[[]byte]) skein.Handler { return always(q, nil) },
			want:    []string{"0s q id [a b] done"},
		},
		{
			name:    "failed until exhausted, payload by payload",
			options: skein.QueueOptions[[]byte]{MaxRetries: 1, Backoff: every(time.Minute)},
			handler: func(q *skein.Queue[[]byte]) skein.Handler { return always(q, errBoom) },
			want: []string{
				"0s q id [a b] failed: boom",
				"1m0s q id [a b] exhausted: boom; buried [a]",
				"1m0s q id [b] failed: boom",
				"2m0s q id [b] exhausted: boom",
			},
		},
		{
			name:    "no retries and no backoff",
			options: skein.QueueOptions[[]byte]{MaxRetries: skein.NoRetries, Backoff: every(0)},
			handler: func(q *skein.Queue[[]byte]) skein.Handler { return always(q, errBoom) },
			want:    []string{"0s q id [a b] exhausted: boom; buried [a]", "0s q id [b] exhausted: boom"},
		},
		{
			name:    "a panic, by its first line",
			options: skein.QueueOptions[[]byte]{MaxRetries: 5},
			handler: func(q *skein.Queue[[]byte]) skein.Handler {
				return q.JobHandler(func(_ context.Context, j *skein.Job[[]byte]) error {
					if j.Retries == 0 {
						panic("at the disco")
					}
					return nil
				})
			},
			want: []string{"0s q id [a b] failed: panic: at the disco", "15s q id [a b] done"},
		},
		{
			name:    "buried",
			handler: func(q *skein.Queue[[]byte]) skein.Handler { return always(q, skein.Bury(errBoom)) },
			want:    []string{"0s q id [a b] buried: boom"},
		},
		{
			name: "snoozed, then its own delay",
			handler: func(q *skein.Queue[[]byte]) skein.Handler {
				outcomes := []error{skein.Snooze(time.Hour), skein.RetryIn(time.Second, errBoom), nil}
				return q.Handler(func(context.Context, string, [][]byte) error {
					err := outcomes[0]
					outcomes = outcomes[1:]
					return err
				})
			},
			want: []string{
				"0s q id [a b] snoozed",
				"1h0m0s q id [a b] failed: boom",
				"1h0m1s q id [a b] done",
			},
		},
		{
			name: "a payload by itself",
			handler: func(q *skein.Queue[[]byte]) skein.Handler {
				return q.JobHandler(func(_ context.Context, j *skein.Job[[]byte]) error {
					j.Payloads[1].Bury(errBoom)
					return nil
				})
			},
			want: []string{"0s q id [a b] done: boom; buried [b]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, q := skeintest.New(), plain("q", tt.options)
			push(t, s, q, "id", "a", "b")
			skeintest.AssertEvents(t, s.Drain(t, 24*time.Hour, tt.handler(q)), tt.want...)
		})
	}
}

func TestWhatTheCodecRefusesIsBuried(t *testing.T) {
	s := skeintest.New()
	raw := plain("numbers", skein.QueueOptions[[]byte]{})
	push(t, s, raw, "some", "1", "x")
	push(t, s, raw, "all", "x")
	numbers := skein.NewQueue[int]("numbers", skein.QueueOptions[int]{})
	events := s.Drain(t, time.Hour, numbers.Handler(func(context.Context, string, []int) error { return nil }))
	if len(events) != 2 {
		t.Fatalf("events:\n%v", events)
	}
	for id, want := range map[string]skeintest.Outcome{"some": skeintest.Done, "all": skeintest.Buried} {
		e := events.Of(id)[0]
		if e.Outcome != want || !slices.Equal(e.Buried, []string{"x"}) || !strings.HasPrefix(e.Error, "decode payload: ") {
			t.Errorf("%v; want %s, with x buried", e, want)
		}
	}
}

func TestDrainKeepsToItsTime(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{})
	start := s.Now()
	for _, d := range []time.Duration{0, time.Minute, time.Hour, time.Hour + time.Microsecond} {
		if err := q.Push(t.Context(), s.Client, d.String(), []byte("p"), skein.In(d)); err != nil {
			t.Fatal(err)
		}
	}
	var seen []time.Duration
	h := q.Handler(func(context.Context, string, [][]byte) error {
		seen = append(seen, s.Now().Sub(start))
		return nil
	})
	skeintest.AssertEvents(t, s.Drain(t, 0, h), "0s q 0s [p] done")
	skeintest.AssertEvents(t, s.Drain(t, time.Hour, h), "1m0s q 1m0s [p] done", "1h0m0s q 1h0m0s [p] done")
	if got := s.Now().Sub(start); got != time.Hour {
		t.Errorf("it left the clock at %v, want 1h", got)
	}
	if diff := cmp.Diff([]time.Duration{0, time.Minute, time.Hour}, seen); diff != "" {
		t.Errorf("the handler saw the clock at (-want +got):\n%s", diff)
	}
	s.Advance(time.Minute)
	skeintest.AssertEvents(t, s.Drain(t, 0, h), "1h1m0s q 1h0m0.000001s [p] done")
}

func TestTheDefaultBackoffComesAtKnownTimes(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{})
	push(t, s, q, "id", "p")
	events := s.Drain(t, 60*24*time.Hour, always(q, errBoom))
	var want []time.Duration
	at := time.Duration(0)
	for n := range skein.DefaultMaxRetries + 1 {
		want = append(want, at)
		at += time.Duration(n*n*n*n+15) * time.Second
	}
	var got []time.Duration
	for _, e := range events {
		got = append(got, e.At)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
	if next := events[0].Next; next != 15*time.Second {
		t.Errorf("the first failure's Next is %v, want 15s", next)
	}
}

func TestQueuesPushToEachOtherInOneDrain(t *testing.T) {
	s := skeintest.New()
	a, b, c := plain("a", skein.QueueOptions[[]byte]{}), plain("b", skein.QueueOptions[[]byte]{}), plain("c", skein.QueueOptions[[]byte]{})
	forward := func(from, to *skein.Queue[[]byte], in time.Duration) skein.Handler {
		return from.Handler(func(ctx context.Context, id string, payloads [][]byte) error {
			return to.Push(ctx, s.Client, id, payloads[0], skein.In(in))
		})
	}
	push(t, s, a, "id", "p")
	skeintest.AssertEvents(t, s.Drain(t, time.Hour, forward(b, c, time.Minute), forward(a, b, 0)),
		"0s a id [p] done",
		"0s b id [p] done",
	)
	skeintest.AssertPushed(t, s, c, skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{[]byte("p")}})
}

func TestADrainEnds(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1 << 40, Backoff: every(0)})
	tests := []struct {
		name    string
		outcome error
	}{
		{"snoozing by nothing", skein.Snooze(0)},
		{"failing without backoff", errBoom},
		{"retrying at once", skein.RetryIn(0, errBoom)},
		{"snoozing by a microsecond", skein.Snooze(time.Microsecond)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, f := skeintest.New(), newFake(t)
			s.MaxJobs = 100
			push(t, s, q, "id", "p")
			events := s.Drain(f, time.Hour, always(q, tt.outcome))
			if len(events) != 100 {
				t.Errorf("%d jobs ran, want 100", len(events))
			}
			if len(f.fatals) != 1 || !strings.Contains(f.fatals[0], "100 ran and more is due") ||
				strings.Count(f.fatals[0], "q id [p]") != 5 {
				t.Errorf("the test failed with %q", f.fatals)
			}
		})
	}
}

func TestAPausedQueueWaits(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{})
	push(t, s, q, "id", "p")
	if err := s.Inspector.Pause(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	skeintest.AssertEvents(t, s.Drain(t, time.Hour, always(q, nil)))
	if err := s.Inspector.Resume(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	skeintest.AssertEvents(t, s.Drain(t, 0, always(q, nil)), "1h0m0s q id [p] done")
}

func TestAHandlerMayTakeAWhile(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{Shards: 1, Backoff: every(time.Minute)})
	push(t, s, q, "a", "p")
	push(t, s, q, "b", "p")
	h := q.JobHandler(func(_ context.Context, j *skein.Job[[]byte]) error {
		s.Advance(48 * time.Hour)
		if j.ID == "a" && j.Retries == 0 {
			return errBoom
		}
		return nil
	})
	skeintest.AssertEvents(t, s.Drain(t, time.Hour, h),
		"0s q a [p] failed: boom",
		"48h0m0s q b [p] done",
		"96h0m0s q a [p] done",
	)
}

func TestDrainWorksWithTheServersOptions(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1, Backoff: every(time.Minute)})
	var log []string
	note := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	s.Server = skein.ServerOptions{
		Middleware: []func(skein.RunFunc) skein.RunFunc{func(next skein.RunFunc) skein.RunFunc {
			return func(ctx context.Context, b *skein.RawBatch) error {
				note("run %s", b.Jobs[0].ID)
				return next(ctx, b)
			}
		}},
		OnStart:            func(context.Context) error { note("start"); return nil },
		OnRetriesExhausted: func(_ context.Context, e skein.Exhausted) error { note("exhausted %s", e.ID); return nil },
		Observer:           &turns{note: note},
	}
	push(t, s, q, "id", "p")
	events := s.Drain(t, time.Hour, always(q, errBoom))
	if len(events) != 2 || events[1].Outcome != skeintest.Exhausted {
		t.Errorf("events:\n%v", events)
	}
	want := []string{"start", "start of id", "run id", "end of id", "start of id", "run id", "end of id", "exhausted id"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// turns is an observer of batches.
type turns struct {
	ports.NopObserver
	note func(string, ...any)
}

func (o *turns) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	o.note("start of %s", e.Claims[0].ID)
	return ctx
}

func (o *turns) BatchEnd(_ context.Context, e ports.BatchEvent) { o.note("end of %s", e.Claims[0].ID) }

func TestABatchHandlersJobsAreEventsEach(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{Shards: 1, BatchSize: 3})
	for _, id := range []string{"a", "b", "c"} {
		push(t, s, q, id, "p")
	}
	h := q.BatchHandler(func(_ context.Context, b *skein.Batch[[]byte]) error {
		b.Jobs()[1].Settle(skein.Bury(errBoom))
		return nil
	})
	skeintest.AssertEvents(t, s.Drain(t, 0, h), "0s q a [p] done", "0s q b [p] buried: boom", "0s q c [p] done")
}

func TestDrainFailsTheTestForWhatIsWrong(t *testing.T) {
	good := plain("good", skein.QueueOptions[[]byte]{})
	tests := []struct {
		name    string
		fault   skeintest.Fault
		handler skein.Handler
		want    string
	}{
		{"a bad queue", skeintest.Fault{Method: "Nodes"}, always(plain("{}", skein.QueueOptions[[]byte]{}), nil), "invalid queue"},
		{"a store that fails", skeintest.Fault{Method: "Turn"}, always(good, nil), skeintest.ErrInjected.Error()},
		{"a store that can't tell what is due", skeintest.Fault{Method: "Heads"}, always(good, nil), skeintest.ErrInjected.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, f := skeintest.New(), newFake(t)
			s.Fail(tt.fault)
			s.Drain(f, time.Hour, tt.handler)
			if len(f.fatals) != 1 || !strings.Contains(f.fatals[0], tt.want) {
				t.Errorf("it failed with %q, want %q", f.fatals, tt.want)
			}
		})
	}
	t.Run("a test that is over", func(t *testing.T) {
		s, f := skeintest.New(), newFake(t)
		ctx, end := context.WithCancel(t.Context())
		end()
		f.ctx = ctx
		s.Drain(f, time.Hour, always(good, nil))
		if len(f.fatals) != 1 || !strings.Contains(f.fatals[0], context.Canceled.Error()) {
			t.Errorf("it failed with %q", f.fatals)
		}
	})
}

func TestAHandlerMayEndTheTest(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{})
	push(t, s, q, "id", "p")
	over := make(chan bool)
	go func() {
		ended := true
		defer func() { over <- ended }()
		s.Drain(newFake(t), time.Hour, q.Handler(func(context.Context, string, [][]byte) error {
			runtime.Goexit() // as t.FailNow does
			return nil
		}))
		ended = false
	}()
	if !<-over {
		t.Error("the drain went on")
	}
}

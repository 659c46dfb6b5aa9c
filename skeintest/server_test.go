package skeintest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

func TestQueuesPushToEachOtherInOneDrain(t *testing.T) {
	s := skeintest.New()
	a, b, c := plain("a", skein.QueueOptions[[]byte]{}), plain("b", skein.QueueOptions[[]byte]{}),
		plain("c", skein.QueueOptions[[]byte]{})

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
			if len(f.fatals) != 1 || !strings.Contains(f.fatals[0], "100 jobs ran; does a handler") ||
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

	start := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	if got := s.Now().Sub(start); got != 144*time.Hour {
		t.Errorf("the clock is at %v, want 144h", got)
	}
}

func TestDrainWorksWithTheServersOptions(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1, Backoff: every(time.Minute)})
	var log []string
	note := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }

	s.Server = skein.ServerOptions{
		Middleware: []skein.Middleware{func(next skein.RunFunc) skein.RunFunc {
			return func(ctx context.Context, b *skein.RawBatch) error {
				note("run %s", b.Jobs[0].ID)
				return next(ctx, b)
			}
		}},
		OnStart:  func(context.Context) error { note("start"); return nil },
		OnBuried: func(_ context.Context, b skein.Buried) error { note("%v %s", b.Reason, b.ID); return nil },
		Observer: &turns{note: note},
	}

	push(t, s, q, "id", "p")
	events := s.Drain(t, time.Hour, always(q, errBoom))
	if len(events) != 2 || events[1].Outcome != skeintest.Exhausted {
		t.Errorf("events:\n%v", events)
	}

	want := []string{"start", "start of id", "run id", "end of id", "start of id", "run id", "end of id", "retries id"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestWhatAHookPushesRunsToo(t *testing.T) {
	s := skeintest.New()
	work, alarms := plain("work", skein.QueueOptions[[]byte]{MaxRetries: skein.NoRetries}),
		plain("alarms", skein.QueueOptions[[]byte]{})
	s.Server.OnBuried = func(ctx context.Context, b skein.Buried) error {
		return alarms.Push(ctx, s.Client, b.ID, []byte(b.Error))
	}
	push(t, s, work, "id", "p")
	skeintest.AssertEvents(t, s.Drain(t, 0, always(alarms, nil), always(work, errBoom)),
		"0s work id [p] exhausted: boom",
		"0s alarms id [boom] done",
	)
}

func TestAJobThatADeadServerLeftIsRecovered(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{Shards: 1})
	push(t, s, q, "id", "p")
	lease, err := s.Acquire(t.Context(), ports.AcquireRequest{
		Shard: core.Shard{Queue: "q"}, Shards: 1, Generation: 1, Owner: "dead", Attempt: 1, TTL: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}

	claimed, err := s.Turn(t.Context(), ports.TurnRequest{
		Lease:  ports.Lease{Shard: core.Shard{Queue: "q"}, Owner: "dead", Token: lease.Token},
		Number: 1, TTL: time.Minute, Want: 1,
	})
	if err != nil || len(claimed.Claims) != 1 {
		t.Fatalf("claimed %v, %v", claimed.Claims, err)
	}

	h := q.JobHandler(func(_ context.Context, j *skein.Job[[]byte]) error {
		if j.Recoveries != 1 {
			t.Errorf("it was recovered %d times, want 1", j.Recoveries)
		}
		return nil
	})

	f := newFake(t)
	s.Drain(f, 0, h)
	if len(f.fatals) != 1 || !strings.Contains(f.fatals[0], ports.ErrLeaseHeld.Error()) {
		t.Errorf("while the lease lasts: %q", f.fatals)
	}

	s.Advance(time.Minute)
	skeintest.AssertEvents(t, s.Drain(t, 0, h), "1m0s q id [p] done")
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
		{
			"a bad queue",
			skeintest.Fault{Method: "Nodes"},
			always(plain("{}", skein.QueueOptions[[]byte]{}), nil),
			"invalid queue",
		},
		{"a store that fails", skeintest.Fault{Method: "Turn"}, always(good, nil), skeintest.ErrInjected.Error()},
		{
			"a store that can't tell what is due",
			skeintest.Fault{Method: "Heads"},
			always(good, nil),
			skeintest.ErrInjected.Error(),
		},
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

func TestEncodedErrorsAreReadable(t *testing.T) {
	s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{})
	s.Server.ErrorCodec = skein.ErrorCodec{
		Encode: func(text string) string { return "<" + text },
		Decode: func(stored string) string { return strings.TrimPrefix(stored, "<") },
	}
	push(t, s, q, "id", "p")
	skeintest.AssertEvents(t, s.Drain(t, 0, always(q, skein.Bury(errBoom))), "0s q id [p] buried: boom")
	skeintest.AssertMorgue(t, s, q, skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{[]byte("p")}, LastError: "boom"})
	if found, err := s.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "id", Payloads: 1000}); err != nil ||
		found.DeadLetter.Failures.Newest().Text != "<boom" {
		t.Errorf("stored: %+v, %v", found.DeadLetter, err)
	}
}

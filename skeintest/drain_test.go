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
	"github.com/skeinq/skein/core"
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
		if e.Outcome != want || !slices.Equal(e.Buried, []string{"x"}) ||
			!strings.HasPrefix(e.Error, "decode payload: ") {
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

// An event shows the payloads as they were pushed, also if their bytes look like the stamp of a
// queue that counts every push.
func TestEventsShowPayloadsAsTheyWerePushed(t *testing.T) {
	like := core.MergeRule{Same: core.SamePush}.Stored(core.Payload{Data: []byte("x"), Score: 7})
	for _, rule := range []skein.MergeRule{skein.Union(), skein.Every()} {
		s := skeintest.New()
		q := skein.NewQueue("q", skein.QueueOptions[[]byte]{
			Merge: rule, Codec: skein.RawCodec{}, MaxRetries: skein.NoRetries,
		})
		if err := q.Push(t.Context(), s.Client, "id", like.Data, skein.Score(7)); err != nil {
			t.Fatal(err)
		}

		events := s.Drain(t, time.Hour, always(q, errBoom))
		want := fmt.Sprintf("0s q id [%q] exhausted: boom", like.Data)
		skeintest.AssertEvents(t, events, want)
	}
}

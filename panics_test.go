package skein_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
)

// logged runs due jobs and returns the log.
func logged(t *testing.T, store *memory.Store, o skein.ServerOptions, h skein.Handler) string {
	t.Helper()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := skein.NewServer(store, o, h).RunDue(t.Context()); err != nil {
		t.Fatalf("RunDue: %v", err)
	}
	return log.String()
}

// selfish is an error whose methods panic on a nil pointer, and that errors.Is and
// errors.As ask.
type selfish struct{ inner error }

func (e *selfish) Error() string { return e.inner.Error() }
func (e *selfish) Unwrap() error { return e.inner }
func (e *selfish) Is(error) bool { return e.inner != nil }
func (e *selfish) As(any) bool   { return e.inner != nil }

// TestWhatPanicsAroundAHandlerFailsItsJobAlone has each function of a user's that
// runs where a job is settled.
func TestWhatPanicsAroundAHandlerFailsItsJobAlone(t *testing.T) {
	boom := func() { panic("boom") }
	hour := func(int) time.Duration { return time.Hour }

	cases := []struct {
		name    string
		queue   skein.QueueOptions[int]
		options skein.ServerOptions
		err     error
		// wait is before the retry, text in the job's error and log in the log.
		wait      time.Duration
		text, log string
	}{
		{
			name:  "a nil *fs.PathError",
			queue: skein.QueueOptions[int]{Backoff: hour},
			err:   (*fs.PathError)(nil),
			wait:  time.Hour,
			text:  "nil pointer",
		},
		{
			name:  "a nil pointer with all methods",
			queue: skein.QueueOptions[int]{Backoff: hour},
			err:   (*selfish)(nil),
			wait:  time.Hour,
			text:  "nil pointer",
		},
		{
			name:  "a nil *BuryError",
			queue: skein.QueueOptions[int]{Backoff: hour},
			err:   (*skein.BuryError)(nil),
			wait:  time.Hour,
			text:  "nil pointer",
		},
		{
			name:  "a nil *RetryError",
			queue: skein.QueueOptions[int]{Backoff: hour},
			err:   (*skein.RetryError)(nil),
			wait:  time.Hour,
			text:  "nil pointer",
		},
		{
			name:  "a nil *PushError",
			queue: skein.QueueOptions[int]{Backoff: hour},
			err:   (*skein.PushError)(nil),
			wait:  time.Hour,
			text:  "nil pointer",
		},
		{
			name: "a RetryError of one's own",
			err:  &skein.RetryError{Delay: time.Minute},
			wait: time.Minute,
			text: "no reason given",
		},
		{
			name:    "Backoff",
			queue:   skein.QueueOptions[int]{Backoff: func(int) time.Duration { boom(); return 0 }},
			options: skein.ServerOptions{Jitter: func() int { return 7 }},
			err:     errBoom,
			wait:    22 * time.Second,
			text:    "boom",
			log:     "Backoff panicked",
		},
		{
			name:    "FormatError",
			queue:   skein.QueueOptions[int]{Backoff: hour},
			options: skein.ServerOptions{FormatError: func(error) string { boom(); return "" }},
			err:     errBoom,
			wait:    time.Hour,
			text:    "errorString",
		},
		{
			name:  "ErrorCodec.Encode",
			queue: skein.QueueOptions[int]{Backoff: hour},
			options: skein.ServerOptions{
				ErrorCodec: skein.ErrorCodec{Encode: func(string) string { panic("in Encode") }},
			},
			err:  errBoom,
			wait: time.Hour,
			text: "boom\n\nErrorCodec.Encode: panic: in Encode",
			log:  "Encode panicked",
		},
		{
			name:  "ErrorCodec.Encode of a long text",
			queue: skein.QueueOptions[int]{Backoff: hour},
			options: skein.ServerOptions{
				ErrorCodec: skein.ErrorCodec{Encode: func(string) string { panic("in Encode") }},
			},
			err:  errors.New(strings.Repeat("long ", 2000)),
			wait: time.Hour,
			text: "ErrorCodec.Encode: panic: in Encode",
			log:  "Encode panicked",
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				c.queue.Shards, c.queue.BatchSize = 1, 10
				q := skein.NewQueue("q", c.queue)
				push(t, store, q, "a", 1)
				push(t, store, q, "b", 1)

				log := logged(t, store, c.options, q.Handler(func(_ context.Context, id string, _ []int) error {
					if id == "a" {
						return c.err
					}
					return nil
				}))

				job := queued(t, store, "q", "a")
				equal(t, "wait", job.PerformAt.Sub(core.InstantOf(time.Now())), c.wait)
				equal(t, "retry", job.RetryCount, 0)
				if !strings.Contains(job.Failures.Newest().Text, c.text) || len(job.Failures.Newest().Text) > core.MaxErrorBytes {
					t.Errorf("kept %q, want at most 4 KiB with %q", job.Failures.Newest().Text, c.text)
				}
				if !strings.Contains(log, c.log) || c.log != "" && !strings.Contains(log, "level=ERROR") {
					t.Errorf("log has no error that says %q:\n%s", c.log, log)
				}
				equal(t, "the other job of the batch", stateOf(t, store, "q", "b"), "")
			})
		})
	}
}

func TestAJitterThatPanicsIsDrawnAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{})
		push(t, store, q, "a", 1)
		before := time.Now()
		log := logged(t, store, skein.ServerOptions{Jitter: func() int { panic("boom") }},
			q.Handler(func(context.Context, string, []int) error { return errBoom }))
		wait := queued(t, store, "q", "a").PerformAt.Sub(core.InstantOf(before))
		if wait < 15*time.Second || wait > 15*time.Second+29*time.Second+time.Minute {
			t.Errorf("it waits %v, want the default backoff with a jitter of 0 … 29", wait)
		}
		if !strings.Contains(log, "Jitter panicked") {
			t.Errorf("log has no panic of Jitter:\n%s", log)
		}
	})
}

func TestAJitterIsCutToItsRange(t *testing.T) {
	for name, c := range map[string]struct {
		draw int
		want time.Duration
	}{
		"below": {-1, 15 * time.Second}, "least": {0, 15 * time.Second},
		"most": {29, 44 * time.Second}, "above": {30, 44 * time.Second}, "far above": {1 << 40, 44 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[string]{})
				push(t, store, q, "a", "x")
				runDue(t, store, skein.ServerOptions{Jitter: func() int { return c.draw }}, failing(q, errBoom))
				equal(t, "wait", queued(t, store, "q", "a").PerformAt.Sub(core.InstantOf(time.Now())), c.want)
			})
		})
	}
}

// Without a Jitter of the user's the wait is within 15 s … 44 s, and not always the
// same.
func TestTheDefaultJitterIsWithinItsRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1, BatchSize: 256})
		var ids []skein.Entry[string]
		for i := range 256 {
			ids = append(ids, skein.Entry[string]{ID: strings.Repeat("a", i+1)})
		}

		if err := q.PushMany(t.Context(), skein.NewClient(store, skein.ClientOptions{}), ids); err != nil {
			t.Fatal(err)
		}
		runDue(t, store, skein.ServerOptions{}, failing(q, errBoom))

		waits := make(map[time.Duration]int)
		for _, e := range ids {
			wait := queued(t, store, "q", e.ID).PerformAt.Sub(core.InstantOf(time.Now()))
			if wait < 15*time.Second || wait > 44*time.Second {
				t.Errorf("it waits %v, want 15s … 44s", wait)
			}
			waits[wait]++
		}

		if len(waits) < 2 {
			t.Errorf("256 failures wait %v, want them apart", waits)
		}
	})
}

func TestBackoffIsAskedOnceForAFailure(t *testing.T) {
	hook := func(context.Context, skein.Buried) error { return nil }
	cases := []struct {
		name    string
		options skein.ServerOptions
		handle  func(ctx context.Context, store *memory.Store, j *skein.Job[int]) error
		want    []int
	}{
		{
			"an error",
			skein.ServerOptions{},
			func(context.Context, *memory.Store, *skein.Job[int]) error { return errBoom },
			[]int{0},
		},
		{"an error, with the hook", skein.ServerOptions{OnBuried: hook},
			func(context.Context, *memory.Store, *skein.Job[int]) error { return errBoom }, []int{0}},
		{"a delay of its own", skein.ServerOptions{OnBuried: hook},
			func(context.Context, *memory.Store, *skein.Job[int]) error {
				return skein.RetryIn(time.Hour, errBoom)
			}, nil},
		{"done", skein.ServerOptions{OnBuried: hook},
			func(context.Context, *memory.Store, *skein.Job[int]) error { return nil }, nil},
		{"a failure in a transaction", skein.ServerOptions{OnBuried: hook},
			func(ctx context.Context, store *memory.Store, j *skein.Job[int]) error {
				j.Settle(errBoom)
				return skein.SettleIn(ctx, store)
			}, []int{0}},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				var asked []int
				q := skein.NewQueue("q", skein.QueueOptions[int]{Backoff: func(retry int) time.Duration {
					asked = append(asked, retry)
					return time.Hour
				}})

				push(t, store, q, "a", 1)
				runDue(t, store, c.options, q.JobHandler(func(ctx context.Context, j *skein.Job[int]) error {
					return c.handle(ctx, store, j)
				}))
				equal(t, "retries that Backoff was asked for", asked, c.want)
			})
		})
	}
}

// A panicking Decode of either codec, or OnStart, ends no process.
func TestOtherFunctionsOfTheUserMayPanic(t *testing.T) {
	t.Run("ErrorCodec.Decode", func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{Backoff: func(int) time.Duration { return 0 }})
		push(t, store, q, "a", 1)
		codec := skein.ErrorCodec{Decode: func(string) string { panic("boom") }}
		var last []string
		runDue(t, store, skein.ServerOptions{ErrorCodec: codec},
			q.JobHandler(func(_ context.Context, j *skein.Job[int]) error {
				if last = append(last, j.LastError); j.Retries == 0 {
					return errBoom
				}
				return nil
			}))
		equal(t, "errors that the handler saw", last, []string{"", "boom"})
	})

	t.Run("Codec.Decode", func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Codec: panicky{}, Shards: 1, BatchSize: 2})
		push(t, store, q, "a", "bad")
		push(t, store, q, "b", "good")
		runDue(t, store, skein.ServerOptions{}, nop(q))
		if got := stateOf(t, store, "q", "a"); !strings.HasPrefix(
			got, `dead [bad], error "decode payload: panic: bad`,
		) {
			t.Errorf("state %s, want it dead with the panic", got)
		}
		equal(t, "the other job", stateOf(t, store, "q", "b"), "")
	})

	t.Run("Codec.Encode", func(t *testing.T) {
		q := skein.NewQueue("q", skein.QueueOptions[string]{Codec: panicky{}})
		err := q.Push(t.Context(),
			skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{}), "a", "unencodable")
		var caught *skein.PanicError
		if !errors.Is(err, skein.ErrInvalidPayload) || !errors.As(err, &caught) {
			t.Errorf("Push = %v, want ErrInvalidPayload and the panic", err)
		}
	})

	t.Run("OnStart", func(t *testing.T) {
		q := skein.NewQueue("q", skein.QueueOptions[string]{})
		o := skein.ServerOptions{Logger: quiet, OnStart: func(context.Context) error { panic("boom") }}
		var caught *skein.PanicError
		if _, err := skein.NewServer(
			memory.New(memory.Options{}), o, nop(q),
		).RunDue(t.Context()); !errors.As(err, &caught) {
			t.Errorf("RunDue = %v, want the panic", err)
		}
		if err := skein.NewServer(memory.New(memory.Options{}), o, nop(q)).Run(t.Context()); !errors.As(err, &caught) {
			t.Errorf("Run = %v, want the panic", err)
		}
	})
}

// panicky is a Codec that panics for some payloads.
type panicky struct{}

func (panicky) Encode(p string) ([]byte, error) {
	if p == "unencodable" {
		panic(p)
	}
	return []byte(p), nil
}

func (panicky) Decode(data []byte) (string, error) {
	if string(data) == "bad" {
		panic("bad")
	}
	return string(data), nil
}

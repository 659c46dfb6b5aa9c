package skein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

// script is the results of Each's function for a payload, by execution of the job.
type script func(execution, payload int) error

// eachRun runs a script on payloads 1 to 4 of one job, once for each execution, and returns the
// calls.
func eachRun(
	t *testing.T,
	store *memory.Store,
	options skein.QueueOptions[int],
	executions int,
	f script,
) (calls []string) {
	t.Helper()
	return eachRunIn(t, store, options, executions,
		func(_ context.Context, execution, payload int) error { return f(execution, payload) })
}

// eachRunIn is eachRun for a function that needs its context.
func eachRunIn(
	t *testing.T, store *memory.Store, options skein.QueueOptions[int], executions int,
	f func(ctx context.Context, execution, payload int) error,
) (calls []string) {
	t.Helper()
	if options.Backoff == nil {
		options.Backoff = func(int) time.Duration { return time.Hour }
	}

	q := skein.NewQueue("q", options)
	for payload := 1; payload <= 4; payload++ {
		push(t, store, q, "a", payload)
	}

	execution := 0
	count := mapping(func(_ *skein.RawBatch, err error) error {
		execution++
		return err
	})

	h := q.Each(func(ctx context.Context, id string, payload int) error {
		calls = append(calls, fmt.Sprintf("%s%d/%d", id, payload, execution))
		return f(ctx, execution, payload)
	})

	for range executions {
		time.Sleep(time.Hour)
		runDue(t, store, skein.ServerOptions{Middleware: []skein.Middleware{count}}, h)
	}
	return calls
}

func TestEachMarksItsPayloadsAsItGoes(t *testing.T) {
	// on is an outcome of payload 3 in the first execution.
	on := func(err error) script {
		return func(execution, payload int) error {
			if execution == 0 && payload == 3 {
				return err
			}
			return nil
		}
	}
	cases := []struct {
		name       string
		options    skein.QueueOptions[int]
		executions int
		script     script
		calls      string
		state      string
		processed  int64
		failed     int64
	}{
		{"all are done", skein.QueueOptions[int]{}, 1, on(nil), "a1/0 a2/0 a3/0 a4/0", "", 1, 0},
		{"an error ends the execution", skein.QueueOptions[int]{}, 1, on(errBoom),
			"a1/0 a2/0 a3/0", `queued [3 4], retry 0, in 1h0m0s, error "boom"`, 0, 1},
		{"a retry begins with the payload that failed", skein.QueueOptions[int]{}, 2, on(errBoom),
			"a1/0 a2/0 a3/0 a3/1 a4/1", "", 1, 1},
		{"the morgue takes the payload that failed", skein.QueueOptions[int]{MaxRetries: skein.NoRetries}, 1,
			on(errBoom),
			"a1/0 a2/0 a3/0 a4/1", `dead [3], error "boom"`, 1, 1},
		{"and after retries too", skein.QueueOptions[int]{MaxRetries: 1}, 2,
			func(_, payload int) error {
				if payload == 3 {
					return errBoom
				}
				return nil
			},
			"a1/0 a2/0 a3/0 a3/1 a4/2", `dead [3], error "boom"`, 1, 2},
		{"bury is for its payload alone", skein.QueueOptions[int]{}, 1, on(skein.Bury(errBoom)),
			"a1/0 a2/0 a3/0 a4/0", `dead [3], error "boom"`, 1, 1},
		{"bury, wrapped", skein.QueueOptions[int]{}, 1, on(fmt.Errorf("indexing: %w", skein.Bury(errBoom))),
			"a1/0 a2/0 a3/0 a4/0", `dead [3], error "indexing: bury: boom"`, 1, 1},
		{"all are buried", skein.QueueOptions[int]{}, 1, func(int, int) error { return skein.Bury(errBoom) },
			"a1/0 a2/0 a3/0 a4/0", `dead [1 2 3 4], error "boom"`, 0, 1},
		{"snooze puts back what is left", skein.QueueOptions[int]{}, 1, on(skein.Snooze(2 * time.Hour)),
			"a1/0 a2/0 a3/0", `queued [3 4], retry -1, in 2h0m0s, error ""`, 0, 0},
		{"retry in puts back what is left", skein.QueueOptions[int]{}, 1, on(skein.RetryIn(2*time.Hour, errBoom)),
			"a1/0 a2/0 a3/0", `queued [3 4], retry 0, in 2h0m0s, error "boom"`, 0, 1},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				calls := eachRun(t, store, c.options, c.executions, c.script)
				equal(t, "calls", strings.Join(calls, " "), c.calls)
				equal(t, "state", stateOf(t, store, "q", "a"), c.state)
				got := counts(t, store, "q")
				equal(t, "processed, failed", []int64{got.Processed, got.Failed}, []int64{c.processed, c.failed})
			})
		})
	}
}

// A payload that fails now and then takes no retries from the ones behind it. Before, payload 1
// failed twice and payload 2, which failed once, was buried.
func TestEachCountsTheRetriesOfEachPayload(t *testing.T) {
	// fails is how often each payload fails.
	run := func(t *testing.T, fails map[int]int) (calls []string, state string) {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{})
			calls = eachRun(t, store, skein.QueueOptions[int]{MaxRetries: 2}, 10, func(_, payload int) error {
				if fails[payload]--; fails[payload] >= 0 {
					return errBoom
				}
				return nil
			})
			state = stateOf(t, store, "q", "a")
		})
		return calls, state
	}

	calls, state := run(t, map[int]int{1: 2, 2: 1, 3: 2})
	equal(t, "calls", strings.Join(calls, " "), "a1/0 a1/1 a1/2 a2/2 a2/3 a3/3 a3/4 a3/5 a4/5")
	equal(t, "state", state, "")

	calls, state = run(t, map[int]int{1: 2, 2: 3, 3: 1})
	equal(t, "calls", strings.Join(calls, " "), "a1/0 a1/1 a1/2 a2/2 a2/3 a2/4 a3/5 a3/6 a4/6")
	equal(t, "state", state, `dead [2], error "boom"`)
}

func TestAPanicInEachBlamesItsPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		eachRun(t, store, skein.QueueOptions[int]{MaxRetries: skein.NoRetries}, 1, func(_, payload int) error {
			if payload == 2 {
				panic("boom")
			}
			return nil
		})
		if got := stateOf(t, store, "q", "a"); !strings.HasPrefix(got, `dead [2], error "panic: boom`) {
			t.Errorf("state %s, want payload 2 dead with its panic", got)
		}
	})
}

func TestEachBuriesWhatItsCodecRefuses(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{Codec: bracketed{}})
	for _, payload := range []string{"good 1", "bad", "good 2"} {
		push(t, store, q, "a", payload)
	}
	var calls []string
	runDue(t, store, skein.ServerOptions{}, q.Each(func(_ context.Context, _, payload string) error {
		calls = append(calls, payload)
		return nil
	}))
	equal(t, "calls", calls, []string{"good 1", "good 2"})
	equal(t, "state", stateOf(t, store, "q", "a"), `dead [<bad>], error "decode payload: it is bad"`)
}

// The Timeout of a queue is for each payload: three of 40 s are no failure with one of
// a minute, and the one that takes longer is the one that fails.
func TestTheTimeoutOfEachIsForAPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[int]{
			Timeout: time.Minute,
			Backoff: func(int) time.Duration { return time.Hour },
		})

		for payload := 1; payload <= 4; payload++ {
			push(t, store, q, "a", payload)
		}

		runDue(t, store, skein.ServerOptions{}, q.Each(func(ctx context.Context, _ string, payload int) error {
			took := 40 * time.Second
			if payload == 4 {
				took = time.Hour
			}
			select {
			case <-time.After(took):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}))

		equal(t, "state", stateOf(t, store, "q", "a"), `queued [4], retry 0, in 1h0m0s, error "handler timeout"`)
	})
}

// Whatever ends an execution between payloads, no payload is started after it, finished payloads
// stay so, and the rest is put back untouched.
func TestEachStartsNoPayloadOfAJobThatIsToEnd(t *testing.T) {
	cases := []struct {
		name string
		end  func(t *testing.T, store *memory.Store, stop func())
		want string
	}{
		{"the server stops", func(_ *testing.T, _ *memory.Store, stop func()) { stop() }, "queued [3 4], retry -1,"},
		{"the job is cancelled and put back",
			func(t *testing.T, store *memory.Store, _ func()) { cancelJob(t, store, false) },
			"queued [3 4], retry -1,"},
		{
			"the job is cancelled and dropped",
			func(t *testing.T, store *memory.Store, _ func()) { cancelJob(t, store, true) },
			"",
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[int]{Shards: 1})
				for payload := 1; payload <= 4; payload++ {
					push(t, store, q, "a", payload, skein.At(time.Now()))
				}

				ctx, stop := context.WithCancel(t.Context())
				defer stop()

				var calls []int
				h := q.Each(func(_ context.Context, _ string, payload int) error {
					calls = append(calls, payload)
					if payload == 2 {
						c.end(t, store, stop)
						time.Sleep(time.Minute) // it ends as it wishes
					}
					return nil
				})

				done := make(chan error)
				s := skein.NewServer(store, skein.ServerOptions{Lanes: 1, ShutdownTimeout: time.Hour, Logger: quiet}, h)
				go func() { done <- s.Run(ctx) }()
				time.Sleep(2 * time.Minute)
				synctest.Wait()

				equal(t, "calls", calls, []int{1, 2})
				if got := stateOf(t, store, "q", "a"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
					t.Errorf("state %s, want %s …", got, c.want)
				}

				stop()
				if err := <-done; err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

// cancelJob cancels the only job of queue q as an operator does, and pauses the queue.
func cancelJob(t *testing.T, store *memory.Store, drop bool) {
	t.Helper()
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Cancel(
		t.Context(), ports.CancelRequest{Shard: found.Shard, IDs: []string{"a"}, Drop: drop},
	); err != nil {
		t.Fatal(err)
	}
	if err := store.Pause(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
}

// SettleIn settles the payload at hand, and the job keeps the others.
func TestSettleInSettlesThePayloadOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		var during []string
		calls := eachRunIn(t, store, skein.QueueOptions[int]{MaxRetries: 1}, 2,
			func(ctx context.Context, execution, payload int) error {
				if err := skein.SettleIn(ctx, store); err != nil && payload != 3 {
					return err
				}
				found, err := store.Find(ctx, ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
				if err == nil && found.Claim != nil {
					during = append(during, fmt.Sprint(len(found.Claim.Payloads)))
				}
				if execution == 0 && payload == 2 {
					return errBoom
				}
				return nil
			})

		equal(t, "calls", strings.Join(calls, " "), "a1/0 a2/0 a3/1 a4/1")
		equal(t, "payloads that stayed claimed", strings.Join(during, " "), "3 2 1")
		equal(t, "state", stateOf(t, store, "q", "a"), "")
		got := counts(t, store, "q")
		equal(t, "processed, failed", []int64{got.Processed, got.Failed}, []int64{1, 0})
	})
}

// Middleware around Each settles the whole job.
func TestMiddlewareSettlesTheJobOfEach(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[int]{})
	push(t, store, q, "a", 1)
	push(t, store, q, "a", 2)
	settle := func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error {
			return errors.Join(next(ctx, b), skein.SettleIn(ctx, store))
		}
	}
	o := skein.ServerOptions{Middleware: []skein.Middleware{settle}}
	runDue(t, store, o, q.Each(func(context.Context, string, int) error { return nil }))
	equal(t, "processed", counts(t, store, "q").Processed, 1)
	equal(t, "state", stateOf(t, store, "q", "a"), "")
}

// A payload of a JobHandler or a BatchHandler can be settled by itself too.
func TestAPayloadSettlesItself(t *testing.T) {
	for name, make := range map[string]func(
		*skein.Queue[int], func(context.Context, *skein.Job[int]) error,
	) skein.Handler{
		"JobHandler": func(q *skein.Queue[int], f func(context.Context, *skein.Job[int]) error) skein.Handler {
			return q.JobHandler(f)
		},
		"BatchHandler": func(q *skein.Queue[int], f func(context.Context, *skein.Job[int]) error) skein.Handler {
			return q.BatchHandler(func(ctx context.Context, b *skein.Batch[int]) error { return f(ctx, b.Jobs()[0]) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[int]{
					MaxRetries: 2,
					Backoff:    func(int) time.Duration { return time.Minute },
				})

				for payload := 1; payload <= 4; payload++ {
					push(t, store, q, "a", payload)
				}

				var calls [][]int
				h := make(q, func(ctx context.Context, job *skein.Job[int]) error {
					calls = append(calls, job.Values())
					if err := job.Payloads[0].SettleIn(ctx, nil); !errors.Is(err, skein.ErrInvalidOptions) {
						t.Errorf("without a settler: %v, want ErrInvalidOptions", err)
					}
					if err := job.Payloads[0].SettleIn(t.Context(), store); err == nil {
						t.Error("with another context: no error")
					}
					if err := job.Payloads[0].SettleIn(ctx, store); err != nil {
						return err
					}
					if len(job.Payloads) > 2 {
						job.Payloads[1].Bury(errBoom)
						return errBoom
					}
					return job.Payloads[1].SettleIn(ctx, store)
				})

				for range 2 {
					runDue(t, store, skein.ServerOptions{}, h)
					time.Sleep(time.Minute)
				}

				equal(t, "calls", calls, [][]int{{1, 2, 3, 4}, {3, 4}})
				equal(t, "state", stateOf(t, store, "q", "a"), `dead [2], error "boom"`)
			})
		})
	}
}

package skein_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// kinds returns the handlers of each kind that return err.
func kinds(err error) map[string]func(*skein.Queue[string]) skein.Handler {
	return map[string]func(*skein.Queue[string]) skein.Handler{
		"Each": func(q *skein.Queue[string]) skein.Handler {
			return q.Each(func(context.Context, string, string) error { return err })
		},
		"Handler": func(q *skein.Queue[string]) skein.Handler { return failing(q, err) },
		"JobHandler": func(q *skein.Queue[string]) skein.Handler {
			return q.JobHandler(func(context.Context, *skein.Job[string]) error { return err })
		},
		"BatchHandler": func(q *skein.Queue[string]) skein.Handler {
			return q.BatchHandler(func(context.Context, *skein.Batch[string]) error { return err })
		},
	}
}

// reportedBurials runs due jobs and returns the arguments of OnBuried's calls, a line each.
func reportedBurials(t *testing.T, store *memory.Store, h skein.Handler) (lines []string) {
	t.Helper()
	runDue(t, store, skein.ServerOptions{OnBuried: func(_ context.Context, b skein.Buried) error {
		text, _, _ := strings.Cut(b.Error, "\n")
		lines = append(lines, fmt.Sprintf("%s %s %v %v: %s", b.Queue, b.ID, b.Reason, datas(b.Payloads), text))
		return nil
	}}, h)
	return lines
}

func TestOnBuriedIsToldWhatWentToTheMorgueAndWhy(t *testing.T) {
	type options = skein.QueueOptions[string]
	now := func(int) time.Duration { return 0 }
	cases := []struct {
		name    string
		options options
		pushed  []string
		handle  func(j *skein.Job[string]) error
		want    []string
	}{
		{"retries used up", options{MaxRetries: 1, Backoff: now}, []string{"1", "2"}, func(j *skein.Job[string]) error {
			if j.Payloads[0].Value == "1" {
				return errBoom
			}
			return nil
		}, []string{"q a retries [<1>]: boom"}},
		{"a job is buried", options{}, []string{"1", "2"},
			func(*skein.Job[string]) error { return skein.Bury(errBoom) },
			[]string{"q a handler [<1> <2>]: boom"}},
		{"payloads are buried", options{}, []string{"1", "2", "3"}, func(j *skein.Job[string]) error {
			j.Payloads[0].Bury(errBoom)
			j.Payloads[2].Bury(errors.New("other"))
			return nil
		}, []string{"q a handler [<1>]: boom", "q a handler [<3>]: other"}},
		{"a payload and the rest of its job", options{}, []string{"1", "2", "3"}, func(j *skein.Job[string]) error {
			j.Payloads[1].Bury(errors.New("other"))
			return skein.Bury(errBoom)
		}, []string{"q a handler [<2>]: other", "q a handler [<1> <3>]: boom"}},
		{"the codec refuses one", options{}, []string{"1", "bad", "3"}, func(*skein.Job[string]) error { return nil },
			[]string{"q a codec [<bad>]: decode payload: it is bad"}},
		{"the codec refuses one, and the handler fails", options{MaxRetries: skein.NoRetries}, []string{"bad", "2"},
			func(*skein.Job[string]) error { return errBoom },
			[]string{"q a codec [<bad>]: decode payload: it is bad", "q a retries [<2>]: boom"}},
		{"the codec refuses one for all retries",
			options{MaxRetries: 1, Backoff: now, Undecodable: skein.RetryUndecodable},
			[]string{"1", "bad", "3"}, func(*skein.Job[string]) error { return nil },
			[]string{"q a codec [<bad>]: decode payload: it is bad"}},
		{"nothing", options{}, []string{"1"}, func(*skein.Job[string]) error { return errBoom }, nil},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			c.options.Codec = bracketed{}
			q := skein.NewQueue("q", c.options)
			for i, p := range c.pushed {
				push(t, store, q, "a", p, skein.Score(float64(i)))
			}
			got := reportedBurials(t, store, q.JobHandler(func(_ context.Context, j *skein.Job[string]) error {
				return c.handle(j)
			}))
			equal(t, "reported", got, c.want)
		})
	}

	t.Run("recoveries used up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", options{Shards: 1, MaxRecoveries: skein.NoRetries})
			push(t, store, q, "a", "x")
			abandon(t, store, "q")
			got := reportedBurials(t, store, nop(q))
			if len(got) != 1 || !strings.HasPrefix(got[0], `q a recovery ["x"]: `) {
				t.Errorf("reported %q, want the recovered payload", got)
			}
		})
	})
}

// With RetryUndecodable a payload that the codec refuses is saved by the deploy that corrects the
// codec, in its place in the order.
func TestARollbackSavesWhatTheCodecRefused(t *testing.T) {
	for kind := range kinds(nil) {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				options := skein.QueueOptions[string]{
					Codec:       bracketed{},
					Undecodable: skein.RetryUndecodable,
					Backoff:     func(int) time.Duration { return time.Hour },
				}
				broken := skein.NewQueue("q", options)
				for i, p := range []string{"1", "bad", "3"} {
					push(t, store, broken, "a", p, skein.Score(float64(i)))
				}

				runDue(t, store, skein.ServerOptions{}, kinds(nil)[kind](broken))
				equal(t, "after the deploy", stateOf(t, store, "q", "a"),
					`queued [<bad> <3>], retry 0, in 1h0m0s, error "decode payload: it is bad"`)

				time.Sleep(time.Hour)
				options.Codec = mended{}
				runDue(t, store, skein.ServerOptions{}, kinds(nil)[kind](skein.NewQueue("q", options)))
				equal(t, "after the rollback", stateOf(t, store, "q", "a"), "")
			})
		})
	}
}

// mended is bracketed without its fault.
type mended struct{ bracketed }

func (mended) Decode(data []byte) (string, error) { return strings.Trim(string(data), "<>"), nil }

func TestWithRetryUndecodableTheHandlersOutcomeIsForWhatItSaw(t *testing.T) {
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"an error", errBoom, `queued [<1> <bad> <3>], retry 0, in 1h0m0s, error "boom"`},
		{"snooze", skein.Snooze(time.Minute), `queued [<1> <bad> <3>], retry -1, in 1m0s, error ""`},
		{"bury", skein.Bury(errBoom),
			`queued [<bad> <3>], retry 0, in 1h0m0s, error "decode payload: it is bad"; dead [<1>], error "boom"`},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				q := skein.NewQueue("q", skein.QueueOptions[string]{
					Codec:       bracketed{},
					Undecodable: skein.RetryUndecodable,
					Backoff:     func(int) time.Duration { return time.Hour },
				})
				for i, p := range []string{"1", "bad", "3"} {
					push(t, store, q, "a", p, skein.Score(float64(i)))
				}
				runDue(t, store, skein.ServerOptions{}, failing(q, c.err))
				equal(t, "state", stateOf(t, store, "q", "a"), c.want)
			})
		})
	}
}

// lines returns a JSON log's records about jobs: level, message and attributes except the time, in
// order of keys.
func lines(t *testing.T, log []byte) (all []string) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var attrs map[string]any
		if err := json.Unmarshal(line, &attrs); err != nil {
			t.Fatalf("%s: %v", line, err)
		}

		text := fmt.Sprintf("%v %v", attrs["level"], attrs["msg"])
		delete(attrs, "time")
		delete(attrs, "level")
		delete(attrs, "msg")

		keys := make([]string, 0, len(attrs))
		for key := range attrs {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			switch value, _ := attrs[key].(string); {
			case key == "stack":
				attrs[key] = strings.Contains(value, "buried_test.go")
			case key == "place" && strings.Contains(value, "/buried_test.go:"):
				attrs[key] = "buried_test.go"
			case key == "error" && strings.HasPrefix(value, "panic: ouch\n"):
				attrs[key] = "panic: ouch, with its stack"
			}
			text += fmt.Sprintf(" %s=%v", key, attrs[key])
		}
		all = append(all, text)
	}
	return all
}

// TestFailuresAreHeardOf has, for each way in which jobs and payloads fail, the lines of a log. A
// line is for one job, and names its queue, shard, id and next step.
func TestFailuresAreHeardOf(t *testing.T) {
	type options = skein.QueueOptions[string]
	cases := []struct {
		name    string
		options options
		payload string
		handle  func() error
		want    []string
	}{
		{"done", options{}, "x", func() error { return nil }, nil},
		{"snoozed", options{}, "x", func() error { return skein.Snooze(time.Hour) }, nil},
		{"failed", options{}, "x", func() error { return errBoom },
			[]string{
				"WARN job failed attempt=1 count=1 error=boom group=boom " +
					"id=a lib=skein of=26 queue=q retry_in=3.6e+12 shard=q/0",
			}},
		{"with a delay of its own", options{}, "x", func() error { return skein.RetryIn(time.Minute, errBoom) },
			[]string{
				"WARN job failed attempt=1 count=1 error=boom group=boom " +
					"id=a lib=skein of=26 queue=q retry_in=6e+10 shard=q/0",
			}},
		{"panicked", options{}, "x", func() error { panic("ouch") },
			[]string{
				"ERROR handler panicked attempt=1 count=1 error=panic: ouch " +
					"id=a lib=skein of=26 place=buried_test.go queue=q retry_in=3.6e+12 shard=q/0 stack=true",
			}},
		{"exhausted", options{MaxRetries: skein.NoRetries}, "x", func() error { return errBoom },
			[]string{
				"WARN job buried attempts=1 by=retries error=boom id=a lib=skein payloads=1 queue=q shard=q/0",
				"WARN job failed attempt=1 count=1 error=boom group=boom id=a lib=skein of=1 queue=q shard=q/0",
			}},
		{"panicked for the last time", options{MaxRetries: skein.NoRetries}, "x", func() error { panic("ouch") },
			[]string{
				"WARN job buried attempts=1 by=retries error=panic: ouch, with its stack " +
					"id=a lib=skein payloads=1 queue=q shard=q/0",
				"ERROR handler panicked attempt=1 count=1 error=panic: ouch " +
					"id=a lib=skein of=1 place=buried_test.go queue=q shard=q/0 stack=true",
			}},
		{"exhausted, of a queue that holds", options{MaxRetries: skein.NoRetries, Exhausted: skein.Hold}, "x",
			func() error { return errBoom },
			[]string{
				"WARN job held attempts=1 by=retries error=boom id=a lib=skein queue=q shard=q/0",
				"WARN job failed attempt=1 count=1 error=boom group=boom id=a lib=skein of=1 queue=q shard=q/0",
			}},
		{"undecodable after the retries, of a queue that holds",
			options{
				Undecodable: skein.RetryUndecodable,
				MaxRetries:  skein.NoRetries,
				Exhausted:   skein.Hold,
			}, "bad", func() error { return nil },
			[]string{
				"WARN job held attempts=1 by=codec error=decode payload: it is bad id=a lib=skein queue=q shard=q/0",
				"WARN payload refused by the codec bytes=5 count=1 error=decode payload: it is bad " +
					"group=decode payload: it is bad id=a lib=skein queue=q shard=q/0",
			}},
		{"buried, of a queue that holds", options{Exhausted: skein.Hold}, "x",
			func() error { return skein.Bury(errBoom) },
			[]string{"WARN job buried attempts=1 by=handler error=boom id=a lib=skein payloads=1 queue=q shard=q/0"}},
		{"buried", options{}, "x", func() error { return skein.Bury(errBoom) },
			[]string{"WARN job buried attempts=1 by=handler error=boom id=a lib=skein payloads=1 queue=q shard=q/0"}},
		{"undecodable", options{}, "bad", func() error { return nil },
			[]string{
				"WARN payload refused by the codec bytes=5 count=1 error=decode payload: it is bad " +
					"group=decode payload: it is bad id=a lib=skein queue=q shard=q/0",
				"WARN job buried attempts=1 by=codec error=decode payload: it is bad " +
					"id=a lib=skein payloads=1 queue=q shard=q/0",
			}},
		{"undecodable, to be retried", options{Undecodable: skein.RetryUndecodable}, "bad", func() error { return nil },
			[]string{
				"WARN payload refused by the codec bytes=5 count=1 error=decode payload: it is bad " +
					"group=decode payload: it is bad id=a lib=skein queue=q shard=q/0",
			}},
		{"undecodable after the retries", options{Undecodable: skein.RetryUndecodable, MaxRetries: skein.NoRetries},
			"bad", func() error { return nil },
			[]string{
				"WARN job buried attempts=1 by=codec error=decode payload: it is bad " +
					"id=a lib=skein payloads=1 queue=q shard=q/0",
				"WARN payload refused by the codec bytes=5 count=1 error=decode payload: it is bad " +
					"group=decode payload: it is bad id=a lib=skein queue=q shard=q/0",
			}},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				c.options.Shards, c.options.Codec = 1, bracketed{}
				c.options.Backoff = func(int) time.Duration { return time.Hour }
				q := skein.NewQueue("q", c.options)
				push(t, store, q, "a", c.payload)

				var log bytes.Buffer
				o := skein.ServerOptions{Logger: slog.New(slog.NewJSONHandler(&log, nil))}
				h := q.Handler(func(context.Context, string, []string) error { return c.handle() })
				if _, err := skein.NewServer(store, o, h).RunDue(t.Context()); err != nil {
					t.Fatal(err)
				}
				equal(t, "log", lines(t, log.Bytes()), c.want)
			})
		})
	}
}

func TestABurialByRecoveryIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1, MaxRecoveries: skein.NoRetries})
		push(t, store, q, "a", "x")
		abandon(t, store, "q")
		log := logged(t, store, skein.ServerOptions{}, nop(q))
		for _, want := range []string{"level=WARN", "job buried", "id=a", "by=recovery"} {
			if !strings.Contains(log, want) {
				t.Errorf("log has no %q:\n%s", want, log)
			}
		}
	})
}

func TestAHoldByRecoveryIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{
			Shards:        1,
			MaxRecoveries: skein.NoRetries,
			Exhausted:     skein.Hold,
		})
		push(t, store, q, "a", "x")
		abandon(t, store, "q")

		log := logged(t, store, skein.ServerOptions{}, nop(q))
		for _, want := range []string{"level=WARN", "job held", "id=a", "by=recovery"} {
			if !strings.Contains(log, want) {
				t.Errorf("log has no %q:\n%s", want, log)
			}
		}
		if strings.Contains(log, "job buried") {
			t.Errorf("a job of a queue that holds was buried:\n%s", log)
		}
		equal(t, "held", counts(t, store, "q").Held, 1)
	})
}

// The log lines of a failure in a transaction describe what has happened: they wait until that is
// known.
func TestAFailureInATransactionIsHeardOfOnce(t *testing.T) {
	cases := map[string]struct {
		handle func(ctx context.Context, store *memory.Store, j *skein.Job[string]) error
		want   int
	}{
		"done and committed": {func(ctx context.Context, store *memory.Store, _ *skein.Job[string]) error {
			return skein.SettleIn(ctx, store)
		}, 0},
		"failed and committed": {func(ctx context.Context, store *memory.Store, j *skein.Job[string]) error {
			j.Settle(errBoom)
			return skein.SettleIn(ctx, store)
		}, 1},
		"not committed": {func(ctx context.Context, _ *memory.Store, _ *skein.Job[string]) error {
			return skein.SettleIn(ctx, &recordingSettler{})
		}, 1},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", skein.QueueOptions[string]{})
			push(t, store, q, "a", "x")
			log := logged(t, store, skein.ServerOptions{},
				q.JobHandler(func(ctx context.Context, j *skein.Job[string]) error {
					return c.handle(ctx, store, j)
				}))
			equal(t, "failures in the log", strings.Count(log, "job failed"), c.want)
		})
	}
}

package skein_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// recorder keeps the records of a log, at a level.
type recorder struct {
	slog.Level
	all *recorded
}

type recorded struct {
	mu   sync.Mutex
	list []slog.Record
}

func newRecorder(level slog.Level) recorder { return recorder{level, new(recorded)} }

func (r recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= r.Level }
func (r recorder) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r recorder) WithGroup(string) slog.Handler                    { return r }
func (r recorder) Handle(_ context.Context, record slog.Record) error {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.all.list = append(r.all.list, record)
	return nil
}

// of returns the records of a message, of a level.
func (r recorder) of(level slog.Level, message string) (found []map[string]slog.Value) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	for _, record := range r.all.list {
		if record.Level != level || record.Message != message {
			continue
		}
		attrs := make(map[string]slog.Value)
		record.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value; return true })
		found = append(found, attrs)
	}
	return found
}

// total adds up the counts of records.
func total(records []map[string]slog.Value) (n int) {
	for _, attrs := range records {
		n += int(attrs["count"].Int64())
	}
	return n
}

// serveLogged runs a server with a recording log in virtual time, and returns a function that
// stops it.
func serveLogged(
	t *testing.T,
	store *memory.Store,
	o skein.ServerOptions,
	log recorder,
	h ...skein.Handler,
) (stop func()) {
	t.Helper()
	o.Logger = slog.New(log)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- skein.NewServer(store, o, h...).Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func pushMany(t *testing.T, store *memory.Store, q *skein.Queue[string], n int) {
	t.Helper()
	entries := make([]skein.Entry[string], n)
	for i := range entries {
		entries[i] = skein.Entry[string]{ID: fmt.Sprintf("id-%d", i), Payload: "x"}
	}
	if err := q.PushMany(t.Context(), skein.NewClient(store, skein.ClientOptions{}), entries); err != nil {
		t.Fatal(err)
	}
}

// Whatever the rate of failures, a minute has a line for each group, whose counts add up to all
// failures.
func TestFailuresAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{
			Backoff:    func(int) time.Duration { return time.Second },
			MaxRetries: 1000,
		})
		var mu sync.Mutex
		runs := 0
		stop := serveLogged(t, store, skein.ServerOptions{}, log, q.Each(func(context.Context, string, string) error {
			mu.Lock()
			defer mu.Unlock()
			runs++
			if runs%3 == 0 {
				return errors.New("no route")
			}
			return fmt.Errorf("request %d of 10.0.0.%d failed", runs, runs%250)
		}))

		pushMany(t, store, q, 200)
		time.Sleep(150 * time.Second)
		stop()

		failed := log.of(slog.LevelWarn, "job failed")
		if len(failed) < 4 || len(failed) > 8 {
			t.Errorf("%d lines of %d failures in 150 s, want 8 at most: "+
				"two groups, at once, after each minute and at the end",
				len(failed), runs)
		}
		if got := total(failed); got != runs {
			t.Errorf("the lines count %d failures, want all %d", got, runs)
		}

		groups := make(map[string]bool)
		for _, attrs := range failed {
			groups[attrs["group"].String()] = true
		}
		if len(groups) != 2 || !groups["request # of # failed"] {
			t.Errorf("groups %v, want two", groups)
		}

		if first := failed[0]; first["retry_in"].Duration() != time.Second || first["of"].Int64() != 1001 ||
			!strings.HasPrefix(first["shard"].String(), "q/") {
			t.Errorf("the first line has %v", first)
		}

		if debug := log.of(slog.LevelDebug, "job failed"); len(debug) > 0 {
			t.Errorf("%d lines at Debug, which is off", len(debug))
		}
	})
}

func TestEachFailureIsALineAtDebug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelDebug)
		q := skein.NewQueue("q", skein.QueueOptions[string]{MaxRetries: skein.NoRetries})
		stop := serveLogged(t, store, skein.ServerOptions{}, log,
			q.Each(func(context.Context, string, string) error { return errBoom }))
		pushMany(t, store, q, 300)
		time.Sleep(5 * time.Second)
		stop()
		if debug := log.of(slog.LevelDebug, "job failed"); len(debug) != 300 {
			t.Errorf("%d lines at Debug, want 300", len(debug))
		}
	})
}

func TestPanicsAreSummedUpByPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{MaxRetries: skein.NoRetries})

		var none map[string]int
		stop := serveLogged(t, store, skein.ServerOptions{}, log, q.Each(func(_ context.Context, id, _ string) error {
			if len(id)%2 == 0 {
				none[id] = 1
			}
			panic(id)
		}))

		pushMany(t, store, q, 300)
		time.Sleep(5 * time.Second)
		stop()

		panicked := log.of(slog.LevelError, "handler panicked")
		if len(panicked) != 4 || total(panicked) != 300 {
			t.Fatalf("%d lines that count %d, want each of two places at once and at the end, of 300",
				len(panicked), total(panicked))
		}
		for _, attrs := range panicked {
			if !strings.Contains(attrs["place"].String(), "/log_test.go:") ||
				!strings.Contains(attrs["stack"].String(), "log_test.go") {
				t.Errorf("place %v, stack %.200v", attrs["place"], attrs["stack"])
			}
		}
	})
}

func TestBurialsAreTenASecondAndACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{Codec: bracketed{}})
		stop := serveLogged(t, store, skein.ServerOptions{}, log,
			q.Each(func(context.Context, string, string) error { return skein.Bury(errBoom) }))
		pushMany(t, store, q, 300)
		push(t, store, q, "refused", "bad")
		time.Sleep(5 * time.Second)
		stop()

		buried, more := log.of(slog.LevelWarn, "job buried"), log.of(slog.LevelWarn, "more jobs buried")
		if len(buried) != 10 || len(more) != 1 || len(buried)+total(more) != 301 {
			t.Errorf("%d burials, and %v, want 10 and a count of the 291 others", len(buried), more)
		}
		if attrs := buried[0]; attrs["by"].String() != "handler" || attrs["payloads"].Int64() != 1 {
			t.Errorf("a burial has %v", attrs)
		}

		refused := log.of(slog.LevelWarn, "payload refused by the codec")
		if len(refused) != 1 || refused[0]["bytes"].Int64() != int64(len("<bad>")) ||
			refused[0]["id"].String() != "refused" {
			t.Errorf("refused payloads: %v", refused)
		}
	})
}

func TestWhatADeadServerLeftIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1, MaxRecoveries: 3})
		push(t, store, q, "a", "x")
		abandon(t, store, "q")
		stop := serveLogged(t, store, skein.ServerOptions{}, log, nop(q))
		time.Sleep(time.Minute)
		stop()

		recovered := log.of(slog.LevelWarn, "job recovered")
		if len(recovered) != 1 || recovered[0]["id"].String() != "a" || recovered[0]["recoveries"].Int64() != 1 ||
			recovered[0]["of"].Int64() != 3 {
			t.Errorf("recovered: %v", recovered)
		}
		if over := log.of(slog.LevelInfo, "lease taken over"); len(over) != 1 || over[0]["jobs"].Int64() != 1 {
			t.Errorf("taken over: %v", over)
		}
	})
}

// A server logs that it started, how its stop proceeds, and how that ended.
func TestTheStoryOfAServerIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 2})
		o := skein.ServerOptions{Name: "n", Version: "v1", Lanes: 1, ShutdownTimeout: 30 * time.Second}
		stop := serveLogged(t, store, o, log, q.Each(func(_ context.Context, id, _ string) error {
			time.Sleep(35 * time.Second)
			return nil
		}))

		push(t, store, q, "before", "x")
		time.Sleep(40 * time.Second)
		push(t, store, q, "slow", "x")
		time.Sleep(time.Second)
		stop()

		started := log.of(slog.LevelInfo, "server started")
		if len(started) != 1 || started[0]["node"].String() != "n" || started[0]["version"].String() != "v1" ||
			started[0]["lanes"].Int64() != 1 ||
			started[0]["ttl"].Duration() != skein.DefaultLeaseTTL ||
			!strings.Contains(started[0]["store"].String(), "memory") {
			t.Errorf("started: %v", started)
		}
		if draining := log.of(slog.LevelInfo, "shutting down"); len(draining) != 1 ||
			draining[0]["running"].Int64() != 1 {
			t.Errorf("draining: %v", draining)
		}

		waiting := log.of(slog.LevelWarn, "still waiting for handlers")
		if len(waiting) != 3 || waiting[0]["running"].Int64() != 1 ||
			!strings.Contains(waiting[0]["longest"].String(), "id=slow") {
			t.Errorf("still waiting: %v, want three of 34 s", waiting)
		}

		stopped := log.of(slog.LevelInfo, "server stopped")
		if len(stopped) != 1 || stopped[0]["settled"].Int64() != 2 || stopped[0]["put_back"].Int64() != 0 ||
			stopped[0]["still_running"].Int64() != 1 ||
			stopped[0]["took"].Duration() < 33*time.Second {
			t.Errorf("stopped: %v", stopped)
		}
	})
}

func TestAnEntityWithTooManyPayloadsIsNamedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{MaxPayloads: 100})
		stop := serveLogged(t, store, skein.ServerOptions{}, log, nop(q))

		for range 5 {
			entries := make([]skein.Entry[string], 350)
			for i := range entries {
				entries[i] = skein.Entry[string]{ID: "hot", Payload: fmt.Sprint(i)}
			}
			if err := q.PushMany(t.Context(), skein.NewClient(store, skein.ClientOptions{}), entries); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}

		stop()
		if many := log.of(slog.LevelWarn, "entity has more payloads than a claim takes"); len(many) != 1 ||
			many[0]["id"].String() != "hot" {
			t.Errorf("lines: %v, want one", many)
		}
	})
}

// A handler of the log that panics stops no work.
func TestALogThatPanicsStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{})
		runs := 0
		h := q.Each(func(context.Context, string, string) error { runs++; return skein.Bury(errBoom) })
		push(t, store, q, "a", "x")
		o := skein.ServerOptions{Logger: slog.New(panickingLog{}), OnFatal: func(err error) { t.Error(err) }}
		if _, err := skein.NewServer(store, o, h).RunDue(t.Context()); err != nil || runs != 1 {
			t.Errorf("%d runs, %v", runs, err)
		}
	})
}

type panickingLog struct{ slog.Handler }

func (panickingLog) Enabled(context.Context, slog.Level) bool { return true }
func (p panickingLog) WithAttrs([]slog.Attr) slog.Handler     { return p }
func (panickingLog) Handle(context.Context, slog.Record) error {
	panic("the log's mistake")
}

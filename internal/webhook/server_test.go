package webhook

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports/storekit"
)

// queueOf returns the queue that the tests push to and serve.
func queueOf(o skein.QueueOptions[[]byte]) *skein.Queue[[]byte] {
	o.Codec, o.Shards, o.Timeout = skein.RawCodec{}, 1, 30*time.Second
	o.Backoff = func(int) time.Duration { return time.Minute }
	return skein.NewQueue("orders", o)
}

// serve runs a server until stop, which waits for its end.
func serve(t *testing.T, store skein.Store, q *skein.Queue[[]byte], c *Caller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)},
			q.JobHandler(c.Handle)).Run(ctx)
	}()
	return func() {
		cancel()
		must(t, <-ended)
	}
}

func push(t *testing.T, store skein.Store, q *skein.Queue[[]byte], payload string) {
	t.Helper()
	must(t, q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "42", []byte(payload), skein.Score(7)))
}

// found returns what the store has of id 42.
func found(t *testing.T, store skein.Store) inspect.Found {
	t.Helper()
	f, err := inspect.New(store, inspect.Options{}).Find(t.Context(), "orders", "42")
	must(t, err)
	return f
}

// A job takes its way by the answers: it waits, fails, and is done with a result.
func TestAServerHandlesByCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(memory.Options{}), queueOf(skein.QueueOptions[[]byte]{
			Keep: skein.Keep{Age: time.Hour}, Merge: skein.Every(),
		})
		var bodies []string
		n := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			must(t, err)
			switch bodies = append(bodies, string(text)); len(bodies) {
			case 1:
				w.WriteHeader(429)
			case 2:
				w.WriteHeader(500)
			default:
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = io.WriteString(w, `{"score": 0.75}`)
			}
		})
		stop := serve(t, store, q, caller(t, n, Options{MaxBusy: 3, Results: true}))
		push(t, store, q, `{"paid":true}`)
		time.Sleep(5 * time.Minute)
		stop()

		if len(bodies) != 3 {
			t.Fatalf("%d calls: %q", len(bodies), bodies)
		}
		for at, attempt := range []string{`"attempt":1`, `"attempt":1`, `"attempt":2`} { // a busy answer is no attempt
			const payloads = `[{"payload":{"paid":true},"score":7}]`
			if !strings.Contains(bodies[at], attempt) || !strings.Contains(bodies[at], payloads) ||
				strings.Contains(bodies[at], `"fencing_token":0`) {
				t.Errorf("call %d: %s, want %s", at, bodies[at], attempt)
			}
		}
		if past := found(t, store).Past; past == nil || string(past.Result) != `{"score":0.75}` {
			t.Errorf("%+v", past)
		}
	})
}

// A result that can't be kept is dropped with a warning, and its job is done.
func TestWrongResultsAreDropped(t *testing.T) {
	for content, body := range map[string]string{
		"text/html":        "{}",
		"application/json": "<html>",
		"Application/JSON": `"` + strings.Repeat("x", maxBodyBytes) + `"`,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{})
			q := queueOf(skein.QueueOptions[[]byte]{Keep: skein.Keep{Age: time.Hour}})
			n := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", content)
				_, _ = io.WriteString(w, body)
			})
			var log strings.Builder
			logger := slog.New(slog.NewTextHandler(&log, nil))
			stop := serve(t, store, q, caller(t, n, Options{Results: true, Logger: logger}))
			push(t, store, q, "{}")
			synctest.Wait()
			stop()

			past := found(t, store).Past
			if past == nil || len(past.Result) > 0 ||
				strings.Contains(log.String(), "no result") != (content != "text/html") {
				t.Errorf("%s: %+v: %s", content, past, log.String())
			}
		})
	}
}

// A call is cut off when its lease is lost, and an answer after that changes nothing: the job runs
// again under the next lease.
func TestAnAnswerAfterTheLeaseIsLostChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(memory.Options{}), queueOf(skein.QueueOptions[[]byte]{})
		var away atomic.Bool // whether the first server can't reach the store
		cut := storekit.Intercept(store, func(ctx context.Context, _ storekit.Call, next func(context.Context) error) error {
			if away.Load() {
				return io.ErrUnexpectedEOF
			}
			return next(ctx)
		})

		var calls, gone atomic.Int64
		n := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				<-r.Context().Done()
				gone.Add(1)
				return // with a late 200
			}
			w.WriteHeader(410)
			_, _ = io.WriteString(w, "handled by the second")
		})

		c := caller(t, n, Options{})
		stopFirst := serve(t, cut, q, c)
		push(t, store, q, "{}")
		synctest.Wait()
		away.Store(true)
		time.Sleep(time.Minute)
		if calls.Load() != 1 || gone.Load() != 1 {
			t.Errorf("%d calls, %d cut off; want one", calls.Load(), gone.Load())
		}

		stopSecond := serve(t, store, q, c)
		time.Sleep(time.Minute)
		if f := found(t, store); calls.Load() != 2 || f.DeadLetter == nil || f.Queued != nil {
			t.Errorf("%d calls: %+v", calls.Load(), f)
		}
		stopSecond()
		away.Store(false)
		stopFirst()
	})
}

// A server that stops lets its calls end, and puts those back untouched that take longer.
func TestAServerThatStopsPutsCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(memory.Options{}), queueOf(skein.QueueOptions[[]byte]{})
		n := receiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		stop := serve(t, store, q, caller(t, n, Options{}))
		push(t, store, q, "{}")
		time.Sleep(time.Second)
		stop()
		if f := found(t, store); f.Queued == nil || f.Queued.Retries != 0 {
			t.Errorf("%+v", f.Queued)
		}
	})
}

package skein_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// quitter is an error whose text ends the goroutine that requests it.
type quitter struct{}

func (quitter) Error() string {
	runtime.Goexit()
	return ""
}

// TestWhatEndsItsGoroutineAroundAHandlerFailsItsJobAlone has each function of a user's
// that runs where a job is settled end its goroutine, as t.FailNow does.
func TestWhatEndsItsGoroutineAroundAHandlerFailsItsJobAlone(t *testing.T) {
	encode := func(string) string { runtime.Goexit(); return "" }
	backoff := func(int) time.Duration { runtime.Goexit(); return 0 }
	cases := map[string]struct {
		queue   skein.QueueOptions[int]
		options skein.ServerOptions
		err     error
	}{
		"Backoff": {queue: skein.QueueOptions[int]{Backoff: backoff}},
		"Jitter":  {options: skein.ServerOptions{Jitter: func() int { runtime.Goexit(); return 0 }}},
		"FormatError": {
			options: skein.ServerOptions{FormatError: func(error) string { runtime.Goexit(); return "" }},
		},
		"ErrorGroup": {
			options: skein.ServerOptions{ErrorGroup: func(error) string { runtime.Goexit(); return "" }},
		},
		"the error":         {err: quitter{}},
		"ErrorCodec.Encode": {options: skein.ServerOptions{ErrorCodec: skein.ErrorCodec{Encode: encode}}},
		"ErrorCodec.Decode": {options: skein.ServerOptions{ErrorCodec: skein.ErrorCodec{Decode: encode}}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				c.queue.Shards, c.queue.BatchSize = 1, 10
				c.options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
				q := skein.NewQueue("q", c.queue)
				push(t, store, q, "a", 1)
				push(t, store, q, "b", 1)
				server := skein.NewServer(store, c.options,
					q.Handler(func(_ context.Context, id string, _ []int) error {
						if id == "b" {
							return nil
						}
						if c.err != nil {
							return c.err
						}
						return errBoom
					}))

				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- server.Run(ctx) }()
				time.Sleep(10 * time.Second)

				job := queued(t, store, "q", "a")
				equal(t, "retry", job.RetryCount, 0)
				equal(t, "the other job of the batch", stateOf(t, store, "q", "b"), "")

				stop()
				select {
				case err := <-ended:
					equal(t, "Run's error", err, nil)
				case <-time.After(time.Hour):
					t.Error("Run goes on an hour after the stop")
				}
			})
		})
	}
}

package skein_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// Whichever of the user's functions fails with each of 1,000 jobs, the log does not grow with it,
// and counts the left-out lines.
func TestMishapsAreFewRecords(t *testing.T) {
	for name, c := range map[string]struct {
		queue         skein.QueueOptions[string]
		server        skein.ServerOptions
		message, more string
	}{
		"OnBuried": {
			server: skein.ServerOptions{
				OnBuried: func(context.Context, skein.Buried) error { return errors.New("pager is away") },
			},
			message: "OnBuried failed", more: "more calls of OnBuried failed",
		},
		"Backoff": {
			queue:   skein.QueueOptions[string]{Backoff: func(int) time.Duration { panic("backoff") }},
			message: "the queue's Backoff panicked; the default backoff is used",
		},
		"Encode": {
			server:  skein.ServerOptions{ErrorCodec: skein.ErrorCodec{Encode: func(string) string { panic("codec") }}},
			message: "ErrorCodec.Encode panicked; the error's text is stored as it is",
		},
		"ErrorGroup": {
			server:  skein.ServerOptions{ErrorGroup: func(error) string { panic("group") }},
			message: "ErrorGroup panicked; the error has its default group",
		},
		"Jitter": {
			server:  skein.ServerOptions{Jitter: func() int { panic("jitter") }},
			message: "Jitter panicked; a random one is used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
				q := skein.NewQueue("q", c.queue)
				pushMany(t, store, q, 1000)

				stop := serveLogged(t, store, c.server, log, q.Each(func(context.Context, string, string) error {
					if name == "OnBuried" {
						return skein.Bury(errBoom)
					}
					return errBoom
				}))
				time.Sleep(5 * time.Second)
				stop()

				said := len(log.of(slog.LevelError, c.message))
				if said == 0 || said > 10 {
					t.Errorf("%d records of %q", said, c.message)
				}
				if c.more != "" && said+total(log.of(slog.LevelError, c.more)) != 1000 {
					t.Errorf("%d records and a count of %d, want 1,000 in all",
						said, total(log.of(slog.LevelError, c.more)))
				}
			})
		})
	}
}

func TestTheRecordOfAPanicIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
		q := skein.NewQueue("q", skein.QueueOptions[string]{})
		pushMany(t, store, q, 1)
		stop := serveLogged(t, store, skein.ServerOptions{}, log, q.Each(func(context.Context, string, string) error {
			panic("bad document: " + strings.Repeat("x", 8<<20))
		}))
		time.Sleep(5 * time.Second)
		stop()
		records := log.of(slog.LevelError, "handler panicked")
		if len(records) != 1 {
			t.Fatalf("%d records, want one", len(records))
		}
		for key, value := range records[0] {
			if n := len(value.String()); n > 64<<10 {
				t.Errorf("%s has %d bytes", key, n)
			}
		}
	})
}

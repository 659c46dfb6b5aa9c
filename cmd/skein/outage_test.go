package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Each outage of a store has one line at its beginning and one at its end, however long it lasts.
func TestEachOutageIsLoggedOnceAndItsEnd(t *testing.T) {
	const patience = 3 * time.Second
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refuses := func(context.Context) error { return ports.ErrUnusable }
	answers := func(context.Context) error { return nil }

	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		plain := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))

		var store atomic.Pointer[func(context.Context) error]
		store.Store(&answers)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watchStore(ctx, plain, func(ctx context.Context) error { return (*store.Load())(ctx) }, patience)
		}()

		for _, is := range []func(context.Context) error{answers, hangs, hangs, answers, refuses, answers} {
			store.Store(&is)
			time.Sleep(time.Minute)
		}

		store.Store(&hangs)
		time.Sleep(patience - time.Second) // shorter than a call may take, and the end of the command begins no outage
		stop()
		<-ended

		var lines []string
		for line := range strings.Lines(log.String()) {
			lines = append(lines, strings.TrimSpace(line))
		}
		want := []string{
			`level=WARN msg="the store does not answer" error="context deadline exceeded"`,
			`level=INFO msg="the store answers again" after=`,
			`level=WARN msg="the store can't be used" error=`,
			`level=INFO msg="the store answers again" after=`,
		}

		if len(lines) != len(want) {
			t.Fatalf("the log is\n%s\nwant %d lines", log.String(), len(want))
		}
		for at, line := range lines {
			if !strings.HasPrefix(line, want[at]) {
				t.Errorf("line %d is %s, want %s…", at, line, want[at])
			}
		}
	})
}

// Both commands that serve a store log that it does not answer, even if they get no requests.
func TestServersLogAStoreThatDoesNotAnswer(t *testing.T) {
	for _, command := range []string{"serve", "exporter"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(t.Context(), testservers.Patience)
			defer stop()

			var said written
			away := func(context.Context, string) (*backends.Backend, error) {
				store := storekit.Intercept(memory.New(memory.Options{}),
					func(context.Context, storekit.Call, func(context.Context) error) error {
						return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
					})
				return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
			}

			ended := make(chan int, 1)
			go func() {
				p := process{
					stdin:   strings.NewReader(""),
					stdout:  io.Discard,
					stderr:  &said,
					env:     func(string) string { return "" },
					connect: away,
				}
				ended <- p.run(ctx, []string{command, "--url", "memory://", "--listen", "127.0.0.1:0"})
			}()

			for !strings.Contains(said.String(), "the store does not answer") && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}

			late := ctx.Err()
			stop()
			if code := <-ended; late != nil || code != 0 || !strings.Contains(said.String(), "connection refused") {
				t.Errorf("it ended with %d, %v: %s", code, late, said.String())
			}
		})
	}
}

// Metrics are guarded like pages: without a token only this machine's names may be requested, and
// with one the names of --host.
func TestMetricsRefuseAForeignHost(t *testing.T) {
	secret := map[string]string{tokenVariable: "open sesame"}
	for _, tt := range []struct {
		what, url, host, token string
		want                   int
	}{
		{
			"without a token",
			served(t, nil, "serve", "--url", "memory://", "--metrics"),
			"evil.example",
			"",
			http.StatusMisdirectedRequest,
		},
		{
			"without a token, by its own name",
			served(t, nil, "serve", "--url", "memory://", "--metrics"),
			"",
			"",
			http.StatusOK,
		},
		{
			"with --host",
			served(t, secret, "serve", "--url", "memory://", "--metrics", "--host", "ops.example.com"),
			"evil.example",
			"open sesame",
			http.StatusMisdirectedRequest,
		},
		{
			"with --host, by it",
			served(t, secret, "serve", "--url", "memory://", "--metrics", "--host", "ops.example.com"),
			"ops.example.com",
			"open sesame",
			http.StatusOK,
		},
		{
			"with --host, without the token",
			served(t, secret, "serve", "--url", "memory://", "--metrics", "--host", "ops.example.com"),
			"ops.example.com",
			"",
			http.StatusUnauthorized,
		},
	} {
		for _, path := range []string{"/metrics", "/api/v1/stats"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}

			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = reply.Body.Close()

			if reply.StatusCode != tt.want {
				t.Errorf("%s %s: %d, want %d", path, tt.what, reply.StatusCode, tt.want)
			}
		}
	}
}

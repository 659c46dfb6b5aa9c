package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
)

// outcome is what a handler's error stands for, in a line.
func outcome(err error) string {
	var bury *skein.BuryError
	var snooze *skein.SnoozeError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &bury):
		return "bury: " + bury.Err.Error()
	case errors.As(err, &snooze):
		return "snooze " + snooze.Delay.String()
	}
	return "fail: " + err.Error()
}

func TestAnswersAreOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for _, tt := range []struct {
			status       int
			retry, body  string
			want         string
			otherHeaders map[string]string
		}{
			{status: 200, want: "done"},
			{status: 204, want: "done"},
			{status: 299, body: "<html>", want: "done"},
			{status: 200, retry: "5", want: "done"},

			{status: 429, retry: "90", want: "snooze 1m30s"},
			{status: 429, retry: in(time.Hour), want: "snooze 1h0m0s"},
			{status: 429, retry: in(-time.Hour), want: "snooze 1s"},
			{status: 429, retry: "0", want: "snooze 1s"},
			{status: 429, retry: "99999999", want: "snooze 24h0m0s"},
			{status: 429, retry: strings.Repeat("9", 40), want: "snooze 24h0m0s"},
			{status: 503, retry: "7", want: "snooze 7s"},
			{status: 503, want: "fail: the handler answered 503 Service Unavailable"},
			{status: 503, retry: "soon", want: "fail: the handler answered 503 Service Unavailable"},
			{status: 503, retry: "-7", want: "fail: the handler answered 503 Service Unavailable"},

			{status: 410, body: " no such order\n", want: "bury: no such order"},
			{status: 410, want: "bury: the handler answered 410 Gone"},

			{status: 500, body: "boom", want: "fail: the handler answered 500 Internal Server Error\nboom"},
			{status: 404, want: "fail: the handler answered 404 Not Found"},
			{status: 400, body: "\xff{}", want: "fail: the handler answered 400 Bad Request\n{}"},
			{status: 999, want: "fail: the handler answered 999"},
			{
				status:       307,
				otherHeaders: map[string]string{"Location": "http://elsewhere.test/"},
				want: "fail: the handler answered 307 Temporary Redirect\nredirects are not followed: " +
					"give the URL that handles",
			},
			{
				status:       302,
				otherHeaders: map[string]string{"Location": "/jobs"},
				want:         "fail: the handler answered 302 Found\nredirects are not followed: give the URL that handles",
			},
		} {
			calls := 0
			n := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				if tt.retry != "" {
					w.Header().Set("Retry-After", tt.retry)
				}
				for name, value := range tt.otherHeaders {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			got := outcome(caller(t, n, Options{MaxBusy: 3}).Handle(t.Context(), jobOf("{}")))
			if got != tt.want || calls != 1 {
				t.Errorf("%d %q: %q after %d calls, want %q", tt.status, tt.retry, got, calls, tt.want)
			}
		}
	})
}

// Busy answers snooze a job until they are too many in a row. Any other answer ends the row.
func TestBusyAnswersInARowAreAFailureAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 429
		n := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		c := caller(t, n, Options{MaxBusy: 2})
		var got []string
		for _, status = range []int{429, 429, 429, 429, 200, 429, 429, 500, 429, 429, 429} {
			word, _, _ := strings.Cut(outcome(c.Handle(t.Context(), jobOf("{}"))), " ")
			got = append(got, word)
		}
		want := "snooze snooze fail: snooze done snooze snooze fail: snooze snooze fail:"
		if is := strings.Join(got, " "); is != want {
			t.Errorf("%s; want %s", is, want)
		}

		none := caller(t, n, Options{})
		const first = "fail: busy 1 times in a row: the handler answered 429 Too Many Requests"
		if got := outcome(none.Handle(t.Context(), jobOf("{}"))); got != first {
			t.Error(got)
		}
	})
}

// A busy answer that names no time waits as a retry would, longer each time.
func TestABusyAnswerWithoutATimeWaitsAsARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) })
		c := caller(t, n, Options{MaxBusy: 20})
		for inRow := range 20 {
			var snooze *skein.SnoozeError
			least := min(core.DefaultBackoff(inRow, 0), maxBusy)
			err := c.Handle(t.Context(), jobOf("{}"))
			if !errors.As(err, &snooze) || snooze.Delay < least || snooze.Delay > maxBusy {
				t.Errorf("%d: %v, want at least %v", inRow, err, least)
			}
		}
	})
}

func TestCountsOfBusyAnswersAreBounded(t *testing.T) {
	var b busyCounts
	for i := range maxBusyIDs + 100 {
		b.add(fmt.Sprint(i), 5)
	}
	if len(b.counts) != maxBusyIDs {
		t.Errorf("%d ids are counted, want %d", len(b.counts), maxBusyIDs)
	}
}

// hostile are receivers that answer against the rules, with how the outcome of a call of 10 seconds
// begins.
var hostile = map[string]struct {
	receive http.HandlerFunc
	want    string
}{
	"an endless body counts by its status": {
		func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		},
		"done",
	},
	"an endless reason is cut": {
		func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 1024)); err != nil {
					return
				}
			}
		},
		"fail: the handler answered 500 Internal Server Error\n" + strings.Repeat("x", maxReasonBytes),
	},
	"a body that drips is cut off": {
		func(w http.ResponseWriter, r *http.Request) {
			for {
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					return
				}
			}
		},
		"fail: no whole answer until the call was cut off: handler timeout",
	},
	"no answer at all": {
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"fail: no whole answer until the call was cut off: handler timeout",
	},
	"a body that breaks off": {
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		},
		"fail: the answer 200 OK broke off: unexpected EOF",
	},
	"a connection that ends": {
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"fail: no answer: EOF",
	},
	"a flood of headers": {
		func(w http.ResponseWriter, _ *http.Request) {
			for i := range 10_000 {
				w.Header().Set(fmt.Sprint("x-flood-", i), strings.Repeat("x", 100))
			}
		},
		"fail: no answer: net/http: ",
	},
	"a flood of early hints": {
		func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusEarlyHints)
			}
		},
		"fail: no answer: net/http: ",
	},
	"no HTTP": {
		func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "220 mail.test ESMTP\r\n")
				_ = conn.Close()
			}
		},
		"fail: no answer: net/http: ",
	},
}

func TestHostileAnswers(t *testing.T) {
	for name, tt := range hostile {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, skein.ErrTimeout)
			defer cancel()
			began := time.Now()
			got := outcome(caller(t, receiver(t, tt.receive), Options{}).Handle(ctx, jobOf("{}")))
			took := time.Since(began) // in virtual time
			if !strings.HasPrefix(got, tt.want) || len(got) > 3000 || took > 10*time.Second {
				t.Errorf("%s: %.200q after %v, want %.200q", name, got, took, tt.want)
			}
		})
	}
}

// Errors go to the store and to the log, so they don't have the URL.
func TestErrorsDoNotHaveTheURL(t *testing.T) {
	for _, wrong := range []string{
		"orders", "ftp://secret@host/", "http://", "http://sec ret/", "http:///secret", "http://u:secret@host:x/",
	} {
		_, err := New("orders", Options{URL: wrong})
		if !errors.Is(err, core.ErrInvalidOptions) || strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v", wrong, err)
		}
	}

	synctest.Test(t, func(t *testing.T) {
		silent, refusing := caller(t, newNetwork(), Options{}), caller(t, newNetwork(), Options{})
		refusing.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		for c, want := range map[*Caller]string{
			silent:   "fail: no whole answer until the call was cut off: handler timeout",
			refusing: "fail: no answer: dial tcp: connection refused",
		} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, skein.ErrTimeout)
			if got := outcome(c.Handle(ctx, jobOf("{}"))); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			cancel()
		}
	})
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/ports"
)

// written is the output so far of a running command.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// end is how a command ended: its exit code, and its standard error.
type end struct {
	code int
	said string
}

// serves runs a command that serves until ctx ends, and returns its URL as soon as it listens.
func serves(t *testing.T, ctx context.Context, env map[string]string, args ...string) (url string, ended <-chan end) {
	t.Helper()
	var said written
	ends := make(chan end, 1)
	go func() {
		p := process{
			stdin:   strings.NewReader(""),
			stdout:  io.Discard,
			stderr:  &said,
			env:     func(name string) string { return env[name] },
			connect: backends.Connect,
		}
		code := p.run(ctx, append(args, "--listen", "127.0.0.1:0"))
		ends <- end{code, said.String()}
	}()

	for t.Context().Err() == nil {
		if m := regexp.MustCompile(`url=(http://\S+)`).FindStringSubmatch(said.String()); m != nil {
			return m[1], ends
		}
		select {
		case end := <-ends:
			t.Fatalf("it ended with %d: %s", end.code, end.said)
		case <-time.After(time.Millisecond):
		}
	}
	return "", ends
}

// served runs a command that serves until the test has ended, and returns its URL.
func served(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	url, ended := serves(t, ctx, env, args...)
	t.Cleanup(func() {
		stop()
		if end := <-ended; end.code != 0 {
			t.Errorf("it ended with %d: %s", end.code, end.said)
		}
	})
	return url
}

func get(t *testing.T, url, header, value string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		r.Header.Set(header, value)
	}

	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()

	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

func TestServe(t *testing.T) {
	open := served(t, nil, "serve", "--url", "memory://", "--metrics")
	for path, want := range map[string]string{
		"/":             "<html",
		"/api/v1/stats": "total",
		"/livez":        "",
		"/readyz":       "",
		"/metrics":      "skein_",
	} {
		if status, body := get(t, open+path, "", ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %.200s; want %q", path, status, body, want)
		}
	}
	if status, _ := get(t, open+"/", "X-Forwarded-For", "192.0.2.1"); status == http.StatusOK {
		t.Error("without a token a request through a proxy is served")
	}

	if status, _ := get(t, open+"/metrics", "X-Forwarded-For", "192.0.2.1"); status != http.StatusForbidden {
		t.Errorf("without a token metrics are served through a proxy: %d", status)
	}

	closed := served(t, map[string]string{tokenVariable: "open sesame", "SKEIN_URL": "memory://"}, "serve", "--metrics")
	for _, tt := range []struct {
		path, authorization string
		want                int
	}{
		{"/", "", http.StatusUnauthorized}, {"/", "Bearer no", http.StatusUnauthorized},
		{"/api/v1/stats", "", http.StatusUnauthorized}, {"/api/v1/stats", "Bearer no", http.StatusUnauthorized},
		{"/api/v1/stats", "Bearer open sesame", http.StatusOK}, {"/", "Basic OnNlc2FtZQ==", http.StatusUnauthorized},
		{"/metrics", "", http.StatusUnauthorized}, {"/metrics", "Bearer no", http.StatusUnauthorized},
		{"/metrics", "Bearer open sesame", http.StatusOK},
		{"/", "Basic bWU6b3BlbiBzZXNhbWU=", http.StatusOK}, {"/livez", "", http.StatusOK},
	} {
		if status, body := get(t, closed+tt.path, "Authorization", tt.authorization); status != tt.want {
			t.Errorf("%s with %q: %d, %.200s; want %d", tt.path, tt.authorization, status, body, tt.want)
		}
	}
}

// A command that serves ends with 0 beside open connections: of pages that ask again and again, and
// of browsers that have sent no request yet.
func TestServeEndsBesideOpenTabs(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := serves(t, ctx, nil, "serve", "--url", "memory://")

	var asking, answered sync.WaitGroup
	for range 10 {
		answered.Add(1)
		asking.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			seen := sync.OnceFunc(answered.Done)
			defer seen()
			for {
				answer, err := client.Get(url + "/")
				if err != nil {
					return // it has ended
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				seen()
			}
		})

		silent, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}

	answered.Wait()
	stop()
	if end := <-ended; end.code != 0 {
		t.Errorf("it ended with %d: %s", end.code, end.said)
	}
	asking.Wait()
}

// pipes is a listener of pipes.
type pipes struct {
	net.Listener
	conns chan net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	if c, open := <-p.conns; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error   { close(p.conns); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// At its end a server closes connections without a request at once, and lets a request end that is
// under way.
func TestServeClosesOnlySilentConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended, l := make(chan error, 1), &pipes{conns: make(chan net.Conn)}
		const takes = endTime / 5
		go func() {
			ended <- serveAt(ctx, slog.New(slog.DiscardHandler), l,
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }))
		}()

		silent, far := net.Pipe()
		l.conns <- far
		asking, far := net.Pipe()
		l.conns <- far
		_, err := io.WriteString(asking, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		synctest.Wait()
		stop()

		answer, err := http.ReadResponse(bufio.NewReader(asking), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("a request under way was answered with %v, %v", answer, err)
		}

		began := time.Now()
		if err := <-ended; err != nil || time.Since(began) > takes { // in virtual time
			t.Errorf("beside a silent connection it ended with %v, %v after the request", err, time.Since(began))
		}
		must(t, silent.Close())
	})
}

// A request that does not end, as beside a store that hangs, keeps no command from ending.
func TestServeEndsBesideARequestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended, l := make(chan error, 1), &pipes{conns: make(chan net.Conn)}
		var said written
		release := make(chan struct{})
		go func() {
			ended <- serveAt(ctx, slog.New(slog.NewTextHandler(&said, nil)), l,
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		}()

		asking, far := net.Pipe()
		l.conns <- far
		_, err := io.WriteString(asking, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		synctest.Wait()
		stop()

		if err := <-ended; err != nil || !strings.Contains(said.String(), "were cut off") {
			t.Errorf("it ended with %v and said %s", err, said.String())
		}
		if answer, err := http.ReadResponse(bufio.NewReader(asking), nil); err == nil {
			t.Errorf("a request that hangs was answered: %s", answer.Status)
		}

		close(release)
	})
}

// Stopped before its past is made, the demo ends like any command that serves.
func TestDemoStopsWhileItIsMade(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, ended := serves(t, ctx, nil, "demo")
	stop()
	if end := <-ended; end.code != 0 {
		t.Errorf("it ended with %d: %s", end.code, end.said)
	}
}

func TestExporter(t *testing.T) {
	if status, body := get(
		t, served(t, nil, "exporter", "--url", "memory://")+"/metrics", "", "",
	); status != http.StatusOK || !strings.Contains(body, "skein_exporter") {
		t.Errorf("%d, %.200s", status, body)
	}
}

// The demo listens before its past is made, and logs that: the first line of its log has the
// address.
func TestDemoListensFirst(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url, ended := serves(t, ctx, nil, "demo")
	get(t, url+"/livez", "", "")
	stop()
	lines := strings.Split((<-ended).said, "\n")
	if !strings.Contains(lines[0], "listening") ||
		!strings.Contains(lines[0], "url=http://127.0.0.1:") || !strings.Contains(lines[1], "msg=serving") {
		t.Errorf("the log begins with %q", lines)
	}
}

// Each kind of fault of the demo is a line of the overview. The tests of package shop check that
// it is there within 5 s of virtual time, and its text.
func TestDemo(t *testing.T) {
	url := served(t, nil, "demo")
	_, body := get(t, url+"/api/v1/stats", "", "")
	for _, queue := range []string{"orders", "emails", "search", "thumbnails", "exports", "invoices", "reports"} {
		if !strings.Contains(body, `"`+queue+`"`) {
			t.Errorf("the demo has no queue %s: %.300s", queue, body)
		}
	}

	for _, sign := range []string{
		"not served", "stuck", "failing", "hot shard", "late", "unreadable", "paused", "warning", "versions",
	} {
		line := regexp.MustCompile(`<li [^>]*data-k="` + sign + ` `)
		for {
			_, page := get(t, url+"/", "", "")
			if line.MatchString(page) {
				break
			}
			select {
			case <-t.Context().Done():
				t.Fatalf("no line of the overview is %q: %s", sign, page)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// The audit has the user name that a browser sends with the token. Without a token it has none,
// since no name is asked for.
func TestServeRecordsTheUserName(t *testing.T) {
	for _, c := range []struct{ token, user, want string }{
		{"tok", "ann", `"actor":"ann"`},
		{"", "ann", `"actor":""`},
		{"tok", "tok", `"actor":""`},
	} {
		store := memory.New(memory.Options{})
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
		must(t, err)

		handler, err := new(serving).handler(inspect.New(store, inspect.Options{}), "", c.token)
		must(t, err)

		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/queues/orders/pause",
			strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth(c.user, "tok")
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)

		if _, stdout, stderr := runOn(t, store, "audit", "-o", "jsonl"); w.Code != http.StatusOK ||
			!strings.Contains(stdout, c.want) {
			t.Errorf("with the token %q: %d %s; the audit has %s%s, want %s",
				c.token, w.Code, w.Body, stdout, stderr, c.want)
		}
	}
}

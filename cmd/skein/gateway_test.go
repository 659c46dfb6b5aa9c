package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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

const (
	railsToken = "4be1c0ffee5eed42"
	modelToken = "7c0de5ca1ab1e000"
	adminToken = "a110f7hequeues00"
)

const tokensOfTests = `
# program token            queues
rails     ` + railsToken + ` orders  mails
model     ` + modelToken + ` scores

admin     ` + adminToken + ` *
`

// fileOf writes a file of tokens and returns its path.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// gate is a store with queues, and a gateway in front of it.
func gate(t *testing.T, s *serving, token string) (http.Handler, *memory.Store) {
	t.Helper()
	store := memory.New(memory.Options{})
	for _, queue := range []string{"orders", "mails", "scores"} {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 2})
		must(t, err)
	}
	s.push = true
	handler, err := s.handler(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), "", token)
	must(t, err)
	return handler, store
}

// asks sends a request from an address.
func asks(h http.Handler, method, path, authorization, body, from string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Host, r.RemoteAddr = "localhost", from
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const onePush = `{"entries":[{"id":"42","payload":{"paid":true}}]}`

// Each token pushes to its queues and does nothing else.
func TestAGatewayLimitsTokensToQueues(t *testing.T) {
	h, store := gate(t, &serving{tokens: fileOf(t, tokensOfTests), hosts: []string{"localhost"}}, "")
	for _, tt := range []struct {
		token, queue string
		want         int
	}{
		{"Bearer " + railsToken, "orders", 200},
		{"Bearer " + railsToken, "mails", 200},
		{"Bearer " + railsToken, "scores", 403},
		{"Bearer " + railsToken, "nowhere", 403},
		{"Bearer " + modelToken, "scores", 200},
		{"Bearer " + modelToken, "orders", 403},
		{"Bearer " + adminToken, "mails", 200},
		{"Bearer " + adminToken, "nowhere", 404},
		{"Bearer *", "orders", 401},
		{"Bearer rails", "orders", 401},
		{"Bearer ", "orders", 401},
		{"Bearer " + railsToken + "x", "orders", 401},
		{"Bearer " + railsToken[1:], "orders", 401},
		{"", "orders", 401},
		{railsToken, "orders", 401},
	} {
		w := asks(h, http.MethodPost, "/api/v1/queues/"+tt.queue+"/jobs", tt.token, onePush, "192.0.2.7:1")
		if w.Code != tt.want || strings.Contains(w.Body.String(), "rails") || strings.Contains(w.Body.String(), railsToken) {
			t.Errorf("%q to %s: %d %s; want %d", tt.token, tt.queue, w.Code, w.Body, tt.want)
		}
	}

	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.SetBasicAuth("anybody", railsToken)
	w := asks(h, http.MethodPost, "/api/v1/queues/orders/jobs", r.Header.Get("Authorization"), onePush, "192.0.2.7:1")
	if w.Code != http.StatusOK {
		t.Errorf("a token as a password: %d %s", w.Code, w.Body)
	}

	for _, path := range []string{
		"/", "/api/v1/stats", "/api/v1/openapi.json", "/api/v1/queues", "/api/v1/queues/orders/jobs", "/api/v1/find?id=42", "/metrics",
	} {
		if w := asks(h, http.MethodGet, path, "Bearer "+adminToken, "", "192.0.2.7:1"); w.Code < 400 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/api/v1/queues/orders/pause", "/api/v1/queues/orders/jobs/delete", "/api/v1/nodes/drain"} {
		if w := asks(h, http.MethodPost, path, "Bearer "+adminToken, "{}", "192.0.2.7:1"); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if w := asks(h, http.MethodGet, path, "", "", "192.0.2.7:1"); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}

	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "42", Payloads: 10})
	if must(t, err); found.Queued == nil || len(found.Queued.Payloads) != 1 ||
		string(found.Queued.Payloads[0].Data) != `{"paid":true}` {
		t.Errorf("%+v", found.Queued)
	}
}

// Without a file of tokens a gateway serves this machine, or whoever has the token.
func TestAGatewayWithoutAFile(t *testing.T) {
	const path = "/api/v1/queues/orders/jobs"
	local, _ := gate(t, &serving{}, "")
	for from, want := range map[string]int{"127.0.0.1:1": 200, "192.0.2.7:1": 403} {
		if w := asks(local, http.MethodPost, path, "", onePush, from); w.Code != want {
			t.Errorf("from %s: %d %s; want %d", from, w.Code, w.Body, want)
		}
	}

	closed, _ := gate(t, &serving{}, "open sesame")
	for token, want := range map[string]int{"Bearer open sesame": 200, "Bearer open": 401, "": 401} {
		if w := asks(closed, http.MethodPost, path, token, onePush, "192.0.2.7:1"); w.Code != want {
			t.Errorf("%q: %d %s; want %d", token, w.Code, w.Body, want)
		}
	}
}

func TestAGatewayHasBounds(t *testing.T) {
	const path = "/api/v1/queues/orders/jobs"
	h, _ := gate(t, &serving{maxBody: 10 << 20, maxPayload: 3 << 20}, "")
	for size, want := range map[int]int{2 << 20: 200, 4 << 20: 400, 10 << 20: 413} {
		body := `{"entries":[{"id":"42","data":"` + strings.Repeat("x", size) + `"}]}`
		if w := asks(h, http.MethodPost, path, "", body, "127.0.0.1:1"); w.Code != want {
			t.Errorf("%d bytes: %d %.200s; want %d", size, w.Code, w.Body, want)
		}
	}
}

// A client that sends its headers or its body slowly is cut off, and stores nothing.
func TestAGatewayCutsOffSlowClients(t *testing.T) {
	const head = "POST /api/v1/queues/orders/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
		"Authorization: Bearer " + railsToken + "\r\n"
	for name, tt := range map[string]struct {
		sent   string
		status int // 0: none
	}{
		"headers": {head, 0},
		"a body":  {head + "Content-Length: 50\r\n\r\n" + onePush[:len(onePush)-1], http.StatusBadRequest},
		"chunks":  {head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", http.StatusBadRequest},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, store := gate(t, &serving{tokens: fileOf(t, tokensOfTests)}, "")
			ctx, stop := context.WithCancel(t.Context())
			ended, l := make(chan error, 1), &pipes{conns: make(chan net.Conn)}
			go func() { ended <- serveAt(ctx, slog.New(slog.DiscardHandler), l, h) }()

			client, far := net.Pipe()
			l.conns <- far
			var sending sync.WaitGroup
			sending.Go(func() { // at last a byte each second
				for at := range len(tt.sent) {
					if at > len(head)-8 {
						time.Sleep(time.Second)
					}
					if _, err := io.WriteString(client, tt.sent[at:at+1]); err != nil {
						return
					}
				}
			})

			began := time.Now()
			reply, err := http.ReadResponse(bufio.NewReader(client), nil)
			if tt.status == 0 && err == nil || tt.status != 0 && (err != nil || reply.StatusCode != tt.status) {
				t.Errorf("%s: %v, %v; want %d", name, reply, err, tt.status)
			}
			if took := time.Since(began); took > 2*readTime { // in virtual time
				t.Errorf("%s: cut off after %v", name, took)
			}

			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "42"})
			if err != nil || found.Queued != nil {
				t.Errorf("%s: %+v, %v", name, found.Queued, err)
			}
			must(t, client.Close())
			sending.Wait()
			stop()
			must(t, <-ended)
		})
	}
}

// Mistakes in a file of tokens are named by their line, and no token is in an error.
func TestFilesOfTokensAreChecked(t *testing.T) {
	for text, says := range map[string]string{
		"":                           "has no token",
		"# nobody\n":                 "has no token",
		"rails " + railsToken + "\n": "line 1: 2 words",
		"\nrails short orders\n":     "line 2: the token of rails has fewer than 16 bytes",
		tokensOfTests + "rails " + railsToken + "0 scores\n": "line 7: the program rails occurs twice",
		tokensOfTests + "other " + railsToken + " scores\n":  "line 7: the token of other is that of another program",
		"rails " + strings.Repeat("x", 70_000) + " orders\n": "token too long",
	} {
		code, _, said := runOn(t, memory.New(memory.Options{}), "serve", "--push", "--push-tokens", fileOf(t, text), "--listen", "127.0.0.1:0")
		if code != 2 || !strings.Contains(said, says) || strings.Contains(said, railsToken) {
			t.Errorf("%.40q: %d: %s; want %q", text, code, said, says)
		}
	}

	file := fileOf(t, tokensOfTests)
	for _, args := range [][]string{
		{"--push", "--push-tokens", file + "nosuch"},
		{"--push-tokens", file},
		{"--push", "--read-only"},
		{"--push", "--metrics"},
		{"--push", "--max-body", "-1"},
	} {
		code, _, said := runOn(t, memory.New(memory.Options{}), slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, args)...)
		if code != 2 {
			t.Errorf("%q: %d: %s", args, code, said)
		}
	}
}

// The command serves a gateway in front of each store.
func TestServePush(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, address string) {
		if code, said := run(t, address, "job push orders 41 --payload x --shards 2"); code != 0 {
			t.Fatalf("%d: %s", code, said)
		}

		url := served(t, nil, "serve", "--push", "--push-tokens", fileOf(t, tokensOfTests), "--url", address)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/queues/orders/jobs",
			strings.NewReader(`{"entries":[{"id":"42","payload":{"b":1.0,"a":"\u003c"}},{"id":"42","data":"x"}]}`))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+railsToken)
		reply, err := http.DefaultClient.Do(r)
		must(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		must(t, err)
		if reply.StatusCode != http.StatusOK || !strings.HasPrefix(string(text), `{"new":1,"merged":1,`) {
			t.Errorf("%s: %s", reply.Status, text)
		}

		backend, err := backends.Connect(t.Context(), address)
		must(t, err)
		defer func() { must(t, backend.Close()) }()
		found, err := backend.Store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "42", Payloads: 10})
		must(t, err)
		if p := found.Queued.Payloads; len(p) != 2 || string(p[0].Data) != `{"a":"<","b":1}` || string(p[1].Data) != "x" {
			t.Errorf("%d payloads: %+v", len(p), p)
		}
		if status, _ := get(t, url+"/", "Authorization", "Bearer "+railsToken); status != http.StatusNotFound {
			t.Errorf("the dashboard is served: %d", status)
		}
	})
}

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

// interpreters run the clients of docs/guide/http-pushes.md, by the language of their block. Each
// reads the client from its standard input.
var interpreters = map[string][]string{
	"sh":     {"sh", "-s"}, // which calls curl
	"python": {"python3", "-"},
	"ruby":   {"ruby", "-"},
	"js":     {"node", "-"},
}

// The clients of the guide push through a gateway, and their payloads have the same bytes. The reply
// to the first request of each is lost, so that each repeats its push. A client whose interpreter is
// not installed is not run, except in CI, where that is a failure.
func TestClientsOfTheGuidePushTheSame(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/http-pushes.md")
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^```(sh|python|ruby|js)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != len(interpreters) {
		t.Fatalf("the page has %d clients, want %d", len(blocks), len(interpreters))
	}

	h, store := gate(t, &serving{tokens: fileOf(t, tokensOfTests)}, "")
	var lose atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lose.Swap(false) {
			h.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"detail":"the store fails"}`)
	}))
	defer server.Close()

	ran := false
	for _, block := range blocks {
		t.Run(block[1], func(t *testing.T) {
			interpreter := interpreters[block[1]]
			for _, name := range []string{interpreter[0], "curl"} {
				if _, err := exec.LookPath(name); err != nil && os.Getenv("CI") == "true" {
					t.Fatal(err)
				} else if err != nil {
					t.Skip(err)
				}
			}

			limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			c := exec.CommandContext(limited, interpreter[0], interpreter[1:]...)
			c.Stdin = strings.NewReader(block[2])
			c.Env = append(os.Environ(), "SKEIN_PUSH_URL="+server.URL, "SKEIN_PUSH_TOKEN="+railsToken,
				"LC_ALL=C.UTF-8", "PYTHONIOENCODING=utf-8", "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
			lose.Store(true)
			said, err := c.CombinedOutput()
			if err != nil || !regexp.MustCompile(`duplicate\W+1`).Match(said) || lose.Load() {
				t.Errorf("%v: %s; want a duplicate", err, said)
			}
			ran = true
		})
	}

	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "42", Payloads: 10})
	must(t, err)
	if ran && (found.Queued == nil || len(found.Queued.Payloads) != 1 ||
		string(found.Queued.Payloads[0].Data) != `{"by":"Zoë","paid":true}` || found.Queued.Payloads[0].Score != 7) {
		t.Errorf("%+v", found.Queued)
	}
}

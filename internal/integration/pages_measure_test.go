package integration_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// boardPages are pages of the dashboard as people open them.
var boardPages = []string{
	"", "queue?q=orders", "shards?q=orders", "jobs?q=orders", "jobs?q=orders&list=fresh", "jobs?q=orders&list=retries&sort=failures",
	"jobs?q=orders&list=scheduled", "jobs?q=orders&sort=id&desc=1", "jobs?q=orders&shard=1", "id?q=orders&id=order-0000007", "search?id=order-0000007",
	"busy", "busy?q=orders", "morgue?q=orders", "morgue?q=orders&sort=id", "unreadable?q=orders", "nodes", "store", "audit", "audit?q=orders",
}

// pages times each page twice: as the first page of a new process, and in a process that serves
// others.
func (m *measured) pages(what string) {
	m.T.Helper()
	warm := serveBoard(m.T, m.Store)
	for _, page := range boardPages {
		m.time(what+"first page /"+page, func(ctx context.Context) error {
			server := serveBoard(m.T, m.Store)
			defer server.Close()
			return getPage(ctx, server.URL+"/"+page)
		})
		m.time(what+"page /"+page, func(ctx context.Context) error { return getPage(ctx, warm.URL+"/"+page) })
	}
}

// polled logs the share of a core that the server spends when ten people look at the overview, and
// ten at a queue, for a minute if the measurement is large.
func (m *measured) polled() {
	m.T.Helper()
	if m.cpu == nil {
		return
	}
	server := serveBoard(m.T, m.Store)
	polls := max(1, m.rounds()*3/10)
	began, before := time.Now(), m.cpu()
	for range polls {
		for n := range 20 {
			must(m.T, getPage(m.T.Context(), server.URL+[]string{"/", "/queue?q=orders"}[n%2]))
		}
		time.Sleep(2 * time.Second) // the pace of a page that polls, on a slow machine too
	}
	// They are logged, and compared with nothing: a slow machine prints more.
	took, used := time.Since(began), m.cpu()-before
	m.T.Logf("20 pages polled for %v take %.2f %% of a core of the server", took.Round(time.Second), 100*used.Seconds()/took.Seconds())
}

func serveBoard(t *testing.T, store ports.ShardStore) *httptest.Server {
	t.Helper()
	board, err := dashboard.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), dashboard.Options{})
	must(t, err)
	server := httptest.NewServer(board)
	t.Cleanup(server.Close)
	return server
}

func getPage(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err == nil && !slices.Contains([]int{http.StatusOK, http.StatusSeeOther}, reply.StatusCode) {
		err = fmt.Errorf("%s: %s: %s", url, reply.Status, text)
	}
	return err
}

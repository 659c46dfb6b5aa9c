package integration_test

import (
	"context"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// With each store, every page that a link leads to exists while a server works.
func TestDashboardOfEveryStore(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) ports.ShardStore{
		"memory": func(*testing.T) ports.ShardStore { return memory.New(memory.Options{}) },
		"Redis":  func(t *testing.T) ports.ShardStore { return redis.New(testservers.OwnRedis(t), redis.Options{}) },
		"Postgres": func(t *testing.T) ports.ShardStore {
			pool := testservers.OwnPostgres(t)
			must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
			return postgres.New(pool, postgres.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			work(t, store)
			board, err := dashboard.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
				dashboard.Options{})
			must(t, err)
			crawled := crawlPages(t, board)
			for _, page := range []string{
				"/queue", "/shards", "/jobs", "/id", "/busy", "/morgue", "/nodes", "/store", "/sheet",
			} {
				if crawled[page] == 0 {
					t.Errorf("no link leads to %s", page)
				}
			}
			t.Logf("pages: %v", crawled)
		})
	}
}

// work lets a server have jobs that are done, run, fail and die.
func work(t *testing.T, store ports.ShardStore) {
	t.Helper()
	queue := skein.NewQueue[int]("looked-at", skein.QueueOptions[int]{Shards: 3, IndexIDs: true})
	began, release := make(chan struct{}, 1), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	server := skein.NewServer(store,
		skein.ServerOptions{Name: "blue", Version: "v1", Logger: slog.New(slog.DiscardHandler)},
		queue.Handler(func(_ context.Context, id string, _ []int) error {
			switch id {
			case "fails":
				return errors.New("no answer")
			case "dies":
				return skein.Bury(errors.New("no use"))
			case "runs":
				began <- struct{}{}
				<-release
			}
			return nil
		}))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		close(release)
		stop()
		<-ended
	})
	client := skein.NewClient(store, skein.ClientOptions{})
	for n, id := range []string{"done", "fails", "dies", "runs"} {
		must(t, queue.Push(ctx, client, id, n))
	}
	must(t, queue.Push(ctx, client, "waits", 9, skein.In(time.Hour)))
	<-began
	inspector := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)})
	for end := time.Now().Add(testservers.Patience); ; time.Sleep(20 * time.Millisecond) {
		stats, err := inspector.Stats(ctx, "looked-at")
		must(t, err)
		s := stats[0]
		if s.Dead == 1 && s.Retrying == 1 && s.Processed == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d dead, %d retrying and %d processed after %v; want 1 of each",
				s.Dead, s.Retrying, s.Processed, testservers.Patience)
		}
	}
}

var pageLinks = regexp.MustCompile(`href="([^"]*)"`)

// crawlPages follows links, and returns how many pages of each path there are.
func crawlPages(t *testing.T, board http.Handler) map[string]int {
	t.Helper()
	seen, paths, next := map[string]bool{}, map[string]int{}, []string{"/"}
	for len(next) > 0 && len(seen) < 300 {
		target := next[0]
		next = next[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:9"
		w := httptest.NewRecorder()
		board.ServeHTTP(w, r)
		at, err := url.Parse(target)
		must(t, err)
		paths[at.Path]++
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "can&#39;t") {
			t.Errorf("%s: status %d: %s", target, w.Code, w.Body)
		}
		for _, link := range pageLinks.FindAllStringSubmatch(w.Body.String(), -1) {
			to, err := at.Parse(html.UnescapeString(link[1]))
			must(t, err)
			to.Fragment = ""
			if !strings.HasPrefix(to.Path, "/assets/") && !strings.HasPrefix(to.Path, "/api/") {
				next = append(next, to.String())
			}
		}
	}
	return paths
}

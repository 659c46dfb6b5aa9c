package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// apiRoutes are the requests by which a page or an operator reads over HTTP.
var apiRoutes = []string{
	"stats", "queues", "queues/orders", "queues/orders/history", "queues/orders/jobs", "queues/orders/jobs?sort=id&desc=true",
	"queues/orders/jobs?sort=retrying", "queues/orders/jobs?sort=retries&desc=true", "queues/orders/jobs?shard=1&payloads=3",
	"queues/orders/claimed", "queues/orders/morgue", "queues/orders/morgue?sort=id", "queues/orders/groups", "queues/orders/quarantine",
	"find?queue=orders&id=order-0000007", "find?id=order-0000007", "why?queue=orders&id=order-0000007", "nodes", "checks",
}

// routes times each of apiRoutes.
func (m *measured) routes(what string) {
	m.t.Helper()
	server := serveAPI(m.t, m.store)
	for _, route := range apiRoutes {
		m.time(what+route, func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/"+route, nil)
			if err != nil {
				return err
			}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(reply.Body)
			if err == nil && reply.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", reply.Status, text)
			}
			return err
		})
	}
}

// routesAtWork times apiRoutes while a server works the queue and a client pushes to it.
func (m *measured) routesAtWork() {
	m.t.Helper()
	w := startOwnWork(m.t, m.orders)
	m.routes("at work: ")
	w.end(m.t)
}

// serveAPI serves the API of a store, and returns its URL.
func serveAPI(t *testing.T, store ports.ShardStore) string {
	t.Helper()
	api, err := httpapi.New(inspect.New(store, inspect.Options{}), httpapi.Options{})
	must(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return server.URL
}

// overHTTP revives all dead letters that match over HTTP, call by call, as a page does.
func overHTTP(j journal) error {
	at := os.Getenv(continueVariable)
	for {
		j.write(journalLine{what: lineReady, pid: os.Getpid(), id: at})
		body := map[string]any{"match": map[string]string{}, "continue": at}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reply, err := http.Post(os.Getenv(apiVariable)+"/api/v1/queues/orders/morgue/revive", "application/json", bytes.NewReader(text))
		if err != nil {
			return err
		}
		var progress struct{ Continue, Detail string }
		err = json.NewDecoder(reply.Body).Decode(&progress)
		_ = reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %w", reply.Status, progress.Detail, err)
		}
		if progress.Continue == "" {
			return nil
		}
		at = progress.Continue
	}
}

// Dead letters are revived over HTTP by clients, all but the last of which are killed, while a
// server works the same queue. Each letter runs once, and the queue keeps working.
// SKEIN_TEST_LIST_JOBS makes them many.
func TestRevivingOverHTTPGoesOnAfterKills(t *testing.T) {
	tier.Long(t, "kills processes at length")
	t.Parallel()
	for name, newURL := range storeURLs(t) {
		t.Run(name, func(t *testing.T) {
			store, closeStore, err := backends.Open(t.Context(), newURL(t))
			must(t, err)
			t.Cleanup(func() { must(t, closeStore()) })
			o := orders{t: t, store: store, shards: fromVariable(t, "SKEIN_TEST_LIST_SHARDS", 20)}
			_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: o.shards, IndexIDs: true})
			must(t, err)
			letters := fromVariable(t, "SKEIN_TEST_LIST_JOBS", 20_000) / 10
			o.push("dead", letters)
			o.bury()

			w := startOwnWork(t, o)
			alone := w.rate(2 * time.Second)
			began, sum := time.Now(), w.own.Load()
			kills := killActing(t, "", "revive over HTTP", func(int) {}, apiVariable+"="+serveAPI(t, store))
			took := time.Since(began)
			meanwhile := float64(w.own.Load()-sum) / took.Seconds()
			for w.revived.Load() < int64(letters) && t.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			w.end(t)
			if dead := o.counts(t).Dead; dead != 0 || w.revived.Load() != int64(letters) || w.twice.Load() != 0 {
				t.Errorf("%d letters are dead, %d ran, %d of them twice; want 0, %d and 0", dead, w.revived.Load(), w.twice.Load(), letters)
			}
			t.Logf("%d letters over %d shards revived in %v by %d clients, of which all but the last were killed; the queue did %.0f jobs a second before, and %.0f meanwhile beside the revived",
				letters, o.shards, took.Round(10*time.Millisecond), kills, alone, meanwhile)
		})
	}
}

// ownWork is a queue at work: jobs that are pushed all the time, and revived ones.
type ownWork struct {
	own, revived, twice atomic.Int64
	seen                sync.Map
	stop                context.CancelFunc
	ended               chan error
}

func startOwnWork(t *testing.T, o orders) *ownWork {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &ownWork{stop: stop, ended: make(chan error, 2)}
	queue := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Shards: o.shards, IndexIDs: true, Codec: skein.RawCodec{}})
	server := skein.NewServer(o.store, skein.ServerOptions{Lanes: 50}, queue.Handler(func(_ context.Context, id string, _ [][]byte) error {
		if strings.HasPrefix(id, "dead-") {
			if _, again := w.seen.LoadOrStore(id, true); again {
				w.twice.Add(1)
			}
			w.revived.Add(1)
			return nil
		}
		time.Sleep(5 * time.Millisecond)
		w.own.Add(1)
		return nil
	}))
	go func() { w.ended <- server.Run(ctx) }()
	client := skein.NewClient(o.store, skein.ClientOptions{})
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			entries := make([]skein.Entry[[]byte], 400)
			for i := range entries {
				entries[i] = skein.Entry[[]byte]{ID: fmt.Sprintf("own-%d-%d", n, i), Payload: []byte("x")}
			}
			if err := queue.PushMany(ctx, client, entries); err != nil && ctx.Err() == nil {
				w.ended <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		w.ended <- nil
	}()
	return w
}

// rate returns how many jobs a second the queue does, without the revived ones, measured for a time
// d.
func (w *ownWork) rate(d time.Duration) float64 {
	before := w.own.Load()
	time.Sleep(d)
	return float64(w.own.Load()-before) / d.Seconds()
}

func (w *ownWork) end(t *testing.T) {
	t.Helper()
	w.stop()
	must(t, <-w.ended)
	must(t, <-w.ended)
}

package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// announced announces a server of this process that serves "orders", for a minute.
func (h *house) announced(owner string, pid int) {
	h.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		h.t.Fatal(err)
	}
	node := ports.Node{Owner: owner, Name: "blue", Host: host, PID: pid, Queues: []string{"orders"}}
	if _, err := h.store.Announce(h.t.Context(), ports.AnnounceRequest{Node: node, TTL: time.Minute}); err != nil {
		h.t.Fatal(err)
	}
}

func TestReadyzSaysWhyNot(t *testing.T) {
	failing := func(method string, err error) storekit.Interceptor {
		return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == method {
				return err
			}
			return next(ctx)
		}
	}
	lost := errors.New("dial tcp 10.0.0.7:6379:\nrefused")
	for _, test := range []struct {
		name    string
		arrange func(*house)
		between storekit.Interceptor
		options HealthOptions
		want    string
	}{
		{name: "the store alone", want: "ready"},
		{name: "a store that does not answer", between: failing("Ping", lost), want: "store: it does not answer"},
		{
			name: "the same with details", between: failing("Ping", lost), options: HealthOptions{Detail: true},
			want: "store: it does not answer: dial tcp 10.0.0.7:6379: refused",
		},
		{name: "another format", between: failing("Ping", ports.ErrUnusable), want: "format: the store answers"},
		{name: "no server", options: HealthOptions{Server: true}, want: "server: no server of host"},
		{
			name:    "a server",
			arrange: func(h *house) { h.announced("owner", os.Getpid()) },
			options: HealthOptions{Server: true},
			want:    "ready",
		},
		{
			name:    "another process's",
			arrange: func(h *house) { h.announced("owner", os.Getpid()+1) },
			options: HealthOptions{Server: true},
			want:    "server: no server of host",
		},
		{
			name: "that of another host with the same number",
			arrange: func(h *house) {
				node := ports.Node{
					Owner:  "owner",
					Name:   "blue",
					Host:   "elsewhere.example",
					PID:    os.Getpid(),
					Queues: []string{"orders"},
				}
				if _, err := h.store.Announce(h.t.Context(),
					ports.AnnounceRequest{Node: node, TTL: time.Minute}); err != nil {
					h.t.Fatal(err)
				}
			},
			options: HealthOptions{Server: true}, want: "server: no server of host",
		},
		{
			name:    "one that no longer announces itself",
			arrange: func(h *house) { h.announced("owner", os.Getpid()); h.advance(time.Hour / 2) },
			options: HealthOptions{Server: true}, want: "server: no server of host",
		},
		{
			name: "one whose forerunner of the same number is gone",
			arrange: func(h *house) {
				h.announced("forerunner", os.Getpid())
				h.advance(time.Hour / 2)
				h.announced("owner", os.Getpid())
			},
			options: HealthOptions{Server: true}, want: "ready",
		},
		{
			name: "one that drains",
			arrange: func(h *house) {
				h.announced("owner", os.Getpid())
				if err := h.store.DrainNode(h.t.Context(), "owner", true); err != nil {
					h.t.Fatal(err)
				}
			},
			options: HealthOptions{Server: true}, want: "ready",
		},
		{
			name:    "leases that last",
			arrange: func(h *house) { h.turn(0, 0); h.turn(1, 0); h.announced("owner", os.Getpid()) },
			options: HealthOptions{Server: true},
			want:    "ready",
		},
		{
			name: "leases that have ended",
			arrange: func(h *house) {
				h.turn(1, 0)
				h.advance(2 * time.Hour)
				h.turn(2, 0)
				h.announced("owner", os.Getpid())
			},
			options: HealthOptions{Server: true},
			want:    "leases: 1 of 2 expired before they were renewed; the first is that of orders/1",
		},
		{
			name: "leases of another that have ended",
			arrange: func(h *house) {
				h.turn(1, 0)
				h.advance(2 * time.Hour)
				h.announced("other", os.Getpid())
			},
			options: HealthOptions{Server: true}, want: "ready",
		},
		{
			name:    "a store that does not list leases",
			arrange: func(h *house) { h.announced("owner", os.Getpid()) },
			between: failing("Stats", lost),
			options: HealthOptions{Server: true},
			want:    "store: it does not list the owners of shards",
		},
		{
			name:    "a store that does not list servers",
			between: failing("Nodes", lost),
			options: HealthOptions{Server: true},
			want:    "store: it does not list the servers",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t, Options{})
			if test.arrange != nil {
				test.arrange(h)
			}
			var store inspect.Store = h.store
			if test.between != nil {
				store = storekit.Intercept(h.store, test.between)
			}
			r := request(http.MethodGet, "/readyz", "")
			r.RemoteAddr, r.Host = "192.0.2.7:1", "10.1.2.3:8080" // as the kubelet's requests
			w := answerOf(Readyz(inspect.New(store, inspect.Options{}), test.options), r)
			body, status := w.Body.String(), http.StatusServiceUnavailable
			if test.want == "ready" {
				status = http.StatusOK
			}
			if w.Code != status || !strings.HasPrefix(body, test.want) || strings.Count(body, "\n") != 1 {
				t.Errorf("%d %q, want %q", w.Code, body, test.want)
			}
		})
	}
}

// A shard that can't be reached makes no process unready: the others are worked.
func TestReadyzWithoutAPartOfTheStore(t *testing.T) {
	h := newHouse(t, Options{})
	h.announced("owner", os.Getpid())
	store := &partialStore{h.store, []core.Shard{{Queue: "orders", Index: 1}}}
	if w := answerOf(Readyz(inspect.New(store, inspect.Options{}), HealthOptions{Server: true}),
		request(http.MethodGet, "/readyz", "")); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A store that hangs is a reason after two seconds; and a thousand probes ask it once.
func TestReadyzAsksSeldomAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		var asked atomic.Int64
		store := storekit.Intercept(h.store, func(
			ctx context.Context, _ storekit.Call, _ func(context.Context) error,
		) error {
			asked.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		probe := Readyz(inspect.New(store, inspect.Options{}), HealthOptions{Server: true})
		began := time.Now()
		for range 1000 {
			go func() {
				if w := answerOf(probe, request(http.MethodGet, "/readyz", "")); w.Code != 503 ||
					w.Body.String() != "store: it does not answer within 2s\n" {
					t.Errorf("%d %q", w.Code, w.Body)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(probeTime)
		synctest.Wait()
		if took := time.Since(began); took != probeTime || asked.Load() != 1 {
			t.Errorf("asked %d times, for %v", asked.Load(), took)
		}
	})
}

// A real server makes its process ready, and unready when it has stopped.
func TestReadyzOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := skein.NewQueue[string]("orders", skein.QueueOptions[string]{})
		handler := queue.Handler(func(context.Context, string, []string) error { return nil })
		server := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler)
		probe := Readyz(inspect.New(store, inspect.Options{}), HealthOptions{Server: true})
		code := func() int { return answerOf(probe, request(http.MethodGet, "/readyz", "")).Code }
		becomes(t, code, 503)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx) }()
		becomes(t, code, 200)
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		becomes(t, code, 503)
	})
}

// becomes waits until a probe answers so.
func becomes(t *testing.T, code func() int, want int) {
	t.Helper()
	for range 100 {
		if code() == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("it answers %d, want %d", code(), want)
}

func TestLivezAsksNothing(t *testing.T) {
	if w := answerOf(Livez(), request(http.MethodGet, "/livez", "")); w.Code != 200 || w.Body.String() != "alive\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, probe := range []http.Handler{
		Livez(),
		Readyz(inspect.New(memory.New(memory.Options{}), inspect.Options{}), HealthOptions{}),
	} {
		if w := answerOf(probe, request(http.MethodPost, "/livez", "{}")); w.Code != 405 ||
			w.Header().Get("Allow") != "GET" {
			t.Errorf("POST: %d", w.Code)
		}
		if w := answerOf(probe, request(http.MethodHead, "/livez", "")); w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("HEAD: %d %s", w.Code, w.Body)
		}
	}
}

package kills_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// gated is a queue that only gateways push to. Its servers are killed, too.
var gated = skein.NewQueue[int]("gated", skein.QueueOptions[int]{
	Shards: 2, MaxRecoveries: 1 << 20, Codec: skein.JSONCodec[int]{Canonical: true},
})

// lineListens is a line of a gateway, whose id is its address.
const lineListens = "listens"

// gatedWorker is a server of gated that notes each payload.
func gatedWorker() error {
	options := skein.ServerOptions{LeaseTTL: time.Second, PollInterval: 50 * time.Millisecond}
	return serveWithJournal(options, func(j journal) skein.Handler {
		return gated.Each(func(_ context.Context, id string, number int) error {
			line := journalLine{what: lineBegan, pid: os.Getpid(), id: fmt.Sprintf("%s/%d", id, number)}
			j.write(line)
			time.Sleep(rand.N(2 * time.Millisecond)) // so that some die here; on a slow machine others do
			line.what = lineEnded
			j.write(line)
			return nil
		})
	})
}

// gatewayWorker is a gateway that kills itself in one of its first 20 pushes, before it or after it,
// so that the reply is lost. It ends by an interrupt.
func gatewayWorker() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	store, closeStore, err := backends.Open(ctx, os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()

	api, err := httpapi.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}), httpapi.Options{})
	if err != nil {
		return err
	}
	var pushes atomic.Int64
	survived := 1 + rand.Int64N(20)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dies, before := pushes.Add(1) == survived, rand.N(2) == 0
		if dies && before {
			killMyself()
		}
		api.ServeHTTP(w, r)
		if dies {
			killMyself()
		}
	})}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	journal{os.Getenv(journalVariable)}.write(
		journalLine{what: lineListens, pid: os.Getpid(), id: listener.Addr().String()})
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// gateClient pushes to a gateway, and starts another one when that is killed.
type gateClient struct {
	t       *testing.T
	url     string
	j       journal
	gateway *process
	address string
	kills   int
}

func (c *gateClient) start() {
	c.t.Helper()
	c.gateway = startProcess(c.t, "gateway", c.url, c.j)
	c.j.await(c.t, lineListens, c.gateway.pid(), 1)
	for _, line := range c.j.read(c.t) {
		if line.what == lineListens && line.pid == c.gateway.pid() {
			c.address = line.id
		}
	}
}

// push pushes a number, again and again until a gateway has confirmed it.
func (c *gateClient) push(id string, number int) {
	c.t.Helper()
	body := fmt.Sprintf(`{"entries": [{"id": %q, "payload": %d, "score": %[2]d}]}`, id, number)
	for deadline := time.Now().Add(testservers.Patience); ; {
		r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost,
			"http://"+c.address+"/api/v1/queues/gated/jobs", strings.NewReader(body))
		must(c.t, err)
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		if err == nil {
			text, _ := io.ReadAll(reply.Body)
			must(c.t, reply.Body.Close())
			if reply.StatusCode == http.StatusOK {
				return
			}
			c.t.Fatalf("%s: %s", reply.Status, text)
		}

		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
		if !c.gateway.wasKilled(c.t) {
			c.t.Fatalf("the gateway has ended: %s", &c.gateway.out)
		}
		c.kills++
		c.start()
	}
}

// Whatever dies, gateways in pushes and servers in handlers, each pushed payload is handled, and the
// payloads of an id first in their order: a program repeats a push until it is confirmed.
func TestPushesOverHTTPAreHandledInOrderDespiteKills(t *testing.T) {
	t.Parallel()
	numbers, serverKills := tier.Count(30, 300), tier.Count(1, 10)
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &gateClient{t: t, url: newURL(t), j: newJournal(t)}
			server := startProcess(t, "gated", c.url, c.j)
			c.j.await(t, lineReady, server.pid(), 1) // so the queue is declared
			c.start()

			ids := []string{"a", "b", "a/b"}
			for number := range numbers {
				for _, id := range ids {
					c.push(id, number)
				}
				if number%(numbers/serverKills) == numbers/serverKills/2 {
					server.kill(t)
					server = startProcess(t, "gated", c.url, c.j)
				}
			}
			if c.kills == 0 {
				t.Error("no gateway was killed")
			}

			kit.AwaitCounts(t, kit.Open(t, c.url), gated.Name(), 0, 0, 0)
			server.interrupt(t)
			c.gateway.interrupt(t)

			first := map[string][]string{}
			for _, line := range c.j.read(t) {
				if line.what != lineEnded {
					continue
				}
				id := line.id[:strings.LastIndexByte(line.id, '/')]
				if !slices.Contains(first[id], line.id) {
					first[id] = append(first[id], line.id)
				}
			}
			for _, id := range ids {
				var want []string
				for number := range numbers {
					want = append(want, fmt.Sprintf("%s/%d", id, number))
				}
				if diff := cmp.Diff(want, first[id]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", id, diff)
				}
			}
		})
	}
}

package redis_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A call that counts its work is sent once, whatever becomes of its reply: neither the store nor
// its client repeats a turn, a push, a change of schedules, a track, a take, a release, a step
// or a recount. A caller that repeats it knows that it is a repeat.
func TestRedisSendsOnce(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]goredis.UniversalClient{
		"standalone": testservers.OwnRedis(t), "Cluster": testservers.OwnRedisCluster(t),
	} {
		for reason, fault := range map[string]error{
			"closed":    io.EOF,
			"reset":     syscall.ECONNRESET,
			"timed out": os.ErrDeadlineExceeded,
		} {
			t.Run(name+", "+reason, func(t *testing.T) { checkSentOnce(t, client, fault) })
		}
	}
}

func checkSentOnce(t *testing.T, client goredis.UniversalClient, fault error) {
	ctx := t.Context()
	calls := map[string]func(*worker, *lossyLink) error{
		"turn": func(w *worker, l *lossyLink) error {
			l.lose(w.lease.Owner)
			return w.turn(ports.TurnRequest{Want: 1, Settlements: w.settle("a", core.Outcome{Kind: core.Done})})
		},
		"push": func(w *worker, l *lossyLink) error {
			l.lose("new-id")
			return w.push(one("new-id", 1))
		},
		"push of some": func(w *worker, l *lossyLink) error {
			l.lose("new-id")
			return w.push(many("new-id", 30)...)
		},
		"change of schedules": func(w *worker, l *lossyLink) error {
			l.lose("new-id")
			return w.changeSchedules(created(scheduled("new-id", "x", frozenNow)))
		},
		"track": func(w *worker, l *lossyLink) error {
			l.lose("tracked")
			_, err := w.store.Track(w.t.Context(), ports.TrackRequest{Queue: "orders", ID: "a"})
			return err
		},
		"take": func(w *worker, l *lossyLink) error {
			l.lose("limiters")
			return w.take("a")
		},
		"release": func(w *worker, l *lossyLink) error {
			l.lose(w.lease.Owner)
			return w.store.Release(ctx, w.lease)
		},
		"step": func(w *worker, l *lossyLink) error {
			l.lose("queued-id")
			_, err := w.store.Delete(ctx, w.step("queued-id"))
			return err
		},
		"recount": func(w *worker, l *lossyLink) error {
			l.lose("}:q") // the key that only this call names
			_, err := w.store.Recount(ctx, ports.RecountRequest{Shard: w.shard})
			return err
		},
	}
	for name, call := range calls {
		flushAll(t, client)
		must(t, call(newWorker(t, client, false), &lossyLink{})) // from now on the servers know the script
		flushAll(t, client)
		link := &lossyLink{fault: fault}
		own := link.open(t, client)
		w := newWorker(t, own, false)
		must(t, w.push(one("queued-id", 1)))
		if err := call(w, link); err == nil {
			t.Errorf("the %s succeeded though its reply was lost", name)
		}
		if sent := link.sent(); sent != 1 {
			t.Errorf("the %s was sent %d times, want once", name, sent)
		}
	}
}

func flushAll(t *testing.T, client goredis.UniversalClient) {
	t.Helper()
	if cluster, ok := client.(*goredis.ClusterClient); ok {
		must(t, cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *goredis.Client) error {
			return node.FlushAll(ctx).Err()
		}))
		return
	}
	must(t, client.FlushAll(t.Context()).Err())
}

// lossyLink is a connection to servers that loses the replies to commands that contain a text, and
// counts these commands.
type lossyLink struct {
	fault error

	mu     sync.Mutex
	marker []byte
	count  int
}

// lose makes the link lose the replies to commands that contain the marker.
func (l *lossyLink) lose(marker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marker, l.count = []byte(marker), 0
}

func (l *lossyLink) sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// open is a client of the same servers over the link, with its retries on.
func (l *lossyLink) open(t *testing.T, client goredis.UniversalClient) goredis.UniversalClient {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &lossyConn{Conn: conn, link: l}, err
	}
	var own goredis.UniversalClient
	switch c := client.(type) {
	case *goredis.ClusterClient:
		own = goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs: c.Options().Addrs, Dialer: dial, MinRetryBackoff: time.Millisecond,
		})
	case *goredis.Client:
		own = goredis.NewClient(&goredis.Options{
			Addr: c.Options().Addr, Dialer: dial, MinRetryBackoff: time.Millisecond,
		})
	}
	t.Cleanup(func() { own.Close() })
	return own
}

// lossyConn loses the data after a command that the link knows, once the server has answered.
type lossyConn struct {
	net.Conn
	link *lossyLink
	lost bool
}

func (c *lossyConn) Write(p []byte) (int, error) {
	c.link.mu.Lock()
	if c.link.marker != nil && bytes.Contains(p, c.link.marker) {
		c.link.count++
		c.lost = true
	}
	c.link.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.lost {
		c.Conn.Close() // a later read must not wait
		return 0, c.link.fault
	}
	return n, err
}

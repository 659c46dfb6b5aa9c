package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// bulkSize is the size from which a client writes directly, past its buffer.
const bulkSize = 2 << 20

// dialLarge opens another client with a few connections. Large writes on them go through write.
func dialLarge(t *testing.T, client goredis.UniversalClient, pool int, write func(net.Conn, []byte) (int, error)) goredis.UniversalClient {
	t.Helper()
	own := goredis.NewClient(&goredis.Options{
		Addr: client.(*goredis.Client).Options().Addr, PoolSize: pool,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &largeConn{Conn: conn, write: write}, err
		},
	})
	t.Cleanup(func() { own.Close() })
	return own
}

// largeConn passes large writes to a function.
type largeConn struct {
	net.Conn
	write func(net.Conn, []byte) (int, error)
}

func (c *largeConn) Write(b []byte) (int, error) {
	if len(b) > bulkSize/2 {
		return c.write(c.Conn, b)
	}
	return c.Conn.Write(b)
}

// pushOne pushes an entry of the queue "orders", which has one shard.
func pushOne(ctx context.Context, store *redis.Store, id string, data []byte) error {
	_, err := store.Push(ctx, ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: id, Payload: core.Payload{Data: data}}}})
	return err
}

func declareOne(t *testing.T, store *redis.Store) {
	t.Helper()
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
}

// Redis closes a connection after it has refused a payload as too large. A push that comes next
// gets another one.
func TestRedisAPushThatIsTooLargeFailsAlone(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t, "--proto-max-bulk-len", "1mb")
	// The data is dropped, since the server that has seen its length reads no more: the client
	// reads the reply, and not that the connection was reset, in each run.
	store := redis.New(dialLarge(t, client, 2, func(_ net.Conn, b []byte) (int, error) { return len(b), nil }), redis.Options{})
	declareOne(t, store)
	const pushes = 20
	failed := 0
	for i := range pushes {
		if err := pushOne(t.Context(), store, "large", make([]byte, bulkSize)); err == nil {
			t.Fatal("a payload of 2 MiB was accepted with proto-max-bulk-len 1mb")
		}
		if err := pushOne(t.Context(), store, fmt.Sprint("small-", i), []byte("x")); err != nil {
			failed++
			t.Log(err)
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d pushes failed that came after one that is too large, want none", failed, pushes)
	}
}

// Large pushes that the network holds up take half of the client's connections, and small pushes go
// by the others.
func TestRedisLargePushesLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	const pool, large, small = 4, 20, 100
	var mu sync.Mutex
	held, most := 0, 0
	arrived, release := make(chan struct{}, large), make(chan struct{})
	client := dialLarge(t, testservers.OwnRedis(t), pool, func(conn net.Conn, b []byte) (int, error) {
		mu.Lock()
		held++
		most = max(most, held)
		mu.Unlock()
		arrived <- struct{}{}
		<-release
		mu.Lock()
		held--
		mu.Unlock()
		return conn.Write(b)
	})
	store := redis.New(client, redis.Options{})
	declareOne(t, store)
	var pushing sync.WaitGroup
	for i := range large {
		pushing.Go(func() {
			if err := pushOne(t.Context(), store, fmt.Sprint("large-", i), bytes.Repeat([]byte("x"), bulkSize)); err != nil {
				t.Errorf("large push: %v", err)
			}
		})
	}
	for range pool / 2 {
		select {
		case <-arrived:
		case <-time.After(testservers.Patience):
			t.Fatal("large pushes are not sent")
		}
	}
	failed := 0
	for i := range small {
		if err := pushOne(t.Context(), store, fmt.Sprint("small-", i), []byte("x")); err != nil {
			failed++
			t.Logf("small push: %v", err)
			break
		}
	}
	close(release)
	pushing.Wait()
	if failed > 0 {
		t.Error("a small push failed beside large ones")
	}
	if most > pool/2 {
		t.Errorf("%d large pushes were sent at once by a client with %d connections, want at most %d", most, pool, pool/2)
	}
}

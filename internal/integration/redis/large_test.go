package redis_test

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

// bulkSize is more than a server with proto-max-bulk-len 1mb takes.
const bulkSize = 2 << 20

// dialLarge opens another client with a few connections. Writes of more bytes than least on them go
// through write.
func dialLarge(
	t *testing.T,
	client goredis.UniversalClient,
	pool, least int,
	write func(net.Conn, []byte) (int, error),
) goredis.UniversalClient {
	t.Helper()
	own := goredis.NewClient(&goredis.Options{
		Addr: client.(*goredis.Client).Options().Addr, PoolSize: pool,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &largeConn{Conn: conn, least: least, write: write}, err
		},
	})
	t.Cleanup(func() { own.Close() })
	return own
}

// largeConn passes large writes to a function.
type largeConn struct {
	net.Conn
	least int
	write func(net.Conn, []byte) (int, error)
}

func (c *largeConn) Write(b []byte) (int, error) {
	if len(b) > c.least {
		return c.write(c.Conn, b)
	}
	return c.Conn.Write(b)
}

// pushOne pushes an entry of the queue "orders", which has one shard.
func pushOne(ctx context.Context, store *redis.Store, id string, data []byte) error {
	_, err := store.Push(ctx, ports.PushRequest{
		Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: id, Payload: core.Payload{Data: data}}},
	})
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
	// The client does not send the data, since the server does not read it once it has seen its
	// length. So in each run the client reads the reply, and never a reset of the connection.
	store := redis.New(dialLarge(t, client, 2, bulkSize/2, func(_ net.Conn, b []byte) (int, error) {
		return len(b), nil
	}), redis.Options{})
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
// by the others. A push is large by all of its entries.
func TestRedisLargePushesLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ entries, size int }{{1, bulkSize}, {1, 100 << 10}, {1, 20 << 10}, {20, 1 << 10}} {
		t.Run(fmt.Sprintf("%d of %d bytes", tt.entries, tt.size), func(t *testing.T) {
			t.Parallel()
			largePushesLeaveConnections(t, tt.entries, bytes.Repeat([]byte("x"), tt.size))
		})
	}
}

func largePushesLeaveConnections(t *testing.T, entries int, data []byte) {
	const pool, large, small = 4, 20, 100
	server := testservers.OwnRedis(t)
	before := redis.New(server, redis.Options{})
	declareOne(t, before)
	must(t, pushOne(t.Context(), before, "first", []byte("x"))) // so that the server knows the script
	var mu sync.Mutex
	held, most := 0, 0
	arrived, release := make(chan struct{}, large), make(chan struct{})
	client := dialLarge(t, server, pool, entries*len(data)/2, func(conn net.Conn, b []byte) (int, error) {
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
	var pushing sync.WaitGroup
	for i := range large {
		r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
		for k := range entries {
			r.Entries = append(r.Entries,
				core.Entry{ID: fmt.Sprintf("large-%d-%d", i, k), Payload: core.Payload{Data: data}})
		}
		pushing.Go(func() {
			if _, err := store.Push(t.Context(), r); err != nil {
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
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	for i := range small {
		if err := pushOne(ctx, store, fmt.Sprint("small-", i), []byte("x")); err != nil {
			t.Errorf("a small push failed beside large ones: %v", err)
			break
		}
	}
	close(release)
	pushing.Wait()
	if most > pool/2 {
		t.Errorf("%d large pushes were sent at once by a client with %d connections, want at most %d",
			most, pool, pool/2)
	}
}

package integration_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const (
	pooledConnections = 20
	// silentDeadline is the deadline of a push. It is long enough for a push on a busy machine.
	silentDeadline = 2 * time.Second
)

// However many pooled connections of a client that only pushes have gone silent, the first push
// succeeds after at most two that have met their deadlines.
func TestPushesOutliveSilentConnections(t *testing.T) {
	t.Parallel()
	for name, open := range silentStores() {
		for kind, pushers := range map[string]int{"one after another": 1, "many at once": pooledConnections + 4} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				link := new(testservers.SilentLink)
				store := open(t, link)
				_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "silent", Shards: 4})
				must(t, err)

				// The connections are used before, since a store may check its server with the first.
				must(t, pushTo(t, store, 0))
				store.fill(t)
				link.Silence()
				defer link.Cut()

				var all sync.WaitGroup
				for i := range pushers {
					all.Go(func() {
						failed := 0
						for pushTo(t, store, i) != nil && failed < pooledConnections {
							failed++
						}
						if failed > 2 {
							t.Errorf("%d pushes failed, want at most 2", failed)
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// silentStore is a store whose client dials by a SilentLink.
type silentStore struct {
	ports.ShardStore
	// fill opens connections until the client has pooledConnections to each server.
	fill func(*testing.T)
	// pool and schema are those of Postgres.
	pool   *pgxpool.Pool
	schema string
}

func silentStores() map[string]func(*testing.T, *testservers.SilentLink) silentStore {
	return map[string]func(*testing.T, *testservers.SilentLink) silentStore{
		"Redis": func(t *testing.T, l *testservers.SilentLink) silentStore { return silentRedis(t, l, 0) },
		"Redis with TLS": func(t *testing.T, l *testservers.SilentLink) silentStore {
			l.Plain = true
			return silentRedis(t, l, 0)
		},
		"Redis without ReadTimeout": func(t *testing.T, l *testservers.SilentLink) silentStore {
			return silentRedis(t, l, -1)
		},
		"Redis Cluster": silentCluster,
		"Postgres":      silentPostgres,
	}
}

func silentRedis(t *testing.T, l *testservers.SilentLink, readTimeout time.Duration) silentStore {
	shared := testservers.Redis(t)
	o := *shared.(*goredis.Client).Options()
	client := goredis.NewClient(
		&goredis.Options{Addr: o.Addr, DB: o.DB, Dialer: l.Dial, PoolSize: pooledConnections, ReadTimeout: readTimeout},
	)
	t.Cleanup(func() { client.Close() })
	return silentStore{
		ShardStore: redis.New(client, redis.Options{Prefix: testservers.Prefix(t, shared)}),
		fill:       func(t *testing.T) { fillClient(t, client) },
	}
}

func silentCluster(t *testing.T, l *testservers.SilentLink) silentStore {
	shared := testservers.RedisCluster(t)
	client := goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: shared.(*goredis.ClusterClient).Options().Addrs, Dialer: l.Dial, PoolSize: pooledConnections,
	})
	t.Cleanup(func() { client.Close() })
	return silentStore{
		ShardStore: redis.New(client, redis.Options{Prefix: testservers.Prefix(t, shared)}),
		fill: func(t *testing.T) {
			must(t, client.ForEachMaster(t.Context(), func(_ context.Context, master *goredis.Client) error {
				fillClient(t, master)
				return nil
			}))
		},
	}
}

func fillClient(t *testing.T, client *goredis.Client) {
	t.Helper()
	conns := make([]*goredis.Conn, pooledConnections)
	for i := range conns {
		conns[i] = client.Conn()
		must(t, conns[i].Ping(t.Context()).Err())
	}
	for _, conn := range conns {
		must(t, conn.Close())
	}
	if n := client.PoolStats().IdleConns; n != pooledConnections {
		t.Fatalf("%d connections are pooled, want %d", n, pooledConnections)
	}
}

func silentPostgres(t *testing.T, l *testservers.SilentLink) silentStore {
	shared := testservers.Postgres(t)
	schema := testservers.Schema(t, shared)
	must(t, postgres.Migrate(t.Context(), shared, postgres.MigrateOptions{Schema: schema}))
	pool := kit.PoolLike(t, shared, func(c *pgxpool.Config) {
		c.MaxConns = pooledConnections
		c.ConnConfig.DialFunc = l.Dial
	})
	return silentStore{
		ShardStore: postgres.New(pool, postgres.Options{Schema: schema}),
		pool:       pool,
		schema:     schema,
		fill: func(t *testing.T) {
			conns := make([]*pgxpool.Conn, pooledConnections)
			for i := range conns {
				conn, err := pool.Acquire(t.Context())
				must(t, err)
				conns[i] = conn
			}
			for _, conn := range conns {
				conn.Release()
			}
		},
	}
}

var silentPushes atomic.Int64

// pushTo pushes to the id of a number, with a deadline.
func pushTo(t *testing.T, store ports.ShardStore, n int) error {
	ctx, cancel := context.WithTimeout(t.Context(), silentDeadline)
	defer cancel()
	_, err := store.Push(ctx, silentPush(n))
	return err
}

// silentPush is a push of a new payload.
func silentPush(n int) ports.PushRequest {
	payload := core.Payload{Data: fmt.Appendf(nil, "payload %d", silentPushes.Add(1))}
	entry := core.Entry{ID: fmt.Sprintf("id-%d", n), Payload: payload}
	return ports.PushRequest{Queue: "silent", Shards: 4, Generation: 1, Entries: []core.Entry{entry}}
}

// Pushes that meet their deadlines, since another session has locked their job, cost Postgres no
// other connection as long as the server answers others.
func TestPostgresALockedJobCostsNoOtherConnection(t *testing.T) {
	t.Parallel()
	store := silentPostgres(t, new(testservers.SilentLink))
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "silent", Shards: 4})
	must(t, err)
	must(t, pushTo(t, store, 0))
	store.fill(t)

	tx, err := store.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	_, err = tx.Exec(t.Context(), "SELECT FROM "+pgx.Identifier{store.schema, "jobs"}.Sanitize()+" FOR UPDATE")
	must(t, err)

	const locked = 3
	for n := range locked {
		ctx, cancel := context.WithTimeout(t.Context(), lockedDeadline)
		ended := make(chan error, 1)
		go func() {
			_, err := store.Push(ctx, silentPush(0))
			ended <- err
		}()
		for err = nil; err == nil; {
			must(t, pushTo(t, store, n+1))
			select {
			case err = <-ended:
			default:
			}
		}
		cancel()
	}
	if kept := store.pool.Stat().TotalConns(); kept < pooledConnections-locked {
		t.Errorf("the pool has %d connections, and had %d before %d pushes met their deadlines",
			kept, pooledConnections, locked)
	}
}

// lockedDeadline is shorter than the time that a statement of the store waits for a lock.
const lockedDeadline = 400 * time.Millisecond

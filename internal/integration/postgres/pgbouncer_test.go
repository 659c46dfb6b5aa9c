package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

var throughPooler = skein.NewQueue[int]("through-pooler", skein.QueueOptions[int]{Shards: 2})

// pooler is a backend behind a PgBouncer in transaction mode, which has a few connections to the
// server.
type pooler struct {
	*testing.T
	url     string
	schema  string
	listen  *pgx.ConnConfig
	handled chan string
}

func newPooler(t *testing.T) *pooler {
	t.Helper()
	direct := testservers.Postgres(t)
	p := &pooler{T: t, schema: testservers.Schema(t, direct), listen: direct.Config().ConnConfig, handled: make(
		chan string, 100,
	)}
	p.url = testservers.PgBouncer(t, direct, "pool_mode = transaction", "default_pool_size = 3")
	return p
}

// connect opens a pool, with the settings that the page names in its URL.
func (p *pooler) connect(setting string) *pgxpool.Pool {
	p.Helper()
	return kit.PoolOf(p.T, p.url+setting)
}

// serve runs a server, whose handler settles in a transaction, until stop is called.
func (p *pooler) serve(pool *pgxpool.Pool, o postgres.Options, poll time.Duration) (stop func()) {
	p.Helper()
	o.Schema = p.schema
	store := postgres.New(pool, o)
	handler := throughPooler.Handler(func(ctx context.Context, id string, _ []int) error {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return skein.SettleIn(ctx, store.Tx(tx)) })
		if err == nil {
			p.handled <- id
		}
		return err
	})
	server := skein.NewServer(store, skein.ServerOptions{
		Lanes: 2, PollInterval: poll, Logger: slog.New(slog.DiscardHandler),
	}, handler)
	stop = kit.Serve(p.T, server)
	p.Cleanup(stop)
	return stop
}

// handles waits until n jobs are handled, each of which was pushed once.
func (p *pooler) handles(what string, want int) {
	p.Helper()
	seen := map[string]bool{}
	for len(seen) < want {
		select {
		case id := <-p.handled:
			if seen[id] {
				p.Errorf("%s: %s is handled twice", what, id)
			}
			seen[id] = true
		case <-time.After(testservers.Patience):
			p.Fatalf("%s: %d of %d jobs are handled within %v", what, len(seen), want, testservers.Patience)
		}
	}
}

// push pushes one job, many jobs at once, and one in a caller's transaction. It returns how many.
func (p *pooler) push(pool *pgxpool.Pool, prefix string) (pushed int) {
	p.Helper()
	store := postgres.New(pool, postgres.Options{Schema: p.schema})
	client := skein.NewClient(store, skein.ClientOptions{})
	must(p, throughPooler.Push(p.Context(), client, prefix+"-alone", 1))
	var entries []skein.Entry[int]
	for n := range 20 {
		entries = append(entries, skein.Entry[int]{ID: fmt.Sprint(prefix, "-many-", n), Payload: n})
	}
	must(p, throughPooler.PushMany(p.Context(), client, entries))
	inTx := func(id string, end error) error {
		return pgx.BeginFunc(p.Context(), pool, func(tx pgx.Tx) error {
			if err := throughPooler.Push(p.Context(), client.Via(store.Tx(tx)), id, 1); err != nil {
				return err
			}
			return end
		})
	}
	must(p, inTx(prefix+"-tx", nil))
	rolledBack := errors.New("rolled back")
	if err := inTx(prefix+"-never", rolledBack); !errors.Is(err, rolledBack) {
		p.Error(err)
	}
	return len(entries) + 2
}

// Behind PgBouncer in transaction mode, everything works with each of the settings that the page
// names: with wake-ups over a direct connection, and by polls without them.
func TestPostgresBehindPgBouncer(t *testing.T) {
	tier.Long(t, "starts a pooler")
	t.Parallel()
	for _, mode := range []string{"cache_describe", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newPooler(t)
			pool := p.connect("&default_query_exec_mode=" + mode)
			must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: p.schema}))
			stop := p.serve(pool, postgres.Options{Listen: p.listen}, time.Hour)
			pushed := p.push(p.connect("&default_query_exec_mode="+mode), "woken") // another process's pool
			p.handles("by wake-ups", pushed)
			stop()
			store := postgres.New(pool, postgres.Options{Schema: p.schema})
			if _, err := store.Wakeups(t.Context(), core.Shards(throughPooler.Name(), 2)); err == nil ||
				!strings.Contains(err.Error(), "set Options.Listen") {
				t.Errorf("wake-ups through PgBouncer: %v; want an error that names the option to set", err)
			}
			stop = p.serve(pool, postgres.Options{}, 50*time.Millisecond)
			again := p.push(pool, "polled")
			p.handles("by polls", again)
			stop()
			must(t, store.Ping(t.Context()))
			stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{throughPooler.Name()}})
			must(t, err)
			if diff := cmp.Diff(ports.Counts{Processed: int64(pushed + again)}, stats[0].Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// With pgx's own default, prepared statements, a store is refused by the setting that is wanted,
// unless PgBouncer lets these through.
func TestPostgresBehindPgBouncerNeedsASetting(t *testing.T) {
	tier.Long(t, "starts a pooler")
	t.Parallel()
	p := newPooler(t)
	must(t, postgres.Migrate(t.Context(), p.connect("&default_query_exec_mode=exec"),
		postgres.MigrateOptions{Schema: p.schema}))
	for range 4 { // processes whose statements have the same names
		store := postgres.New(p.connect(""), postgres.Options{Schema: p.schema, NoWakeups: true})
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
			kit.Unusable(t, "Declare", err, "default_query_exec_mode")
		}
		if err := store.Ping(t.Context()); err != nil {
			kit.Unusable(t, "Ping", err, "default_query_exec_mode")
		}
	}
}

// A setting that is given to a role holds for new connections to the server only, and PgBouncer
// keeps its own: an administrator's RECONNECT makes them anew.
func TestPostgresASettingOfARoleNeedsAReconnect(t *testing.T) {
	tier.Long(t, "starts a pooler")
	t.Parallel()
	direct := testservers.OwnPostgres(t, "fsync=off")
	url := testservers.PgBouncer(t, direct, "pool_mode = transaction", "default_pool_size = 1",
		"admin_users = postgres")
	pool := kit.PoolOf(t, url+"&default_query_exec_mode=exec")
	lockTimeout := func(pool *pgxpool.Pool) (set string) {
		must(t, pool.QueryRow(t.Context(), `SELECT current_setting('lock_timeout')`).Scan(&set))
		return set
	}
	before := lockTimeout(pool)
	kit.Exec(t, direct, `ALTER ROLE postgres SET lock_timeout = '77s'`)
	another := kit.PoolOf(t, url+"&default_query_exec_mode=exec")
	if set := lockTimeout(another); set != before {
		t.Errorf("a new connection to PgBouncer has lock_timeout %s, want %s as before", set, before)
	}
	config, err := pgx.ParseConfig(url)
	must(t, err)
	config.Database = "pgbouncer"
	admin, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	_, err = admin.PgConn().Exec(t.Context(), "RECONNECT").ReadAll()
	must(t, err)
	if set := lockTimeout(pool); set != "77s" {
		t.Errorf("after RECONNECT lock_timeout is %s, want 77s", set)
	}
}

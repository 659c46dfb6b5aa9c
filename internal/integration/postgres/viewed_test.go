package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// viewed is a backend in Postgres with the queue orders.
type viewed struct {
	t      testing.TB
	pool   *pgxpool.Pool
	schema string
	shards int
}

func newViewed(t testing.TB, shards int) *viewed {
	t.Helper()
	pool := testservers.Postgres(t)
	v := &viewed{t: t, pool: pool, schema: testservers.Schema(t, pool), shards: shards}
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: v.schema}); err != nil {
		t.Fatal(err)
	}
	_, err := v.open(postgres.Options{}).Declare(t.Context(),
		ports.DeclareRequest{Queue: "orders", Shards: shards, IndexIDs: true})
	v.must(err)
	return v
}

func (v *viewed) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *viewed) open(o postgres.Options) *postgres.Store {
	o.Schema = v.schema
	return postgres.New(v.pool, o)
}

// openAs is a store on connections that the server knows by a name.
func (v *viewed) openAs(name string, o postgres.Options, more ...func(*pgxpool.Config)) *postgres.Store {
	v.t.Helper()
	c := v.pool.Config()
	c.ConnConfig.RuntimeParams["application_name"] = name
	for _, change := range more {
		change(c)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	v.must(err)
	v.t.Cleanup(pool.Close)
	o.Schema = v.schema
	return postgres.New(pool, o)
}

// push pushes a payload for each id, due at an instant.
func (v *viewed) push(p ports.Producer, at core.When, ids ...string) {
	v.t.Helper()
	r := ports.PushRequest{Queue: "orders", Shards: v.shards, Generation: 1}
	for _, id := range ids {
		r.Entries = append(r.Entries,
			core.Entry{ID: id, When: at, Payload: core.Payload{Data: []byte("for " + id), Score: 1}})
	}
	_, err := p.Push(v.t.Context(), r)
	v.must(err)
}

// seen are the statements that a store sends, some of them beside its calls.
type seen struct {
	mu      sync.Mutex
	queries []pgx.TraceQueryStartData
}

func (s *seen) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, q)
	return ctx
}

// sent returns the statements so far.
func (s *seen) sent() []pgx.TraceQueryStartData {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

// last returns the last statement.
func (s *seen) last() pgx.TraceQueryStartData {
	all := s.sent()
	return all[len(all)-1]
}

func (*seen) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// errgroup runs functions and joins their errors.
type errgroup struct {
	sync.WaitGroup
	mu  sync.Mutex
	err error
}

func (g *errgroup) Go(do func() error) {
	g.WaitGroup.Go(func() {
		err := do()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.err = errors.Join(g.err, err)
	})
}

func (g *errgroup) Wait() error {
	g.WaitGroup.Wait()
	return g.err
}

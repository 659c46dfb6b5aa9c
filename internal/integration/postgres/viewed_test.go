package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	_, err := v.open(postgres.Options{}).Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: shards, IndexIDs: true})
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
		r.Entries = append(r.Entries, core.Entry{ID: id, When: at, Payload: core.Payload{Data: []byte("for " + id), Score: 1}})
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

func (*seen) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestPostgresLooksReadLittleOfALongQueue(t *testing.T) {
	t.Parallel()
	const shards, jobs, most = 3, 40_000, 300
	v := newViewed(t, shards)
	all := v.open(postgres.Options{NoWakeups: true})
	ids := make([]string, jobs)
	for i := range ids {
		ids[i] = fmt.Sprint("order-", i)
	}
	v.push(all, core.When{}, ids...)
	var size int
	v.must(v.pool.QueryRow(t.Context(), `SELECT pg_relation_size(($1 || '.jobs')::regclass) / 8192`, v.schema).Scan(&size))
	if size < most {
		t.Fatalf("the jobs fill %d blocks; more must be pushed", size)
	}
	tracer := &seen{}
	s := v.openAs("looks", postgres.Options{}, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		for _, descending := range []bool{false, true} {
			r := ports.JobsRequest{SortBy: order, PageRequest: ports.PageRequest{
				Queue: "orders", Descending: descending, Limit: 20, Payloads: 1,
			}}
			for range 2 {
				page, err := s.Jobs(t.Context(), r)
				v.must(err)
				r.After = page.Next
			}
		}
	}
	_, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	v.must(err)
	_, err = s.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "order-17", Payloads: 1000})
	v.must(err)
	for _, q := range tracer.sent() {
		if n := pagesRead(t, v.pool, v.schema, q.SQL, q.Args...); n > most {
			t.Errorf("%d blocks are read by %s", n, q.SQL)
		}
	}
}

// Steps and pushes lock the same jobs, and each keeps the counts right.
func TestPostgresCountsHoldBesideOperatorsAndPushes(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	shard := core.Shard{Queue: "orders"}
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprint("id ", i))
	}
	some := func() []string {
		chosen := slices.Clone(ids)
		rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		return chosen[:1+rand.IntN(len(chosen))]
	}
	var all errgroup
	for range 3 {
		all.Go(func() error {
			r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Rule: core.PushRule{Kind: core.Earliest}}
			for n := range 60 {
				r.Entries = nil
				for _, id := range some() {
					data := fmt.Appendf(nil, "%d of %s", n%3, id)
					r.Entries = append(r.Entries, core.Entry{ID: id, When: core.In(time.Hour), Payload: core.Payload{Data: data}})
				}
				if _, err := s.Push(t.Context(), r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 2 {
		all.Go(func() error {
			for range 40 {
				_, err1 := s.Expedite(t.Context(), ports.JobStep{Shard: shard, IDs: some()})
				_, err2 := s.Bury(t.Context(), ports.JobStep{Shard: shard, IDs: some()})
				_, err3 := s.Revive(t.Context(), ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant, Limit: 10})
				_, err4 := s.Delete(t.Context(), ports.JobStep{Shard: shard, IDs: some()[:1]})
				_, err5 := s.Purge(t.Context(), ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant, Limit: 1})
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					return err
				}
			}
			return nil
		})
	}
	v.must(all.Wait())
	stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	v.must(err)
	jobs, err := s.Jobs(t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	v.must(err)
	dead, err := s.Morgue(t.Context(), ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	v.must(err)
	got := [3]int64{stats[0].Fresh, stats[0].Retrying, stats[0].Dead}
	if want := [3]int64{int64(len(jobs.Jobs)), 0, int64(len(dead.DeadLetters))}; got != want {
		t.Errorf("fresh, retrying and dead are counted as %v, and there are %v", got, want)
	}
}

// Changes of counts pile up while no server runs. Each look replaces a part of them by their sum,
// so that later looks read fewer. No change of a transaction that was open for long is lost.
func TestPostgresLooksFoldCounts(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	insert := fmt.Sprintf(`INSERT INTO %s.count_changes (shard, fresh, retrying, dead, processed, failed)
		SELECT 0, 1, 2, 3, 4, 5 FROM generate_series(1, $1)`, v.schema)
	slow, err := v.pool.Begin(t.Context())
	v.must(err)
	defer slow.Rollback(context.Background())
	_, err = slow.Exec(t.Context(), insert, 7)
	v.must(err)
	_, err = v.pool.Exec(t.Context(), insert, 25_000)
	v.must(err)
	counts := func(n int64) {
		t.Helper()
		stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		v.must(err)
		want := ports.Counts{Fresh: n, Retrying: 2 * n, Dead: 3 * n, Processed: 4 * n, Failed: 5 * n}
		if diff := cmp.Diff(want, stats[0].Counts); diff != "" {
			t.Errorf("the counts of %d changes (-want +got):\n%s", n, diff)
		}
	}
	for range 4 {
		counts(25_000)
	}
	v.must(slow.Commit(t.Context()))
	counts(25_007)
	var left int
	v.must(v.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+v.schema+`.count_changes`).Scan(&left))
	if left > 1000 {
		t.Errorf("%d changes are left to sum up, want 1,000 at most", left)
	}
}

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

package integration_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/testservers"
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

func (v *viewed) wakeups(ctx context.Context, s *postgres.Store) <-chan core.Shard {
	v.t.Helper()
	ch, err := s.Wakeups(ctx, core.Shards("orders", v.shards))
	v.must(err)
	return ch
}

// wakes waits for a wake-up.
func (v *viewed) wakes(what string, ch <-chan core.Shard) {
	v.t.Helper()
	select {
	case _, open := <-ch:
		if !open {
			v.t.Fatalf("%s: the channel is closed", what)
		}
	case <-time.After(10 * time.Second):
		v.t.Fatalf("%s: no wake-up within 10 s", what)
	}
}

// listening are the connections of that name that listen.
func (v *viewed) listening(name string) []int {
	v.t.Helper()
	rows, err := v.pool.Query(v.t.Context(),
		`SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query ILIKE 'listen %'`, name)
	v.must(err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	v.must(err)
	return pids
}

// eventually waits until something holds.
func (v *viewed) eventually(what string, holds func() bool) {
	v.t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestPostgresWakeupsOutliveTheirConnection(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	name := "cut " + v.schema
	ch := v.wakeups(t.Context(), v.openAs(name, postgres.Options{}))
	for i := range 3 {
		pids := v.listening(name)
		if len(pids) != 1 {
			t.Fatalf("%d connections listen, want 1", len(pids))
		}
		_, err := v.pool.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, pids[0])
		v.must(err)
		v.wakes("after the cut, for what was missed", ch)
		v.push(v.open(postgres.Options{}), core.At(core.Instant(100-i)), fmt.Sprint("id ", i))
		v.wakes("a push after it", ch)
	}
}

func TestPostgresWakeupsShareAConnection(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	name := "share " + v.schema
	s := v.openAs(name, postgres.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var all []<-chan core.Shard
	for range 5 {
		all = append(all, v.wakeups(ctx, s))
	}
	if n := len(v.listening(name)); n != 1 {
		t.Errorf("%d connections listen for 5 readers, want 1", n)
	}
	v.push(s, core.When{}, "a")
	for _, ch := range all {
		v.wakes("a push", ch)
	}
	cancel()
	for _, ch := range all {
		for range ch { // until it is closed
		}
	}
	v.eventually("the connection is gone with its readers", func() bool { return len(v.listening(name)) == 0 })
	later := v.wakeups(t.Context(), s)
	v.push(s, core.At(1), "b")
	v.wakes("a push, for a reader who came later", later)
}

func TestPostgresWakeupsCanBeOff(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	mute := v.openAs("mute "+v.schema, postgres.Options{NoWakeups: true})
	silent, hears := v.wakeups(ctx, mute), v.wakeups(ctx, v.open(postgres.Options{}))
	v.push(mute, core.At(2), "a")
	v.push(v.open(postgres.Options{}), core.At(1), "b")
	v.wakes("the push that tells", hears)
	if n := len(v.listening("mute " + v.schema)); n != 0 {
		t.Errorf("%d connections listen, want none", n)
	}
	cancel()
	if shard, open := <-silent; open {
		t.Errorf("a store without wake-ups told of %v", shard)
	}
}

func TestPostgresListensOnTheConnectionItIsGiven(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	listen := v.pool.Config().ConnConfig
	listen.RuntimeParams["application_name"] = "given " + v.schema
	s := v.openAs("pool "+v.schema, postgres.Options{Listen: listen})
	ch := v.wakeups(t.Context(), s)
	if pool, given := len(v.listening("pool "+v.schema)), len(v.listening("given "+v.schema)); pool != 0 || given != 1 {
		t.Errorf("%d connections of the pool and %d that were given listen, want 0 and 1", pool, given)
	}
	v.push(s, core.When{}, "a")
	v.wakes("a push", ch)
}

// A queue that is behind has no news for those who work on it.
func TestPostgresWakesOnlyForWhatIsDueSooner(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	v.push(v.open(postgres.Options{NoWakeups: true}), core.At(1000), "old")
	s := v.open(postgres.Options{})
	ch := v.wakeups(t.Context(), s)
	for i := range 20 {
		v.push(s, core.When{}, fmt.Sprint("new ", i))
	}
	select {
	case <-ch:
		t.Error("a wake-up although an older job waits")
	case <-time.After(200 * time.Millisecond):
	}
	v.push(s, core.At(10), "older")
	v.wakes("a push that is due sooner", ch)
}

func TestPostgresTellsWhyItCantListen(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.openAs("pooler "+v.schema, postgres.Options{}, func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = dialPooler(c.ConnConfig.DialFunc)
	})
	v.push(s, core.When{}, "all else works")
	_, err := s.Wakeups(t.Context(), core.Shards("orders", 1))
	if err == nil || !strings.Contains(err.Error(), "set Options.Listen to a direct connection, or Options.NoWakeups") {
		t.Errorf("got %v", err)
	}
}

// seen are the statements that a store sends.
type seen struct{ queries []pgx.TraceQueryStartData }

func (s *seen) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.queries = append(s.queries, q)
	return ctx
}

func (*seen) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// blocks are how many a statement reads.
func (v *viewed) blocks(q pgx.TraceQueryStartData) int {
	v.t.Helper()
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	v.must(v.pool.QueryRow(v.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+q.SQL, q.Args...).Scan(&plan))
	return plan[0].Plan.Hit + plan[0].Plan.Read
}

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
	for order := ports.ByTime; order <= ports.RetriesByCount; order++ {
		for _, descending := range []bool{false, true} {
			r := ports.JobsRequest{Order: order, PageRequest: ports.PageRequest{
				Queue: "orders", Descending: descending, Limit: 20, Payloads: 1,
			}}
			for range 2 {
				page, err := s.Jobs(t.Context(), r)
				v.must(err)
				r.After = page.Next
			}
		}
	}
	_, err := s.Stats(t.Context(), []string{"orders"})
	v.must(err)
	_, err = s.Find(t.Context(), "orders", "order-17")
	v.must(err)
	for _, q := range tracer.queries {
		if n := v.blocks(q); n > most {
			t.Errorf("%d blocks are read by %s", n, q.SQL)
		}
	}
}

// Steps, turns and pushes lock the same jobs, and counts are kept by each.
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
				_, err1 := s.Expedite(t.Context(), ports.JobStep{Shard: shard, Limit: 5})
				_, err2 := s.Bury(t.Context(), ports.JobStep{Shard: shard, IDs: some()})
				_, err3 := s.Revive(t.Context(), ports.DeadStep{Shard: shard, Before: core.MaxInstant, Limit: 10})
				_, err4 := s.Delete(t.Context(), ports.JobStep{Shard: shard, IDs: some()[:1]})
				_, err5 := s.Purge(t.Context(), ports.DeadStep{Shard: shard, Before: core.MaxInstant, Limit: 1})
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					return err
				}
			}
			return nil
		})
	}
	v.must(all.Wait())
	stats, err := s.Stats(t.Context(), []string{"orders"})
	v.must(err)
	jobs, err := s.Jobs(t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	v.must(err)
	dead, err := s.Morgue(t.Context(), ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	v.must(err)
	got := [3]int64{stats[0].Fresh, stats[0].Retries, stats[0].Dead}
	if want := [3]int64{int64(len(jobs.Jobs)), 0, int64(len(dead.Dead))}; got != want {
		t.Errorf("fresh, retries and dead are counted as %v, and there are %v", got, want)
	}
}

// Changes of counts pile up while no server runs. Looks sum up ever fewer of them, and
// miss none of a transaction that was open for long.
func TestPostgresLooksFoldCounts(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	insert := fmt.Sprintf(`INSERT INTO %s.tallies (shard, fresh, retries, dead, processed, failed)
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
		stats, err := s.Stats(t.Context(), []string{"orders"})
		v.must(err)
		want := ports.Counts{Fresh: n, Retries: 2 * n, Dead: 3 * n, Processed: 4 * n, Failed: 5 * n}
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
	v.must(v.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+v.schema+`.tallies`).Scan(&left))
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

// dialPooler dials through what looks like PgBouncer: it tells clients a number of
// its own for their connection.
func dialPooler(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &poolerConn{Conn: conn}, err
	}
}

type poolerConn struct {
	net.Conn
	read []byte // and not yet handed on
	done bool   // the number has been told
}

func (c *poolerConn) Read(p []byte) (int, error) {
	if len(c.read) == 0 && !c.done {
		head := make([]byte, 5)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		if head[0] == 'K' { // BackendKeyData begins with it
			body[3]++
			c.done = true
		}
		c.read = append(head, body...)
	}
	if len(c.read) > 0 {
		n := copy(p, c.read)
		c.read = c.read[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

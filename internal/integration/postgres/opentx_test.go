package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

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

// leaseWatch counts the leases that a server loses.
type leaseWatch struct {
	ports.NopObserver
	mu      sync.Mutex
	dropped []error
}

func (w *leaseWatch) LeaseChanged(e ports.LeaseEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Change == ports.LeaseDropped {
		w.dropped = append(w.dropped, e.Err)
	}
}

// A transaction that has pushed for ids that are queued, claimed and failing stays open for three
// TTLs. Handling continues meanwhile, also of these ids, and no lease is lost.
func TestPostgresOpenTransactionDelaysNobody(t *testing.T) {
	tier.Long(t, "waits for leases to end")
	const ttl = 2 * time.Second
	pool := testservers.Postgres(t)
	store := kit.NewPostgres(t, pool)
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{
		Shards: 1, MaxRetries: 1000, Backoff: func(int) time.Duration { return ttl / 4 },
	})
	push := func(c *skein.Client, id, payload string, o ...skein.PushOption) {
		if err := queue.Push(t.Context(), c, id, payload, o...); err != nil {
			t.Error(err)
		}
	}
	var mu sync.Mutex
	handled, tries := map[string]time.Time{}, 0
	entered, leave := make(chan struct{}), make(chan struct{})
	h := queue.Handler(func(_ context.Context, id string, payloads []string) error {
		if payloads[0] == "block" {
			close(entered)
			<-leave
		}
		mu.Lock()
		defer mu.Unlock()
		if id == "failing" && payloads[0] == "x" {
			if tries++; tries < 8 {
				return errors.New("not yet")
			}
		}
		for _, p := range payloads {
			handled[id+" "+p] = time.Now()
		}
		return nil
	})
	watch := &leaseWatch{}
	stop := kit.Serve(t,
		skein.NewServer(store, skein.ServerOptions{LeaseTTL: ttl, PollInterval: ttl / 5, Lanes: 1, Observer: watch}, h))

	push(client, "failing", "x")
	push(client, "queued", "x", skein.In(ttl))
	time.Sleep(ttl / 5)
	push(client, "claimed", "block")
	<-entered
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for _, id := range []string{"queued", "claimed", "failing"} {
		push(client.Via(store.Tx(tx)), id, "late")
	}
	close(leave)
	const beside = 30
	pushed := map[string]time.Time{}
	for i := range beside {
		key := fmt.Sprintf("other-%d", i)
		push(client, key, "x")
		pushed[key] = time.Now()
		time.Sleep(3 * ttl / beside)
	}
	time.Sleep(ttl / 2)

	mu.Lock()
	for id, at := range pushed {
		if took := handled[id+" x"].Sub(at); handled[id+" x"].IsZero() || took > ttl {
			t.Errorf("%s was handled %v after its push, want within %v", id, took, ttl)
		}
	}
	for _, key := range []string{"queued x", "claimed block", "failing x"} {
		if handled[key].IsZero() {
			t.Errorf("%q was not handled while the transaction was open", key)
		}
	}
	for _, id := range []string{"queued", "claimed", "failing"} {
		if at := handled[id+" late"]; !at.IsZero() {
			t.Errorf("%q was handled before it was committed", id)
		}
	}
	mu.Unlock()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(ttl)
	stop()
	for _, id := range []string{"queued", "claimed", "failing"} {
		if handled[id+" late"].IsZero() {
			t.Errorf("what was pushed for %q is not handled after the commit", id)
		}
	}
	if len(watch.dropped) > 0 {
		t.Errorf("leases were lost: %v", watch.dropped)
	}
}

// A client stops inside a transaction that settles a job. It keeps this job, but not the shard: the
// next owner works the other jobs. It gets this job once the transaction is rolled back, and never
// if the transaction commits.
func TestPostgresStoppedSettlementDoesNotKeepTheShard(t *testing.T) {
	tier.Long(t, "waits for leases to end")
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed %t", committed), func(t *testing.T) {
			t.Parallel()
			const ttl = time.Second
			pool := testservers.Postgres(t)
			store := kit.NewPostgres(t, pool)
			queue := skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 1})
			client := skein.NewClient(store, skein.ClientOptions{})
			if err := queue.Push(t.Context(), client, "settling", "x"); err != nil {
				t.Fatal(err)
			}
			shard := core.Shard{Queue: "orders"}
			claims := claimAll(t, store, shard, ttl)
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background())
			settle := []core.Settlement{{ID: "settling", Receipt: claims[0].Receipt, Processed: true}}
			if err := store.Tx(tx).Settle(t.Context(), shard, settle); err != nil {
				t.Fatal(err)
			}
			if err := store.Tx(tx).Settle(t.Context(), shard, settle); !errors.Is(err, ports.ErrLeaseLost) {
				t.Errorf("settled twice: %v, want %v", err, ports.ErrLeaseLost)
			}

			ran := make(chan string, 100)
			h := queue.Handler(func(_ context.Context, id string, _ []string) error {
				ran <- id
				return nil
			})
			stop := kit.Serve(t, skein.NewServer(store, skein.ServerOptions{LeaseTTL: ttl, PollInterval: ttl / 3}, h))
			for i := range 5 {
				id := fmt.Sprint("other-", i)
				if err := queue.Push(t.Context(), client, id, "x"); err != nil {
					t.Fatal(err)
				}
				if got := soon(t, ran); got != id {
					t.Fatalf("%s ran while its settlement was open, want %s", got, id)
				}
				time.Sleep(ttl / 3)
			}
			time.Sleep(2 * ttl) // nothing else makes the shard turn by then
			if committed {
				err = tx.Commit(t.Context())
			} else {
				err = tx.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if !committed {
				if got := soon(t, ran); got != "settling" {
					t.Errorf("%s ran after the roll-back, want the job that was left", got)
				}
			} else {
				time.Sleep(5 * ttl)
			}
			stop()
			if len(ran) > 0 {
				t.Errorf("%s ran", <-ran)
			}
			err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				return store.Tx(tx).Settle(t.Context(), shard, settle)
			})
			if !errors.Is(err, ports.ErrLeaseLost) {
				t.Errorf("settled when it was over: %v, want %v", err, ports.ErrLeaseLost)
			}
		})
	}
}

// soon returns the next id that ran. It ends the test if none runs within Patience.
func soon(t *testing.T, ran <-chan string) string {
	t.Helper()
	select {
	case id := <-ran:
		return id
	case <-time.After(testservers.Patience):
		t.Fatalf("nothing ran within %v", testservers.Patience)
		return ""
	}
}

// claimAll acquires a shard and claims its jobs, for a node that makes no further calls.
func claimAll(t *testing.T, store *postgres.Store, shard core.Shard, ttl time.Duration) []core.Claim {
	t.Helper()
	a, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: "stopped", Attempt: 1, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := store.Turn(t.Context(), ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "stopped", Token: a.Token},
		Number: 1,
		TTL:    ttl,
		Want:   core.MaxTurnJobs})
	if err != nil || len(reply.Claims) == 0 {
		t.Fatalf("%d claims: %v", len(reply.Claims), err)
	}
	return reply.Claims
}

// While a caller's transaction stays open that has pushed for a queued, a claimed and a failing id,
// no push and no turn waits for its end.
func TestPostgresOpenPushHoldsNobodyUp(t *testing.T) {
	w := newWorkbench(t, time.Hour)
	w.acquire("n1")
	w.must(w.push(w.store, "claimed", "failing"))
	claims := w.next(2).Claims
	w.must(w.push(w.store, "queued"))
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	w.must(w.push(w.store.Tx(tx), "claimed", "failing", "queued"))

	settle := []core.Settlement{done(claims[0]), failed(claims[1])}
	for n := range 20 {
		w.must(w.push(w.store, fmt.Sprint(n), "queued"))
		reply := w.next(10, settle...)
		settle = settle[:0]
		for _, c := range reply.Claims {
			settle = append(settle, done(c))
		}
	}
	w.next(0, settle...)
	w.same("claimed before the commit", idsOf(w.next(10).Claims), []string(nil))
	w.must(tx.Commit(t.Context()))
	w.same("claimed after it", idsOf(w.next(10).Claims), []string{"claimed", "failing", "queued"})
}

// A job that a caller's transaction is settling is out of reach, for its owner and
// for the next, until the transaction has ended.
func TestPostgresOpenSettlementIsHeldAndHandedOverLater(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	w.must(w.push(w.store, "a", "b"))
	claims := w.next(2).Claims
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	w.must(w.store.Tx(tx).Settle(t.Context(), w.turn.Lease.Shard, []core.Settlement{done(claims[0])}))

	w.same("deferred", w.next(0, done(claims[0])).Deferred, []int{0})
	w.must(w.store.Release(t.Context(), w.turn.Lease))
	acquired := w.acquire("n2")
	w.same("left to the next owner", idsOf(acquired.Claims), []string{"b"})
	w.same("a turn is to look for others", acquired.Head.DueBy(acquired.Now), true)
	w.same("orphans while the transaction is open", idsOf(w.next(0).Orphans), []string(nil))
	w.must(tx.Rollback(t.Context()))
	w.same("orphans once it has ended", idsOf(w.next(0).Orphans), []string{"a"})
	w.same("skipped", w.next(0, done(claims[0]), done(claims[1])).Skipped, []int(nil))
}

// While somebody's transaction stays open, nothing that a turn has deleted since can be vacuumed.
// By the server's statistics the tables are empty, and then any index looks as good as another. A
// turn passes few of the dead rows nevertheless: in the look into the inbox, in those for an id,
// and where it replies its claims. It leaves the look for slow pushes to renewals.
func TestPostgresTurnsPassFewDeadRowsBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	const dead, batch = 12_000, 250
	long := strings.Repeat("dead", 100) // indexes of ids are the largest
	pool := testservers.OwnPostgres(t, "fsync=off", "autovacuum=off")
	w := workbenchOn(t, pool, time.Minute)
	now := time.Now()
	tracer := &seen{}
	w.store = postgres.New(kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer }),
		postgres.Options{
			Schema: w.schema, NoWakeups: true, VacuumEvery: -1, Clock: func() time.Time { return now },
		})
	w.acquire("me")

	kit.Exec(t, pool, "CREATE TABLE mine (id int)")
	tx, err := pool.Begin(t.Context())
	w.must(err)
	defer func() { w.must(tx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = tx.Exec(t.Context(), "INSERT INTO mine VALUES (1)")
	w.must(err)

	for n := 0; n < dead; n += batch {
		w.pushInTx(numbered(fmt.Sprint(long, n, "-"), batch)...)
		w.next(0, dones(w.next(batch))...)
		now = now.Add(10 * time.Millisecond)
	}
	kit.Exec(t, pool, strings.ReplaceAll("ANALYZE {schema}.inbox; ANALYZE {schema}.jobs; ANALYZE {schema}.claimed",
		"{schema}", w.schema))
	renew := func() {
		_, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.turn.Lease, TTL: w.turn.TTL})
		w.must(err)
	}
	now = now.Add(2 * time.Second)
	renew()
	w.next(batch)
	turn := tracer.last()
	few := func(most int, what string) {
		t.Helper()
		if n := pagesRead(t, pool, w.schema, turn.SQL, turn.Args...); n > most {
			t.Errorf("%s reads %d pages beside %d dead rows, want at most %d", what, n, dead, most)
		}
	}

	few(100, "an empty turn")
	now = now.Add(2 * time.Second)
	turn.Args[6] = int64(core.InstantOf(now))
	few(100, "an empty turn that is to look for slow pushes")
	renew()
	few(100, "an empty turn after a renewal")
	w.must(w.push(w.store, numbered("pushed-", 10)...))
	few(300, "a turn that claims")
	w.pushInTx(numbered("in-tx-", 10)...)
	few(600, "a turn that merges and claims")
}

// numbered returns ids.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + fmt.Sprint(i)
	}
	return ids
}

// dones returns settlements of all claims of a turn.
func dones(r ports.TurnReply) []core.Settlement {
	settlements := make([]core.Settlement, len(r.Claims))
	for i, c := range r.Claims {
		settlements[i] = done(c)
	}
	return settlements
}

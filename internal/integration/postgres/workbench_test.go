package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// workbench is a backend in Postgres with one shard, whose turns the test makes itself.
type workbench struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
	store  *postgres.Store
	turn   ports.TurnRequest
}

func newWorkbench(t *testing.T, ttl time.Duration) *workbench {
	t.Helper()
	return workbenchOn(t, testservers.Postgres(t), ttl)
}

func workbenchOn(t *testing.T, pool *pgxpool.Pool, ttl time.Duration) *workbench {
	t.Helper()
	w := &workbench{t: t, pool: pool, schema: testservers.Schema(t, pool)}
	w.must(postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: w.schema}))
	w.store = postgres.New(pool, postgres.Options{Schema: w.schema, NoWakeups: true})
	_, err := w.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	w.must(err)
	w.turn = ports.TurnRequest{Lease: ports.Lease{Shard: core.Shard{Queue: "orders"}}, TTL: ttl}
	return w
}

// stopClock gives the store a clock that stands still, for tests of the turns that take the short
// way: a second after the last one a turn may rescan, which takes the long way, and a busy machine
// takes longer between two turns.
func (w *workbench) stopClock() {
	o := still()
	o.Schema = w.schema
	w.store = postgres.New(w.pool, o)
}

// viewed is the same backend for calls that need no lease.
func (w *workbench) viewed() *viewed {
	return &viewed{t: w.t, pool: w.pool, schema: w.schema, shards: 1}
}

func (w *workbench) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// acquire takes the shard for an owner.
func (w *workbench) acquire(owner string) ports.AcquireReply {
	w.t.Helper()
	a := w.reacquire(owner)
	w.turn.Lease.Owner, w.turn.Lease.Token, w.turn.Number = owner, a.Token, 0
	return a
}

// reacquire repeats an acquire.
func (w *workbench) reacquire(owner string) ports.AcquireReply {
	w.t.Helper()
	a, err := w.store.Acquire(w.t.Context(), ports.AcquireRequest{
		Shard: w.turn.Lease.Shard, Shards: 1, Generation: 1, Owner: owner, Attempt: 1, TTL: w.turn.TTL})
	w.must(err)
	return a
}

// next makes the next turn.
func (w *workbench) next(want int, settle ...core.Settlement) ports.TurnReply {
	w.t.Helper()
	r := w.turn
	r.Number, r.Want, r.Settlements = w.turn.Number+1, want, settle
	reply, err := w.store.Turn(w.t.Context(), r)
	w.must(err)
	w.turn.Number = reply.Last
	return reply
}

func (w *workbench) push(via ports.Producer, ids ...string) error {
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
	for _, id := range ids {
		r.Entries = append(r.Entries, core.Entry{ID: id, Payload: core.Payload{Data: []byte("of " + id)}})
	}
	_, err := via.Push(w.t.Context(), r)
	return err
}

func (w *workbench) same(what string, got, want any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func idsOf(claims []core.Claim) (ids []string) {
	for _, c := range claims {
		ids = append(ids, c.ID)
	}
	return ids
}

func done(c core.Claim) core.Settlement {
	return core.Settlement{ID: c.ID, Receipt: c.Receipt, Processed: true}
}

// failed is a settlement that puts the job back, due at once.
func failed(c core.Claim) core.Settlement {
	return core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue, Failed: true, PutBack: core.PutBack{Error: "bang"}}
}

// A full disk refuses pushes, by name, and lets the queue drain.
func TestPostgresFullRefusesPushesAndDrains(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.must(w.push(w.store, "a", "b"))
	kit.Exec(t, w.pool, fmt.Sprintf(`
		CREATE FUNCTION %[1]s.full() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no room'' USING ERRCODE = ''disk_full''; END';
		CREATE TRIGGER full_disk BEFORE INSERT ON %[1]s.jobs FOR EACH ROW EXECUTE FUNCTION %[1]s.full()`, w.schema))
	err := w.push(w.store, "c", "d")
	var partial *ports.PushError
	if !errors.Is(err, ports.ErrFull) || !errors.As(err, &partial) || len(partial.Entries) != 2 {
		t.Errorf("a push onto a full disk gave %v, want ErrFull for 2 entries", err)
	}
	w.acquire("n1")
	claims := w.next(10).Claims
	w.same("claimed", idsOf(claims), []string{"a", "b"})
	w.same("skipped", w.next(10, done(claims[0]), done(claims[1])).Skipped, []int(nil))
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

// In a database that was restored elsewhere, transactions count from a smaller
// number than the shards have seen.
func TestPostgresFindsTheInboxOfARestoredDatabase(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.shards SET inbox_from = '9000000000000', counts_from = '9000000000000'`, w.schema))
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	w.must(w.push(w.store.Tx(tx), "a"))
	w.must(tx.Commit(t.Context()))
	w.same("claimed", idsOf(w.next(1).Claims), []string{"a"})
	w.must(w.push(w.store, "b"))
	stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	w.must(err)
	w.same("fresh", stats[0].Fresh, int64(1))
}

// The same holds if transactions have passed that number by the time a node acquires the shard.
func TestPostgresAnAcquireFindsTheInboxOfARestoredDatabase(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.shards SET inbox_from = (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 20)::text::xid8`, w.schema))
	w.pushInTx("a")
	for range 40 {
		kit.Exec(t, w.pool, `SELECT pg_current_xact_id()`)
	}
	w.acquire("n1")
	w.same("claimed", idsOf(w.next(1).Claims), []string{"a"})
}

// Rows that commit while a transaction stays open are not left behind once that one has ended.
func TestPostgresMergesWhatFollowsATransactionThatWasOpen(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	long, err := w.pool.Begin(t.Context())
	w.must(err)
	defer long.Rollback(context.WithoutCancel(t.Context())) // or the pool waits for it
	w.must(w.push(w.store.Tx(long), "long"))
	for range 2 { // then the shard knows that it is open
		_, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.turn.Lease, TTL: time.Minute})
		w.must(err)
	}
	w.pushInTx("beside")
	w.must(long.Commit(t.Context()))
	found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "beside", Payloads: 1000})
	w.must(err)
	w.same("whether it is found", found.Queued != nil, true)
	reply, err := w.store.Delete(t.Context(), ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{"beside"}})
	w.must(err)
	w.same("how many are deleted", reply.Handled, 1)
	w.same("claimed", idsOf(w.next(2).Claims), []string{"long"})
}

// pushInTx pushes in a transaction of its own.
func (w *workbench) pushInTx(id string) {
	w.t.Helper()
	w.must(pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error { return w.push(w.store.Tx(tx), id) }))
}

// slowPush stores a job as a push does that took long to commit: it is due before the floor of
// claims.
func (w *workbench) slowPush() {
	w.t.Helper()
	w.acquire("n1")
	w.must(w.push(w.store, "a"))
	w.next(1, done(w.next(1).Claims[0]))
	kit.Exec(w.t, w.pool, fmt.Sprintf(`
		INSERT INTO %s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data, error)
		VALUES (0, 'slow', 1, 1, -1, 0, false, 0, 'x', '')`, w.schema))
}

// pushAtGate pushes beside the test, and returns once the push waits at the gate, before it
// commits.
func (w *workbench) pushAtGate(id string) (pushed <-chan error) {
	w.t.Helper()
	w.gate()
	kit.Exec(w.t, w.pool, strings.ReplaceAll(`
		CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM {schema}.wait_at_gate(); RETURN NULL; END';
		CREATE TRIGGER slow AFTER INSERT ON {schema}.jobs FOR EACH STATEMENT EXECUTE FUNCTION {schema}.slow()`, "{schema}", w.schema))
	done := make(chan error, 1)
	go func() { done <- w.push(w.store, id) }()
	w.viewed().eventually("the push waits at the gate", func() (asleep bool) {
		w.must(w.pool.QueryRow(w.t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE $1)`,
			"%"+w.schema+"%").Scan(&asleep))
		return asleep
	})
	return done
}

// After an acquire a shard makes no turn before its head is due. So the acquire looks for slow
// pushes.
func TestPostgresAnAcquireFindsASlowPush(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.slowPush()
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(50 * time.Millisecond) {
		if head := w.reacquire("n1").Head; head.OK {
			w.same("the head", head.Due, core.Instant(1))
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the job was not found")
		}
	}
	w.same("what the next turn claims", idsOf(w.next(1).Claims), []string{"slow"})
}

// A shard that is idle makes no turns. So its renewals look for slow pushes.
func TestPostgresRenewalsFindASlowPush(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.slowPush()
	shards := []core.Shard{w.turn.Lease.Shard}
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.turn.Lease, TTL: w.turn.TTL})
		w.must(err)
		reply, err := w.store.Heads(t.Context(), shards)
		w.must(err)
		if head := reply.Heads[0]; head.OK {
			w.same("the head", head.Due, core.Instant(1))
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the job was not found")
		}
	}
	w.same("what the next turn claims", idsOf(w.next(1).Claims), []string{"slow"})
}

// The store that made a slow push knows that, long before a server would look for slow pushes.
func TestPostgresASlowPushTellsOfItself(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.acquire("me")
	pushed := w.pushAtGate("slow")
	// A turn looked meanwhile.
	kit.Exec(t, w.pool, strings.ReplaceAll(`
		UPDATE {schema}.shards SET floor = {schema}.clock(NULL) + 1000000, rescan = {schema}.clock(NULL) + 50000000`, "{schema}", w.schema))
	kit.Exec(t, w.pool, `SELECT pg_sleep(1.5)`) // The push is slow: it takes more than a second.
	w.openGate()
	w.must(<-pushed)
	w.same("what the next turn claims", idsOf(w.next(1).Claims), []string{"slow"})
}

// By a clock that is not the server's, a push is slow if that clock advances meanwhile, however
// soon the push is stored: a turn has looked past it.
func TestPostgresAPushIsSlowByItsStoresClock(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Hour)
	var passed atomic.Int64
	begun := time.Now()
	w.store = postgres.New(w.pool, postgres.Options{Schema: w.schema, NoWakeups: true, Clock: func() time.Time { return begun.Add(time.Duration(passed.Load())) }})
	w.acquire("me")
	pushed := w.pushAtGate("slow")
	passed.Store(int64(time.Minute))
	kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.shards SET floor = %d, rescan = %[2]d`, w.schema, core.InstantOf(begun.Add(time.Minute))))
	w.openGate()
	w.must(<-pushed)
	stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	w.must(err)
	w.same("the oldest job", stats[0].Counts.Oldest, core.Head{Due: core.InstantOf(begun), OK: true})
}

// A shard that makes turns looks for slow pushes in them.
func TestPostgresTurnsFindASlowPush(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.slowPush()
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(50 * time.Millisecond) {
		if reply := w.next(1); len(reply.Claims) == 1 {
			w.same("claimed", reply.Claims[0].ID, "slow")
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the job was not found")
		}
	}
}

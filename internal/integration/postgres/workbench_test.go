package postgres_test

import (
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
	return core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue, Failed: true, PutBack: core.PutBack{
		Failures: core.Failures{{Text: "bang"}},
	}}
}

// pushInTx pushes in a transaction of its own.
func (w *workbench) pushInTx(ids ...string) {
	w.t.Helper()
	w.must(pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error { return w.push(w.store.Tx(tx), ids...) }))
}

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// pushApart pushes in a transaction, which it returns open.
func (v *viewed) pushApart(s *postgres.Store, ids ...string) (commit func()) {
	v.t.Helper()
	tx, err := v.pool.Begin(v.t.Context())
	v.must(err)
	v.push(s.Tx(tx), core.In(time.Hour), ids...)
	return func() {
		v.t.Helper()
		v.must(tx.Commit(v.t.Context()))
	}
}

// Every first call after a caller's transaction, without a turn in between, sees the transaction's
// pushes.
func TestPostgresLooksSeeWhatTransactionsPush(t *testing.T) {
	t.Parallel()
	page := ports.PageRequest{Queue: "orders"}
	shard := core.Shard{Queue: "orders"}
	looks := map[string]func(v *viewed, s *postgres.Store) int{
		"Stats": func(v *viewed, s *postgres.Store) int {
			stats, err := s.Stats(v.t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			v.must(err)
			return int(stats[0].Fresh)
		},
		"Jobs": func(v *viewed, s *postgres.Store) int {
			jobs, err := s.Jobs(v.t.Context(), ports.JobsRequest{PageRequest: page})
			v.must(err)
			return len(jobs.Jobs)
		},
		"Find": func(v *viewed, s *postgres.Store) int {
			found, err := s.Find(v.t.Context(), ports.FindRequest{Queue: "orders", ID: "b", Payloads: 1000})
			v.must(err)
			if found.Queued == nil {
				return 0
			}
			return 2
		},
	}
	for name, step := range map[string]func(*postgres.Store, context.Context, ports.JobStep) (ports.StepReply, error){
		"Expedite": (*postgres.Store).Expedite,
		"Bury":     (*postgres.Store).Bury,
		"Delete":   (*postgres.Store).Delete,
	} {
		looks[name] = func(v *viewed, s *postgres.Store) int {
			reply, err := step(s, v.t.Context(), ports.JobStep{Shard: shard, IDs: []string{"a", "b"}})
			v.must(err)
			return reply.Handled
		}
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewed(t, 1)
			s := v.open(postgres.Options{})
			commit := v.pushApart(s, "a", "b")
			if n := look(v, s); n != 0 {
				t.Errorf("%d of the jobs are there before the transaction commits", n)
			}
			commit()
			if n := look(v, s); n != 2 {
				t.Errorf("%d of the jobs are there after the transaction has committed, want 2", n)
			}
		})
	}
}

// pushLarge pushes many jobs of one shard in a transaction, which it returns open.
func (v *viewed) pushLarge(s *postgres.Store) (jobs int64, commit func()) {
	v.t.Helper()
	ids := make([]string, 20_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("%05d", i)
	}
	return int64(len(ids)), v.pushApart(s, ids...)
}

// A reader merges the pushes of a large transaction in parts, each in a transaction of its own.
func TestPostgresLooksAtALargeTransactionBitByBit(t *testing.T) {
	t.Parallel()
	const most = 2000
	v := newViewed(t, 1)
	tracer := &seen{}
	s := v.openAs("looks", postgres.Options{}, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	jobs, commit := v.pushLarge(s)
	commit()
	stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	v.must(err)
	if got := stats[0].Fresh; got != jobs {
		t.Errorf("%d jobs are counted, want %d", got, jobs)
	}
	calls := 0
	for _, q := range tracer.sent() {
		switch {
		case strings.Contains(q.SQL, ".merge_inboxes("):
			calls++
		case strings.HasPrefix(strings.ToLower(q.SQL), "begin"):
			t.Errorf("%q: a transaction may hold the shard over several bits", q.SQL)
		}
	}
	if want := int(jobs) / most; calls < want {
		t.Errorf("%d jobs were merged in %d calls, want %d at least", jobs, calls, want)
	}
}

// While a reader merges the pushes of a large transaction, the holder makes turns between the
// parts, before its lease ends.
func TestPostgresLooksAtALargeTransactionKeepNoTurnWaiting(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Second
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	shard := core.Shard{Queue: "orders"}
	jobs, commit := v.pushLarge(s)
	lease, err := s.Acquire(t.Context(),
		ports.AcquireRequest{Shard: shard, Shards: 1, Generation: 1, Owner: "me", Attempt: 1, TTL: ttl})
	v.must(err)
	commit()

	var looking errgroup
	looked := make(chan struct{})
	looking.Go(func() error {
		defer close(looked)
		stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		if err == nil && stats[0].Fresh != jobs {
			err = fmt.Errorf("%d jobs are counted, want %d", stats[0].Fresh, jobs)
		}
		return err
	})
	for number, more := int64(1), true; more; number++ {
		_, err := s.Turn(t.Context(), ports.TurnRequest{
			Lease: ports.Lease{Shard: shard, Owner: "me", Token: lease.Token}, Number: number, TTL: ttl, Resent: true,
		})
		v.must(err)
		select {
		case <-looked:
			more = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	v.must(looking.Wait())
}

// A transaction's push for an id in the morgue meets the revived payloads.
func TestPostgresReviveMeetsWhatTransactionsPush(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{Clock: func() time.Time { return time.UnixMicro(1_000_000) }})
	v.push(s, core.When{}, "a")
	_, err := s.Bury(t.Context(), ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{"a"}})
	v.must(err)
	v.pushApart(s, "a")()
	_, err = s.Revive(t.Context(),
		ports.DeadLetterStep{Shard: core.Shard{Queue: "orders"}, DeadLetters: []ports.DeadLetterRef{{ID: "a"}}})
	v.must(err)
	found, err := s.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "a", Payloads: 1000})
	v.must(err)
	want := &core.Job{
		ID: "a", Payloads: []core.Payload{{Data: []byte("for a"), Score: 1}},
		State: core.State{PerformAt: 1_000_000, RetryCount: core.FreshRetryCount, FirstPush: 1_000_000},
	}
	if diff := cmp.Diff(&ports.JobView{Job: *want, Count: 1}, found.Queued); diff != "" {
		t.Errorf("the queued job (-want +got):\n%s", diff)
	}
}

// A job that a transaction is settling may stay claimed for hours. A cancel does not wait for it.
func TestPostgresCancelPassesOverWhatIsBeingSettled(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	shard := core.Shard{Queue: "orders"}
	v.push(s, core.When{}, "a", "b")
	lease, err := s.Acquire(t.Context(), ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: "me", Attempt: 1, TTL: time.Minute,
	})
	v.must(err)
	turn, err := s.Turn(t.Context(), ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: "me", Token: lease.Token}, Number: 1, TTL: time.Minute, Want: 2,
	})
	v.must(err)
	tx, err := v.pool.Begin(t.Context())
	v.must(err)
	c := turn.Claims[0]
	v.must(s.Tx(tx).Settle(t.Context(), shard, []core.Settlement{{ID: c.ID, Receipt: c.Receipt, Processed: true}}))

	both := ports.CancelRequest{Shard: shard, IDs: []string{"a", "b"}, Drop: true}
	reply, err := s.Cancel(t.Context(), both)
	v.must(err)
	if reply.Handled != 1 {
		t.Errorf("%d jobs are cancelled while one is being settled, want 1", reply.Handled)
	}
	v.must(tx.Rollback(t.Context()))
	_, err = s.Cancel(t.Context(), both)
	v.must(err)
	page, err := s.Claimed(t.Context(), ports.PageRequest{Queue: "orders"})
	v.must(err)
	for _, claim := range page.Claims {
		if !claim.Cancelled {
			t.Errorf("%s is not cancelled although its settlement was given up", claim.ID)
		}
	}
}

// In a database that was restored elsewhere, transactions count from a smaller
// number than the shards have seen.
func TestPostgresFindsTheInboxOfARestoredDatabase(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	kit.Exec(t, w.pool,
		fmt.Sprintf(`UPDATE %s.shards SET inbox_from = '9000000000000', counts_from = '9000000000000'`, w.schema))
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
	kit.Exec(t, w.pool,
		fmt.Sprintf(`UPDATE %s.shards SET inbox_from = (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 20)::text::xid8`,
			w.schema))
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
	reply, err := w.store.Delete(t.Context(),
		ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{"beside"}})
	w.must(err)
	w.same("how many are deleted", reply.Handled, 1)
	w.same("claimed", idsOf(w.next(2).Claims), []string{"long"})
}

package kills_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// keeping runs a server of a queue that has no jobs, which recovers the orphans of others. It
// sends changes of its leases to leases.
func keeping(t *testing.T, store skein.Store, ttl time.Duration) (stop func(), leases <-chan ports.LeaseEvent) {
	t.Helper()
	idle := skein.NewQueue("idle", skein.QueueOptions[int]{Shards: 1})
	watcher := leaseWatcher{leases: make(chan ports.LeaseEvent, 10_000)}
	return kit.Serve(t, skein.NewServer(store, skein.ServerOptions{
		LeaseTTL: ttl, RecoverOrphans: true, Observer: watcher, Logger: slog.New(slog.DiscardHandler),
	}, idle.JobHandler(func(context.Context, *skein.Job[int]) error { return nil }))), watcher.leases
}

// awaitAcquired waits until a server has acquired the lease of a queue's only shard n times.
func awaitAcquired(t *testing.T, leases <-chan ports.LeaseEvent, queue string, n int) {
	t.Helper()
	timeout := time.After(testservers.Patience)
	for acquired := 0; acquired < n; {
		select {
		case e := <-leases:
			if e.Shard.Queue == queue && e.Change == ports.LeaseAcquired {
				acquired++
			}
		case <-timeout:
			t.Fatalf("the lease of %s was acquired %d times within %v, want %d",
				queue, acquired, testservers.Patience, n)
		}
	}
}

// The last server of a queue dies with a thousand running jobs. They are shown as orphans once
// their leases are over, and a server of another queue that recovers orphans puts them back.
func TestOrphansOfADeadServerArePutBackWithoutItsQueuesServer(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second // a call may take a third of it
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			store := kit.Open(t, url)
			pushTakeoverJobs(t, store)
			j := newJournal(t)
			victim := startProcess(t, "victim", url, j)
			j.await(t, lineBegan, victim.pid(), takeoverJobs)
			kit.AwaitCounts(t, store, takenOver.Name(), 0, takeoverJobs, 0)
			victim.kill(t)
			kit.AwaitCounts(t, store, takenOver.Name(), 0, takeoverJobs, takeoverJobs)
			stop, _ := keeping(t, store, ttl)
			defer stop()
			kit.AwaitCounts(t, store, takenOver.Name(), takeoverJobs, 0, 0)
			found, err := store.Find(t.Context(),
				ports.FindRequest{Queue: takenOver.Name(), ID: "job-7", Payloads: 1000})
			if err != nil || found.Queued == nil || found.Queued.Recoveries != 1 {
				t.Errorf("job-7 is %+v, %v; want it queued, recovered once", found.Queued, err)
			}
		})
	}
}

// A transaction of an owner that is not dead may still settle a job whose lease is over. Until it
// has ended, the job stays where it is, and the others are put back.
func TestPostgresOrphanThatATransactionSettlesWaitsForIt(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	pool := testservers.Postgres(t)
	for name, commits := range map[string]bool{"and is done": true, "and goes back": false} {
		t.Run(name, func(t *testing.T) {
			store := kit.NewPostgres(t, pool)
			claims := claimAs(t, store, "dead", 3)
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			settle := []core.Settlement{{ID: claims[0].ID, Receipt: claims[0].Receipt, Processed: true}}
			if err := store.Tx(tx).Settle(t.Context(), core.Shard{Queue: "orders"}, settle); err != nil {
				t.Fatal(err)
			}
			stop, leases := keeping(t, store, ttl)
			defer stop()
			awaitAcquired(t, leases, "orders", 2)
			kit.AwaitCounts(t, store, "orders", 2, 1, 1) // not while the shard is held for another look
			left := int64(2)
			if commits {
				err = tx.Commit(t.Context())
			} else {
				left, err = 3, tx.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			kit.AwaitCounts(t, store, "orders", left, 0, 0)
		})
	}
}

// claimAs claims n jobs of a queue "orders" with one shard, by a lease that nobody renews.
func claimAs(t *testing.T, store ports.ShardStore, owner string, n int) []core.Claim {
	t.Helper()
	ctx, shard := t.Context(), core.Shard{Queue: "orders"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(err)
	var entries []core.Entry
	for i := range n {
		entries = append(entries, core.Entry{ID: string(rune('a' + i)), Payload: core.Payload{Data: []byte("x")}})
	}
	_, err = store.Push(ctx, ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
	must(err)
	lease, err := store.Acquire(ctx, ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: owner, Attempt: 1, TTL: time.Minute,
	})
	must(err)
	reply, err := store.Turn(ctx, ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: owner, Token: lease.Token},
		Number: 1, TTL: 100 * time.Millisecond, Want: n, // the lease is over soon after it
	})
	must(err)
	if len(reply.Claims) != n {
		t.Fatalf("claimed %d jobs, want %d", len(reply.Claims), n)
	}
	return reply.Claims
}

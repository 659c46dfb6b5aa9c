package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// guarded is a backend in Postgres with a single shard, which has a holder. Its time stands still,
// so that jobs pushed while a turn waits are due for that turn.
type guarded struct {
	*viewed
	store *postgres.Store
	turn  ports.TurnRequest
}

// newGuarded acquires the shard and makes a turn that writes, so that the turns after it are usual
// ones.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{viewed: newViewed(t, 1)}
	g.store = g.open(still())
	shard := core.Shard{Queue: "orders"}
	a, err := g.store.Acquire(t.Context(), ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: "guarded", Attempt: 1, TTL: time.Hour})
	g.must(err)
	g.turn = ports.TurnRequest{Lease: ports.Lease{Shard: shard, Owner: "guarded", Token: a.Token}, TTL: time.Hour}
	g.push(g.store, core.When{}, "first")
	g.settle(g.claim(1)...)
	return g
}

func still() postgres.Options {
	return postgres.Options{NoWakeups: true, Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }}
}

// next makes the next turn. It ends the test if the turn waits for another session.
func (g *guarded) next(want int, settle ...core.Settlement) ports.TurnReply {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), testservers.Patience)
	defer cancel()
	g.turn.Number++
	g.turn.Want, g.turn.Settlements = want, settle
	reply, err := g.store.Turn(ctx, g.turn)
	if errors.Is(err, context.DeadlineExceeded) {
		g.t.Fatal("the turn waits for another session")
	}
	g.must(err)
	g.turn.Number = reply.Last
	return reply
}

func (g *guarded) claim(want int) []core.Claim {
	g.t.Helper()
	return g.next(want).Claims
}

func (g *guarded) settle(claims ...core.Claim) {
	g.t.Helper()
	var settle []core.Settlement
	for _, c := range claims {
		settle = append(settle, done(c))
	}
	g.next(0, settle...)
}

// lock has another session lock rows until the returned function is called.
func (g *guarded) lock(query string, args ...any) (unlock func()) {
	g.t.Helper()
	tx, err := g.pool.Begin(g.t.Context())
	g.must(err)
	_, err = tx.Exec(g.t.Context(), query, args...)
	g.must(err)
	unlocked := false
	unlock = func() {
		if !unlocked {
			unlocked = true
			_ = tx.Rollback(context.Background())
		}
	}
	g.t.Cleanup(unlock)
	return unlock
}

func (g *guarded) lockRows(table string, ids ...string) (unlock func()) {
	g.t.Helper()
	return g.lock(fmt.Sprintf("SELECT FROM %s.%s WHERE id = ANY ($1) FOR UPDATE", g.schema, table), ids)
}

// counts checks the counts of the queue, except for the oldest job.
func (g *guarded) counts(want ports.Counts) {
	g.t.Helper()
	stats, err := g.store.Stats(g.t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	g.must(err)
	got := stats[0].Counts
	got.Oldest = core.Head{}
	if diff := cmp.Diff(want, got); diff != "" {
		g.t.Errorf("the counts (-want +got):\n%s", diff)
	}
}

// A turn skips jobs that a push holds locked, and counts those that it has claimed.
func TestPostgresTurnsPassOverLockedJobs(t *testing.T) {
	t.Parallel()
	// prepare queues the jobs a, b and c. Later a and b are locked.
	for name, prepare := range map[string]func(g *guarded){
		"a usual turn": func(g *guarded) { g.push(g.store, core.When{}, "a", "b", "c") },
		"retries": func(g *guarded) {
			g.push(g.store, core.When{}, "a", "c")
			claims := g.claim(2)
			g.next(0, failed(claims[0]), failed(claims[1]))
			g.push(g.store, core.When{}, "b")
		},
		"several payloads": func(g *guarded) {
			g.push(g.store, core.At(core.InstantOf(still().Clock())-1000), "c")
			r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
			for _, data := range []string{"p", "q"} {
				for _, id := range []string{"a", "b"} {
					r.Entries = append(r.Entries, core.Entry{ID: id, Payload: core.Payload{Data: []byte(data)}})
				}
			}
			_, err := g.store.Push(g.t.Context(), r)
			g.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t)
			prepare(g)
			stats, err := g.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			g.must(err)
			before := stats[0].Counts
			before.Oldest = core.Head{}
			unlock := g.lockRows("jobs", "a", "b")
			reply := g.next(10)
			if diff := cmp.Diff([]string{"c"}, idsOf(reply.Claims)); diff != "" {
				t.Errorf("the claims beside locked jobs (-want +got):\n%s", diff)
			}
			if !reply.Head.OK || reply.Head.Due > reply.Now {
				t.Errorf("the shard's head is %v at %v; the locked jobs are due", reply.Head, reply.Now)
			}
			left := before
			left.Claimed++
			if left.Retrying > 0 {
				left.Retrying--
			} else {
				left.Fresh--
			}
			g.counts(left)
			unlock()
			if diff := cmp.Diff([]string{"a", "b"}, idsOf(g.claim(10))); diff != "" {
				t.Errorf("the claims once they are free (-want +got):\n%s", diff)
			}
			g.counts(ports.Counts{Claimed: 3, Processed: before.Processed, Failed: before.Failed})
		})
	}
}

// A turn leaves claims that another session holds locked, and reports them.
func TestPostgresTurnsPassOverLockedClaims(t *testing.T) {
	t.Parallel()
	for name, settlements := range map[string]func(locked, other core.Claim) []core.Settlement{
		"one settlement": func(locked, _ core.Claim) []core.Settlement { return []core.Settlement{done(locked)} },
		"several settlements": func(locked, other core.Claim) []core.Settlement {
			return []core.Settlement{done(locked), done(other)}
		},
		"a failure among them": func(locked, other core.Claim) []core.Settlement {
			return []core.Settlement{done(locked), failed(other)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t)
			g.push(g.store, core.When{}, "a", "b")
			claims := g.claim(2)
			unlock := g.lockRows("claimed", "a")
			settle := settlements(claims[0], claims[1])
			reply := g.next(0, settle...)
			if diff := cmp.Diff([]int{0}, reply.Deferred); diff != "" || len(reply.Skipped) > 0 {
				t.Errorf("skipped %v; deferred (-want +got):\n%s", reply.Skipped, diff)
			}
			unlock()
			if reply := g.next(0, settle[0]); len(reply.Deferred)+len(reply.Skipped) > 0 {
				t.Errorf("once it is free, deferred %v and skipped %v", reply.Deferred, reply.Skipped)
			}
		})
	}
}

// A claim of an earlier lease that another session holds locked is handed over later, and an
// operator's cancel skips it.
func TestPostgresTakeOverPassesOverLockedClaims(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.push(g.store, core.When{}, "a", "b")
	g.claim(2)
	unlock := g.lockRows("claimed", "a")
	ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
	defer cancel()
	reply, err := g.store.Cancel(ctx, ports.CancelRequest{Shard: g.turn.Lease.Shard, IDs: []string{"a", "b"}})
	g.must(err)
	if reply.Handled != 1 {
		t.Errorf("%d jobs are cancelled, want the one that is free", reply.Handled)
	}
	a, err := g.store.Acquire(ctx, ports.AcquireRequest{
		Shard: g.turn.Lease.Shard, Shards: 1, Generation: 1, Owner: "guarded", Attempt: 2, TTL: time.Hour})
	g.must(err)
	g.turn.Lease.Token, g.turn.Number = a.Token, 0
	if diff := cmp.Diff([]string{"b"}, idsOf(a.Claims)); diff != "" {
		t.Errorf("the jobs that the acquire handed over (-want +got):\n%s", diff)
	}
	if left := g.next(0).Orphans; len(left) > 0 {
		t.Errorf("a turn handed over %q, which is locked", idsOf(left))
	}
	unlock()
	if diff := cmp.Diff([]string{"a"}, idsOf(g.next(0).Orphans)); diff != "" {
		t.Errorf("the jobs that a later turn handed over (-want +got):\n%s", diff)
	}
}

// If another session has locked a shard, an acquire of it gives up and tries again, so that it
// succeeds when the shard is free.
func TestPostgresAcquireBoundsItsWaits(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	tries := &counted{of: ".acquire(", seen: make(chan struct{}, 100)}
	store := v.openAs("acquires", postgres.Options{NoWakeups: true}, tries.trace)
	g := &guarded{viewed: v}
	unlock := g.lock(fmt.Sprintf("SELECT FROM %s.shards FOR UPDATE", v.schema))
	acquired := make(chan error, 1)
	go func() {
		_, err := store.Acquire(t.Context(), ports.AcquireRequest{
			Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1, Owner: "waits", Attempt: 1, TTL: time.Second})
		acquired <- err
	}()
	for range 2 {
		select {
		case <-tries.seen:
		case <-time.After(testservers.Patience):
			unlock()
			<-acquired
			t.Fatal("the acquire waits for the lock and is not tried again")
		}
	}
	unlock()
	v.must(<-acquired)
}

// A standby may not have a turn yet whose claims are read after its commit, and would return none.
func TestPostgresTurnClaimsAreOfThePrimary(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	tx, err := g.pool.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	g.must(err)
	defer func() { g.must(tx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = tx.Exec(t.Context(),
		"SELECT * FROM "+pgx.Identifier{g.schema, "turn_claims"}.Sanitize()+"('orders', 0, 1, 1)")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "25006" {
		t.Errorf("in a read-only transaction the claims of a turn give %v, want the error 25006, as from a turn", err)
	}
}

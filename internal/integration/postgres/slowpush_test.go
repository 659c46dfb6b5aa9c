package postgres_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// slowPush stores a job as a push does that took long to commit: it is due before the floor of
// claims.
func (w *workbench) slowPush() {
	w.t.Helper()
	w.acquire("n1")
	w.must(w.push(w.store, "a"))
	w.next(1, done(w.next(1).Claims[0]))
	kit.Exec(w.t, w.pool, fmt.Sprintf(`
		INSERT INTO %s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
		VALUES (0, 'slow', 1, 1, -1, 0, false, 0, 'x')`, w.schema))
}

// pushAtGate pushes beside the test, and returns once the push waits at the gate, before it
// commits.
func (w *workbench) pushAtGate(id string) (pushed <-chan error) {
	w.t.Helper()
	w.gate()
	kit.Exec(w.t, w.pool, strings.ReplaceAll(`
		CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM {schema}.wait_at_gate(); RETURN NULL; END';
		CREATE TRIGGER slow AFTER INSERT ON {schema}.jobs FOR EACH STATEMENT EXECUTE FUNCTION {schema}.slow()`,
		"{schema}", w.schema))
	done := make(chan error, 1)
	go func() { done <- w.push(w.store, id) }()
	w.viewed().eventually("the push waits at the gate", func() (asleep bool) {
		w.must(w.pool.QueryRow(w.t.Context(),
			`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE $1)`,
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
		UPDATE {schema}.shards SET floor = {schema}.clock(NULL) + 1000000, rescan = {schema}.clock(NULL) + 50000000`,
		"{schema}", w.schema))
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
	w.store = postgres.New(w.pool, postgres.Options{Schema: w.schema, NoWakeups: true, Clock: func() time.Time {
		return begun.Add(time.Duration(passed.Load()))
	}})
	w.acquire("me")
	pushed := w.pushAtGate("slow")
	passed.Store(int64(time.Minute))
	kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.shards SET floor = %d, rescan = %[2]d`,
		w.schema, core.InstantOf(begun.Add(time.Minute))))
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

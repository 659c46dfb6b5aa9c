package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// parked returns how many jobs are parked: a turn that claims does not read them.
func (w *workbench) parked() (n int) {
	w.t.Helper()
	w.must(w.pool.QueryRow(w.t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s.jobs WHERE parked`, w.schema)).Scan(&n))
	return n
}

// claimedAgain claims jobs, and pushes for their ids again.
func (w *workbench) claimedAgain(ids ...string) []core.Claim {
	w.t.Helper()
	w.acquire("n1")
	w.must(w.push(w.store, ids...))
	claims := w.next(len(ids)).Claims
	w.same("claimed", idsOf(claims), ids)
	w.must(w.push(w.store, ids...))
	return claims
}

// Jobs that wait for a claim of their id are skipped once, also by turns that claim nothing, and
// claimed once it has ended.
func TestPostgresPassesOverAJobOnce(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	claims := w.claimedAgain("a", "b", "c")
	w.same("parked before a turn", w.parked(), 0)
	w.same("the head", w.next(0).Head, core.Head{})
	w.same("parked after a look", w.parked(), 3)
	w.must(w.push(w.store, "d"))
	w.same("claimed beside them", idsOf(w.next(9).Claims), []string{"d"})
	page, err := w.store.Jobs(t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	w.must(err)
	w.same("listed", len(page.Jobs), 3)
	w.same("claimed by the turn that settles two", idsOf(w.next(9, done(claims[0]), failed(claims[1])).Claims),
		[]string{"a", "b"})
	w.same("parked then", w.parked(), 1)
	w.same("the head", w.next(0, done(claims[2])).Head.OK, true)
	w.same("claimed at last", idsOf(w.next(9).Claims), []string{"c"})
	w.same("parked at last", w.parked(), 0)
}

// A transaction settles a claim whose id has a job that a turn skips before the settlement, during
// the transaction, and before the settlement of a transaction that does not see it.
func TestPostgresUnparksWhatTransactionsFree(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		level        pgx.TxIsoLevel
		passedBefore bool
	}{
		"passed before":                   {pgx.ReadCommitted, true},
		"passed while it is open":         {pgx.ReadCommitted, false},
		"passed before, but not seen":     {pgx.RepeatableRead, true},
		"passed while it is open, unseen": {pgx.RepeatableRead, false},
		"passed before, and serializable": {pgx.Serializable, true},
		"passed while it is serialized":   {pgx.Serializable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			w.acquire("n1")
			w.must(w.push(w.store, "a"))
			c := w.next(1).Claims[0]
			tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: tt.level})
			w.must(err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, err = tx.Exec(t.Context(), `SELECT count(*) FROM `+w.schema+`.jobs`) // from here on it sees nothing new
			w.must(err)
			w.must(w.push(w.store, "a"))
			settle := func() {
				w.must(w.store.Tx(tx).Settle(t.Context(), w.turn.Lease.Shard, []core.Settlement{done(c)}))
			}
			if tt.passedBefore {
				w.same("claimed before the settlement", idsOf(w.next(9).Claims), []string(nil))
				w.same("parked before the settlement", w.parked(), 1)
				settle()
			} else {
				settle()
				w.same("claimed while the settlement is open", idsOf(w.next(9).Claims), []string(nil))
				w.same("parked while the settlement is open", w.parked(), 0)
			}
			w.must(tx.Commit(t.Context()))
			w.same("the head", w.next(0).Head.OK, true)
			w.same("claimed after the settlement", idsOf(w.next(9).Claims), []string{"a"})
			w.same("parked at last", w.parked(), 0)
		})
	}
}

// A turn does not wait for a push that has locked a parked job whose claim it settles, and
// the next one claims the job.
func TestPostgresUnparksBehindAPush(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	c := w.claimedAgain("a")[0]
	w.next(0)
	w.same("parked", w.parked(), 1)
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM `+w.schema+`.jobs FOR UPDATE`)
	w.must(err)

	reply := w.next(9, done(c))
	w.same("claimed while it is locked", idsOf(reply.Claims), []string(nil))
	w.same("the head is due", reply.Head.OK && reply.Head.Due <= reply.Now, true)
	renewal, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.turn.Lease, TTL: w.turn.TTL})
	w.must(err)
	w.same("the head of a renewal is due", renewal.Head.OK && renewal.Head.Due <= renewal.Now, true)
	w.must(tx.Rollback(t.Context()))
	w.same("claimed then", idsOf(w.next(9).Claims), []string{"a"})
}

// A job is not parked while a push has locked it, and found later.
func TestPostgresParksBehindAPush(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	c := w.claimedAgain("a")[0]
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM `+w.schema+`.jobs FOR UPDATE`)
	w.must(err)
	for range 3 { // the floor rises to a second ago
		w.same("claimed while it is locked", idsOf(w.next(9).Claims), []string(nil))
		time.Sleep(600 * time.Millisecond) // a slow machine waits longer than the second, which does no harm
	}
	w.same("parked while it is locked", w.parked(), 0)
	w.must(tx.Rollback(t.Context()))
	w.same("claimed then", idsOf(w.next(9, done(c)).Claims), []string{"a"})
}

// If a shard has parked jobs, turns take the short way, except for those that settle one of their
// ids.
func TestPostgresTurnsFastBesideParkedJobs(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.stopClock()
	claims := w.claimedAgain("a", "b")
	w.next(9)
	w.same("parked", w.parked(), 2)
	kit.Exec(t, w.pool, fmt.Sprintf(`ALTER FUNCTION %[1]s.turn RENAME TO slow_turn`, w.schema))
	w.must(w.push(w.store, "c"))
	c := w.next(9).Claims[0]
	w.same("claimed beside them", c.ID, "c")
	w.next(9, done(c))
	kit.Exec(t, w.pool, fmt.Sprintf(`ALTER FUNCTION %[1]s.slow_turn RENAME TO turn`, w.schema))
	w.same("claimed by the turn that settles one", idsOf(w.next(9, done(claims[1])).Claims), []string{"b"})
}

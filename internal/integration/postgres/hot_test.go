package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// gate makes a table, and a function that waits until the table has a row: then the gate is open.
func (w *workbench) gate() {
	w.t.Helper()
	kit.Exec(w.t, w.pool, strings.ReplaceAll(`
		CREATE TABLE {schema}.gate (open boolean);
		CREATE FUNCTION {schema}.wait_at_gate() RETURNS void LANGUAGE plpgsql AS $$
		BEGIN
		  WHILE NOT EXISTS (SELECT FROM {schema}.gate) LOOP
		    PERFORM pg_sleep(0.005);
		  END LOOP;
		END $$`, "{schema}", w.schema))
}

// openGate lets the sessions that wait at the gate continue.
func (w *workbench) openGate() {
	w.t.Helper()
	kit.Exec(w.t, w.pool, fmt.Sprintf(`INSERT INTO %s.gate VALUES (true)`, w.schema))
}

// atGate waits until a call of a function waits at the gate.
func (w *workbench) atGate(function string) { w.waits(function, `wait_event = 'PgSleep'`) }

// waits waits until a call of a function waits for something.
func (w *workbench) waits(function, event string) {
	w.t.Helper()
	w.viewed().eventually(function+" waits", func() (waiting bool) {
		w.must(w.pool.QueryRow(w.t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE `+event+
			` AND query LIKE $1)`,
			"%"+w.schema+`".`+function+"(%").Scan(&waiting))
		return waiting
	})
}

// send makes the next turn beside the test, which receives the reply.
func (w *workbench) send(want int, settle ...core.Settlement) <-chan ports.TurnReply {
	r := w.turn
	r.Number, r.Want, r.Settlements = w.turn.Number+1, want, settle
	replies := make(chan ports.TurnReply, 1)
	go func() {
		reply, err := w.store.Turn(w.t.Context(), r)
		if err != nil {
			w.t.Error(err)
		}
		w.turn.Number++
		replies <- reply
	}()
	return replies
}

// pushOf pushes a payload of an id, in a caller's transaction if inTx is true.
func (w *workbench) pushOf(id, data string, inTx bool, rule core.PushRule) {
	w.t.Helper()
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Rule: rule,
		Entries: []core.Entry{
			{ID: id, Payload: core.Payload{Data: []byte(data), Score: float64(time.Now().UnixMicro())}},
		}}
	if !inTx {
		_, err := w.store.Push(w.t.Context(), r)
		w.must(err)
		return
	}
	w.must(pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.store.Tx(tx).Push(w.t.Context(), r)
		return err
	}))
}

func payloadsOf(c core.Claim) (list []string) {
	for _, p := range c.Payloads {
		list = append(list, string(p.Data))
	}
	return list
}

// A transaction's push for an id while a turn is under way neither holds the id up nor is
// overtaken.
func TestPostgresClaimsAnIDThatTransactionsPushMeanwhile(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"by transactions only": false, "by a push as well": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			w.acquire("n1")
			w.gate()
			kit.Exec(t, w.pool, strings.ReplaceAll(`
				CREATE FUNCTION {schema}.wait_once() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN PERFORM {schema}.wait_at_gate() WHERE current_query() LIKE '%turn%'; RETURN NULL; END $$;
				CREATE TRIGGER wait BEFORE INSERT ON {schema}.jobs FOR EACH STATEMENT EXECUTE FUNCTION {schema}.wait_once()`,
				"{schema}", w.schema))
			w.must(w.push(w.store, "z"))
			w.pushOf("a", "first", true, core.PushRule{})
			want := []string{"first", "second"}
			replies := w.send(9)
			w.atGate("turn_fast")
			w.pushOf("a", "second", true, core.PushRule{})
			if direct {
				w.pushOf("a", "third", false, core.PushRule{})
				want = append(want, "third")
			}
			w.openGate()
			claims := (<-replies).Claims
			if direct { // the job that it met was not due when the turn began
				claims = append(claims, w.next(9).Claims...)
			}
			w.same("claimed", idsOf(claims), []string{"z", "a"})
			for _, c := range claims {
				if c.ID == "a" {
					w.same("the payloads", payloadsOf(c), want)
				}
			}
			stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			w.must(err)
			w.same("fresh and claimed", []int64{stats[0].Fresh, stats[0].Claimed}, []int64{0, int64(len(claims))})
		})
	}
}

// The TTL bounds the merge of an inbox: a turn under a lease of a second merges fewer rows than one
// under a lease of a minute, so that the lease does not end meanwhile.
func TestPostgresMergesLessBesideAShortLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ payloads, size, left int }{
		"rows":  {900, 10, 700},
		"bytes": {3, 1 << 20, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Second)
			w.acquire("n1")
			w.pushApart(core.PushRule{}, tt.payloads, tt.size, func(int) string { return "a" })
			reply := w.next(1)
			w.same("rows left by a turn", w.waiting(), tt.left)
			w.same("the head is due", reply.Head.DueBy(reply.Now), true)
			for w.waiting() > 0 {
				_, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.turn.Lease, TTL: w.turn.TTL})
				w.must(err)
			}
			w.same("claimed at last", len(w.next(1).Claims[0].Payloads), tt.payloads)
		})
	}
}

// A job that a transaction puts back takes its time once, also if its payloads are merged
// in parts and a push moves it in between.
func TestPostgresAPutBackInPartsUndoesNoPush(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.queue("a", 900, false)
	w.acquire("n1")
	c := w.next(1).Claims[0]
	w.must(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		ids := make([]string, 500)
		for i := range ids {
			ids[i] = fmt.Sprintf("beside %03d", i)
		}
		if err := w.push(w.store.Tx(tx), ids...); err != nil {
			return err
		}
		snoozed := core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue, PutBack: core.PutBack{
			Delay: time.Hour, RetryCount: core.FreshRetryCount,
		}}
		return w.store.Tx(tx).Settle(t.Context(), w.turn.Lease.Shard, []core.Settlement{snoozed})
	}))
	w.next(0)
	w.same("rows left", w.waiting(), 400)
	w.pushOf("a", "now", false, core.PushRule{Kind: core.Earliest})
	for _, c := range append(w.next(core.MaxTurnJobs).Claims, w.next(core.MaxTurnJobs).Claims...) {
		if c.ID == "a" {
			w.same("its payloads", len(c.Payloads) > 400, true)
			return
		}
	}
	t.Error("the job that a push made due was not claimed")
}

// A turn that waits for a push holds no lock on another job. If a turn and a push locked jobs in
// different orders, they would wait for each other.
func TestPostgresATurnThatWaitsHoldsNoJob(t *testing.T) {
	t.Parallel()
	free := func(w *workbench, id string) {
		w.t.Helper()
		_, err := w.pool.Exec(w.t.Context(),
			fmt.Sprintf(`SELECT FROM %s.jobs WHERE id = $1 FOR UPDATE NOWAIT`, w.schema), id)
		w.must(err)
	}
	// lock is a push for "a" that is under way.
	lock := func(w *workbench) (unlock func()) {
		w.t.Helper()
		tx, err := w.pool.Begin(w.t.Context())
		w.must(err)
		w.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		_, err = tx.Exec(w.t.Context(), fmt.Sprintf(`SELECT FROM %s.jobs WHERE id = 'a' FOR UPDATE`, w.schema))
		w.must(err)
		return func() { w.must(tx.Rollback(w.t.Context())) }
	}
	t.Run("that unparks", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, time.Minute)
		claims := w.claimedAgain("b")
		w.next(0)
		w.same("parked", w.parked(), 1)
		w.must(w.push(w.store, "a"))
		unlock := lock(w)
		w.pushInTx("a")
		replies := w.send(9, done(claims[0]))
		w.waits("turn_fast", `wait_event_type = 'Lock'`)
		free(w, "b")
		unlock()
		w.same("claimed then", idsOf((<-replies).Claims), []string{"b", "a"})
	})
	t.Run("that takes the short way", func(t *testing.T) {
		t.Parallel()
		w := newWorkbench(t, time.Minute)
		w.stopClock()
		w.acquire("n1")
		w.must(w.push(w.store, "x"))
		w.next(1, done(w.next(1).Claims[0])) // from here on turns may take the short way
		w.gate()
		kit.Exec(t, w.pool, strings.ReplaceAll(`
			CREATE OR REPLACE FUNCTION {schema}.clock(p_now bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
			BEGIN
			  PERFORM {schema}.wait_at_gate() WHERE current_query() LIKE '%turn_fast(%';
			  RETURN p_now;
			END $$`, "{schema}", w.schema))
		w.must(w.push(w.store, "b"))
		kit.Exec(t, w.pool, fmt.Sprintf(`
			INSERT INTO %s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
			VALUES (0, 'a', 1::bigint << 53, 1, -1, 0, false, 0, 'x')`, w.schema))
		unlock := lock(w)
		replies := w.send(9)
		w.atGate("turn_fast")
		w.pushInTx("a")
		w.openGate()
		reply := <-replies // it waits for nobody
		w.same("claimed", idsOf(reply.Claims), []string{"b"})
		unlock()
		w.next(0)
		w.same("rows left", w.waiting(), 0)
	})
}

// A turn that merges jobs which a transaction has put back meanwhile, and then claims nothing,
// counts them all the same.
func TestPostgresATurnThatOnlyMergesCounts(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	w.must(w.push(w.store, "x"))
	claims := w.next(1).Claims
	w.must(w.push(w.store, "x"))
	w.gate()
	kit.Exec(t, w.pool, strings.ReplaceAll(`
		CREATE FUNCTION {schema}.wait_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM {schema}.wait_at_gate() WHERE current_query() LIKE '%turn%'; RETURN NULL; END $$;
		CREATE TRIGGER wait BEFORE INSERT ON {schema}.jobs FOR EACH STATEMENT EXECUTE FUNCTION {schema}.wait_once()`,
		"{schema}", w.schema))
	w.must(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.store.Tx(tx).Push(t.Context(), ports.PushRequest{
			Queue:      "orders",
			Shards:     1,
			Generation: 1,
			Entries: []core.Entry{
				{ID: "later", Payload: core.Payload{Data: []byte("p")}, When: core.In(time.Hour)},
			},
		})
		return err
	}))
	replies := w.send(9)
	w.atGate("turn_fast")
	policy := core.RetryPolicy{MaxRetries: 9, Backoff: func(int, int) time.Duration { return time.Hour }}
	failed := policy.Settlement(&claims[0], &core.Outcome{Kind: core.Failed, Error: "boom"}, 0)
	w.must(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		return w.store.Tx(tx).Settle(t.Context(), core.Shard{Queue: "orders"}, []core.Settlement{failed})
	}))
	w.openGate()
	w.same("claimed", idsOf((<-replies).Claims), []string(nil))
	counts, err := kit.Recounted(t.Context(), w.store, core.Shard{Queue: "orders"})
	w.must(err)
	w.same("the counts before and after a recount", counts.Before, counts.After)
}

// gateAtMerges has merges of turns wait at the gate once they have taken the inbox's rows.
func (w *workbench) gateAtMerges() {
	w.t.Helper()
	w.gate()
	kit.Exec(w.t, w.pool, strings.ReplaceAll(`
		CREATE FUNCTION {schema}.wait_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM {schema}.wait_at_gate() WHERE current_query() LIKE '%turn%'; RETURN NULL; END $$;
		CREATE TRIGGER wait BEFORE INSERT ON {schema}.jobs FOR EACH STATEMENT EXECUTE FUNCTION {schema}.wait_once()`,
		"{schema}", w.schema))
}

// pushAt pushes a payload of an id that is due at a time, in a transaction of its own.
func (w *workbench) pushAt(id string, data []byte, at core.Instant, rule core.PushRule) {
	w.t.Helper()
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Rule: rule,
		Entries: []core.Entry{{ID: id, Payload: core.Payload{Data: data}, When: core.At(at)}}}
	w.must(pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.store.Tx(tx).Push(w.t.Context(), r)
		return err
	}))
}

// A job that later pushes delay overtakes no other, and is overtaken by jobs that are due before
// it.
func TestPostgresAJobThatIsPutOffMeanwhileKeepsTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	w.gateAtMerges()
	now := core.InstantOf(time.Now())
	for i, id := range []string{"a", "b", "c"} {
		w.pushAt(id, []byte("first"), now.Add(time.Duration(i-60)*time.Second), core.PushRule{})
	}
	replies := w.send(2)
	w.atGate("turn_fast")
	w.pushAt("a", []byte("second"), now.Add(-59*time.Second+time.Millisecond), core.PushRule{Kind: core.Debounce})
	w.openGate()
	w.same("claimed", idsOf((<-replies).Claims), []string{"b"})
	w.same("claimed then", idsOf(w.next(9).Claims), []string{"a", "c"})
}

// A claim's merge for its job is bounded in bytes, except for the first row.
func TestPostgresAClaimMergesSoManyBytes(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.turn.Bytes = 64 << 20
	w.acquire("n1")
	w.gateAtMerges()
	for _, id := range []string{"a", "b"} {
		w.pushOf(id, "first", true, core.PushRule{})
	}
	replies := w.send(9)
	w.atGate("turn_fast")
	for i := range 5 {
		for _, id := range []string{"a", "b"} {
			w.pushOf(id, strings.Repeat(fmt.Sprint(i), 1<<20), true, core.PushRule{})
		}
	}
	w.openGate()
	w.same("claimed", idsOf((<-replies).Claims), []string{"a"})
	w.same("rows left", w.waiting(), 5)
}

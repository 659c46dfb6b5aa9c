package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// A recount corrects wrong counts, whatever their cause, while turns and pushes continue.
func TestPostgresRecountCorrectsCounts(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.push(g.store, core.When{}, "a", "b", "c", "d")
	claims := g.claim(2)
	g.next(0, failed(claims[0]))
	_, err := g.store.Bury(t.Context(), ports.JobStep{Shard: g.turn.Lease.Shard, IDs: []string{"d"}})
	g.must(err)
	_, err = g.pool.Exec(t.Context(),
		`INSERT INTO `+g.schema+`.count_changes (shard, fresh, retrying, claimed, dead, processed, failed)
		VALUES (0, 31066, -7, 5, 3, 0, 0)`)
	g.must(err)
	want := ports.Counts{Fresh: 1, Retrying: 1, Claimed: 1, Dead: 1, Processed: 1, Failed: 1}
	wrong := want
	wrong.Fresh, wrong.Retrying, wrong.Claimed, wrong.Dead =
		want.Fresh+31066, want.Retrying-7, want.Claimed+5, want.Dead+3

	var replies [4]ports.RecountReply
	var all sync.WaitGroup
	session := "recounts of " + g.schema
	store := g.openAs(session, still())
	unlock := g.lock(`LOCK TABLE ` + g.schema + `.count_changes IN EXCLUSIVE MODE`) // so that all begin at once
	for i := range replies {
		all.Go(func() {
			var err error
			replies[i], err = kit.Recounted(t.Context(), store, g.turn.Lease.Shard)
			if err != nil {
				t.Error(err)
			}
		})
	}
	g.waits(session, len(replies))
	unlock()
	all.Wait()
	corrected := 0
	for _, r := range replies {
		r.Before.Oldest, r.After.Oldest = core.Head{}, core.Head{}
		if diff := cmp.Diff(want, r.After); diff != "" {
			t.Errorf("the counts after a recount (-want +got):\n%s", diff)
		}
		if cmp.Equal(wrong, r.Before) {
			corrected++
		}
	}
	if corrected != 1 {
		t.Errorf("%d of %d recounts at once have corrected the counts, want one", corrected, len(replies))
	}
	g.counts(want)
}

// While turns and pushes change a shard, a recount finds nothing to correct.
func TestPostgresRecountIsRightBesideTurns(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	stop := make(chan struct{})
	var all errgroup
	for n := range 3 {
		all.Go(func() error {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return nil
				default:
				}
				r := ports.PushRequest{
					Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: fmt.Sprint(n, " ", i%50)}},
				}
				if _, err := g.store.Push(t.Context(), r); err != nil {
					return err
				}
			}
		})
	}
	all.Go(func() error {
		for range 40 {
			r, err := kit.Recounted(t.Context(), g.store, g.turn.Lease.Shard)
			if err != nil {
				return err
			}
			if !cmp.Equal(r.Before, r.After) {
				return fmt.Errorf("a recount has corrected %+v to %+v", r.Before, r.After)
			}
		}
		return nil
	})
	var settle []core.Settlement
	for i := range 60 {
		reply := g.next(5, settle...)
		settle = nil
		for _, c := range reply.Claims {
			if i%2 == 0 {
				settle = append(settle, done(c))
			} else {
				settle = append(settle, failed(c))
			}
		}
	}
	close(stop)
	g.must(all.Wait())
}

// While a caller's transaction with a push is open, the queue can't be forgotten, whatever the
// transaction's isolation. A push to a forgotten queue fails.
func TestPostgresForgetLosesNoTransaction(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			v := newViewed(t, 2)
			s := v.open(postgres.Options{NoWakeups: true})
			r := ports.PushRequest{Queue: "orders", Shards: 2, Generation: 1, Entries: []core.Entry{{ID: "a"}}}
			begin := func() pgx.Tx {
				tx, err := v.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
				v.must(err)
				t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
				_, err = tx.Exec(t.Context(), "SELECT 1") // its snapshot is of now
				v.must(err)
				return tx
			}
			first, late := begin(), begin()
			_, err := s.Tx(first).Push(t.Context(), r)
			v.must(err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.Forget(ctx, "orders"); err == nil {
				t.Fatal("the queue is forgotten although a push to it is under way")
			}
			v.must(first.Commit(t.Context()))
			if err := s.Forget(t.Context(), "orders"); !errors.Is(err, ports.ErrNotEmpty) {
				t.Errorf("Forget of a queue with a job that a transaction pushed: %v, want %v", err, ports.ErrNotEmpty)
			}
			_, err = s.Delete(t.Context(),
				ports.JobStep{Shard: core.Shard{Queue: "orders", Index: core.ShardOf("a", 2)}, IDs: []string{"a"}})
			v.must(err)
			v.must(s.Forget(t.Context(), "orders"))
			if _, err := s.Tx(late).Push(t.Context(), r); err == nil {
				t.Error("a push to a forgotten queue gave no error")
			}
			_ = late.Rollback(t.Context())
			var rows int
			v.must(v.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+v.schema+`.inbox`).Scan(&rows))
			if rows > 0 {
				t.Errorf("%d rows are in the inbox of a queue that is gone", rows)
			}
		})
	}
}

// A vacuum
// that waits to truncate the emptied table of queues, while a transaction reads that table, would
// keep Declare waiting for longer than it repeats its call.
func TestPostgresDeclaresBesideAVacuumOfNoQueues(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))
	store := postgres.New(pool, postgres.Options{Schema: schema, NoWakeups: true})
	kit.Exec(t, pool, fmt.Sprintf(
		`INSERT INTO %[1]s.queues (name, shards, generation, index_ids) VALUES ('gone', 1, 1, false)`, schema,
	))
	kit.Exec(t, pool, fmt.Sprintf(`DELETE FROM %s.queues`, schema))
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), fmt.Sprintf(`SELECT FROM %s.queues`, schema))
	must(t, err)
	vacuumed := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`VACUUM %s.queues`, schema))
		vacuumed <- err
	}()
	truncates := func() (yes bool) {
		must(t, pool.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_stat_progress_vacuum WHERE relid = ($1 || '.queues')::regclass AND phase = 'truncating heap')`,
			schema).Scan(&yes))
		return yes
	}
	for ended := false; !ended; {
		select {
		case err := <-vacuumed:
			must(t, err)
			ended = true
		default:
			if truncates() {
				t.Error("a vacuum waits to truncate the table of queues, and Declare waits for that vacuum")
				ended = true
			}
		}
	}
	if _, err := store.Tx(tx).Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Error(err)
	}
}

// A forgotten queue leaves no rows, and its number is not given to another queue.
func TestPostgresForgetLeavesNothing(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.must(g.store.Record(t.Context(), ports.RecordRequest{Owner: "me", Records: []ports.Record{
		{Queue: "orders", Minute: core.InstantOf(time.Now()).Minute(), Stats: core.Stats{Processed: 1}},
	}}))
	g.push(g.store, core.When{}, "a")
	g.settle(g.claim(1)...)
	g.must(g.store.Release(t.Context(), g.turn.Lease))
	g.must(g.store.Forget(t.Context(), "orders"))
	for _, table := range []string{
		"queues", "shards", "turn_log", "count_changes", "jobs", "payloads", "dead_letters",
		"dead_letter_payloads", "claimed", "inbox", "minute_records", "day_records",
	} {
		var n int
		g.must(g.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+g.schema+`.`+table).Scan(&n))
		if n > 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
	_, err := g.store.Declare(t.Context(), ports.DeclareRequest{Queue: "another", Shards: 1})
	g.must(err)
	var id int
	g.must(g.pool.QueryRow(t.Context(), `SELECT id FROM `+g.schema+`.queues`).Scan(&id))
	if id == 0 {
		t.Error("another queue has the number of the forgotten one")
	}
}

// A job that a caller's transaction holds is not begun.
func TestPostgresBeginsNothingThatIsLocked(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.push(g.store, core.When{}, "a", "b")
	claims := g.claim(2)
	unlock := g.lockRows("claimed", "a")
	g.turn.Begin = []core.ClaimRef{claims[0].Ref(), claims[1].Ref()}
	reply := g.next(0)
	if diff := cmp.Diff([]int{0}, reply.NotBegun); diff != "" {
		t.Errorf("what is not begun (-want +got):\n%s", diff)
	}
	unlock()
	if reply := g.next(0); len(reply.NotBegun) > 0 {
		t.Errorf("%v are not begun once they are free", reply.NotBegun)
	}
}

// Ping reports errors before anything is written.
func TestPostgresPingSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Exec(t, pool, `CREATE ROLE weak LOGIN; GRANT USAGE ON SCHEMA skein TO weak;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA skein TO weak; REVOKE DELETE ON skein.claimed FROM weak`)
	tests := []struct {
		name    string
		connect func(*pgx.ConnConfig)
		schema  string
		says    string
	}{
		{"a right that is missing", as("weak", ""), "", "claimed"},
		{"no database", func(c *pgx.ConnConfig) { c.Database = "gone" }, "", "create the database"},
		{"no schema", nil, "other", "postgres.Migrate"},
		{"an invalid schema", nil, "pg_other", "choose another"},
	}
	for _, tt := range tests {
		other := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
			if tt.connect != nil {
				tt.connect(c.ConnConfig)
			}
		})
		kit.Unusable(t, "Ping with "+tt.name,
			postgres.New(other, postgres.Options{Schema: tt.schema}).Ping(t.Context()), tt.says)
	}
	if err := postgres.New(pool, postgres.Options{}).Ping(t.Context()); err != nil {
		t.Errorf("Ping of a store that can be used: %v", err)
	}
	reads := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	err := postgres.New(reads, postgres.Options{}).Ping(t.Context())
	if err == nil || errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "primary") {
		t.Errorf("Ping of a server that only reads: %v; want an error that passes", err)
	}
}

// If Ping meets a connection of the pool that was cut, it tries another one: the server may be
// well.
func TestPostgresPingAsksAgainWhenItsConnectionWasCut(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	one := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.MaxConns = 1 })
	for range 3 {
		var pid int
		if err := one.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		kit.Exec(t, pool, fmt.Sprintf(`SELECT pg_terminate_backend(%d, 5000)`, pid))
		if err := postgres.New(one, postgres.Options{}).Ping(t.Context()); err != nil {
			t.Errorf("Ping over a connection that was cut: %v", err)
		}
	}
}

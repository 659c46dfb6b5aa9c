package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

func (v *viewed) wakeups(ctx context.Context, s *postgres.Store) <-chan core.Shard {
	v.t.Helper()
	ch, err := s.Wakeups(ctx, core.Shards("orders", v.shards))
	v.must(err)
	return ch
}

// wakes waits for a wake-up.
func (v *viewed) wakes(what string, ch <-chan core.Shard) {
	v.t.Helper()
	select {
	case _, open := <-ch:
		if !open {
			v.t.Fatalf("%s: the channel is closed", what)
		}
	case <-time.After(testservers.Patience):
		v.t.Fatalf("%s: no wake-up within %v", what, testservers.Patience)
	}
}

// listening are the connections of that name that listen.
func (v *viewed) listening(name string) []int {
	v.t.Helper()
	rows, err := v.pool.Query(v.t.Context(),
		`SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query ILIKE 'listen %'`, name)
	v.must(err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	v.must(err)
	return pids
}

// eventually waits until something holds.
func (v *viewed) eventually(what string, holds func() bool) {
	v.t.Helper()
	for end := time.Now().Add(testservers.Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("not within %v: %s", testservers.Patience, what)
		}
	}
}

func TestPostgresWakeupsOutliveTheirConnection(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	name := "cut " + v.schema
	ch := v.wakeups(t.Context(), v.openAs(name, postgres.Options{}))
	for i := range 3 {
		var pids []int
		v.eventually("one connection listens", func() bool {
			pids = v.listening(name)
			return len(pids) == 1
		})
		_, err := v.pool.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, pids[0])
		v.must(err)
		v.wakes("after the cut, for what was missed", ch)
		v.push(v.open(postgres.Options{}), core.At(core.Instant(100-i)), fmt.Sprint("id ", i))
		v.wakes("a push after it", ch)
	}
}

func TestPostgresWakeupsShareAConnection(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	name := "share " + v.schema
	s := v.openAs(name, postgres.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var all []<-chan core.Shard
	for range 5 {
		all = append(all, v.wakeups(ctx, s))
	}
	if n := len(v.listening(name)); n != 1 {
		t.Errorf("%d connections listen for 5 readers, want 1", n)
	}
	v.push(s, core.When{}, "a")
	for _, ch := range all {
		v.wakes("a push", ch)
	}
	cancel()
	for _, ch := range all {
		for range ch { // until it is closed
		}
	}
	v.eventually("the connection is gone with its readers", func() bool { return len(v.listening(name)) == 0 })
	later := v.wakeups(t.Context(), s)
	v.push(s, core.At(1), "b")
	v.wakes("a push, for a reader who came later", later)
}

func TestPostgresWakeupsCanBeOff(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	mute := v.openAs("mute "+v.schema, postgres.Options{NoWakeups: true})
	silent, listening := v.wakeups(ctx, mute), v.wakeups(ctx, v.open(postgres.Options{}))
	v.push(mute, core.At(2), "a")
	v.push(v.open(postgres.Options{}), core.At(1), "b")
	v.wakes("the push that notifies", listening)
	if n := len(v.listening("mute " + v.schema)); n != 0 {
		t.Errorf("%d connections listen, want none", n)
	}
	cancel()
	if shard, open := <-silent; open {
		t.Errorf("a store without wake-ups reported %v", shard)
	}
}

func TestPostgresListensOnTheConnectionItIsGiven(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	listen := v.pool.Config().ConnConfig
	listen.RuntimeParams["application_name"] = "given " + v.schema
	s := v.openAs("pool "+v.schema, postgres.Options{Listen: listen})
	ch := v.wakeups(t.Context(), s)
	if pool, given := len(v.listening("pool "+v.schema)), len(v.listening("given "+v.schema)); pool != 0 || given != 1 {
		t.Errorf("%d connections of the pool and %d that were given listen, want 0 and 1", pool, given)
	}
	v.push(s, core.When{}, "a")
	v.wakes("a push", ch)
}

// A push causes no wake-up if an older job is due.
func TestPostgresWakesOnlyForWhatIsDueSooner(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	v.push(v.open(postgres.Options{NoWakeups: true}), core.At(1000), "old")
	s := v.open(postgres.Options{})
	ch := v.wakeups(t.Context(), s)
	for i := range 20 {
		v.push(s, core.When{}, fmt.Sprint("new ", i))
	}
	select {
	case <-ch:
		t.Error("a wake-up although an older job waits")
	case <-time.After(200 * time.Millisecond):
	}
	v.push(s, core.At(10), "older")
	v.wakes("a push that is due sooner", ch)
}

func TestPostgresTellsWhyItCantListen(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.openAs("pooler "+v.schema, postgres.Options{}, func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = dialPooler(c.ConnConfig.DialFunc)
	})
	v.push(s, core.When{}, "all else works")
	_, err := s.Wakeups(t.Context(), core.Shards("orders", 1))
	if err == nil ||
		!strings.Contains(err.Error(), "set Options.Listen to a direct connection, or set Options.NoWakeups") {
		t.Errorf("got %v", err)
	}
}

// dialPooler dials through an imitation of PgBouncer: it reports to clients a number of its own
// for their connection.
func dialPooler(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &poolerConn{Conn: conn}, err
	}
}

type poolerConn struct {
	net.Conn
	read []byte // read and not yet returned
	done bool   // the number has been reported
}

func (c *poolerConn) Read(p []byte) (int, error) {
	if len(c.read) == 0 && !c.done {
		head := make([]byte, 5)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		if head[0] == 'K' { // BackendKeyData begins with it
			body[3]++
			c.done = true
		}
		c.read = append(head, body...)
	}
	if len(c.read) > 0 {
		n := copy(p, c.read)
		c.read = c.read[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// A push wakes the holder of the shard if both use the same store, without a NOTIFY: this store
// listens in another database.
func TestPostgresWakesTheHolderInItsProcessAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	v := w.viewed()
	elsewhere := v.pool.Config().ConnConfig
	elsewhere.Database = "template1"
	w.store = v.open(postgres.Options{Listen: elsewhere})
	other := v.wakeups(t.Context(), v.open(postgres.Options{}))
	w.acquire("me")
	w.next(1)
	ch := v.wakeups(t.Context(), w.store)

	v.push(w.store, core.When{}, "a")
	v.wakes("a push through the holder's store", ch)
	v.wakes("a job that the holder does not take", other)
}

func TestPostgresTellsOfJobsThatAreThere(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	v := w.viewed()
	v.push(w.store, core.At(1000), "a")
	w.acquire("me")
	notifies := func(due core.Instant) bool {
		t.Helper()
		var n int
		v.must(v.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+v.schema+
			`.notify_wakeups('none', '{orders}', '{0}', ARRAY[$1::bigint])`,
			int64(due)).Scan(&n))
		return n > 0
	}
	for _, tt := range []struct {
		due  core.Instant
		want bool
	}{{1000, true}, {500, true}, {1001, false}, {-1, true}} {
		if got := notifies(tt.due); got != tt.want {
			t.Errorf("due at %d beside a job due at 1000: notified %v, want %v", tt.due, got, tt.want)
		}
	}
	w.next(1)
	due := core.InstantOf(time.Now())
	if notifies(due) {
		t.Error("notified of a job that is claimed")
	}
	if !notifies(-1) {
		t.Error("not notified of another job")
	}
}

// A push in a transaction wakes its shard when that commits.
func TestPostgresAPushInATransactionWakes(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	ch := v.wakeups(t.Context(), v.open(postgres.Options{}))
	for name, within := range transactors(t, v.pool) {
		t.Run(name, func(t *testing.T) {
			v.must(within(t.Context(), v.open(postgres.Options{}), func(tx doer) error {
				return pushOn(t.Context(), tx.Tx, name)
			}))
			v.wakes(name, ch)
		})
	}
}

// A store notifies for one of the transactions that push at once, and looks for the pushes of the
// others, even if that one is rolled back.
func TestPostgresTransactionsThatPushAtOnceWake(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	ch := v.wakeups(t.Context(), v.open(postgres.Options{}))
	first, err := v.pool.Begin(t.Context())
	v.must(err)
	second, err := v.pool.Begin(t.Context())
	v.must(err)
	v.must(pushOn(t.Context(), s.Tx(first), "a"))
	v.must(pushOn(t.Context(), s.Tx(second), "b"))
	v.must(first.Rollback(t.Context()))
	time.Sleep(150 * time.Millisecond) // in which the first looks find nothing; on a slow machine there are more of them, or none
	v.must(second.Commit(t.Context()))
	v.wakes("the transaction that commits", ch)
}

// With NoWakeups a transaction has no NOTIFY in it.
func TestPostgresATransactionMayPushWithoutWakeups(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	conn, err := v.pool.Acquire(t.Context())
	v.must(err)
	defer conn.Release()
	channel := "skein " + pgx.Identifier{v.schema}.Sanitize()
	_, err = conn.Exec(t.Context(), "LISTEN "+pgx.Identifier{channel}.Sanitize())
	v.must(err)
	quiet := func(tx *postgres.Tx) ports.Producer { return tx.NoWakeups() }
	plain := func(tx *postgres.Tx) ports.Producer { return tx }
	for _, tt := range []struct {
		sent string
		o    postgres.Options
		push func(*postgres.Tx) ports.Producer
	}{
		{"last", postgres.Options{}, quiet},
		{"last", postgres.Options{NoWakeups: true}, plain},
		{"orders/0", postgres.Options{}, plain},
	} {
		v.must(pgx.BeginFunc(t.Context(), v.pool, func(tx pgx.Tx) error {
			v.must(pushOn(t.Context(), tt.push(v.open(tt.o).Tx(tx)), "a")) // a store notifies only once in a while
			_, err := tx.Exec(t.Context(), `SELECT pg_notify($1, 'last')`, channel)
			return err
		}))
		ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
		n, err := conn.Conn().WaitForNotification(ctx)
		v.must(err)
		if n.Payload != tt.sent {
			t.Errorf("the first notification is %q, want %q", n.Payload, tt.sent)
		}
		for n.Payload != "last" {
			n, err = conn.Conn().WaitForNotification(ctx)
			v.must(err)
		}
		cancel()
	}
}

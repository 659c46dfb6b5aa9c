package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
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

// losing loses the next reply of the server if it is armed.
type losing struct{ armed atomic.Bool }

func (l *losing) dial(c *pgxpool.Config) {
	// The reply to a ping of an idle connection would be lost instead of the turn's.
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &losingConn{conn, l}, err
	}
}

type losingConn struct {
	net.Conn
	by *losing
}

// Read waits for the server's reply, and may then break the connection instead of returning it.
func (c *losingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.by.armed.CompareAndSwap(true, false) {
		_ = c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// The store does not repeat a turn whose reply is lost. The reply to the repeat would report no
// deferred and no skipped settlements, as if the turn had settled everything.
func TestPostgresRepeatsNoTurnByItself(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	wire, turns := &losing{}, &counted{of: ".turn", seen: make(chan struct{}, 100)}
	g.store = g.openAs("loses replies", still(), wire.dial, turns.trace)
	g.push(g.store, core.When{}, "locked", "gone", "settled")
	claims := g.claim(3)
	byID := map[string]core.Claim{}
	for _, c := range claims {
		byID[c.ID] = c
	}
	settle := []core.Settlement{done(byID["locked"]), done(byID["gone"]), done(byID["settled"])}
	settle[1].Receipt.Number += 100
	g.lockRows("claimed", "locked")
	for len(turns.seen) > 0 {
		<-turns.seen
	}

	wire.armed.Store(true)
	g.turn.Number++
	g.turn.Want, g.turn.Settlements = 0, settle
	reply, err := g.store.Turn(t.Context(), g.turn)
	if err == nil {
		t.Errorf("the turn whose reply was lost returned deferred %v and skipped %v, and no error",
			reply.Deferred, reply.Skipped)
	}
	if n := len(turns.seen); n != 1 {
		t.Errorf("the turn was sent %d times, want once", n)
	}
	reply, err = g.store.Turn(t.Context(), g.turn)
	g.must(err)
	if diff := cmp.Diff(g.turn.Number, reply.Last); diff != "" {
		t.Errorf("the last turn after a repeat (-want +got):\n%s", diff)
	}
	g.counts(ports.Counts{Fresh: 0, Claimed: 2, Processed: 2})
}

// counted reports each statement that contains a text when it is sent.
type counted struct {
	of   string
	seen chan struct{}
}

func (c *counted) trace(config *pgxpool.Config) { config.ConnConfig.Tracer = c }

func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, c.of) {
		c.seen <- struct{}{}
	}
	return ctx
}

func (*counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The store does not repeat a recount whose reply is lost. The reply to the repeat would not
// contain what the first call has corrected.
func TestPostgresRepeatsNoRecountByItself(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	wire := &losing{}
	recounts := &arming{wire: wire, of: ".recount("}
	g.store = g.openAs("loses replies", still(), wire.dial, func(c *pgxpool.Config) { c.ConnConfig.Tracer = recounts })
	g.push(g.store, core.When{}, "a")
	r := ports.RecountRequest{Shard: g.turn.Lease.Shard}
	_, err := g.store.Recount(t.Context(), r)
	g.must(err) // from now on the connection has prepared the statement

	recounts.active.Store(true)
	if reply, err := g.store.Recount(t.Context(), r); err == nil {
		t.Errorf("the recount whose reply was lost returned %+v, and no error", reply)
	}
	if n := recounts.sent.Load(); n != 1 {
		t.Errorf("the recount was sent %d times, want once", n)
	}
}

// arming loses the replies to the statements that contain a text while it is active, and counts
// these. If once is set, it is active until the first of them.
type arming struct {
	wire   *losing
	of     string
	once   bool
	active atomic.Bool
	sent   atomic.Int32
}

func (a *arming) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if a.active.Load() && strings.Contains(q.SQL, a.of) {
		a.sent.Add(1)
		a.active.Store(!a.once)
		a.wire.armed.Store(true)
	}
	return ctx
}

func (*arming) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// givesUp ends a call's context when its statement is about to be sent, if it is armed.
type givesUp struct {
	armed atomic.Pointer[context.CancelFunc]
}

func (g *givesUp) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if end := g.armed.Swap(nil); end != nil {
		(*end)()
	}
	return ctx
}

func (g *givesUp) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A call that is given up before its statement is sent leaves its connection to the pool, where the
// next caller, such as a transaction of the application, takes it.
func TestPostgresACallThatSentNothingLeavesItsConnection(t *testing.T) {
	t.Parallel()
	g, ends := newGuarded(t), &givesUp{}
	one := kit.PoolLike(t, g.pool, func(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.Tracer = 1, ends })
	store := postgres.New(one, postgres.Options{Schema: g.schema, NoWakeups: true})
	for range 2 { // afterwards the connection knows the statement
		_, err := store.Queues(t.Context())
		must(t, err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ends.armed.Store(&end)
	if _, err := store.Queues(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ended with %v, want that it was given up", err)
	}
	tx, err := one.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT pg_sleep(0.5)"); err != nil { // longer than the store waits before it hangs up
		t.Errorf("a transaction on the connection of that call fails: %v", err)
	}
}

// hearsNothing is a link that carries nothing once it is armed: what a client writes gets lost,
// nothing arrives, and no timeout of the future ends a read. Only the client ends it.
type hearsNothing struct {
	armed atomic.Bool
	// written is called when something gets lost, and closed is closed once the client hangs up.
	written func()
	closed  chan struct{}
}

func (h *hearsNothing) dial(c *pgxpool.Config) {
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if h.armed.Load() {
			return nil, net.ErrClosed
		}
		conn, err := dial(ctx, network, addr)
		return &deafConn{conn, h}, err
	}
}

type deafConn struct {
	net.Conn
	by *hearsNothing
}

func (c *deafConn) Read(p []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(p); err != nil || !c.by.armed.Load() {
			return n, err
		}
	}
}

func (c *deafConn) Write(p []byte) (int, error) {
	if !c.by.armed.Load() {
		return c.Conn.Write(p)
	}
	c.by.written()
	return len(p), nil
}

func (c *deafConn) SetDeadline(at time.Time) error {
	if c.by.armed.Load() && at.After(time.Now()) {
		at = time.Time{}
	}
	return c.Conn.SetDeadline(at)
}

func (c *deafConn) Close() error {
	if c.by.armed.CompareAndSwap(true, false) {
		close(c.by.closed)
	}
	return c.Conn.Close()
}

// The connection of a call that is given up after its statement was sent is closed, although the
// driver still waits for the reply.
func TestPostgresACallThatIsGivenUpHangsUp(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	link := &hearsNothing{written: end, closed: make(chan struct{})}
	store := postgres.New(kit.PoolLike(t, g.pool, link.dial), postgres.Options{Schema: g.schema, NoWakeups: true})
	for range 2 { // afterwards a connection knows the statement
		_, err := store.Queues(t.Context())
		must(t, err)
	}
	link.armed.Store(true)
	if _, err := store.Queues(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, want that it was given up", err)
	}
	select {
	case <-link.closed:
	case <-time.After(testservers.Patience):
		t.Fatal("the connection of a call that was given up is still open")
	}
}

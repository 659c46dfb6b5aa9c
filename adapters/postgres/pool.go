package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/ports/storekit"
)

// pooled is the caller's pool. Its connections are made anew when they lead to the wrong server. A
// spare pool takes its place for a while when they have gone silent.
type pooled struct {
	pool *pgxpool.Pool
	// last is when the connections were made anew, in nanoseconds since the epoch.
	last atomic.Int64

	// heard is when the server answered a call last, in nanoseconds since the epoch.
	heard   atomic.Int64
	probing atomic.Bool
	spare   atomic.Pointer[pgxpool.Pool]
}

// current returns the pool for the next call.
func (p *pooled) current() *pgxpool.Pool {
	if spare := p.spare.Load(); spare != nil {
		return spare
	}
	return p.pool
}

// resetEvery is the shortest time between resets. A standby that becomes the primary refuses all
// calls of a store at once, and each of them again and again: the connections that one call has
// made are left to the others.
const resetEvery = time.Second

// reset makes the connections anew, unless that was done a moment ago, and returns when it was
// last done.
func (p *pooled) reset() time.Time {
	last, now := p.last.Load(), time.Now().UnixNano()
	if now-last >= int64(resetEvery) && p.last.CompareAndSwap(last, now) {
		p.current().Reset()
	}
	return time.Unix(0, p.last.Load())
}

const (
	// drainTime is how long the driver may read the rest of a reply after the call was given up, and
	// how long a server may take to cancel the statement.
	drainTime = 100 * time.Millisecond
	// probeTime is how long the server may take to answer on a new connection.
	probeTime = 5 * time.Second
	// spareTime is how long a spare pool is used. The driver waits for the end of a silent connection
	// for 15 s, and until then the pool counts it.
	spareTime = 30 * time.Second
)

// note notes the outcome of a call that began at the given time. If the call has met its deadline,
// its connection may have gone silent: nothing closes it, and nothing arrives, as behind a firewall
// that has forgotten it. The other pooled ones are likely to be silent too, and each of them would
// cost a call. So the server is probed.
func (p *pooled) note(ctx context.Context, began time.Time, err error) {
	var reply *pgconn.PgError
	switch {
	case err == nil || errors.As(err, &reply):
		p.heard.Store(time.Now().UnixNano())
	case errors.Is(storekit.Interrupted(ctx, err), context.DeadlineExceeded) && p.probing.CompareAndSwap(false, true):
		go func() {
			defer p.probing.Store(false)
			p.probe(began)
		}()
	}
}

// probe asks the server for an answer on a new connection, unless it has answered a call since the
// given time. If it answers there, and has still answered no call, the connections are silent, and
// a spare pool takes the place of theirs. A server that is only slow answers the calls, or the
// request to cancel them, before it takes a new connection.
func (p *pooled) probe(began time.Time) {
	before := p.current().Stat()
	time.Sleep(drainTime)
	if p.heardSince(began) {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	if !p.answers(ctx) || p.heardSince(began) {
		return
	}
	if before.AcquiredConns() == before.MaxConns() && p.current().Stat().AcquireCount() > before.AcquireCount() {
		return // the call waited for a connection, since the program uses all of them
	}

	config := p.pool.Config()
	config.MinConns, config.MinIdleConns = 0, 0
	spare, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return
	}
	p.heard.Store(time.Now().UnixNano()) // calls that began before say nothing of the spare
	p.spare.Store(spare)
	p.pool.Reset()
	time.AfterFunc(spareTime, func() { p.spare.CompareAndSwap(spare, nil) })
	time.AfterFunc(2*spareTime, spare.Close) // no call is left that took it as the current one
}

func (p *pooled) heardSince(began time.Time) bool { return p.heard.Load() >= began.UnixNano() }

// answers reports whether the server answers on a new connection. An error of the server is an
// answer.
func (p *pooled) answers(ctx context.Context) bool {
	config := p.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return false
		}
	}

	conn, err := pgconn.ConnectConfig(ctx, &config.ConnConfig.Config)
	if err == nil {
		defer conn.Close(ctx)
		err = conn.Exec(ctx, ";").Close()
	}
	var reply *pgconn.PgError
	return err == nil || errors.As(err, &reply)
}

// release ends the use of a connection by a call with the given outcome, before the pool gets it.
func (p *pooled) release(ctx context.Context, conn *pgconn.PgConn, err error) {
	if storekit.Interrupted(ctx, err) != nil && !pgconn.SafeToRetry(err) {
		go p.hangUp(conn)
	}
}

// hangUp closes the connection of a call that was given up after its statement was sent. The driver
// closes it too, but first it reads for up to 15 s what the server still sends. Behind a slow link
// a large reply lasts that long. It would fill the link and occupy a connection of the pool, and so
// would the reply to each repeat of the call. Then renewals of leases find no connection. A
// connection on which nothing was sent is back in the pool, and hangUp must not close it.
func (p *pooled) hangUp(conn *pgconn.PgConn) {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-conn.CleanupDone():
		p.heard.Store(time.Now().UnixNano()) // the server has ended the connection
	case <-timer.C:
		conn.Conn().Close()
	}
}

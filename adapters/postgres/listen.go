package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/core"
)

// How the connection that listens is kept: tried after a silence, given up if it
// then stays silent, and made anew after a pause that grows.
const (
	silence      = 15 * time.Second
	patience     = 5 * time.Second
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// ear is a store's connection that listens. It is there while somebody
// subscribes. The zero value is ready.
type ear struct {
	mu          sync.Mutex
	subscribers map[*subscriber]bool
	hearing     *hearing
}

// hearing is the ear's while it has subscribers.
type hearing struct {
	stop  context.CancelFunc
	ready chan struct{} // closed once it listens, or has failed to
	err   error         // why it failed; read it only after ready
}

// connector makes a connection that listens.
type connector func(context.Context) (*pgx.Conn, error)

// join subscribes, and returns once the store listens.
func (e *ear) join(ctx context.Context, sub *subscriber, connect connector) error {
	h := e.add(sub, connect)
	var err error
	select {
	case <-h.ready:
		err = h.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		e.leave(sub)
		return fmt.Errorf("listen for wake-ups: %w", translate(err))
	}
	return nil
}

func (e *ear) add(sub *subscriber, connect connector) *hearing {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subscribers == nil {
		e.subscribers = make(map[*subscriber]bool)
	}
	e.subscribers[sub] = true
	if e.hearing == nil {
		ctx, stop := context.WithCancel(context.Background())
		h := &hearing{stop: stop, ready: make(chan struct{})}
		e.hearing = h
		go func() {
			defer stop()
			e.run(ctx, h, connect)
		}()
	}
	return e.hearing
}

// leave ends a subscription, and with the last the connection.
func (e *ear) leave(sub *subscriber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.subscribers, sub)
	if len(e.subscribers) == 0 && e.hearing != nil {
		e.hearing.stop()
		e.hearing = nil
	}
}

// run listens until ctx ends. Only if it can't begin does it give up.
func (e *ear) run(ctx context.Context, h *hearing, connect connector) {
	conn, err := connect(ctx)
	if err != nil {
		e.mu.Lock()
		if e.hearing == h {
			e.hearing = nil
		}
		e.mu.Unlock()
		h.err = err
	}
	close(h.ready)
	for err == nil {
		e.hear(ctx, conn)
		if conn, err = again(ctx, connect); err == nil {
			e.each(func(sub *subscriber) { sub.wake(sub.shards...) })
		}
	}
}

// again connects until it succeeds or ctx ends.
func again(ctx context.Context, connect connector) (*pgx.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if conn, err := connect(ctx); err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// hear passes notifications on until the connection or ctx ends.
func (e *ear) hear(ctx context.Context, conn *pgx.Conn) {
	defer closeSoon(conn)
	for {
		n, err := nextNotification(ctx, conn)
		if err != nil {
			return
		}
		if n == nil {
			continue
		}
		if shard, err := core.ParseShard(n.Payload); err == nil {
			e.each(func(sub *subscriber) { sub.wake(shard) })
		}
	}
}

func (e *ear) each(do func(*subscriber)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for sub := range e.subscribers {
		do(sub)
	}
}

// nextNotification waits for one. It gives nil after a silence after which the
// connection has shown that it lives.
func nextNotification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	wait, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err == nil || ctx.Err() != nil || wait.Err() == nil {
		return n, err
	}
	wait, cancel = context.WithTimeout(ctx, patience)
	defer cancel()
	return nil, conn.Ping(wait)
}

// listen makes a connection that listens.
func (s *Store) listen(ctx context.Context) (*pgx.Conn, error) {
	conn, err := s.listener(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		closeSoon(conn)
		return nil, err
	}
	return conn, nil
}

// apart is a connection for a long time, taken out of the pool, so that it is made as
// the pool's are and keeps no call waiting.
func (s *Store) apart(ctx context.Context) (*pgx.Conn, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pooled.Hijack(), nil
}

// listener is a connection of its own, from the pool unless the options say how.
func (s *Store) listener(ctx context.Context) (*pgx.Conn, error) {
	if s.options.Listen != nil {
		return pgx.ConnectConfig(ctx, s.options.Listen.Copy())
	}
	conn, err := s.apart(ctx)
	if err != nil {
		return nil, err
	}
	if err := refusePooler(ctx, conn); err != nil {
		closeSoon(conn)
		return nil, err
	}
	return conn, nil
}

// errPooler is a pooler in the way of wake-ups.
var errPooler = errors.New("a pooler stands before the server; set Options.Listen to a direct connection, or Options.NoWakeups")

// refusePooler returns an error if there is a pooler between this process and
// the server, which LISTEN gets through only in session mode.
func refusePooler(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	if pid != conn.PgConn().PID() {
		return errPooler
	}
	return nil
}

// closeSoon says goodbye to the server, if it takes that soon.
func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is gone either way
}

// maxChannel is the longest name of a channel that Postgres takes.
const maxChannel = 63

// channel is what wake-ups go through. Schemas with very long names may share one,
// which costs them wake-ups for nothing.
func (s *Store) channel() string {
	name := "skein " + s.schema
	end := min(len(name), maxChannel)
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// How the listening connection is kept: it is probed after a silence, given up if the probe fails,
// and made anew after a growing pause.
const (
	probeAfter   = 15 * time.Second
	probeTimeout = 5 * time.Second
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// listener passes notifications to subscribers. It has a connection while it has subscribers. The
// zero value is ready.
type listener struct {
	mu          sync.Mutex
	subscribers map[*storekit.Subscriber]bool
	session     *listenSession // nil without subscribers
}

// listenSession is the connection and the loop of a listener, which exist while it has subscribers.
type listenSession struct {
	stop  context.CancelFunc
	ready chan struct{} // closed once it listens, or has failed to
	err   error         // why it failed; read it only after ready
}

// connector returns a new connection that listens.
type connector func(context.Context) (*pgx.Conn, error)

// join adds a subscriber, and returns once the store listens.
func (l *listener) join(ctx context.Context, sub *storekit.Subscriber, connect connector) error {
	h := l.add(sub, connect)
	var err error
	select {
	case <-h.ready:
		err = h.err
	case <-ctx.Done():
		err = ctx.Err()
	}

	if err != nil {
		l.leave(sub)
		return fmt.Errorf("listen for wake-ups: %w", translate(ctx, err))
	}
	return nil
}

func (l *listener) add(sub *storekit.Subscriber, connect connector) *listenSession {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.subscribers == nil {
		l.subscribers = make(map[*storekit.Subscriber]bool)
	}
	l.subscribers[sub] = true

	if l.session == nil {
		ctx, stop := context.WithCancel(context.Background())
		h := &listenSession{stop: stop, ready: make(chan struct{})}
		l.session = h
		go func() {
			defer stop()
			l.run(ctx, h, connect)
		}()
	}

	return l.session
}

// leave removes a subscriber. With the last one it removes the connection.
func (l *listener) leave(sub *storekit.Subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subscribers, sub)
	if len(l.subscribers) == 0 && l.session != nil {
		l.session.stop()
		l.session = nil
	}
}

// run listens until ctx ends. It gives up only if the first connection fails.
func (l *listener) run(ctx context.Context, h *listenSession, connect connector) {
	conn, err := connect(ctx)
	if err != nil {
		l.mu.Lock()
		if l.session == h {
			l.session = nil
		}
		l.mu.Unlock()
		h.err = err
	}

	close(h.ready)
	for err == nil {
		l.receive(ctx, conn)
		if conn, err = reconnect(ctx, connect); err == nil {
			l.each(func(sub *storekit.Subscriber) { sub.WakeAll() })
		}
	}
}

// reconnect connects until it succeeds or ctx ends.
func reconnect(ctx context.Context, connect connector) (*pgx.Conn, error) {
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

// receive passes on notifications until the connection or ctx ends.
func (l *listener) receive(ctx context.Context, conn *pgx.Conn) {
	defer closeSoon(conn)
	for {
		n, err := nextNotification(ctx, conn)
		if err != nil {
			return
		}
		if n == nil {
			continue
		}
		if shard, ok := parseWakeup(n.Payload); ok {
			l.each(func(sub *storekit.Subscriber) { sub.Wake(shard) })
		}
	}
}

// parseWakeup reads the text of a wake-up: a shard, or nothing for the list of nodes.
func parseWakeup(payload string) (core.Shard, bool) {
	if payload == "" {
		return core.Shard{}, true
	}
	if queue, ok := strings.CutSuffix(payload, "/-1"); ok {
		return ports.PermitsOf(queue), true
	}
	shard, err := core.ParseShard(payload)
	return shard, err == nil
}

func (l *listener) each(do func(*storekit.Subscriber)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sub := range l.subscribers {
		do(sub)
	}
}

// nextNotification waits for a notification. It returns nil if none has come for a while
// and the connection still answers.
func nextNotification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	wait, cancel := context.WithTimeout(ctx, probeAfter)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err == nil || ctx.Err() != nil || wait.Err() == nil {
		return n, err
	}
	wait, cancel = context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return nil, conn.Ping(wait)
}

// listen returns a new connection that listens on the store's channel.
func (s *Store) listen(ctx context.Context) (*pgx.Conn, error) {
	conn, err := s.connectListener(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		closeSoon(conn)
		return nil, err
	}
	return conn, nil
}

// takeConnection takes a connection out of the pool for a long time. So the connection has the
// pool's settings, and no call waits for its return.
func (s *Store) takeConnection(ctx context.Context) (*pgx.Conn, error) {
	pooled, err := s.current().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pooled.Hijack(), nil
}

// connectListener returns a separate connection by Options.Listen, or else one taken out of the
// pool.
func (s *Store) connectListener(ctx context.Context) (*pgx.Conn, error) {
	if s.options.Listen != nil {
		return pgx.ConnectConfig(ctx, s.options.Listen.Copy())
	}
	conn, err := s.takeConnection(ctx)
	if err != nil {
		return nil, err
	}
	if err := refusePooler(ctx, conn); err != nil {
		closeSoon(conn)
		return nil, err
	}
	return conn, nil
}

// errPooler reports a pooler between the process and the server.
var errPooler = errors.New("a pooler is between this program and the server, so LISTEN does not work; " +
	"set Options.Listen to a direct connection, or set Options.NoWakeups")

// refusePooler returns an error if a pooler is between this process and the server: LISTEN gets
// through it only in session mode.
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

// closeSoon closes a connection, and waits for the server for a second at most.
func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is gone either way
}

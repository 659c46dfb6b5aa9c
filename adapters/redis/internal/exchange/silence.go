package exchange

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"weak"

	goredis "github.com/redis/go-redis/v9"
)

// connections are the open connections of a client, which it has dialled since the first store was
// made on it.
//
// A connection can go silent: nothing closes it, and nothing arrives, as behind a firewall that has
// forgotten it. The client learns that only from a call that waits for its reply for ReadTimeout,
// once for each connection in its pool. So when a call has met its deadline without a reply, the
// server is probed on a new connection. If the server answers there while the call's connection is
// still silent, all connections are dropped on which nothing was heard since the call began. A
// server that is only slow does not answer the probe earlier than the call, and costs one
// connection each probeInterval.
type connections struct {
	mu      sync.Mutex
	open    map[*connection]struct{}
	servers map[string]*suspicion
}

// suspicion is what is known of the silence of a server, which has one address.
type suspicion struct {
	// since is when the first call began that was not answered in time, since a probe was answered.
	since   time.Time
	probing bool
	// next is the earliest time of the next probe.
	next time.Time
}

const (
	// probeInterval is the shortest time between two probes of a server, and how long one may take.
	probeInterval = time.Second
	// readingTime is how long a reply that arrived before that of a probe may wait until it is read.
	readingTime = 50 * time.Millisecond
)

// watched has the connections of each client, by a weak pointer to it, so that several stores on a
// client share them.
var watched sync.Map

// connectionsFor returns the connections that a client dials from now on.
func connectionsFor(client goredis.UniversalClient) *connections {
	switch c := client.(type) {
	case *goredis.Client:
		return watch(c, func(hook goredis.Hook) { c.AddHook(hook) })
	case *goredis.ClusterClient:
		return watch(c, func(hook goredis.Hook) { c.OnNewNode(func(node *goredis.Client) { node.AddHook(hook) }) })
	}
	return newConnections()
}

func newConnections() *connections {
	return &connections{open: make(map[*connection]struct{}), servers: make(map[string]*suspicion)}
}

func watch[C any](client *C, add func(goredis.Hook)) *connections {
	if client == nil {
		return newConnections()
	}

	key := weak.Make(client)
	known, before := watched.LoadOrStore(key, newConnections())
	all := known.(*connections)
	if !before {
		add(all)
		runtime.AddCleanup(client, func(key weak.Pointer[C]) { watched.Delete(key) }, key)
	}
	return all
}

// ProcessHook implements goredis.Hook.
func (*connections) ProcessHook(goredis.ProcessHook) goredis.ProcessHook { return nil }

// ProcessPipelineHook implements goredis.Hook.
func (*connections) ProcessPipelineHook(goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return nil
}

// DialHook implements goredis.Hook.
func (s *connections) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled, err := next(ctx, network, address)
		if err != nil || dialled == nil {
			return dialled, err
		}

		c := &connection{
			Conn:    dialled,
			all:     s,
			address: address,
			dial:    func(ctx context.Context) (net.Conn, error) { return next(ctx, network, address) },
			heard:   time.Now(),
		}
		s.mu.Lock()
		s.open[c] = struct{}{}
		s.mu.Unlock()

		// The client asks a connection that has a descriptor whether it was closed.
		if system, ok := dialled.(syscall.Conn); ok {
			return &systemConnection{connection: c, system: system}, nil
		}
		return c, nil
	}
}

// gaveUp notes that a call that began at the given time ended with its context. Only a deadline
// means that the server has not answered in time.
func (s *connections) gaveUp(ctx context.Context, began time.Time) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.unanswered(began)
	}
}

// unanswered notes that a call that began at the given time was not answered by its deadline.
func (s *connections) unanswered(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		s.suspect(c, began)
	}
}

// suspect probes the server of a connection, if the connection waits for the reply to something
// that was sent since the given time. The caller holds s.mu.
func (s *connections) suspect(c *connection, since time.Time) {
	server := s.servers[c.address]
	if server == nil {
		server = new(suspicion)
		s.servers[c.address] = server
	}
	if !server.since.IsZero() && server.since.Before(since) {
		since = server.since
	}
	if !c.awaitsSince(since) {
		return
	}

	server.since = since
	if now := time.Now(); !server.probing && !now.Before(server.next) {
		server.probing, server.next = true, now.Add(probeInterval)
		go s.probe(server, c, now)
	}
}

// probe asks a server for an answer on a new connection. If there is one, and the suspected
// connection has none, it drops the connections that may be silent too.
func (s *connections) probe(server *suspicion, suspected *connection, began time.Time) {
	answered := suspected.serverAnswers()
	if answered {
		time.Sleep(readingTime)
	}

	s.mu.Lock()
	since := server.since
	server.probing = false
	if answered {
		server.since = time.Time{}
	}
	var awaiting []*connection
	if answered && suspected.awaitsSince(since) {
		for c := range s.open {
			if c.address == suspected.address && c.drop(since, began) {
				awaiting = append(awaiting, c)
			}
		}
	}
	s.mu.Unlock()

	for _, c := range awaiting {
		_ = c.Conn.Close()
	}
}

// connection is a connection to a server that knows when it was heard.
type connection struct {
	net.Conn
	all     *connections
	address string
	dial    func(context.Context) (net.Conn, error)

	mu          sync.Mutex
	sent, heard time.Time
	// awaits is set from a Write until the next Read that returns bytes.
	awaits bool
	// dropped is set if nothing more is sent, since the connection is likely to be silent.
	dropped bool
}

// systemConnection is a connection with a descriptor.
type systemConnection struct {
	*connection
	system syscall.Conn
}

// SyscallConn implements syscall.Conn. The client asks for it before it uses a pooled connection.
func (c *systemConnection) SyscallConn() (syscall.RawConn, error) {
	if c.isDropped() {
		return nil, errDropped
	}
	return c.system.SyscallConn()
}

// NetConn returns the connection below, as that of crypto/tls does, for the client's checks.
func (c *connection) NetConn() net.Conn { return c.Conn }

// errDropped is the error of a call that was not sent, since its connection is likely to be silent.
var errDropped = errors.New("the connection was dropped because another one to its server had gone silent")

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	c.mu.Lock()
	dropped := c.dropped
	if !dropped {
		c.sent, c.awaits = time.Now(), true
	}
	c.mu.Unlock()

	if dropped {
		return 0, errDropped
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn. A reply that has not come by the client's deadline is a call that was
// not answered.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.mu.Lock()
		c.heard, c.awaits = time.Now(), false
		c.mu.Unlock()
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.all.mu.Lock()
		c.all.suspect(c, c.lastSent())
		c.all.mu.Unlock()
	}
	return n, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

func (c *connection) isDropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

func (c *connection) lastSent() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// awaitsSince reports whether nothing was heard since something was sent, at the given time or
// later.
func (c *connection) awaitsSince(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awaits && !c.sent.Before(since)
}

// drop drops the connection if nothing was heard on it since the given time, although the server
// has answered a probe that began later. It reports whether the connection is to be closed, since a
// call waits for its reply there. A call that was sent after the probe began may still be answered.
func (c *connection) drop(since, probed time.Time) (awaits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heard.Before(since) || c.awaits && !c.sent.Before(probed) {
		return false
	}
	c.dropped = true
	return c.awaits
}

// serverAnswers reports whether the server answers on a new connection. Any byte is an answer, also
// an error because the connection has not named a user.
func (c *connection) serverAnswers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeInterval)
	defer cancel()
	fresh, err := c.dial(ctx)
	if err != nil || fresh == nil {
		return false
	}
	defer fresh.Close()

	deadline, _ := ctx.Deadline()
	_ = fresh.SetDeadline(deadline)
	if _, err := fresh.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return false
	}
	n, _ := fresh.Read(make([]byte, 1))
	return n == 1
}

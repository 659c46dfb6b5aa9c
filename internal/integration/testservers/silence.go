package testservers

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// SilentLink dials connections that can go silent, as those through a firewall that has forgotten
// them: what a program sends then is lost, and nothing closes them.
type SilentLink struct {
	// Plain hides the descriptors of the connections, as TLS does.
	Plain bool

	mu sync.Mutex
	// open are the connections that were dialled since the last Silence call, and silent those before.
	open, silent []*silentConn
}

// Silence makes all connections silent that were dialled before.
func (l *SilentLink) Silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.silent.Store(true)
	}
	l.open, l.silent = nil, append(l.silent, l.open...)
}

// Cut closes the silent connections. Otherwise a pool of pgx takes 15 s to end.
func (l *SilentLink) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.silent {
		_ = c.TCPConn.Close()
	}
}

// Dial dials a connection. It is a Dialer of Redis clients and a DialFunc of pgx.
func (l *SilentLink) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &silentConn{TCPConn: conn.(*net.TCPConn)}
	l.mu.Lock()
	l.open = append(l.open, c)
	l.mu.Unlock()
	if l.Plain {
		return struct{ net.Conn }{c}, nil
	}
	return c, nil
}

// silentConn has the descriptor of its connection, which clients look at.
type silentConn struct {
	*net.TCPConn
	silent atomic.Bool
}

// Write implements net.Conn.
func (c *silentConn) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.TCPConn.Write(b)
}

package testservers

import (
	"context"
	"net"
	"sync/atomic"
)

// SilentLink dials connections that can go silent, as those through a firewall that has forgotten
// them: what a program sends then is lost, and nothing closes them.
type SilentLink struct {
	// Plain hides the descriptors of the connections, as TLS does.
	Plain bool
	// generation is the number of Silence calls.
	generation atomic.Int64
}

// Silence makes all connections silent that were dialled before.
func (l *SilentLink) Silence() { l.generation.Add(1) }

// Dial dials a connection. It is a Dialer of Redis clients and a DialFunc of pgx.
func (l *SilentLink) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	silent := &silentConn{TCPConn: conn.(*net.TCPConn), link: l, generation: l.generation.Load()}
	if l.Plain {
		return struct{ net.Conn }{silent}, nil
	}
	return silent, nil
}

// silentConn has the descriptor of its connection, which clients look at.
type silentConn struct {
	*net.TCPConn
	link       *SilentLink
	generation int64
}

// Write implements net.Conn.
func (c *silentConn) Write(b []byte) (int, error) {
	if c.link.generation.Load() > c.generation {
		return len(b), nil
	}
	return c.TCPConn.Write(b)
}

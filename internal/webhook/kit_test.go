package webhook

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/skeinq/skein"
)

const urlOfTests = "http://orders.test/jobs?key=of-the-url"

// network connects callers with receivers in the process, so that tests run in virtual time.
type network struct {
	net.Listener
	conns chan net.Conn
	ended chan struct{}
}

func newNetwork() *network { return &network{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.ended:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { close(n.ended); return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns a connection to the receiver.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// receiver starts a web server until the test ends, and returns how to reach it.
func receiver(t *testing.T, h http.HandlerFunc) *network {
	t.Helper()
	n := newNetwork()
	// A server notices that a client has gone once it has read the body.
	reads := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		h(w, r)
	})
	server := &http.Server{Handler: reads, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(n) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return n
}

// caller returns a caller of a receiver, until the test ends.
func caller(t *testing.T, n *network, o Options) *Caller {
	t.Helper()
	if o.URL == "" {
		o.URL = urlOfTests
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := New("orders", o)
	must(t, err)
	c.transport.Proxy = nil // whatever the environment of the tests has
	c.transport.DialContext = n.dial
	t.Cleanup(c.Close)
	return c
}

// jobOf returns a job as the engine passes it, without what needs the engine.
func jobOf(payloads ...string) *skein.Job[[]byte] {
	job := &skein.Job[[]byte]{ID: "42"}
	for i, p := range payloads {
		job.Payloads = append(job.Payloads, skein.Payload[[]byte]{Value: []byte(p), Score: float64(i)})
	}
	return job
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

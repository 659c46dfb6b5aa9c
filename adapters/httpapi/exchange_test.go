package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

func TestHeadAnswersWithoutABody(t *testing.T) {
	h := newHouse(t, Options{})
	w := answerOf(h.api, request(http.MethodHead, base+"/stats", ""))
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("ETag") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if length, want := w.Header().Get("Content-Length"), answerOf(h.api,
		request(http.MethodGet, base+"/stats", "")).Body.Len(); length != strconv.Itoa(want) {
		t.Errorf("a length of %s, want %d", length, want)
	}
}

// A look whose time is over lacks more than the shards that were not reached by then: it is no
// part of an answer.
func TestALookThatIsCutOffIsNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		lost := []core.Shard{{Queue: "orders", Index: 1}}
		h.api = h.over(storekit.Intercept(&partialStore{h.store, lost}, func(
			ctx context.Context, call storekit.Call, next func(context.Context) error,
		) error {
			if call.Method == "Stats" {
				<-ctx.Done()
			}
			return next(context.WithoutCancel(ctx))
		}), Options{})
		w := answerOf(h.api, request(http.MethodGet, base+"/stats", ""))
		if w.Code == http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// Once the body has come the time for it is over: an action may take longer.
func TestAnActionMayTakeLongerThanItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.api = h.over(storekit.Intercept(h.store, func(
			ctx context.Context, call storekit.Call, next func(context.Context) error,
		) error {
			if call.Method == "Recount" {
				select {
				case <-time.After(4 * bodyTime):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return next(ctx)
		}), Options{Authorize: func(*http.Request, Action) error { return nil }})
		here, there := net.Pipe()
		server := &http.Server{Handler: h.api}
		go server.Serve(&oneConn{conn: there, closed: make(chan struct{})})
		defer server.Close()
		go fmt.Fprintf(here, "POST %s/queues/orders/recount HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", base)
		reply, err := http.ReadResponse(bufio.NewReader(here), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			t.Errorf("%s", reply.Status)
		}
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (conn net.Conn, err error) {
	if conn, l.conn = l.conn, nil; conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

package exchange

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var errNoReply = errors.New("no reply yet")

// network is a server and the connections to it. What a program sends is read, and answered as
// long as the server does not hang and the connection is not silent.
type network struct {
	t     *testing.T
	all   *connections
	dials int
	// hangs is set if nothing is answered, and refuses if nobody can connect.
	hangs, refuses bool
	// waiting are the connections with an unanswered command.
	waiting []net.Conn
	silent  map[net.Conn]bool
	ends    map[*connection]net.Conn
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, all: newConnections(), silent: make(map[net.Conn]bool), ends: make(map[*connection]net.Conn)}
}

func (n *network) accept(context.Context, string, string) (net.Conn, error) {
	n.dials++
	if n.refuses {
		return nil, errors.New("connection refused")
	}

	near, far := net.Pipe()
	go func() {
		buffer := make([]byte, 100)
		for {
			if _, err := far.Read(buffer); err != nil {
				return
			}
			if n.silent[near] {
				continue
			}
			if n.hangs {
				n.waiting = append(n.waiting, far)
			} else if _, err := far.Write([]byte("+")); err != nil {
				return
			}
		}
	}()

	n.t.Cleanup(func() { near.Close(); far.Close() })
	return near, nil
}

// dial returns a connection of the client.
func (n *network) dial() *connection {
	dialled, err := n.all.DialHook(n.accept)(n.t.Context(), "tcp", "server")
	if err != nil {
		n.t.Fatal(err)
	}
	c := dialled.(*connection)
	n.ends[c] = c.Conn
	return c
}

func (n *network) silence(c *connection) { n.silent[n.ends[c]] = true }

// thaw lets a server that hung answer everything.
func (n *network) thaw() {
	n.hangs = false
	for _, far := range n.waiting {
		go far.Write([]byte("+"))
	}
	n.waiting = nil
}

// call sends a command and returns a variable that gets the error of the reply.
func (n *network) call(c *connection) *error {
	failed := errNoReply
	if _, err := c.Write([]byte("*")); err != nil {
		return &err
	}
	go func() { _, failed = c.Read(make([]byte, 1)) }()
	synctest.Wait()
	return &failed
}

// usable reports whether calls on connections are answered.
func (n *network) usable(all ...*connection) (usable []bool) {
	for _, c := range all {
		usable = append(usable, *n.call(c) == nil)
	}
	return usable
}

func (n *network) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// deadline is that of the calls in these tests.
const deadline = 500 * time.Millisecond

func TestASilentConnectionIsDroppedWithThoseThatWereNotHeardSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		for range 2 {
			n.checkSilence()
		}
	})
}

func (n *network) checkSilence() {
	t := n.t
	silent, idle, busy := n.dial(), n.dial(), n.dial()
	n.silence(silent)
	n.wait(time.Second)

	began := time.Now()
	lost := n.call(silent)
	n.wait(deadline / 2)
	if err := *n.call(busy); err != nil {
		t.Fatal(err)
	}
	n.wait(deadline / 2)
	n.all.unanswered(began)
	n.wait(readingTime)

	if err := *lost; err == nil || err == errNoReply {
		t.Errorf("the call on the silent connection has the outcome %v, want an error", err)
	}
	if err := *n.call(idle); !errors.Is(err, errDropped) {
		t.Errorf("a call on an idle connection has the outcome %v, want that it was dropped", err)
	}
	if fresh := n.dial(); n.usable(busy)[0] != true || n.usable(fresh)[0] != true {
		t.Error("a connection that was heard since the call, or a new one, was dropped")
	}
}

// A call that was sent on an idle connection while the server was probed may still be answered.
func TestACallBesideAProbeIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		silent, late := n.dial(), n.dial()
		n.silence(silent)
		n.silence(late)
		n.wait(time.Second)

		began := time.Now()
		n.call(silent)
		n.wait(deadline)
		n.hangs = true
		n.all.unanswered(began)
		n.wait(deadline)
		reply := n.call(late)
		n.thaw()
		n.wait(readingTime)
		if *reply != errNoReply {
			t.Errorf("the call beside the probe has the outcome %v, want that it waits", *reply)
		}
		if err := *n.call(silent); !errors.Is(err, errDropped) {
			t.Errorf("a call on the silent connection has the outcome %v, want that it was dropped", err)
		}
	})
}

func TestASlowServerCostsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		slow, idle := n.dial(), n.dial()
		n.wait(time.Second)

		n.hangs = true
		began := time.Now()
		reply := n.call(slow)
		n.wait(deadline)
		n.all.unanswered(began)
		n.wait(probeInterval / 2)
		n.thaw()
		n.wait(time.Minute)

		if *reply != nil || !n.usable(idle)[0] || n.dials != 3 {
			t.Errorf("the outcome is %v, and there were %d dials; want a reply, the idle connection, and one probe",
				*reply, n.dials)
		}
	})
}

// A server that can't be reached is probed once in each interval. If the connections do not recover
// with it, they are dropped after the first call that is not answered then, even if that call was
// not sent because others wait.
func TestAnOutageIsProbedNowAndThen(t *testing.T) {
	for name, begin := range map[string]func(*network){
		"hangs":   func(n *network) { n.hangs = true },
		"refuses": func(n *network) { n.refuses = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkOutage(t, begin) })
		})
	}
}

func checkOutage(t *testing.T, begin func(*network)) {
	n := newNetwork(t)
	lost, idle := n.dial(), n.dial()
	n.silence(lost)
	n.wait(time.Second)

	const outage = 10
	begin(n)
	n.call(lost)
	const pause = probeInterval / 10
	for began := time.Now(); time.Since(began) < outage*probeInterval; {
		n.wait(pause)
		n.all.unanswered(time.Now().Add(-pause))
	}
	n.wait(0)
	if probes := n.dials - 2; probes < outage || probes > outage+1 {
		t.Errorf("there were %d probes in %d intervals", probes, outage)
	}

	n.hangs, n.refuses = false, false
	n.wait(probeInterval)
	n.all.unanswered(time.Now().Add(-deadline))
	n.wait(readingTime)
	if err := *n.call(idle); !errors.Is(err, errDropped) {
		t.Errorf("a call on an idle connection has the outcome %v, want that it was dropped", err)
	}
}

func TestACallThatIsCalledOffSaysNothingOfItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		c := n.dial()
		n.silence(c)
		began := time.Now()
		n.call(c)
		n.wait(deadline)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		n.all.gaveUp(ctx, began)
		n.wait(probeInterval)
		if n.dials != 1 {
			t.Errorf("there were %d dials, want no probe", n.dials)
		}
	})
}

// A client that has deadlines of its own for reads closes the connection itself.
func TestAReadThatTimesOutIsACallWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		silent, idle, listening := n.dial(), n.dial(), n.dial()
		n.silence(silent)
		n.wait(time.Second)

		_ = listening.SetReadDeadline(time.Now().Add(deadline))
		_, _ = listening.Read(make([]byte, 1))
		n.wait(probeInterval)
		if n.dials != 3 {
			t.Errorf("a read of a connection that awaits no reply caused a probe")
		}

		_ = silent.SetReadDeadline(time.Now().Add(deadline))
		n.call(silent)
		n.wait(deadline)
		_ = silent.Close()
		n.wait(readingTime)
		if err := *n.call(idle); !errors.Is(err, errDropped) {
			t.Errorf("a call on an idle connection has the outcome %v, want that it was dropped", err)
		}
	})
}

func TestStoresOfAClientShareItsConnections(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{})
	defer client.Close()
	if first, second := connectionsFor(client), connectionsFor(client); first != second {
		t.Error("two stores of a client watch its connections, want one")
	}
}

package testservers

import (
	"net"
	"sync"
	"testing"
	"time"
)

// linkBuffer is how many bytes a slow link takes from a server before it has passed them on: few,
// as a link between two machines does, and not the megabytes that the loopback interface may hold.
const linkBuffer = 64 << 10

// SlowLink listens, and connects each caller to the server at an address. All that the server sends
// to its callers together comes at the given rate, in bytes a second. It returns where it listens.
func SlowLink(t testing.TB, server string, rate int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })

	var link sync.Mutex
	wait := func(bytes int) {
		link.Lock()
		defer link.Unlock()
		time.Sleep(time.Duration(bytes) * time.Second / time.Duration(rate))
	}

	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go join(caller, server, wait)
		}
	}()

	return listener.Addr().String()
}

// join carries bytes between a caller and the server at an address until either ends. It calls wait
// with the number of bytes before it passes on what the server has sent.
func join(caller net.Conn, address string, wait func(bytes int)) {
	defer caller.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()

	if err := server.(*net.TCPConn).SetReadBuffer(linkBuffer); err != nil {
		return
	}

	go func() {
		defer server.Close()
		defer caller.Close()
		carry(server, caller, func(int) {})
	}()
	carry(caller, server, wait)
}

// carry copies bytes until a connection fails, and waits before it passes some on.
func carry(to, from net.Conn, wait func(bytes int)) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		wait(n)
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

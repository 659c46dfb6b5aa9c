package testservers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// port is a port of 127.0.0.1 that is reserved for servers of this process.
type port struct {
	number int
	// claim listens on the same port of 127.0.0.2 while the port is reserved, so that no other test
	// chooses it; nil on systems without that address. It ends with the process.
	claim net.Listener
}

// The ports to choose from. Outgoing connections of a machine normally use higher ports.
const firstPort, portCount = 10_000, 20_000

// reserve returns ports that nobody listens on and that no other test has reserved.
func reserve(n int) (ports []*port, err error) {
	var free []net.Listener // All stay open until the last one is found, so that no port is found twice.
	defer func() {
		for _, l := range free {
			_ = l.Close()
		}
	}()

	for range portCount {
		if len(ports) == n {
			return ports, nil
		}

		p := &port{number: firstPort + rand.IntN(portCount)}
		p.claim, err = net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", p.number))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}

		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p.number))
		if err != nil {
			release([]*port{p})
			continue
		}

		free, ports = append(free, l), append(ports, p)
	}

	release(ports)
	return nil, fmt.Errorf("no %d ports of 127.0.0.1 from %d to %d are free", n, firstPort, firstPort+portCount-1)
}

// release ends the reservation of ports.
func release(ports []*port) {
	for _, p := range ports {
		if p.claim != nil {
			_ = p.claim.Close()
		}
	}
}

func numbers(ports []*port) (list []int) {
	for _, p := range ports {
		list = append(list, p.number)
	}
	return list
}

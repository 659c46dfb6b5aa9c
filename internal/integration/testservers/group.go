package testservers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Patience is how long tests wait for what a server or another process must do, and how long
// servers may take to come up. On a healthy machine no test waits that long. It is long enough for
// a machine on which tests get a tenth of the time.
const Patience = 3 * time.Minute

// attempts is how often form tries to start the servers of a group.
const attempts = 3

// group is servers of one program that are started and ended together.
type group struct {
	machine machine
	// ports are for its servers to listen on.
	ports       []*port
	supervisors []*supervisor
}

// form makes a group with the given number of ports and calls assemble. It tries again if a server
// ends, because another process may have taken a port that was free.
func form(p program, ports int, assemble func(context.Context, *group) error) (*group, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()

	for attempt := 1; ; attempt++ {
		free, err := reserve(ports)
		if err != nil {
			return nil, err
		}

		g := &group{ports: free}
		if g.machine, err = open(p, numbers(free)); err != nil {
			release(free)
			return nil, err
		}

		err = assemble(ctx, g)
		if err == nil {
			return g, nil
		}

		g.end()
		if !errors.Is(err, errEnded) || attempt == attempts {
			return nil, fmt.Errorf("%w\n%s", err, g.printed())
		}
	}
}

// start runs a server of the group.
func (g *group) start(command ...string) error {
	k, err := g.machine.start(command...)
	if err == nil {
		g.supervisors = append(g.supervisors, k)
	}
	return err
}

// end ends all servers and waits until they are gone.
func (g *group) end() {
	for _, k := range g.supervisors {
		k.end()
	}
	g.machine.end()
	release(g.ports)
}

// printed returns the servers' output. It waits until they have ended.
func (g *group) printed() string {
	var all strings.Builder
	for _, k := range g.supervisors {
		all.WriteString(k.printed())
	}
	return all.String()
}

// address returns the address of the server with the i-th port.
func (g *group) address(i int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(g.ports[i].number))
}

// port returns the i-th port as text, for a flag of a server.
func (g *group) port(i int) string { return strconv.Itoa(g.ports[i].number) }

// errEnded means that a server ended by itself before it was ready.
var errEnded = errors.New("a server ended")

// until retries until there is no error, time is up, or a server of the group has ended.
func (g *group) until(ctx context.Context, ask func(context.Context) error) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()

	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if g.ended() {
			return fmt.Errorf("%w: %w", errEnded, err)
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", Patience, err)
		case <-again.C:
		}
	}
}

func (g *group) ended() bool {
	for _, k := range g.supervisors {
		select {
		case <-k.gone:
			return true
		default:
		}
	}
	return false
}

package exchange

import (
	"context"
	"runtime"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// largePush is the number of bytes from which a push is large. Large pushes have a share of the
// client's connections, and smaller pushes don't wait for them. If the server refuses a large push,
// no other call gets its connection afterwards.
const largePush = 16 << 10

// largeShares is, for each server by its address, the semaphore that a large push holds while it is
// sent to that server. So a server of a Cluster that hangs delays no large push to the others. Its
// zero value is ready.
type largeShares struct {
	mu sync.Mutex
	of map[string]chan struct{}
}

// share returns the semaphore of a server. It has half of the connections to the server, so that
// small pushes, turns and reads always find others. Servers that are not known share one.
func (l *largeShares) share(server goredis.UniversalClient) chan struct{} {
	address, size := "", 10*runtime.GOMAXPROCS(0) // the driver's default, for a client of another type
	if c, ok := server.(*goredis.Client); ok && c != nil {
		address, size = c.Options().Addr, c.Options().PoolSize
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	share := l.of[address]
	if share == nil {
		share = make(chan struct{}, max(1, size/2))
		if l.of == nil {
			l.of = make(map[string]chan struct{})
		}
		l.of[address] = share
	}
	return share
}

// total returns the bytes of entries in calls.
func total(calls []Call) (size int) {
	for i := range calls {
		size += calls[i].Size
	}
	return size
}

// callBytes returns the bytes of entries in the calls at the given positions.
func callBytes(calls []Call, some []int) (size int) {
	for _, i := range some {
		size += calls[i].Size
	}
	return size
}

// runShared sends calls to one server. It waits for the server's share if they are large.
func (s *Link) runShared(ctx context.Context, x *exchanging) []Outcome {
	if total(x.calls) >= largePush {
		server := s.client
		if x.servers != nil {
			server = x.servers[0]
		}

		share := s.large.share(server)
		select {
		case share <- struct{}{}:
		case <-ctx.Done():
			return Failed(len(x.calls), Translate(ctx, ctx.Err()))
		}
		defer func() { <-share }()
	}

	return s.exchangeNow(ctx, x.calls)
}

// sendLarge sends calls on a connection of their own, and reports whether it did. A server that
// refuses the size of a payload closes the connection after its reply, which the client takes for
// any other error. The next user of that connection would lose its call. So sendLarge waits until
// the server has closed it.
func (s *Link) sendLarge(ctx context.Context, calls []Call, open []int, outcomes []Outcome, full bool) bool {
	client := s.client
	if s.OnCluster() && len(open) == 1 {
		client = s.serverFor(ctx, &calls[open[0]])
	}
	server, one := client.(*goredis.Client)
	if !one {
		return false
	}

	conn := server.Conn()
	defer conn.Close()
	sendBy(ctx, conn, calls, open, outcomes, full)
	if slices.ContainsFunc(open, func(i int) bool {
		return goredis.HasErrorPrefix(outcomes[i].Err, "Protocol error")
	}) {
		conn.Ping(ctx)
	}

	err := outcomes[open[0]].Err
	return !s.OnCluster() || // its client follows MOVED and ASK
		!goredis.HasErrorPrefix(err, "MOVED") && !goredis.HasErrorPrefix(err, "ASK")
}

package exchange

import (
	"context"
	"runtime"
	"slices"

	goredis "github.com/redis/go-redis/v9"
)

// largePush is the number of bytes from which a push is large. Large pushes have a share of the
// client's connections, and smaller pushes don't wait for them. If the server refuses a large push,
// no other call gets its connection afterwards.
const largePush = 16 << 10

// newLargeShare returns the semaphore that a large push holds while it is sent. It has half of the
// connections to a server, so that small pushes, turns and reads always find others. The servers of
// a Cluster share it, so one that hangs delays large pushes to the others until the client gives up
// on it.
func newLargeShare(client goredis.UniversalClient) chan struct{} {
	size := 10 * runtime.GOMAXPROCS(0) // the driver's default, for a client of another type
	switch c := client.(type) {
	case *goredis.Client:
		if c != nil {
			size = c.Options().PoolSize
		}
	case *goredis.ClusterClient:
		if c != nil {
			size = c.Options().PoolSize
		}
	}
	return make(chan struct{}, max(1, size/2))
}

// sizeOf returns the bytes of entries in the calls at the given positions.
func sizeOf(calls []Call, some []int) (size int) {
	for _, i := range some {
		size += calls[i].Size
	}
	return size
}

// Run sends calls until each has run or failed. A large push waits while as many others are under
// way as the share allows.
func (s *Link) Run(ctx context.Context, calls []Call) []Outcome {
	size := 0
	for i := range calls {
		size += calls[i].Size
	}
	if size < largePush {
		return s.exchangeNow(ctx, calls)
	}
	select {
	case s.large <- struct{}{}:
	case <-ctx.Done():
		return Failed(len(calls), Translate(ctx, ctx.Err()))
	}
	defer func() { <-s.large }()
	return s.exchangeNow(ctx, calls)
}

// sendLarge sends calls on a connection of their own, and reports whether it did. A server that
// refuses the size of a payload closes the connection after its reply, which the client takes for
// any other error. The next user of that connection would lose its call. So sendLarge waits until
// the server has closed it.
func (s *Link) sendLarge(ctx context.Context, calls []Call, open []int, outcomes []Outcome, full bool) bool {
	client := s.client
	if s.OnCluster() && len(open) == 1 {
		client = s.serverOf(ctx, &calls[open[0]])
	}
	server, one := client.(*goredis.Client)
	if !one {
		return false
	}
	conn := server.Conn()
	defer conn.Close()
	sendBy(ctx, conn, calls, open, outcomes, full)
	if slices.ContainsFunc(open, func(i int) bool { return goredis.HasErrorPrefix(outcomes[i].Err, "Protocol error") }) {
		conn.Ping(ctx)
	}
	err := outcomes[open[0]].Err
	return !s.OnCluster() || !goredis.HasErrorPrefix(err, "MOVED") && !goredis.HasErrorPrefix(err, "ASK") // which the Cluster client follows
}

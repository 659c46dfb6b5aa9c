package redis_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// slowRate is how many bytes a second all connections through a slow link get together.
const slowRate = 1 << 20

// slowLink listens, and connects each caller to the server at an address. What the server sends
// comes at slowRate. It returns where it listens.
func slowLink(t *testing.T, server string) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	var link sync.Mutex
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go carrySlowly(&link, caller, server)
		}
	}()
	return listener.Addr().String()
}

// carrySlowly carries bytes between a caller and a server until either ends.
func carrySlowly(link *sync.Mutex, caller net.Conn, address string) {
	defer caller.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer server.Close()
		defer caller.Close()
		carry(server, caller, func(int) {})
	}()
	carry(caller, server, func(bytes int) {
		link.Lock()
		defer link.Unlock()
		time.Sleep(time.Duration(bytes) * time.Second / slowRate)
	})
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

// Payloads that a link carries for longer than the lease's TTL are handled all the same, those
// that a dead server had claimed too. No job is buried before a handler has seen it.
func TestRedisPayloadsAreHandledThroughASlowLink(t *testing.T) {
	tier.Long(t, "carries 8 MiB at 1 MiB a second")
	t.Parallel()
	backend := testservers.OwnRedis(t)
	link := slowLink(t, backend.(*goredis.Client).Options().Addr)
	throughLink := goredis.NewClient(&goredis.Options{Addr: link, ReadTimeout: time.Minute})
	t.Cleanup(func() { throughLink.Close() })
	direct, slow := redis.New(backend, redis.Options{}), redis.New(throughLink, redis.Options{})
	const ids, each, size, ttl = 4, 2, 1 << 20, 2 * time.Second
	queue := skein.NewQueue("slow", skein.QueueOptions[[]byte]{Shards: 1, MaxPayloadBytes: size, Codec: skein.RawCodec{}})
	client := skein.NewClient(direct, skein.ClientOptions{})
	name := func(i int) string { return string(rune('a' + i)) }
	for i := range ids * each {
		data := make([]byte, size)
		data[0] = byte(i)
		must(t, queue.Push(t.Context(), client, name(i%ids), data, skein.Score(float64(i))))
	}
	// Another server claims half of the ids with all their payloads, and dies.
	shard := core.Shard{Queue: queue.Name()}
	lease, err := direct.Acquire(t.Context(), ports.AcquireRequest{Shard: shard, Shards: 1, Generation: 1, Owner: "dead", Attempt: 1, TTL: ttl})
	must(t, err)
	turn, err := direct.Turn(t.Context(), ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: "dead", Token: lease.Token}, Number: 1, TTL: ttl, Want: ids / 2, Bytes: core.MaxStepBytes,
	})
	must(t, err)
	if len(turn.Claims) != ids/2 {
		t.Fatalf("the dead server has claimed %d jobs, want %d", len(turn.Claims), ids/2)
	}

	handled, done := make(chan byte), make(map[byte]int)
	handler := queue.Handler(func(ctx context.Context, _ string, payloads [][]byte) error {
		for _, data := range payloads {
			select {
			case handled <- data[0]:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := skein.NewServer(slow, skein.ServerOptions{LeaseTTL: ttl, Logger: slog.New(slog.DiscardHandler)}, handler)
	go func() { ended <- server.Run(ctx) }()
	defer func() { <-ended }()
	defer stop()
	for len(done) < ids*each {
		select {
		case i := <-handled:
			done[i]++
		case <-time.After(testservers.Patience):
			t.Fatalf("%d of %d payloads were handled, and no other one since", len(done), ids*each)
		}
	}
	for letter, err := range inspect.New(direct, inspect.Options{}).Morgue(t.Context(), queue.Name(), inspect.ListOptions{}) {
		must(t, err)
		t.Errorf("the job %q was buried", letter.ID)
	}
	t.Logf("how often each payload was handled: %v", done)
}

package redis_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// pipelines are the numbers of scripts in each exchange of a client with several commands. Only
// scripts keep a server from answering others for long.
type pipelines struct {
	mu    sync.Mutex
	sizes []int
}

func (*pipelines) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*pipelines) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		scripts := 0
		for _, cmd := range cmds {
			if name := cmd.Name(); name == "evalsha" || name == "eval" {
				scripts++
			}
		}
		p.mu.Lock()
		p.sizes = append(p.sizes, scripts)
		p.mu.Unlock()
		return next(ctx, cmds)
	}
}

// While a page, a history or statistics of many shards are read, the server answers others in
// between: each exchange has few scripts. How long another connection waits is printed.
func TestRedisPagesLeaveTheServerToOthers(t *testing.T) {
	tier.Long(t, "measures")
	const shards, jobs = 512, 20_000
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	ctx := t.Context()
	_, err := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: shards})
	must(t, err)
	var entries []core.Entry
	for i := range jobs {
		entries = append(entries,
			core.Entry{ID: fmt.Sprint("order-", i), Payload: core.Payload{Data: make([]byte, 100)}})
	}
	for some := range slices.Chunk(entries, 5000) {
		_, err := store.Push(ctx, ports.PushRequest{Queue: "orders", Shards: shards, Generation: 1, Entries: some})
		must(t, err)
	}

	seen := &pipelines{}
	client.AddHook(seen)
	page := ports.PageRequest{Queue: "orders", Limit: ports.DefaultPage}
	for _, tt := range []struct {
		name string
		most int
		do   func() error
	}{
		{"page", 16, func() error { _, err := store.Jobs(ctx, ports.JobsRequest{PageRequest: page}); return err }},
		{"page of the claimed", 16, func() error { _, err := store.Claimed(ctx, page); return err }},
		{"history", 8, func() error { _, err := store.History(ctx, ports.HistoryRequest{Queue: "orders"}); return err }},
		{"statistics", 64, func() error { _, err := store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}}); return err }},
	} {
		must(t, tt.do()) // the server may not know the script yet
		seen.sizes = nil
		waits := beside(t, client, func() { must(t, tt.do()) })
		if most := slices.Max(seen.sizes); most > tt.most {
			t.Errorf("a %s sends %d scripts at once, at most %d expected", tt.name, most, tt.most)
		}
		t.Logf("%-20s %d exchanges; another connection waits for p50 %v, at most %v",
			tt.name, len(seen.sizes), waits[len(waits)/2], waits[len(waits)-1])
	}
}

// beside makes a call, and returns how long another connection waited for each answer
// meanwhile, rising.
func beside(t *testing.T, client goredis.UniversalClient, do func()) (waits []time.Duration) {
	t.Helper()
	other := goredis.NewClient(&goredis.Options{Addr: client.(*goredis.Client).Options().Addr})
	defer other.Close()
	must(t, other.Ping(t.Context()).Err())
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			begun := time.Now()
			err := other.Ping(t.Context()).Err()
			waits = append(waits, time.Since(begun))
			select {
			case <-stop:
				return
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	do()
	close(stop)
	<-done
	slices.Sort(waits)
	return waits
}

package kills_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const (
	handOvers = 20
	// handOverPoll is when a waiting server would look at a shard again without a wake-up. No test
	// waits that long.
	handOverPoll = time.Hour
)

var handed = skein.NewQueue[int]("handed", skein.QueueOptions[int]{Shards: 5})

// A server that stops cleanly hands its shards over by waking the one that waits for
// them. The log has how long it took until the first job of each shard ran.
func TestHandOverNeedsNoPoll(t *testing.T) {
	t.Parallel()
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			var took kit.Spread
			standby := newHandOverServer(t, url)
			for range handOvers {
				active := standby
				active.awaitShards(t)
				standby = newHandOverServer(t, url)
				standby.awaitRefusal(t)
				took = append(took, active.handOver(t, standby)...)
			}
			standby.stop(t)
			t.Logf("hand-overs of a shard: %v", took)
		})
	}
}

// handOverServer is a server with a store of its own, as another process has it.
type handOverServer struct {
	store   ports.ShardStore
	leases  chan ports.LeaseEvent
	refused chan struct{}
	ran     chan int
	cancel  context.CancelFunc
	ended   chan error
}

// leaseWatcher sees which leases a server gets.
type leaseWatcher struct {
	ports.NopObserver
	leases chan ports.LeaseEvent
}

func (w leaseWatcher) LeaseChanged(e ports.LeaseEvent) { w.leases <- e }

// refusals is a store that records when an acquire was refused.
type refusals struct {
	ports.ShardStore
	ports.Notifier
	refused chan struct{}
}

func (r refusals) Acquire(ctx context.Context, a ports.AcquireRequest) (ports.AcquireReply, error) {
	reply, err := r.ShardStore.Acquire(ctx, a)
	if err != nil {
		select {
		case r.refused <- struct{}{}:
		default:
		}
	}
	return reply, err
}

func newHandOverServer(t *testing.T, url string) *handOverServer {
	t.Helper()
	store := kit.Open(t, url)
	s := &handOverServer{
		leases: make(chan ports.LeaseEvent, 100), refused: make(chan struct{}, 100),
		ran: make(chan int, 100), ended: make(chan error, 1),
	}
	s.store = refusals{store, store.(ports.Notifier), s.refused}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	handler := handed.Handler(func(_ context.Context, _ string, n []int) error {
		s.ran <- n[0]
		return nil
	})
	server := skein.NewServer(s.store, skein.ServerOptions{
		Splitter:     skein.NodeSplitter{Nodes: 1, Share: true}, // one works all shards, and another stands by
		PollInterval: handOverPoll, LeaseTTL: handOverPoll,
		Observer: leaseWatcher{leases: s.leases}, Logger: slog.New(slog.DiscardHandler),
	}, handler)
	go func() { s.ended <- server.Run(ctx) }()
	t.Cleanup(s.cancel)
	return s
}

// awaitShards returns once the server has all shards.
func (s *handOverServer) awaitShards(t *testing.T) {
	t.Helper()
	for held := 0; held < 5; {
		select {
		case e := <-s.leases:
			if e.Change == ports.LeaseAcquired {
				held++
			}
		case <-time.After(testservers.Patience):
			t.Fatalf("the server has %d of 5 shards after %v", held, testservers.Patience)
		}
	}
}

// awaitRefusal returns once each shard was refused.
func (s *handOverServer) awaitRefusal(t *testing.T) {
	t.Helper()
	for range 5 {
		select {
		case <-s.refused:
		case <-time.After(testservers.Patience):
			t.Fatal("the second server was not refused")
		}
	}
}

// handOver stops the server, and returns how long after its end the successor ran
// a job of each shard that was pushed then.
func (s *handOverServer) handOver(t *testing.T, successor *handOverServer) (took []time.Duration) {
	t.Helper()
	s.stop(t)
	stopped := time.Now()
	client := skein.NewClient(s.store, skein.ClientOptions{})
	var entries []skein.Entry[int]
	for shard := range 5 {
		for n := 0; ; n++ {
			if id := fmt.Sprint("id-", n); core.ShardOf(id, 5) == shard {
				entries = append(entries, skein.Entry[int]{ID: id, Payload: shard})
				break
			}
		}
	}
	if err := handed.PushMany(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		select {
		case <-successor.ran:
			took = append(took, time.Since(stopped)) // logged alone: a slow machine prints more
		case <-time.After(testservers.Patience):
			t.Fatalf("the successor has run %d of 5 jobs %v after the server stopped", len(took), testservers.Patience)
		}
	}
	return took
}

func (s *handOverServer) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	if err := <-s.ended; err != nil {
		t.Fatal(err)
	}
}

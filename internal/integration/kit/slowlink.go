package kit

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// HandleThroughSlowLink checks that payloads that a link carries for longer than the lease's TTL
// are handled all the same, those that a dead server had claimed too, and that no job is buried
// before a handler has seen it. The slow store is behind the link, and each id has the given number
// of payloads.
func HandleThroughSlowLink(t *testing.T, direct, slow ports.ShardStore, ids, each, size int) {
	t.Helper()
	const ttl = 2 * time.Second
	queue := skein.NewQueue("slow",
		skein.QueueOptions[[]byte]{Shards: 1, MaxPayloadBytes: size, Codec: skein.RawCodec{}})
	client := skein.NewClient(direct, skein.ClientOptions{})
	name := func(i int) string { return string(rune('a' + i)) }

	for i := range ids * each {
		data := make([]byte, size)
		data[0] = byte(i)
		Must(t, queue.Push(t.Context(), client, name(i%ids), data, skein.Score(float64(i))))
	}
	// Another server claims half of the ids with all their payloads, and dies.
	shard := core.Shard{Queue: queue.Name()}
	lease, err := direct.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "dead",
		Attempt:    1,
		TTL:        ttl,
	})
	Must(t, err)

	turn, err := direct.Turn(t.Context(), ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "dead", Token: lease.Token},
		Number: 1,
		TTL:    ttl,
		Want:   ids / 2,
		Bytes:  core.MaxStepBytes,
	})
	Must(t, err)
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

	for letter, err := range inspect.New(direct, inspect.Options{}).Morgue(
		t.Context(), queue.Name(), inspect.ListOptions{},
	) {
		Must(t, err)
		t.Errorf("the job %q was buried", letter.ID)
	}

	t.Logf("how often each payload was handled: %v", done)
}

package kit

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// AwaitCounts waits until a queue has the given numbers of queued, claimed and orphaned jobs. It
// ends the test after Patience.
func AwaitCounts(t *testing.T, store ports.ShardStore, queue string, queued, claimed, orphaned int64) {
	t.Helper()
	inspector := inspect.New(store, inspect.Options{})

	for end := time.Now().Add(testservers.Patience); ; time.Sleep(20 * time.Millisecond) {
		stats, err := inspector.Stats(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}

		c := stats[0].Counts
		if c.Length() == queued && c.Claimed == claimed && c.Orphaned == orphaned {
			return
		}

		if time.Now().After(end) {
			t.Fatalf("%d queued, %d claimed and %d orphaned after %v; want %d, %d and %d",
				c.Length(), c.Claimed, c.Orphaned, testservers.Patience, queued, claimed, orphaned)
		}
	}
}

// Recounted takes all steps of a recount of a shard.
func Recounted(ctx context.Context, s ports.Operator, shard core.Shard) (ports.RecountReply, error) {
	return RecountedAround(ctx, s, ports.RecountRequest{Shard: shard}, func() {})
}

// RecountedAround takes all steps of a recount, and calls the function between before each step
// except the first.
func RecountedAround(
	ctx context.Context,
	s ports.Operator,
	r ports.RecountRequest,
	between func(),
) (ports.RecountReply, error) {
	sum, err := s.Recount(ctx, r)
	for err == nil && sum.Next != "" {
		between()
		r.After = sum.Next
		var reply ports.RecountReply
		if reply, err = s.Recount(ctx, r); err == nil {
			sum = sum.Then(reply)
		}
	}

	return sum, err
}

package skein_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestRunDueRunsWhatAnotherHasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1})
		push(t, store, q, "a", "x")

		shard := core.Shard{Queue: "q"}
		reply, err := store.Acquire(t.Context(), ports.AcquireRequest{
			Shard:      shard,
			Shards:     1,
			Generation: 1,
			Owner:      "lost",
			Attempt:    1,
			TTL:        time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}

		claim := ports.TurnRequest{
			Lease:  ports.Lease{Shard: shard, Owner: "lost", Token: reply.Token},
			Number: 1,
			TTL:    time.Second,
			Want:   1,
		}
		if turn, err := store.Turn(t.Context(), claim); err != nil || len(turn.Claims) != 1 {
			t.Fatalf("claimed %v, %v", turn.Claims, err)
		}

		time.Sleep(2 * time.Second)
		begun := false
		jobs, err := skein.NewServer(store, skein.ServerOptions{},
			q.Handler(func(ctx context.Context, id string, _ []string) error {
				found, err := store.Find(ctx, ports.FindRequest{Queue: "q", ID: id, Payloads: 1000})
				begun = err == nil && found.Claim != nil && found.Claim.Begun
				return err
			})).RunDue(t.Context())

		if err != nil || jobs != 1 || !begun {
			t.Errorf("RunDue = %d, %v, and the job had begun: %t; want 1 and true", jobs, err, begun)
		}
		equal(t, "state", stateOf(t, store, "q", "a"), "")
	})
}

// RunDue runs all that is due, however many jobs there are and though they become slow, and claims
// for 50 ms ahead.
func TestRunDueRunsManyJobsAndClaimsFewAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pushed, most = 500, 1 + 50
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 2})
		for i := range pushed {
			push(t, store, q, fmt.Sprint(i), "x")
		}

		started := 0
		jobs, err := skein.NewServer(store, skein.ServerOptions{},
			q.Handler(func(ctx context.Context, _ string, _ []string) error {
				if started++; started < pushed/4 {
					time.Sleep(time.Millisecond)
				} else {
					time.Sleep(100 * time.Millisecond)
				}
				stats, err := store.Stats(ctx, ports.StatsRequest{Queues: []string{"q"}})
				if err == nil && stats[0].Claimed > most+1 { // the one that ran before may not be settled
					t.Errorf("%d jobs are claimed, want at most %d", stats[0].Claimed, most+1)
				}
				return err
			})).RunDue(t.Context())

		if err != nil || jobs != pushed {
			t.Errorf("RunDue = %d, %v; want %d", jobs, err, pushed)
		}
	})
}

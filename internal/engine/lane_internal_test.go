package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// TestALanesRequestIsAnsweredByOneTurn has the turn that begins a recovered job answer
// between the lane's look and its question. The next turn has nothing to claim and
// nothing to begin, and is the answer all the same.
func TestALanesRequestIsAnsweredByOneTurn(t *testing.T) {
	store := memory.New(memory.Options{})
	q := &Queue{Name: "q", Shards: 1, BatchSize: 1, Policy: core.RetryPolicy{MaxRetries: 1, MaxRecoveries: 3}}
	e := New(store, Config{
		Queues: []*Queue{q}, Owner: "owner", Node: "node", Lanes: 1, PollInterval: time.Second, LeaseTTL: 10 * time.Second,
		Splitter: core.LaneSplitter{}, Scheduler: core.Lag, Logger: slog.New(slog.DiscardHandler),
	})
	e.makeContexts(t.Context())
	defer e.cancelCalls()
	if err := e.assignShards(); err != nil {
		t.Fatal(err)
	}
	if err := e.declare(q); err != nil {
		t.Fatal(err)
	}
	placeRecoveredOnce(t, store, "job")
	s := e.shards[0]
	s.attempt++
	reply, err := s.tryAcquire()
	if err != nil {
		t.Fatal(err)
	}
	s.acquired(reply, time.Now())
	s.lane.current.Store(s)
	turn := func() {
		t.Helper()
		if err := s.turnOnce(); err != nil {
			t.Fatal(err)
		}
	}
	s.requestJobs()
	turn()
	if s.take(time.Now()) != nil {
		t.Fatal("a recovered job starts before it has begun")
	}
	turn()
	s.requestJobs()
	turn()
	if !s.answeredLane() {
		t.Error("the lane still waits for an answer, so that turn follows turn")
	}
	if s.take(time.Now()) == nil {
		t.Error("the job does not start")
	}
}

// placeRecoveredOnce queues a job that has been recovered once.
func placeRecoveredOnce(t *testing.T, store *memory.Store, id string) {
	t.Helper()
	ctx, shard := context.Background(), core.Shard{Queue: "q"}
	push := ports.PushRequest{Queue: "q", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: id}}}
	if _, err := store.Push(ctx, push); err != nil {
		t.Fatal(err)
	}
	lease := ports.Lease{Shard: shard, Owner: "before"}
	acquired, err := store.Acquire(ctx, ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: lease.Owner, Attempt: 1, TTL: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	lease.Token = acquired.Token
	claimed, err := store.Turn(ctx, ports.TurnRequest{Lease: lease, Number: 1, TTL: time.Second, Want: 1})
	if err != nil || len(claimed.Claims) != 1 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	back := core.Settlement{ID: id, Receipt: claimed.Claims[0].Receipt, Rest: core.Requeue,
		PutBack: core.PutBack{SameTime: true, RetryCount: core.FreshRetryCount, Recoveries: 1}}
	if _, err := store.Turn(ctx, ports.TurnRequest{
		Lease: lease, Number: 2, TTL: time.Second, Settlements: []core.Settlement{back},
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Release(ctx, lease); err != nil {
		t.Fatal(err)
	}
}

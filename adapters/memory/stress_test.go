package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	stressShards  = 3
	stressOwners  = 4
	stressIDs     = 40
	stressPerID   = 25
	stressPayload = "%s/%03d"
)

// stress is a backend under load, and its workers' results.
type stress struct {
	t     *testing.T
	store *memory.Store
	stop  chan struct{}

	mu      sync.Mutex
	running map[string]bool
	handled map[string]int
	left    int
}

// Several handles push, work, take shards from one another, operate and inspect at
// once. No payload is lost or handled twice, and no id runs twice at a time.
func TestManyHandlesLoseNothing(t *testing.T) {
	s := &stress{
		t:       t,
		store:   memory.New(memory.Options{}),
		stop:    make(chan struct{}),
		running: map[string]bool{},
		handled: map[string]int{},
		left:    stressIDs * stressPerID,
	}
	_, err := s.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: stressShards, IndexIDs: true})
	if err != nil {
		t.Fatal(err)
	}

	var others, workers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	others.Go(func() { s.operate(ctx, s.store.Open()) })
	others.Go(func() { s.inspect(ctx, s.store.Open()) })
	for i := range stressOwners {
		workers.Go(func() { s.produce(s.store.Open(), i) })
		workers.Go(func() { s.work(s.store.Open(), i) })
	}

	workers.Wait()
	cancel()
	others.Wait()

	for i := range stressIDs {
		for n := range stressPerID {
			data := fmt.Sprintf(stressPayload, stressID(i), n)
			if times := s.handled[data]; times != 1 {
				t.Errorf("%s was handled %d times, want once", data, times)
			}
		}
	}

	stats, err := s.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	if c := stats[0].Counts; c.Fresh+c.Retrying+c.Claimed+c.Dead != 0 || c.Oldest.OK {
		t.Errorf("left in the queue: %+v", c)
	}
}

func stressID(i int) string { return fmt.Sprintf("order-%d", i) }

func (s *stress) check(what string, err error) {
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

// produce pushes the payloads of every fourth id, in an order of its own.
func (s *stress) produce(store *memory.Store, owner int) {
	for _, n := range rand.Perm(stressPerID) {
		var entries []core.Entry
		for i := owner; i < stressIDs; i += stressOwners {
			data := fmt.Sprintf(stressPayload, stressID(i), n)
			entries = append(entries, core.Entry{
				ID:      stressID(i),
				Payload: core.Payload{Data: []byte(data), Score: float64(n)},
			})
		}

		_, err := store.Push(s.t.Context(), ports.PushRequest{
			Queue: "orders", Shards: stressShards, Generation: 1, Entries: entries,
		})
		s.check("push", err)
	}
}

// work takes any free shard, turns it a few times, and moves on to another, until every payload
// has been handled.
func (s *stress) work(store *memory.Store, owner int) {
	name := fmt.Sprintf("owner-%d", owner)
	for attempt := int64(1); ; attempt++ {
		select {
		case <-s.stop:
			return
		default:
		}

		shard := core.Shard{Queue: "orders", Index: rand.IntN(stressShards)}
		got, err := store.Acquire(s.t.Context(), ports.AcquireRequest{
			Shard: shard, Shards: stressShards, Generation: 1, Owner: name, Attempt: attempt, TTL: time.Hour,
		})
		if errors.Is(err, ports.ErrLeaseHeld) {
			continue
		}
		s.check("acquire", err)

		lease := ports.Lease{Shard: shard, Owner: name, Token: got.Token}
		s.turns(store, lease, got.Claims)
		s.check("release", store.Release(s.t.Context(), lease))
	}
}

// turns works a lease for a while and leaves its last claims to the next owner, which gets them as
// orphans.
func (s *stress) turns(store *memory.Store, lease ports.Lease, orphans []core.Claim) {
	policy := core.RetryPolicy{MaxRetries: 1 << 20, MaxRecoveries: 1 << 20}
	var settle []core.Settlement
	for i := range orphans {
		settle = append(settle, policy.Recover(&orphans[i], 0))
		s.end(orphans[i].ID)
	}

	number := int64(0)
	for range 1 + rand.IntN(5) {
		reply, err := store.Turn(s.t.Context(), ports.TurnRequest{
			Lease: lease, Number: number + 1, TTL: time.Hour, Settlements: settle, Want: 8, PerJob: 3,
		})
		s.check("turn", err)
		number, settle = reply.Last, nil

		if len(reply.Skipped) > 0 {
			s.t.Errorf("positions %v were not claimed any more", reply.Skipped)
		}
		s.begin(reply.Claims)
		if rand.IntN(4) == 0 {
			return
		}

		for i := range reply.Claims {
			settle = append(settle, s.run(policy, &reply.Claims[i]))
			s.end(reply.Claims[i].ID)
		}
	}
	s.check("settle", store.Settle(s.t.Context(), lease.Shard, settle))
}

func (s *stress) begin(claims []core.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		if s.running[c.ID] {
			s.t.Errorf("%s was claimed while it was claimed", c.ID)
		}
		s.running[c.ID] = true
	}
}

func (s *stress) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, id)
}

// run handles a claim: most are done, some fail or are put back.
func (s *stress) run(policy core.RetryPolicy, c *core.Claim) core.Settlement {
	switch rand.IntN(8) {
	case 0:
		return policy.Settlement(c, &core.Outcome{Kind: core.Failed, OwnDelay: true, Error: "no luck"}, 0)
	case 1:
		return policy.Settlement(c, &core.Outcome{Kind: core.Untouched}, 0)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range c.Payloads {
		s.handled[string(p.Data)]++
		s.left--
	}
	if s.left == 0 {
		close(s.stop)
	}
	return policy.Settlement(c, &core.Outcome{Kind: core.Done}, 0)
}

// operate makes those calls of an operator that lose nothing.
func (s *stress) operate(ctx context.Context, store *memory.Store) {
	background := s.t.Context()
	for ctx.Err() == nil {
		shard := core.Shard{Queue: "orders", Index: rand.IntN(stressShards)}
		s.check("pause", store.Pause(background, "orders"))
		ids := []string{stressID(rand.IntN(stressIDs)), stressID(rand.IntN(stressIDs))}
		_, err := store.Bury(background, ports.JobStep{Shard: shard, IDs: ids, Failed: true})
		s.check("bury", err)
		_, err = store.Cancel(background, ports.CancelRequest{
			Shard: shard,
			IDs:   []string{stressID(rand.IntN(stressIDs))},
		})
		s.check("cancel", err)
		s.check("resume", store.Resume(background, "orders"))
		_, err = store.Revive(background, ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant})
		s.check("revive", err)
		_, err = store.Expedite(background, ports.JobStep{Shard: shard, IDs: ids})
		s.check("expedite", err)
	}

	for _, shard := range core.Shards("orders", stressShards) {
		_, err := store.Revive(background, ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant})
		s.check("revive", err)
	}
}

// inspect makes every call of an inspector, once per wake-up.
func (s *stress) inspect(ctx context.Context, store *memory.Store) {
	background := s.t.Context()
	wakeups, err := store.Wakeups(ctx, core.Shards("orders", stressShards))
	s.check("wakeups", err)
	page := ports.PageRequest{Queue: "orders", Limit: 5, Payloads: 2}

	for range wakeups {
		for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
			_, err := store.Jobs(background, ports.JobsRequest{PageRequest: page, SortBy: order})
			s.check("jobs", err)
		}
		_, err := store.Claimed(background, page)
		s.check("claimed", err)
		_, err = store.Morgue(background, ports.MorgueRequest{PageRequest: page})
		s.check("morgue", err)
		_, err = store.Find(background, ports.FindRequest{
			Queue: "orders", ID: stressID(rand.IntN(stressIDs)), Payloads: 1000,
		})
		s.check("find", err)
		_, err = store.Heads(background, core.Shards("orders", stressShards))
		s.check("heads", err)
		_, err = store.History(background, ports.HistoryRequest{Queue: "orders"})
		s.check("history", err)
	}
}

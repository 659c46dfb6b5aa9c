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
	hammerShards  = 3
	hammerOwners  = 4
	hammerIDs     = 40
	hammerPerID   = 25
	hammerPayload = "%s/%03d"
)

// hammer is a backend under load, and what its workers have seen.
type hammer struct {
	t     *testing.T
	store *memory.Store
	stop  chan struct{}

	mu      sync.Mutex
	running map[string]bool
	handled map[string]int
	left    int
}

// Several handles push, work, take shards from one another, look and meddle at
// once. No payload is lost or handled twice, and no id runs twice at a time.
func TestManyHandlesLoseNothing(t *testing.T) {
	h := &hammer{
		t: t, store: memory.New(memory.Options{}), stop: make(chan struct{}),
		running: map[string]bool{}, handled: map[string]int{}, left: hammerIDs * hammerPerID,
	}
	_, err := h.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: hammerShards, IndexIDs: true})
	if err != nil {
		t.Fatal(err)
	}
	var meddlers, workers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	meddlers.Go(func() { h.meddle(ctx, h.store.Open()) })
	meddlers.Go(func() { h.look(ctx, h.store.Open()) })
	for i := range hammerOwners {
		workers.Go(func() { h.produce(h.store.Open(), i) })
		workers.Go(func() { h.work(h.store.Open(), i) })
	}
	workers.Wait()
	cancel()
	meddlers.Wait()
	for i := range hammerIDs {
		for n := range hammerPerID {
			data := fmt.Sprintf(hammerPayload, hammerID(i), n)
			if times := h.handled[data]; times != 1 {
				t.Errorf("%s was handled %d times, want once", data, times)
			}
		}
	}
	stats, err := h.store.Stats(t.Context(), []string{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	if c := stats[0].Counts; c.Fresh+c.Retrying+c.Claimed+c.Dead != 0 || c.Oldest.OK {
		t.Errorf("left in the queue: %+v", c)
	}
}

func hammerID(i int) string { return fmt.Sprintf("order-%d", i) }

func (h *hammer) check(what string, err error) {
	if err != nil {
		h.t.Errorf("%s: %v", what, err)
	}
}

// produce pushes the payloads of every fourth id, in an order of its own.
func (h *hammer) produce(store *memory.Store, owner int) {
	for _, n := range rand.Perm(hammerPerID) {
		var entries []core.Entry
		for i := owner; i < hammerIDs; i += hammerOwners {
			data := fmt.Sprintf(hammerPayload, hammerID(i), n)
			entries = append(entries, core.Entry{ID: hammerID(i), Payload: core.Payload{Data: []byte(data), Score: float64(n)}})
		}
		_, err := store.Push(h.t.Context(), ports.PushRequest{Queue: "orders", Shards: hammerShards, Generation: 1, Entries: entries})
		h.check("push", err)
	}
}

// work takes any free shard, turns it a few times, and goes on to another, until
// every payload has been handled.
func (h *hammer) work(store *memory.Store, owner int) {
	name := fmt.Sprintf("owner-%d", owner)
	for attempt := int64(1); ; attempt++ {
		select {
		case <-h.stop:
			return
		default:
		}
		shard := core.Shard{Queue: "orders", Index: rand.IntN(hammerShards)}
		got, err := store.Acquire(h.t.Context(), ports.AcquireRequest{
			Shard: shard, Shards: hammerShards, Generation: 1, Owner: name, Attempt: attempt, TTL: time.Minute,
		})
		if errors.Is(err, ports.ErrLeaseHeld) {
			continue
		}
		h.check("acquire", err)
		lease := ports.Lease{Shard: shard, Owner: name, Token: got.Token}
		h.turns(store, lease, got.Claims)
		h.check("release", store.Release(h.t.Context(), lease))
	}
}

// turns works a lease for a while and leaves what it claimed last to the next
// owner, which gets it as orphans.
func (h *hammer) turns(store *memory.Store, lease ports.Lease, orphans []core.Claim) {
	policy := core.RetryPolicy{MaxRetries: 1 << 20, MaxRecoveries: 1 << 20}
	var settle []core.Settlement
	for i := range orphans {
		settle = append(settle, policy.Recover(&orphans[i]))
		h.end(orphans[i].ID)
	}
	number := int64(0)
	for range 1 + rand.IntN(5) {
		reply, err := store.Turn(h.t.Context(), ports.TurnRequest{
			Lease: lease, Number: number + 1, TTL: time.Minute, Settlements: settle, Want: 8, PerJob: 3, Stats: &core.Stats{Processed: 1},
		})
		h.check("turn", err)
		number, settle = reply.Last, nil
		if len(reply.Skipped) > 0 {
			h.t.Errorf("positions %v were not claimed any more", reply.Skipped)
		}
		h.begin(reply.Claims)
		if rand.IntN(4) == 0 {
			return
		}
		for i := range reply.Claims {
			settle = append(settle, h.run(policy, &reply.Claims[i]))
			h.end(reply.Claims[i].ID)
		}
	}
	h.check("settle", store.Settle(h.t.Context(), lease.Shard, settle))
}

func (h *hammer) begin(claims []core.Claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range claims {
		if h.running[c.ID] {
			h.t.Errorf("%s was claimed while it was claimed", c.ID)
		}
		h.running[c.ID] = true
	}
}

func (h *hammer) end(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, id)
}

// run handles a claim: most are done, some fail or are put back.
func (h *hammer) run(policy core.RetryPolicy, c *core.Claim) core.Settlement {
	switch rand.IntN(8) {
	case 0:
		return policy.Settlement(c, &core.Outcome{Kind: core.Failed, OwnDelay: true, Error: "no luck"}, 0)
	case 1:
		return policy.Settlement(c, &core.Outcome{Kind: core.Untouched}, 0)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range c.Payloads {
		h.handled[string(p.Data)]++
		h.left--
	}
	if h.left == 0 {
		close(h.stop)
	}
	return policy.Settlement(c, &core.Outcome{Kind: core.Done}, 0)
}

// meddle does by hand what loses nothing.
func (h *hammer) meddle(ctx context.Context, store *memory.Store) {
	background := h.t.Context()
	for ctx.Err() == nil {
		shard := core.Shard{Queue: "orders", Index: rand.IntN(hammerShards)}
		h.check("pause", store.Pause(background, "orders"))
		_, err := store.Bury(background, ports.JobStep{Shard: shard, Limit: 3})
		h.check("bury", err)
		_, err = store.Cancel(background, ports.CancelRequest{Shard: shard, IDs: []string{hammerID(rand.IntN(hammerIDs))}})
		h.check("cancel", err)
		h.check("resume", store.Resume(background, "orders"))
		_, err = store.Revive(background, ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant})
		h.check("revive", err)
		_, err = store.Expedite(background, ports.JobStep{Shard: shard})
		h.check("expedite", err)
	}
	for _, shard := range core.Shards("orders", hammerShards) {
		_, err := store.Revive(background, ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant})
		h.check("revive", err)
	}
}

// look reads everything there is to see.
func (h *hammer) look(ctx context.Context, store *memory.Store) {
	background := h.t.Context()
	wakeups, err := store.Wakeups(ctx, core.Shards("orders", hammerShards))
	h.check("wakeups", err)
	page := ports.PageRequest{Queue: "orders", Limit: 5, Payloads: 2}
	for range wakeups {
		for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
			_, err := store.Jobs(background, ports.JobsRequest{PageRequest: page, SortBy: order})
			h.check("jobs", err)
		}
		_, err := store.Claimed(background, page)
		h.check("claimed", err)
		_, err = store.Morgue(background, ports.MorgueRequest{PageRequest: page})
		h.check("morgue", err)
		_, err = store.Find(background, "orders", hammerID(rand.IntN(hammerIDs)))
		h.check("find", err)
		_, err = store.Heads(background, core.Shards("orders", hammerShards))
		h.check("heads", err)
		_, err = store.History(background, ports.HistoryRequest{Queue: "orders"})
		h.check("history", err)
	}
}

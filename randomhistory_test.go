package skein_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
)

// history is what random histories of a queue of one shard have in common: its store in virtual time,
// and servers that run, or claim jobs and die.
type history struct {
	t         *rapid.T
	clock     *virtual.Clock
	store     *memory.Store
	inspector *inspect.Inspector
	client    *skein.Client
	// name is the name of the queue, and handler handles its jobs.
	name    string
	handler skein.Handler
	crashes int64
}

func newHistory(t *rapid.T, name string) history {
	clock := virtual.NewClock(time.Unix(1_800_000_000, 0))
	store := memory.New(memory.Options{Clock: clock.Now})
	return history{
		t:         t,
		clock:     clock,
		store:     store,
		inspector: inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
		client:    skein.NewClient(store, skein.ClientOptions{}),
		name:      name,
	}
}

func (h *history) id() string { return rapid.SampledFrom([]string{"a", "b"}).Draw(h.t, "id") }

// run lets a server handle all due jobs.
func (h *history) run() {
	h.clock.Advance(time.Second)
	server := skein.NewServer(h.store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, h.handler)
	_, err := server.RunDue(context.Background())
	check(h.t, err)
}

// acquired returns the lease of a server that is about to die. ok is false if nothing was pushed yet.
func (h *history) acquired() (lease ports.Lease, ok bool) {
	h.crashes++
	lease = ports.Lease{Shard: core.Shard{Queue: h.name}, Owner: "crashes"}
	acquired, err := h.store.Acquire(context.Background(), ports.AcquireRequest{
		Shard: lease.Shard, Shards: 1, Generation: 1, Owner: lease.Owner, Attempt: h.crashes, TTL: time.Millisecond,
	})
	if errors.Is(err, ports.ErrUnknownQueue) {
		return lease, false
	}

	check(h.t, err)
	lease.Token = acquired.Token
	return lease, true
}

// acted ends the test for the error of an operator's action, unless nothing was pushed yet.
func (h *history) acted(err error) {
	if !errors.Is(err, inspect.ErrUnknownQueue) {
		check(h.t, err)
	}
}

// find returns what the queue holds for an id, which is nothing before the first push.
func (h *history) find(id string) inspect.Found {
	found, err := h.inspector.Find(context.Background(), h.name, id)
	h.acted(err)
	return found
}

// heldPayloads returns the payloads of an id that are queued, claimed or dead.
func heldPayloads(f *inspect.Found) []core.Payload {
	var lists [][]core.Payload
	if f.Queued != nil {
		lists = append(lists, f.Queued.Payloads)
	}
	if f.Claimed != nil {
		lists = append(lists, f.Claimed.Payloads)
	}
	if f.DeadLetter != nil {
		lists = append(lists, f.DeadLetter.Payloads)
	}
	return slices.Concat(lists...)
}
